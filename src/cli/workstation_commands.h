// compile, model and board: what a workstation has and the talpa of a board's own Linux has not.
#pragma once

#include "cli/app.h"

namespace talpa::cli {

[[nodiscard]] MoreCommands& workstation_commands();

}  // namespace talpa::cli
