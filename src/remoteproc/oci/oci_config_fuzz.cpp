// Any bytes as config.json, state.json, details.json and as the proxy's notes. The first byte chooses.
#include "remoteproc/oci/state.h"
#include "remoteproc/oci/wishes.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace talpa::remoteproc;
    if (size == 0) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
    switch (data[0] % 4) {
        case 0:
            if (const auto spec = parse_spec(text)) (void)read_wishes(spec->annotations, &*spec, (data[0] & 4) != 0);
            break;
        case 1:
            if (const auto state = parse_state_file(text)) (void)parse_state_file(state_json(*state, 2)).value();
            break;
        case 2:
            if (const auto details = parse_details(text)) (void)parse_details(details_json(*details)).value();
            break;
        default:
            (void)parse_proxy_record(text);
    }
    return 0;
}
