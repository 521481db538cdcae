// Every program that has expected outputs, run by the executor on the functional NPU model. Golden operators and
// models, and the real networks of the reference set where it is present, must agree bit for bit; the variants of the
// file format as closely as variants.json says. (tests/golden/README.md)
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/host/file.h"
#include "base/host/json.h"
#include "base/host/testing.h"
#include "npu_model/model.h"
#include "pte/host/read_spec.h"
#include "runtime/host/session.h"
#include "runtime/operators/all.h"

namespace talpa {
namespace {

namespace fs = std::filesystem;
using runtime::ScalarType;
using runtime::host::Session;
using runtime::host::SessionOptions;

SessionOptions options_for(npu::Device& npu) {
    SessionOptions options;
    options.operators = runtime::all_operators();
    options.device = &npu;
    return options;
}

std::vector<fs::path> programs(const fs::path& folder) {
    std::vector<fs::path> found;
    if (fs::exists(folder))
        for (const auto& entry : fs::directory_iterator(folder)) {
            const fs::path program = entry.path() / (entry.path().filename().string() + ".pte");
            if (fs::exists(program)) found.push_back(program);
        }
    std::ranges::sort(found);
    return found;
}

std::string stem(const ::testing::TestParamInfo<fs::path>& info) {
    return info.param.stem().string();
}

/// Golden files are in C order; the executor takes and gives bytes as they are stored. For each element in C order, its
/// place.
std::vector<std::size_t> stored_places(const runtime::host::PortInfo& info, std::span<const std::int32_t> sizes) {
    std::vector<std::size_t> strides(sizes.size());
    std::size_t step = 1, total = 1;
    for (std::size_t r = sizes.size(); r-- > 0;) {
        strides[info.dim_order[r]] = step;
        step *= static_cast<std::size_t>(sizes[info.dim_order[r]]);
    }
    for (const std::int32_t s : sizes) total *= static_cast<std::size_t>(s);
    std::vector<std::size_t> places(total);
    for (std::size_t i = 0; i < total; ++i) {
        std::size_t rest = i;
        for (std::size_t d = sizes.size(); d-- > 0; rest /= static_cast<std::size_t>(sizes[d]))
            places[i] += rest % static_cast<std::size_t>(sizes[d]) * strides[d];
    }
    return places;
}

enum class Direction { ToStored, ToCOrder };

std::vector<std::uint8_t> reorder(Bytes bytes, const runtime::host::PortInfo& info, std::span<const std::int32_t> sizes,
                                  Direction direction) {
    const std::size_t element = runtime::scalar_size(info.type);
    const auto places = stored_places(info, sizes);
    std::vector<std::uint8_t> out(bytes.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
        const std::size_t from = direction == Direction::ToStored ? i : places[i],
                          to = direction == Direction::ToStored ? places[i] : i;
        std::ranges::copy(bytes.subspan(from * element, element),
                          out.begin() + static_cast<std::ptrdiff_t>(to * element));
    }
    return out;
}

/// The files of a program's inputs and outputs, alive as long as the run.
struct Execution {
    Session session;
    std::vector<std::vector<std::uint8_t>> inputs;

