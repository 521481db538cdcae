// Any bytes as a program, through all views of it. What a view shows must be what its format allows: JSON that parses
// again, text without control characters.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "inspect/report.h"
#include "inspect/report_html.h"
#include "inspect/report_json.h"
#include "inspect/report_text.h"
#include "runtime/operators/all.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    struct alignas(16) Block {
        std::uint8_t bytes[16];
    };
    std::vector<Block> memory(size / sizeof(Block) + 1);
    if (size != 0) std::memcpy(memory.data(), data, size);
    talpa::inspect::Options options;
    options.operators = talpa::runtime::all_operators();
    const auto report = talpa::inspect::inspect_bytes({memory.data()->bytes, size}, "fuzz", options);
    if (!report) return 0;
    const std::string json = talpa::inspect::json_text(talpa::inspect::report_json(*report));
    if (!talpa::host::Json::accept(json)) std::abort();
    for (const char c : talpa::inspect::report_text(*report, {.operations = true}))
        if (static_cast<unsigned char>(c) < 0x20 && c != '\n') std::abort();
    if (talpa::inspect::report_html(*report).find("</html>") == std::string::npos) std::abort();
    return 0;
}
