// Any bytes as the payload of a delegate: blocks and tables are walked, and every record is used as a reader would.
#include <algorithm>
#include <cstdlib>

#include "pte/delegate_blob.h"
#include "pte/file_for_test.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace talpa;
    const pte::testing::ExactBytes payload(Bytes(data, size));
    const auto blob = pte::parse_delegate_blob(payload.bytes());
    if (!blob) return 0;
    const auto check = [&](const pte::IoTable& table) {
        for (std::uint32_t i = 0; i < table.count(); ++i) {
            const pte::IoRecord r = table[i];
            // What the parser promises: whole rows, inside the scratch.
            if (r.row_bytes() == 0 || r.rows() * r.row_bytes() != r.size_bytes ||
                std::uint64_t{r.offset} + r.size_bytes > blob->scratch_size)
                std::abort();
        }
    };
    check(blob->inputs);
    check(blob->outputs);
    volatile std::uint8_t sink = 0;
    for (const Bytes block : {blob->command_data.data, blob->weights.data})
        for (const std::uint8_t b : block) sink = static_cast<std::uint8_t>(sink ^ b);
    return 0;
}