    void set_inputs(const std::vector<fs::path>& files) {
        ASSERT_EQ(files.size(), session.input_count());
        for (std::uint32_t i = 0; i < session.input_count(); ++i) {
            inputs.push_back(host::read_file(files[i]).value());
            const auto sizes = used_sizes(i);
            inputs[i] = reorder(inputs[i], session.input(i), sizes.empty() ? session.input(i).sizes : sizes,
                                Direction::ToStored);
        }
        for (std::uint32_t i = 0; i < session.input_count(); ++i) {
            const auto set = session.set_input(i, inputs[i], used_sizes(i));
            ASSERT_TRUE(set) << set.error().describe();
        }
        const auto ran = session.run();
        ASSERT_TRUE(ran) << ran.error().describe();
    }
    /// In C order.
    [[nodiscard]] std::vector<std::uint8_t> output(std::uint32_t i) const {
        const auto info = session.output(i);
        return reorder(session.output_bytes(i).value(), info, info.sizes, Direction::ToCOrder);
    }
    /// A dynamic input's first dimension follows from the length of its file.
    [[nodiscard]] std::vector<std::int32_t> used_sizes(std::uint32_t i) const {
        const auto info = session.input(i);
        if (!info.is_dynamic) return {};
        std::vector<std::int32_t> sizes = info.sizes;
        std::size_t row = runtime::scalar_size(info.type);
        for (std::size_t d = 1; d < sizes.size(); ++d) row *= static_cast<std::size_t>(sizes[d]);
        sizes[0] = static_cast<std::int32_t>(inputs[i].size() / row);
        return sizes;
    }
};

class GoldenProgram : public ::testing::TestWithParam<fs::path> {};

TEST_P(GoldenProgram, GivesTheExpectedBytes) {
    const fs::path folder = GetParam().parent_path();
    npu_model::Model npu;
    auto session = Session::open(GetParam(), options_for(npu));
    ASSERT_TRUE(session) << session.error().describe();
    std::vector<fs::path> inputs;
    for (std::uint32_t i = 0; i < session->input_count(); ++i)
        inputs.push_back(folder / ("in" + std::to_string(i) + ".bin"));
    Execution run{std::move(*session), {}};
    ASSERT_NO_FATAL_FAILURE(run.set_inputs(inputs));
    ASSERT_GT(run.session.output_count(), 0u);
    for (std::uint32_t i = 0; i < run.session.output_count(); ++i) {
        const auto expected = host::read_file(folder / ("out" + std::to_string(i) + ".bin")).value();
        EXPECT_EQ(run.output(i), expected) << "output " << i;
    }
}

INSTANTIATE_TEST_SUITE_P(Ops, GoldenProgram, ::testing::ValuesIn(programs(testing::golden_folder() / "ops")), stem);
INSTANTIATE_TEST_SUITE_P(Models, GoldenProgram, ::testing::ValuesIn(programs(testing::golden_folder() / "models")),
                         stem);

std::vector<fs::path> reference_models() {
    const auto reference = testing::reference_folder();
    return reference ? programs(*reference / "models") : std::vector<fs::path>();
}
INSTANTIATE_TEST_SUITE_P(Reference, GoldenProgram, ::testing::ValuesIn(reference_models()), stem);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenProgram);

struct Variant {
    std::string file;
    std::string outputs;  ///< whose they are and how close to come
    std::vector<fs::path> inputs, results;
};

std::vector<Variant> variants() {
    const fs::path folder = testing::golden_folder() / "pte_variants";
    std::vector<Variant> found;
    for (const auto& entry : host::Json::parse(host::read_text(folder / "variants.json").value())) {
        // The expected file of these two is another network's: their quantization parameters differ from two_seg.pte,
        // whose it is. They are held below, by the same network otherwise packaged.
        if (entry["file"] == "two_noalloc.pte" || entry["file"] == "two_ext.pte") continue;
        if (!entry.contains("results")) continue;
        Variant v{entry["file"], entry["outputs"], {}, {}};
        for (const auto& i : entry["inputs"]) v.inputs.push_back(folder / i["file"]);
        for (const auto& r : entry["results"]) v.results.push_back(folder / r["file"]);
        found.push_back(std::move(v));
    }
    return found;
}

std::vector<fs::path> data_files(const std::string& program) {
    const fs::path folder = testing::golden_folder() / "pte_variants";
    if (program == "lin_ext.pte") return {folder / "_default_external_constant.ptd"};
    if (program == "two_ext.pte") return {folder / "sram.ptd", folder / "flash.ptd"};
    return {};
}

/// Scale of the last dequantization before the outputs: what "one quantization step" means.
double quantization_step(const pte::MethodView& method) {
    double step = 0;
    for (std::uint32_t i = 0; i < method.instructions(0).size(); ++i) {
        const pte::InstructionView call(method.instructions(0)[i]);
        if (call.type() != pte::InstructionType::KernelCall) continue;
        if (!method.op(static_cast<std::uint32_t>(call.op_index())).name.ends_with("::dequantize_per_tensor")) continue;
        step = std::max(step, method.value(static_cast<std::uint32_t>(call.args()[1])).as_double());
    }
    return step;
}

std::string variant_stem(const ::testing::TestParamInfo<Variant>& info) {
    return fs::path(info.param.file).stem().string();
}

class VariantProgram : public ::testing::TestWithParam<Variant> {};

TEST_P(VariantProgram, ComesAsCloseAsItsTableSays) {
    const Variant& v = GetParam();
    npu_model::Model npu;
    SessionOptions options = options_for(npu);
    options.data_files = data_files(v.file);
    auto session = Session::open(testing::golden_folder() / "pte_variants" / v.file, options);
    ASSERT_TRUE(session) << session.error().describe();
    Execution run{std::move(*session), {}};
    ASSERT_NO_FATAL_FAILURE(run.set_inputs(v.inputs));
    double tolerance = 0;  // by the stock runtime: the same bytes
    if (v.outputs.find("1e-6") != std::string::npos) tolerance = 1e-6;
    if (v.outputs.find("one quantization step") != std::string::npos)
        tolerance = quantization_step(run.session.method().view()) * 1.0001;
    ASSERT_TRUE(tolerance > 0 || v.outputs == "by the stock runtime") << v.outputs;
    ASSERT_EQ(run.session.output_count(), v.results.size());
    for (std::uint32_t i = 0; i < v.results.size(); ++i) {
        const auto expected = host::read_file(v.results[i]).value();
        const auto bytes = run.output(i);
        ASSERT_EQ(bytes.size(), expected.size()) << "output " << i;
        if (run.session.output(i).type != ScalarType::Float32 || tolerance == 0) {
            EXPECT_EQ(bytes, expected) << "output " << i;
            continue;
        }
        for (std::size_t k = 0; k < expected.size(); k += 4)
            ASSERT_NEAR(load_le<float>(bytes.data() + k), load_le<float>(expected.data() + k), tolerance)
                << "output " << i << " element " << k / 4;
    }
}

/// Runs a program on two.in0.bin and returns its output.
std::vector<std::uint8_t> output_of_two(Bytes program, const std::vector<fs::path>& files) {
    npu_model::Model npu;
    SessionOptions options = options_for(npu);
    options.data_files = files;
    auto session = Session::open(program, "two", options);
    EXPECT_TRUE(session) << session.error().describe();
    if (!session) return {};
    Execution run{std::move(*session), {}};
    run.set_inputs({testing::golden_folder() / "pte_variants" / "two.in0.bin"});
    return run.output(0);
}

TEST(Variants, UnplannedInputsAndOutputsGiveWhatPlannedOnesGive) {
    const auto file = host::MappedFile::open(testing::golden_folder() / "pte_variants" / "two_noalloc.pte").value();
    auto spec = pte::host::read_spec(pte::Program::open(file.bytes()).value()).value();
    auto& method = spec.methods[0];
    for (const std::int32_t port : {method.inputs[0], method.outputs[0]}) {
        auto& tensor = std::get<pte::host::TensorSpec>(method.values[static_cast<std::size_t>(port)]);
        ASSERT_FALSE(tensor.placement);
        tensor.placement = pte::host::PlacementSpec{1, static_cast<std::uint64_t>(method.arena_sizes[1])};
        method.arena_sizes[1] += 16384;
    }
    const auto planned = pte::host::write_program(spec);
    const auto result = output_of_two(planned, {});
    ASSERT_FALSE(result.empty());
    EXPECT_EQ(output_of_two(file.bytes(), {}), result);
}

TEST(Variants, AnExternalPayloadGivesWhatAnInlineOneGives) {
    const auto file = host::MappedFile::open(testing::golden_folder() / "pte_variants" / "two_ext.pte").value();
    const auto program = pte::Program::open(file.bytes()).value();
    const auto paths = data_files("two_ext.pte");
    const auto sram = host::MappedFile::open(paths[0]).value(), flash = host::MappedFile::open(paths[1]).value();
    const pte::DataFile files[] = {pte::DataFile::open(sram.bytes()).value(),
                                   pte::DataFile::open(flash.bytes()).value()};
    auto spec = pte::host::read_spec(program).value();
    auto& payload = spec.methods[0].delegates[0].payload;
    payload = pte::host::inline_payload(payload, program, files).value();
    const auto inlined = pte::host::write_program(spec);
    const auto result = output_of_two(inlined, {});
    ASSERT_FALSE(result.empty());
    EXPECT_EQ(output_of_two(file.bytes(), paths), result);
}

// The writer's programs must mean what they were read from.
class WrittenProgram : public GoldenProgram {};

TEST_P(WrittenProgram, GivesTheSame) {
    const auto file = host::MappedFile::open(GetParam()).value();
    const auto spec = pte::host::read_spec(pte::Program::open(file.bytes()).value());
    ASSERT_TRUE(spec);
    const auto written = pte::host::write_program(*spec);
    npu_model::Model npu;
    auto session = Session::open(written, GetParam().stem().string(), options_for(npu));
    ASSERT_TRUE(session) << session.error().describe();
    const fs::path folder = GetParam().parent_path();
    std::vector<fs::path> inputs;
    for (std::uint32_t i = 0; i < session->input_count(); ++i)
        inputs.push_back(folder / ("in" + std::to_string(i) + ".bin"));
    Execution run{std::move(*session), {}};
    ASSERT_NO_FATAL_FAILURE(run.set_inputs(inputs));
    for (std::uint32_t i = 0; i < run.session.output_count(); ++i)
        EXPECT_EQ(run.output(i), host::read_file(folder / ("out" + std::to_string(i) + ".bin")).value())
            << "output " << i;
}

INSTANTIATE_TEST_SUITE_P(Ops, WrittenProgram, ::testing::ValuesIn(programs(testing::golden_folder() / "ops")), stem);

/// Exactly so many bytes of memory between two fences, all of it filled with a pattern.
class FencedPool {
  public:
    explicit FencedPool(std::size_t bytes) : bytes_(bytes), memory_(2 * kFence + bytes + 64) {
        const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
        start_ = (64 - address % 64) % 64;
        for (std::size_t i = 0; i < memory_.size(); ++i) memory_[i] = pattern(i);
    }
    [[nodiscard]] runtime::Pool pool() { return std::span(memory_).subspan(start_ + kFence, bytes_); }
    [[nodiscard]] bool fences_stand() const {
        for (std::size_t i = 0; i < memory_.size(); ++i)
            if ((i < start_ + kFence || i >= start_ + kFence + bytes_) && memory_[i] != pattern(i)) return false;
        return true;
    }
    /// One past the last byte that was ever written (or holds the pattern's own value by chance).
    [[nodiscard]] std::size_t high_water() const {
        std::size_t end = bytes_;
        while (end > 0 && memory_[start_ + kFence + end - 1] == pattern(start_ + kFence + end - 1)) --end;
        return end;
    }

