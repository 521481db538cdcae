// For tests of this folder: small programs to break in one place each, an NPU that does what a test says, and the pools
// of a method, allocated to the byte.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "npu/encoder.h"
#include "pte/host/delegate_blob_writer.h"
#include "pte/host/writer.h"
#include "runtime/host/aligned_memory.h"
#include "runtime/method.h"
#include "runtime/operators/quantize.h"

namespace talpa::runtime::testing {

using namespace pte::host;  // NOLINT(google-build-using-namespace): the specs' names, in tests only

inline std::string text(const Error& error) {
    std::array<char, 512> buffer;
    return std::string(error.render(buffer));
}

inline TensorSpec planned(std::int8_t type, std::vector<std::int32_t> sizes, std::uint64_t offset) {
    TensorSpec t;
    t.scalar_type = type;
    t.sizes = std::move(sizes);
    t.placement = PlacementSpec{1, offset};
    return t;
}

/// float32 [4] -> quantize (scale 0.5) -> int8 -> dequantize -> float32 [4].
/// Values: 0 input, 1 int8, 2 scale, 3 zero point, 4 -128, 5 127, 6 dtype, 7 Null, 8 output. Arena: 48 bytes.
inline ProgramSpec round_trip_program() {
    MethodSpec m;
    m.values = {planned(6, {4}, 0), planned(1, {4}, 16), 0.5,        std::int64_t{0},    std::int64_t{-128},
                std::int64_t{127},  std::int64_t{1},     NullSpec(), planned(6, {4}, 32)};
    m.inputs = {0};
    m.outputs = {8};
    m.operators = {{"quantized_decomposed::quantize_per_tensor", "out"},
                   {"quantized_decomposed::dequantize_per_tensor", "out"}};
    m.chains = {{KernelCallSpec{0, {0, 2, 3, 4, 5, 6, 1, 1}}, KernelCallSpec{1, {1, 2, 3, 4, 5, 6, 7, 8, 8}}}};
    m.arena_sizes = {0, 48};
    ProgramSpec p;
    p.methods = {m};
    return p;
}

/// A stream of DMAs and a STOP.
inline std::vector<std::uint32_t> dma_stream(const std::vector<npu::Dma>& copies) {
    std::vector<std::uint32_t> memory(256);
    npu::WordBuffer words(memory);
    npu::StreamWriter writer(words);
    for (const npu::Dma& dma : copies) {
        npu::Operation op;
        op.kind = npu::OpKind::Dma;
        op.dma = dma;
        (void)writer.emit(op).value();
    }
    npu::Operation stop;
    stop.kind = npu::OpKind::Stop;
    (void)writer.emit(stop).value();
    memory.resize(words.words().size());
    return memory;
}

inline npu::Dma dma(std::uint8_t from_region, std::uint64_t from, std::uint8_t to_region, std::uint64_t to,
                    std::uint64_t length) {
    npu::Dma d;
    d.src_region = from_region;
    d.src = from;
    d.dst_region = to_region;
    d.dst = to;
    d.length = length;
    return d;
}

/// int8 [16] at 0 of the scratch -> int8 [16] at 64, by way of 32 bytes of region 2; 16 bytes of weights; scratch 80.
inline DelegateBlobSpec copy_blob() {
    DelegateBlobSpec blob;
    blob.command_data =
        write_command_data(npu::kConfigU65_256, npu::kIdU65,
                           dma_stream({dma(1, 0, 2, 16, 16), dma(2, 16, 1, 64, 16), dma(0, 0, 2, 0, 16)}));
    blob.weights.assign(16, 0x77);
    blob.scratch_size = 80;
    IoRecordSpec in, out;
    in.shape[5] = out.shape[5] = 16;
    out.offset = 64;
    blob.inputs = {in};
    blob.outputs = {out};
    return blob;
}

/// One delegate call: value 0 int8 [16] -> value 1 int8 [16].
inline ProgramSpec delegate_program(const DelegateBlobSpec& blob = copy_blob()) {
    MethodSpec m;
    m.values = {planned(1, {16}, 0), planned(1, {16}, 16)};
    m.inputs = {0};
    m.outputs = {1};
    DelegateSpec d;
    d.payload = write_delegate_blob(blob);
    d.compile_specs = {{"target", "ethos-u65-256"},
                       {"compile_flags", "--accelerator-config=ethos-u65-256 --memory-mode=Dedicated_Sram"}};
    m.delegates = {d};
    m.chains = {{DelegateCallSpec{0, {0, 1}}}};
    m.arena_sizes = {0, 32};
    ProgramSpec p;
    p.methods = {m};
    return p;
}

/// An NPU that does what the test says; by default it copies 16 bytes from 0 to 64 of region 1, as copy_blob() asks.
class FakeNpu final : public npu::Device {
  public:
    std::uint32_t config_word = npu::kConfigU65_256, id_word = npu::kIdU65;
    std::function<Result<npu::JobStats>(const npu::Job&)> behaviour = [](const npu::Job& job) -> Result<npu::JobStats> {
        std::copy_n(job.regions[1].data, 16, job.regions[1].data + 64);
        return npu::JobStats{100};
    };
    unsigned runs = 0;

