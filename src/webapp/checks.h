// The board checks that the page shows: each says what was looked at, what was found, what that means and what to do,
// with the device-tree lines or the command to paste. (imx93-remoteproc, sections 7.4, 8 and 9; topo, section 11.5)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "classifier/board_program.h"
#include "npu/hardware.h"
#include "webapp/board_look.h"

namespace talpa::webapp {

struct Check {
    enum class State : std::uint8_t { Ok, Warning, Failed } state = State::Ok;
    std::string id, title;
    std::string looked_at;  ///< paths and values
    std::string found;
    std::string means;  ///< empty when it is ok and there is nothing to explain
    std::string fix;    ///< empty when there is nothing to do
};

/// What is to be judged beside the look at the board.
struct CheckInput {
    BoardLook look;
    std::string remoteproc_name;
    link::host::BoardResult<link::host::FirmwareInfo> info;  ///< the firmware's answer to INFO
    const classifier::BoardProgram* program = nullptr;       ///< of the model that is chosen first
    std::string program_path, program_error;
    std::size_t program_bytes = 0;
    std::string target;  ///< "ethos-u65-256"; empty: no delegate
    const classifier::Labels* labels = nullptr;
    std::string labels_path, labels_error;
};

/// The NPU of an i.MX 93, as programs name it.
inline constexpr std::string_view kTarget = npu::kU65_256.name;

[[nodiscard]] std::vector<Check> board_checks(const CheckInput& input);
[[nodiscard]] std::string_view check_state_name(Check::State state);
[[nodiscard]] host::Json to_json(const std::vector<Check>& checks);

}  // namespace talpa::webapp
