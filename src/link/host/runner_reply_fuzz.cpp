// Replies of a stranger's firmware: whatever arrives on the tty is assembled into lines and parsed or is Other.
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "link/host/runner_reply.h"
#include "link/runner_protocol.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace talpa::link;
    LineAssembler assembler;
    const std::string_view all(reinterpret_cast<const char*>(data), size);
    const std::size_t step = size > 0 ? data[0] % 64 + 1u : 1;
    for (std::size_t at = 1; at < size; at += step)
        assembler.feed(all.substr(at, step), [](std::string_view line, bool) {
            const host::Reply reply = host::parse_reply(line);
            if (reply.tag.size() > kMaxTag) std::abort();
            if (reply.kind == host::Reply::Kind::Top && (!std::isfinite(reply.top.score) || reply.top.rank == 0))
                std::abort();
            if (reply.output.shape.size() > 8) std::abort();
            for (const std::int32_t side : reply.output.shape)
                if (reply.kind == host::Reply::Kind::Output && side < 0) std::abort();
            if (!reply.text.empty() &&
                (reply.text.data() < line.data() || reply.text.data() + reply.text.size() > line.data() + line.size()))
                std::abort();
        });
    return 0;
}