  private:
    static constexpr std::size_t kFence = 256;
    static std::uint8_t pattern(std::size_t i) { return static_cast<std::uint8_t>(0xA5 ^ (i * 29)); }
    std::size_t bytes_, start_ = 0;
    std::vector<std::uint8_t> memory_;
};

/// A method in fenced pools of exactly the bytes that it says it needs.
struct FencedMethod {
    FencedMethod(const pte::Program& program, npu::Device& npu) {
        runtime::LoadOptions options;
        options.operators = runtime::all_operators();
        options.device = &npu;
        add("method", runtime::Method::pool_bytes(program.find_method("forward").value()).value());
        method.emplace(runtime::Method::load(program, "forward", pools[0].pool(), options).value());
        const runtime::MemoryNeed& need = method->need();
        for (std::uint32_t i = 0; i < need.arena_count; ++i) add("arena", need.planned[i]);
        add("temporary", need.temporary);
        add("scratch", need.scratch);
        add("fast scratch", need.fast_scratch);
        for (std::uint32_t i = 0; i < need.arena_count; ++i) planned.push_back(pools[1 + i].pool());
        const std::size_t next = 1 + need.arena_count;
        bound = {planned, pools[next].pool(), pools[next + 1].pool(), pools[next + 2].pool()};
    }
    void add(const char* name, std::size_t bytes) {
        names.emplace_back(name);
        pools.emplace_back(bytes);
    }
    [[nodiscard]] std::vector<std::size_t> high_water() const {
        std::vector<std::size_t> marks;
        for (const FencedPool& pool : pools) marks.push_back(pool.high_water());
        return marks;
    }
    [[nodiscard]] bool fences_stand() const {
        return std::ranges::all_of(pools, [](const FencedPool& pool) { return pool.fences_stand(); });
    }

