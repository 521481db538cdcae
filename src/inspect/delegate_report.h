// One delegate of a method: what its compile specs, its payload and its command stream say.
#pragma once

#include <span>

#include "inspect/report.h"
#include "pte/data_file.h"
#include "pte/program.h"

namespace talpa::inspect {

[[nodiscard]] DelegateReport delegate_report(const pte::Program& program, const pte::MethodView& method,
                                             std::uint32_t index, std::span<const pte::DataFile> data_files,
                                             const Options& options);

/// What the cycle model should take for a delegate: what the options ask for, else what its compile specs say it was
/// compiled for, else the default. `config_word`: its payload's CONFIG.
[[nodiscard]] npu_model::SystemConfig compiled_for(const pte::DelegateView& delegate, std::uint32_t config_word,
                                                   const Options& options = {});

}  // namespace talpa::inspect