    [[nodiscard]] std::uint32_t config() const override { return config_word; }
    [[nodiscard]] std::uint32_t id() const override { return id_word; }
    [[nodiscard]] Result<npu::JobStats> run(const npu::Job& job) override {
        ++runs;
        return behaviour(job);
    }
};

/// A loaded method with all its memory. `error` says why there is none.
struct Loaded {
    std::vector<std::uint8_t> file;
    std::optional<pte::Program> program;
    host::AlignedMemory method_pool;
    std::vector<host::AlignedMemory> arenas;
    std::vector<Pool> arena_pools;
    host::AlignedMemory temporary, scratch, fast_scratch;
    std::optional<Method> method;
    std::string error;
    ErrorCode code = ErrorCode::Internal;

    [[nodiscard]] Pools pools() { return {arena_pools, temporary.pool(), scratch.pool(), fast_scratch.pool()}; }
    void failed(const Error& e) {
        error = text(e);
        code = e.code;
        method.reset();
    }
};

inline LoadOptions default_options(npu::Device* device = nullptr) {
    LoadOptions options;
    options.operators = operators::kQuantizeOperators;
    options.device = device;
    return options;
}

/// Loads and binds. Behind a pointer, for the method refers to the program.
inline std::unique_ptr<Loaded> load(std::vector<std::uint8_t> file, const LoadOptions& options = default_options(),
                                    std::string_view name = "forward") {
    auto l = std::make_unique<Loaded>();
    l->file = std::move(file);
    const auto program = pte::Program::open(l->file);
    if (!program) return l->failed(program.error()), std::move(l);
    l->program = *program;
    const auto view = l->program->find_method(name);
    if (!view) return l->failed(view.error()), std::move(l);
    const auto bytes = Method::pool_bytes(*view);
    if (!bytes) return l->failed(bytes.error()), std::move(l);
    l->method_pool = host::AlignedMemory(*bytes);
    const auto method = Method::load(*l->program, name, l->method_pool.pool(), options);
    if (!method) return l->failed(method.error()), std::move(l);
    l->method = *method;
    const MemoryNeed& need = l->method->need();
    for (std::uint32_t i = 0; i < need.arena_count; ++i) l->arenas.emplace_back(need.planned[i]);
    for (const auto& arena : l->arenas) l->arena_pools.push_back(arena.pool());
    l->temporary = host::AlignedMemory(need.temporary);
    l->scratch = host::AlignedMemory(need.scratch);
    l->fast_scratch = host::AlignedMemory(need.fast_scratch);
    if (const auto bound = l->method->bind(l->pools()); !bound) l->failed(bound.error());
    return l;
}

inline std::unique_ptr<Loaded> load(const ProgramSpec& spec, const LoadOptions& options = default_options(),
                                    std::string_view name = "forward") {
    return load(write_program(spec), options, name);
}

/// The message of a program that must be refused; "(accepted)" when it is not.
inline std::string refusal(const ProgramSpec& spec, const LoadOptions& options = default_options()) {
    const auto l = load(spec, options);
    return l->method ? "(accepted)" : l->error;
}

template <typename T>
Bytes bytes_of(const std::vector<T>& v) {
    return {reinterpret_cast<const std::uint8_t*>(v.data()), v.size() * sizeof(T)};
}

inline std::vector<float> floats_of(Bytes bytes) {
    std::vector<float> v;
    for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) v.push_back(load_le<float>(bytes.data() + i));
    return v;
}

}  // namespace talpa::runtime::testing
