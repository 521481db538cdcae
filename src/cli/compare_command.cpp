#include "cli/compare_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "base/host/exit_status.h"
#include "base/host/terminal.h"
#include "cli/compare_model.h"
#include "inspect/compare.h"

namespace talpa::cli {
namespace {

namespace fs = std::filesystem;
using inspect::Comparison;
using inspect::OutputComparison;
using inspect::TensorDifference;

/// Element `index` of a dense tensor as its coordinates.
std::string coordinates(std::uint64_t index, const std::vector<std::int32_t>& shape) {
    std::vector<std::uint64_t> at(shape.size());
    for (std::size_t d = shape.size(); d-- > 0;) {
        const auto side = static_cast<std::uint64_t>(shape[d] > 0 ? shape[d] : 1);
        at[d] = index % side;
        index /= side;
    }
    return fmt::format("[{}]", fmt::join(at, ", "));
}

std::string describe(const TensorDifference& d, const std::vector<std::int32_t>& shape) {
    return fmt::format("{} of {} elements differ, by at most {:g}; the first at {}: {:.9g} and {:.9g}", d.differing,
                       d.elements, d.max_abs, coordinates(d.first, shape), d.first_a, d.first_b);
}

void print_outputs(const Comparison& comparison, const host::Style& style) {
    for (const OutputComparison& output : comparison.outputs) {
        const std::string name =
            fmt::format("output {}{}{}", output.index, output.description.empty() ? "" : ": ", output.description);
        if (output.equal())
            fmt::print("{}: {}\n", name, style.green("equal"));
        else if (!output.problem.empty())
            fmt::print("{}: {}: {}\n", name, style.red("different"), output.problem);
        else
            fmt::print("{}: {}: {}\n  written by {}\n", name, style.red("different"),
                       describe(*output.difference, output.shape), output.written_by);
    }
}

void print_first(const Comparison& comparison, const host::Style& style) {
    if (comparison.first) {
        const auto& first = *comparison.first;
        fmt::print("{}\n  {} ({})\n", style.bold("first tensor that differs:"), first.a, first.description);
        if (first.b != first.a) fmt::print("  on the other side: {}\n", first.b);
        fmt::print("  {}\n", describe(first.difference, first.shape));
    }
    if (!comparison.note.empty()) fmt::print("{}\n", style.dim(comparison.note));
}

std::vector<std::string> recorded_inputs(const CompareOptions& options, const fs::path& folder) {
    std::vector<std::string> found;
    const std::string stem = fs::path(options.program).stem().string();
    for (;;) {
        const fs::path plain = folder / fmt::format("in{}.bin", found.size()),
                       named = folder / fmt::format("{}.in{}.bin", stem, found.size());
        if (fs::exists(plain))
            found.push_back(plain.string());
        else if (fs::exists(named))
            found.push_back(named.string());
        else
            return found;
    }
}

/// The inputs given, or those recorded beside the outputs, or beside the program.
std::vector<std::string> inputs_of(const CompareOptions& options, const fs::path& against) {
    if (!options.inputs.empty()) return options.inputs;
    if (fs::is_directory(against))
        if (auto found = recorded_inputs(options, against); !found.empty()) return found;
    return recorded_inputs(options, fs::absolute(options.program).parent_path());
}

}  // namespace

host::Result<void> check(const CompareOptions& options) {
    if (is_model(options.program)) {
        if (!options.against.empty())
            return host::failure(ErrorCode::InvalidArgument,
                                 "--against is for programs; with a model, its program stands behind it");
        if (options.image.empty() == options.inputs.empty())
            return host::failure(ErrorCode::InvalidArgument,
                                 "give the model an input: --image FILE or --input FILE.bin");
        CompileOptions compile = options.compile;
        compile.in_memory = true;
        return check(compile);
    }
    if (!options.compiled.empty())
        return host::failure(ErrorCode::InvalidArgument, "{} is a program: compare it with --against {}",
                             options.program, options.compiled);
    if (!options.image.empty())
        return host::failure(ErrorCode::InvalidArgument, "--image is for models; a program takes --input FILE.bin");
    if (!options.against.empty() && !fs::exists(options.against))
        return host::failure(ErrorCode::NotFound, "there is no {}", options.against);
    return {};
}

host::Result<int> compare_programs(const CompareOptions& options) {
    if (is_model(options.program)) return compare_model(options);
    fs::path against = options.against;
    if (against.empty()) against = fs::absolute(options.program).parent_path();
    const bool recorded = fs::is_directory(against);
    const inspect::ProgramOptions program{.path = options.program, .method = options.method, .data = options.data};
    const auto inputs = inputs_of(options, against);
    const auto run = [&] {
        if (recorded) return inspect::compare_with_recorded(program, against, inputs);
        inspect::ProgramOptions other = program;
        other.path = against.string();
        return inspect::compare_programs(program, other, inputs);
    };
    TRY_ASSIGN(const Comparison comparison, run());
    const host::Style style(stdout);
    print_outputs(comparison, style);
    print_first(comparison, style);
    return comparison.equal() ? host::kExitSuccess : host::kExitFailed;
}

}  // namespace talpa::cli
