// What talpa compile has to say about its work, as text and as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/backend/compile.h"
#include "compiler/import/problem.h"
#include "compiler/quantize/compare_runs.h"

namespace talpa::cli {

struct CompileResult {
    std::string model, output, target, memory_mode;
    std::uint64_t sram_bytes = 0;
    double clock_hz = 1e9;
    std::size_t nodes = 0, program_bytes = 0;
    std::vector<std::string> warnings;
    std::string quantization;  ///< "int8 by 24 samples, observer mse"; empty when the model came quantized
    std::optional<compiler::Agreement> agreement;
    struct Layer {
        std::string name;
        double snr_db = 0, low = 0, high = 0;
        std::string advice;  ///< for the worst: where the noise comes from, what can be done
    };
    std::vector<Layer> layers;  ///< with --report, the worst first
    struct Cpu {
        std::string node, op, reason;
    };
    std::vector<Cpu> on_cpu;
    std::vector<compiler::DelegateReport> delegates;
    bool arena_in_sram = false, constants_in_sram = false;
    double seconds = 0;
};

[[nodiscard]] std::string compile_text(const CompileResult& result, bool colours);
[[nodiscard]] std::string compile_json(const CompileResult& result);
/// {"error": …, "problems": [{"node", "operator", "module", "line", "what", "hint"}]}
[[nodiscard]] std::string compile_error_json(const host::Error& error,
                                             const std::vector<compiler::import::Problem>& problems);

}  // namespace talpa::cli
