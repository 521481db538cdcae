// Any bytes as a program (or as a data file): opened, every method loaded, bound and run on an NPU that fails, or does
// nothing and says that it succeeded. Limits keep a run short; what is over them is loaded only.
#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "pte/data_file.h"
#include "pte/metadata.h"
#include "runtime/host/aligned_memory.h"
#include "runtime/method.h"
#include "runtime/operators/all.h"

namespace talpa::runtime {
namespace {

constexpr std::size_t kMaxTables = 1 << 20;
constexpr std::size_t kMaxPool = 1 << 16;

class IdleNpu final : public npu::Device {
  public:
    [[nodiscard]] std::uint32_t config() const override { return npu::kConfigU65_256; }
    [[nodiscard]] std::uint32_t id() const override { return npu::kIdU65; }
    [[nodiscard]] Result<npu::JobStats> run(const npu::Job& job) override {
        if (job.stream.size() % 2 == 0) return fail(ErrorCode::NpuFault, "this NPU always fails");
        if (job.stream.size() % 3 == 0) std::fill_n(job.regions[1].data, job.regions[1].size, std::uint8_t{0x5A});
        return npu::JobStats{};
    }
};

void touch(Bytes bytes) {
    volatile std::uint8_t sink = 0;
    for (const std::uint8_t b : bytes.first(std::min<std::size_t>(bytes.size(), 4096)))
        sink = static_cast<std::uint8_t>(sink ^ b);
}

void run_method(const pte::Program& program, const pte::MethodView& view) {
    const auto bytes = Method::pool_bytes(view);
    if (!bytes || *bytes > kMaxTables) return;
    const host::AlignedMemory tables(*bytes);
    IdleNpu npu;
    LoadOptions options;
    options.operators = all_operators();
    options.device = &npu;
    options.instruction_budget = 64;
    auto method = Method::load(program, view.name(), tables.pool(), options);
    std::array<char, 256> message;
    if (!method)
        return touch(
            Bytes(reinterpret_cast<const std::uint8_t*>(message.data()), method.error().render(message).size()));
    const MemoryNeed& need = method->need();
    if (need.planned_total() > kMaxPool || need.temporary > kMaxPool || need.scratch > kMaxPool ||
        need.fast_scratch > kMaxPool)
        return;
    std::vector<host::AlignedMemory> arenas;
    std::vector<Pool> pools;
    for (std::uint32_t i = 0; i < need.arena_count; ++i) pools.push_back(arenas.emplace_back(need.planned[i]).pool());
    const host::AlignedMemory temporary(need.temporary), scratch(need.scratch), fast(need.fast_scratch);
    if (!method->bind({pools, temporary.pool(), scratch.pool(), fast.pool()})) return;
    std::vector<host::AlignedMemory> ports;
    for (std::uint32_t i = 0; i < method->output_count(); ++i) {
        if (!method->output_is_unplanned(i) || method->output(i).kind != Value::Kind::Tensor) continue;
        const std::size_t size = method->output(i).tensor->size_bytes();
        if (size > kMaxPool) return;
        (void)method->set_output_memory(i, ports.emplace_back(size).pool());
    }
    for (int round = 0; round < 2; ++round) {
        for (std::uint32_t i = 0; i < method->input_count(); ++i) {
            if (method->input(i).kind != Value::Kind::Tensor) continue;
            const std::size_t size = method->input(i).tensor->size_bytes();
            if (size > kMaxPool) return;
            const host::AlignedMemory& input = ports.emplace_back(size);
            std::ranges::fill(input.pool(), static_cast<std::uint8_t>(i + 1));
            (void)method->set_input(i, input.pool());
        }
        if (!method->execute()) return;
        for (std::uint32_t i = 0; i < method->output_count(); ++i)
            if (const auto out = method->output_tensor(i)) touch({(*out)->data, (*out)->size_bytes()});
    }
}

}  // namespace
}  // namespace talpa::runtime

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace talpa;
    const runtime::host::AlignedMemory copy(size);
    std::copy_n(data, size, copy.pool().data());
    const Bytes bytes = copy.pool();
    if (const auto file = pte::DataFile::open(bytes)) {
        for (std::uint32_t i = 0; i < file->count(); ++i)
            if (const auto found = file->data(file->entry(i))) runtime::touch(*found);
        return 0;
    }
    const auto program = pte::Program::open(bytes);
    if (!program) return 0;
    for (std::uint32_t i = 0; i < program->segment_count(); ++i)
        if (const auto segment = program->segment_data(i)) runtime::touch(*segment);
    for (std::uint32_t i = 0; i < std::min(program->method_count(), 4U); ++i) {
        (void)pte::io_quantization(*program, program->method(i), pte::IoSide::Input, i);
        runtime::run_method(*program, program->method(i));
    }
    return 0;
}
