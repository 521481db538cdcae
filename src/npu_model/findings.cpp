#include "npu_model/findings.h"

namespace talpa::npu_model {

const char* finding_text(Finding::Kind kind) {
    switch (kind) {
        case Finding::Kind::AccumulatorOverflow:
            return "sums that do not fit the accumulator";
        case Finding::Kind::ResultOverflow:
            return "results beyond 32 bits";
        case Finding::Kind::ShiftOutOfRange:
            return "shifts by less than 0 or more than 31";
        case Finding::Kind::LutIndexOutOfRange:
            return "table indexes beyond the table";
        case Finding::Kind::UninitialisedRead:
            return "reads of bytes that nobody wrote";
    }
    return "";
}

}  // namespace talpa::npu_model
