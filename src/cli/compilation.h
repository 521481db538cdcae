// One compilation, step by step: what talpa compile does, and talpa compare before it compares.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/compile_command.h"
#include "cli/compile_result.h"
#include "compiler/backend/compile.h"
#include "compiler/quantize/samples.h"
#include "image/preprocess.h"

namespace talpa::cli {

class Compilation {
  public:
    explicit Compilation(const CompileOptions& options) : o_(options) {}

    /// Finds the model (a file, or a name of the registry, whose weights are fetched) and reads it.
    [[nodiscard]] host::Result<void> import();
    /// Gives it scales if it has none; evaluates and reports as the options ask.
    [[nodiscard]] host::Result<void> quantize();
    /// The program, in memory.
    [[nodiscard]] host::Result<compiler::Compiled> compile();

    /// Pictures, .npy or .bin files as inputs of the model.
    [[nodiscard]] host::Result<std::vector<compiler::NamedSample>> load(const std::string& path, std::size_t limit);
    void warn(const std::string& text);

    /// The float network where there was one, else the quantized one again.
    [[nodiscard]] const compiler::Graph& real() const { return real_; }
    [[nodiscard]] const compiler::Graph& graph() const { return graph_; }
    [[nodiscard]] bool came_quantized() const { return came_quantized_; }
    [[nodiscard]] const compiler::Target& target() const { return target_; }
    [[nodiscard]] const std::vector<compiler::import::Problem>& problems() const { return problems_; }
    [[nodiscard]] CompileResult& result() { return result_; }
    [[nodiscard]] unsigned threads() const;

  private:
    [[nodiscard]] host::Result<void> find_model();
    [[nodiscard]] host::Result<std::vector<compiler::Sample>> samples();
    [[nodiscard]] std::vector<compiler::Sample> noise() const;
    [[nodiscard]] host::Result<void> evaluate();
    [[nodiscard]] host::Result<void> report_layers(const std::vector<compiler::Sample>& with);
    [[nodiscard]] host::Result<void> add_metadata(compiler::CompileOptions& options);

    const CompileOptions& o_;
    std::string file_, architecture_;  ///< of the model
    PictureOptions picture_;
    image::PreprocessSpec preprocess_;
    compiler::Graph real_, graph_;  ///< the float model where there is one; what is compiled
    bool came_quantized_ = false;
    compiler::Target target_;
    std::vector<compiler::import::Problem> problems_;
    CompileResult result_;
};

/// Stages that --dump-after can name and that are done before anything is quantized.
[[nodiscard]] bool is_import_stage(const std::string& stage);
[[nodiscard]] bool is_stage_after_quantize(const std::string& stage);
/// Errors for what no compilation could be made with: a size, a target, a mode, a configuration file.
[[nodiscard]] host::Result<compiler::Target> target_of(const CompileOptions& options,
                                                       std::vector<std::string>* warnings = nullptr);

}  // namespace talpa::cli
