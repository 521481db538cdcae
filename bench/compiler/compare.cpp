// Side by side: what talpa makes of the quantized networks of the reference set, and Vela's programs of the same ones,
// by one cycle model, then talpa's of MobileNetV2 for pictures of other sizes. Prints a table; names choose rows.
// Vela's programs are those that bench/compiler/vela.py has just made in a folder (with how long that took), else the
// recorded.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>

#include "compiler/backend/compile.h"
#include "compiler/backend/mobilenet_for_test.h"
#include "compiler/import/import.h"
#include "npu_model/cycles/network_cost.h"
#include "runtime/host/session.h"
#include "runtime/operators/all.h"

namespace talpa {
namespace {

struct Figures {
    std::uint64_t cycles = 0, sram_bytes = 0, dram_bytes = 0, fast = 0, scratch = 0, size = 0;
};

host::Result<Figures> measure(Bytes program, const std::string& name) {
    runtime::host::SessionOptions options;
    options.operators = runtime::all_operators();
    TRY_ASSIGN(runtime::host::Session session, runtime::host::Session::open(program, name, options));
    Figures f;
    f.size = program.size();
    for (const runtime::EthosUDelegate& d : session.method().delegates()) {
        TRY_ASSIGN(const auto operations, npu_model::decode_all(d.stream()));
        const npu_model::NetworkCost cost = npu_model::network_cost(operations);
        f.cycles += cost.cycles_total;
        f.sram_bytes += cost.traffic[0].bytes();
        f.dram_bytes += cost.traffic[1].bytes();
        f.fast = std::max<std::uint64_t>(f.fast, d.fast_scratch_bytes());
        f.scratch = std::max<std::uint64_t>(f.scratch, d.scratch_bytes());
    }
    return f;
}

std::vector<std::uint8_t> read(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

struct Row {
    const char *model, *program;  // the folder of the quantized model, and of Vela's program
    std::uint64_t sram;
    compiler::MemoryMode mode = compiler::MemoryMode::DedicatedSram;
};

// What ExecuTorch's lowering took, and Vela's part of it.
std::string seconds_of(const std::filesystem::path& made, const std::string& program) {
    std::ifstream in(made / (program + ".seconds"));
    double whole = 0, vela = 0;
    return in >> whole >> vela ? fmt::format("{:.2f} s ({:.2f} s)", whole, vela) : "?";
}

host::Result<void> print_row(const std::filesystem::path& folder, const std::filesystem::path& made, const Row& row,
                             bool figure = false) {
    const std::string model = row.model, program = row.program;
    const std::string file = program + ".pte";
    const bool anew = !made.empty() && std::filesystem::exists(made / file);
    const auto theirs_bytes = read(anew ? made / file : folder / program / file);
    TRY_ASSIGN(const Figures theirs, measure(Bytes(theirs_bytes), program));
    TRY_ASSIGN(const compiler::Graph graph,
               compiler::import::import_model(folder / model / (model + ".quantized.pt2")));
    compiler::CompileOptions options;
    options.target.sram_bytes = row.sram;
    options.target.mode = row.mode;
    if (program != model || program == "int8_io_conv") options.io = compiler::IoType::Quantized;
    const auto begin = std::chrono::steady_clock::now();
    TRY_ASSIGN(const compiler::Compiled compiled, compiler::compile(graph, options));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    TRY_ASSIGN(const Figures ours, measure(Bytes(compiled.pte), model));
    const auto share = [](std::uint64_t a, std::uint64_t b) {
        return b == 0 ? 0.0 : static_cast<double>(a) / static_cast<double>(b);
    };
    fmt::print(
        "{:<28} {:>9} {:>9}  {:>10} {:>10}  {:>10} {:>10}  {:>8} {:>8}  {:>8} {:>8}  {:>8} {:>8}  {:>6.3f} {:>5.2f} "
        "s  {:>16}\n",
        program, ours.cycles, theirs.cycles, ours.sram_bytes, theirs.sram_bytes, ours.dram_bytes, theirs.dram_bytes,
        ours.fast, theirs.fast, ours.scratch, theirs.scratch, ours.size, theirs.size, share(ours.cycles, theirs.cycles),
        seconds, anew ? seconds_of(made, program) : "recorded");
    if (figure)
        fmt::print("figure: compiler, {} (peer: Vela) | {} cycles | {} cycles | {:.2f}\n", program, ours.cycles,
                   theirs.cycles, share(ours.cycles, theirs.cycles));
    return {};
}

// MobileNetV2 with random weights, at sizes that the reference set does not have.
void print_sizes() {
    fmt::print("\nMobileNetV2, 384 KiB of SRAM\n{:>8} {:>10} {:>16} {:>10} {:>12} {:>8}\n", "pixels", "cycles",
               "of 224's a pixel", "SRAM", "scratch", "compile");
    double at_224 = 0;
    for (const std::int64_t size : {224, 96, 160, 192, 256, 320, 448}) {
        const compiler::Graph graph = compiler::testing::mobilenet_v2(size);
        compiler::CompileOptions options;
        options.target.sram_bytes = 384 << 10;
        const auto begin = std::chrono::steady_clock::now();
        const auto compiled = compiler::compile(graph, options);
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        if (!compiled || compiled->report.delegates.size() != 1 || !compiled->report.cpu_nodes.empty()) {
            fmt::print("{:>8} {}\n", size, compiled ? "not all on the NPU" : compiled.error().describe());
            continue;
        }
        const compiler::DelegateReport& d = compiled->report.delegates[0];
        const double each = static_cast<double>(d.cycles) / static_cast<double>(size * size);
        if (size == 224) at_224 = each;
        fmt::print("{:>8} {:>10} {:>16.3f} {:>10} {:>12} {:>6.2f} s\n", size, d.cycles, each / at_224, d.fast_bytes,
                   d.arena_bytes, seconds);
    }
}

int run(const std::filesystem::path& reference, const std::filesystem::path& made, std::span<char*> names) {
    const auto wanted = [&](const std::string& name) {
        return names.empty() || std::any_of(names.begin(), names.end(), [&](const char* n) { return name == n; });
    };
    constexpr std::uint64_t kChip = 384 << 10;
    const Row rows[] = {
        {"mobilenet_v2", "mobilenet_v2_sram384", kChip},
        {"mobilenet_v2", "mobilenet_v2", compiler::kUnlimited},
        {"efficientnet_lite0", "efficientnet_lite0", compiler::kUnlimited},
        {"mobilenet_v3_small_random", "mobilenet_v3_small_random", compiler::kUnlimited},
        {"ds_cnn_random", "ds_cnn_random", compiler::kUnlimited},
        {"resnet8_random", "resnet8_random", compiler::kUnlimited},
    };
    fmt::print("{:<28} {:>19}  {:>21}  {:>21}  {:>17}  {:>17}  {:>17}  {:>6} {:>7}  {:>16}\n", "talpa's, Vela's",
               "cycles", "SRAM bytes moved", "DRAM bytes moved", "SRAM (region 2)", "scratch (region 1)",
               "program bytes", "cycles", "compile", "theirs (Vela's)");
    for (const Row& row : rows) {
        if (!wanted(row.program)) continue;
        if (const auto done = print_row(reference / "models", made, row, true); !done) {
            fmt::print("{}: {}\n", row.program, done.error().describe());
            return 1;
        }
    }
    for (const auto& entry : std::filesystem::directory_iterator(reference / "ops")) {
        const std::string name = entry.path().filename().string();
        Row row{name.c_str(), name.c_str(), compiler::kUnlimited};
        if (name == "sram_only") row.mode = compiler::MemoryMode::SramOnly;
        if (name == "shared_sram") row.mode = compiler::MemoryMode::SharedSram;
        if (!wanted(name)) continue;
        if (const auto done = print_row(reference / "ops", made, row); !done)
            fmt::print("{}: {}\n", name, done.error().describe());
    }
    if (wanted("sizes")) print_sizes();
    return 0;
}

}  // namespace
}  // namespace talpa

int main(int count, char** arguments) {
    std::span<char*> words(arguments + 1, static_cast<std::size_t>(count - 1));
    std::filesystem::path made;
    if (words.size() >= 2 && std::string_view(words[0]) == "--vela") {
        made = words[1];
        words = words.subspan(2);
    }
    if (words.empty()) {
        fmt::print("usage: talpa_bench_compiler [--vela FOLDER] REFERENCE_FOLDER [NAME...]\n");
        return 2;
    }
    return talpa::run(words[0], made, words.subspan(1));
}
