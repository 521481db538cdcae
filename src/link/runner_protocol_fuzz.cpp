// Messages of a stranger: whatever arrives, lines are assembled within their buffer and parsed or refused.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "link/runner_protocol.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace talpa::link;
    LineAssembler assembler;
    const std::string_view all(reinterpret_cast<const char*>(data), size);
    // The first byte says how long the messages are that the rest is cut into.
    const std::size_t step = size > 0 ? data[0] + 1u : 1;
    for (std::size_t at = 1; at < size; at += step) {
        assembler.feed(all.substr(at, step), [](std::string_view line, bool) {
            if (line.size() > kMaxLine) std::abort();
            const auto parsed = parse_command(line);
            if (!parsed || is_reply_line(line)) return;
            for (std::size_t i = 0; i < parsed->argument_count; ++i) {
                std::uint32_t numbers[4];
                (void)parse_numbers(parsed->arguments[i].value, numbers);
            }
            (void)parsed->find("pte");
        });
    }
    return 0;
}
