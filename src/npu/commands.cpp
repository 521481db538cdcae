#include "npu/commands.h"

namespace talpa::npu {

std::optional<std::string_view> command_name(const Command& command) {
#define X(name, number) \
    case number:        \
        return #name;
    if (command.has_payload) {
        switch (command.code) { TALPA_NPU_CMD1(X) }
    } else {
        switch (command.code) {
            TALPA_NPU_OPS(X)
            TALPA_NPU_CMD0(X)
        }
    }
#undef X
    return std::nullopt;
}

// Apart from the names, which the firmware does not link.
bool is_command(const Command& command) {
#define X(name, number) case number:
    if (command.has_payload) {
        switch (command.code) { TALPA_NPU_CMD1(X) return true; }
    } else {
        switch (command.code) {
            TALPA_NPU_OPS(X)
            TALPA_NPU_CMD0(X) return true;
        }
    }
#undef X
    return false;
}

}  // namespace talpa::npu
