#include "link/host/board_fault.h"

#include <fmt/ranges.h>

namespace talpa::link::host {
namespace {

struct Row {
    std::string_view code;
    int http_status;
    std::string_view text;
};
constexpr Row kRows[] = {
#define X(name, code, status, text) {code, status, text},
    TALPA_BOARD_FAULTS(X)
#undef X
};

const Row& row(BoardFault fault) {
    return kRows[static_cast<std::size_t>(fault)];
}

}  // namespace

std::string_view board_fault_code(BoardFault fault) {
    return row(fault).code;
}

int board_fault_http_status(BoardFault fault) {
    return row(fault).http_status;
}

std::string_view board_fault_text(BoardFault fault) {
    return row(fault).text;
}

talpa::host::Error BoardError::flat() const {
    talpa::host::Error flat = error;
    if (known.empty()) return flat;
    if (!flat.hint.empty()) flat.hint += "\n  ";
    flat.hint += fmt::format("what is known:\n    {}", fmt::join(known, "\n    "));
    return flat;
}

}  // namespace talpa::link::host