    std::deque<FencedPool> pools;
    std::vector<std::string> names;
    std::vector<runtime::Pool> planned;
    runtime::Pools bound;
    std::optional<runtime::Method> method;
};

// Pools of exactly the bytes that the file asks for: nothing outside is written, the high-water mark of each is reached
// in the first run and stays, and the result is always the same.
TEST(Memory, TenThousandRunsInExactPools) {
    const fs::path folder = testing::golden_folder() / "ops" / "linear";
    const auto file = host::MappedFile::open(folder / "linear.pte").value();
    const auto program = pte::Program::open(file.bytes()).value();
    const auto input = host::read_file(folder / "in0.bin").value(),
               expected = host::read_file(folder / "out0.bin").value();
    npu_model::Model npu;
    FencedMethod fenced(program, npu);
    runtime::Method& method = *fenced.method;
    ASSERT_TRUE(method.bind(fenced.bound));
    std::vector<std::size_t> marks;
    for (int i = 0; i < 10'000; ++i) {
        ASSERT_TRUE(method.set_input(0, input));
        ASSERT_TRUE(method.execute()) << "run " << i;
        const runtime::Tensor& output = **method.output_tensor(0);
        ASSERT_TRUE(std::ranges::equal(Bytes(output.data, output.size_bytes()), expected)) << "run " << i;
        if (i == 0) marks = fenced.high_water();
        if (i % 100 == 0) {
            ASSERT_EQ(fenced.high_water(), marks) << "run " << i;
            ASSERT_TRUE(fenced.fences_stand()) << "run " << i;
        }
    }
    EXPECT_EQ(fenced.high_water(), marks);
    EXPECT_TRUE(fenced.fences_stand());
    // What is asked for is used: not more than a few bytes of rounding lie above any mark.
    for (std::size_t i = 0; i < marks.size(); ++i)
        EXPECT_LT(fenced.pools[i].pool().size() - marks[i], 32u) << "pool " << fenced.names[i];
}

// Programs without an expected file must at least load, say what memory they need, and run on zeros.
TEST(Variants, EveryProgramForThisNpuLoadsAndRuns) {
    const fs::path folder = testing::golden_folder() / "pte_variants";
    std::size_t ran = 0;
    for (const auto& entry : fs::directory_iterator(folder)) {
        const std::string name = entry.path().filename().string();
        if (entry.path().extension() != ".pte" || name == "two_u55.pte" || name == "two_u85.pte") continue;
        npu_model::Model npu;
        SessionOptions options = options_for(npu);
        options.method = name == "min.pte" ? "f" : "forward";
        options.data_files = data_files(name);
        if (name == "mk5.pte") options.data_files = {folder / "sram.ptd", folder / "flash.ptd"};
        auto session = Session::open(entry.path(), options);
        ASSERT_TRUE(session) << session.error().describe();
        std::vector<std::vector<std::uint8_t>> zeros;
        for (std::uint32_t i = 0; i < session->input_count(); ++i) zeros.emplace_back(session->input(i).size_bytes);
        for (std::uint32_t i = 0; i < session->input_count(); ++i) ASSERT_TRUE(session->set_input(i, zeros[i]));
        const auto done = session->run();
        EXPECT_TRUE(done) << done.error().describe();
        ++ran;
    }
    EXPECT_EQ(ran, 36u);
}

TEST(Variants, ProgramsForAnotherNpuAreRefusedByName) {
    const fs::path folder = testing::golden_folder() / "pte_variants";
    npu_model::Model npu;
    for (const auto& [file, wanted] :
         {std::pair("two_u55.pte", "ethos-u55-128"), std::pair("two_u85.pte", "ethos-u85-256")}) {
        const auto session = Session::open(folder / file, options_for(npu));
        ASSERT_FALSE(session) << file;
        EXPECT_EQ(session.error().code, ErrorCode::DelegateIncompatible);
        EXPECT_NE(session.error().message.find(wanted), std::string::npos) << session.error().describe();
        EXPECT_NE(session.error().message.find("ethos-u65-256"), std::string::npos) << session.error().describe();
    }
}

INSTANTIATE_TEST_SUITE_P(Variants, VariantProgram, ::testing::ValuesIn(variants()), variant_stem);

}  // namespace
}  // namespace talpa
