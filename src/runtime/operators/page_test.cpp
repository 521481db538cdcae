// docs/operators.md, made from table.def; fails when the committed page is stale.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>

#include "base/host/file.h"
#include "base/host/testing.h"
#include "runtime/operators/all.h"
#include "runtime/operators/quantize.h"

namespace talpa::runtime {
namespace {

struct Row {
    std::string_view heading, name, kinds, types, notes;
    int count;
};
constexpr Row kTable[] = {
#define TALPA_OPERATOR_FAMILY(title) {title, "", "", "", "", 0},
#define TALPA_OPERATOR(name, count, kinds, function, dtypes, notes) {"", name, kinds, dtypes, notes, count},
#define TALPA_OPERATOR_WITH_ROOM(name, count, kinds, function, dtypes, notes) {"", name, kinds, dtypes, notes, count},
#include "runtime/operators/table.def"
#undef TALPA_OPERATOR
#undef TALPA_OPERATOR_WITH_ROOM
};

constexpr std::string_view kIntroduction = R"(# CPU operators

<!-- Made from src/runtime/operators/table.def by talpa_runtime_test; TALPA_UPDATE_DOCS=1 writes it anew. -->

What the runtime computes itself when a program does not hand it to the NPU. A host build has all of them; those marked with ●
are in the Cortex-M33 firmware too (`firmware/chip/main.cpp`): quantise and dequantise, what a program needs around an NPU that takes the
rest. Names and overloads are matched exactly. A program that calls an operator that is not there is refused when it is loaded, with a list
of all that are missing; the firmware answers `ERR 9 unsupported operator`.

- *Arguments* is their number in a program, the repeated tail included. *Kinds* has a letter for each argument: `t` tensor, `o` output,
  `i` integer, `b` bool, `n` number, `I` list of integers, `D` list of floats, `T` list of tensors, `O` list of outputs, `Q` list of
  optional tensors, `*` anything; `?` after a letter: may be Null.
- *Types*: "all" is uint8, int8, int16, int32, int64, float32 and bool; "any" is every type, since elements are only moved. float16 and
  float64 are refused by name where arithmetic is needed.
- Tensors may lie in any dimension order unless the notes say otherwise. Outputs that are dynamic take the shape of the result.
- Arithmetic is float32, one operation after the other in index order, without fused multiply-add, or 64-bit integers that wrap to the type
  of the result. `tests/golden/operators/` compares each operator with PyTorch.
)";

std::string page() {
    std::set<std::string_view> firmware;
    for (const Operator& op : operators::kQuantizeOperators) firmware.insert(op.name);
    std::string text(kIntroduction);
    const auto heading = [&](std::string_view title) {
        text += "\n## " + std::string(title) +
                "\n\n| operator | | arguments | kinds | types | notes |\n| --- | --- | --- | --- | --- | --- |\n";
    };
    const auto line = [&](const Row& row) {
        text += "| `" + std::string(row.name) + "` | " + (firmware.contains(row.name) ? "●" : "") + " | " +
                std::to_string(row.count) + " | `" + std::string(row.kinds) + "` | " + std::string(row.types) + " | " +
                std::string(row.notes) + " |\n";
    };
    heading("Quantise and dequantise");
    for (const Operator& op : operators::kQuantizeOperators)
        line({"", op.name, op.kinds, "float32 and integers", "bit for bit as ExecuTorch's kernels", op.arg_count});
    for (const Row& row : kTable) row.name.empty() ? heading(row.heading) : line(row);
    return text;
}

TEST(OperatorPage, IsWhatTheTableSays) {
    const auto path = std::filesystem::path(TALPA_SOURCE_DIR) / "docs" / "operators.md";
    if (std::getenv("TALPA_UPDATE_DOCS") != nullptr) {
        ASSERT_TRUE(host::write_text(path, page()).has_value());
    }
    EXPECT_EQ(host::read_text(path).value_or(""), page()) << "TALPA_UPDATE_DOCS=1 talpa_runtime_test writes it anew";
}

}  // namespace
}  // namespace talpa::runtime
