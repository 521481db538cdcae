// Any bytes as what a ttrpc peer sends, in pieces of a length that the first byte gives; and as bootstrap parameters.
#include "remoteproc/shim/bootstrap.h"
#include "remoteproc/shim/mounts.h"
#include "remoteproc/shim/ttrpc.h"
#include "remoteproc/shim/wire.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace talpa::remoteproc::shim;
    if (size == 0) return 0;
    std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
    const std::size_t step = data[0] % 64 + 1;
    (void)parse_bootstrap(text, {});
    std::string folder;
    (void)shorten_overlay(std::string(text), folder);
    FrameReader reader;
    while (!text.empty()) {
        reader.feed(text.substr(0, step));
        text.remove_prefix(std::min(step, text.size()));
        while (const auto frame = reader.next()) {
            (void)parse_response(frame->payload);
            if (const auto request = parse_request(frame->payload)) {
                (void)is_sound(request->payload);
                (void)parse_request(request_bytes(*request, "ns")).value();
            }
        }
    }
    return 0;
}
