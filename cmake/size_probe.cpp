// What reader, executor, Ethos-U delegate, quantize and dequantize cost on the M33: an ELF that calls the whole
// interface once and is linked without what is not reached. Never run; its size is printed by the build and held by
// tests/firmware_size_test.py.
#include "base/core/error.h"
#include "runtime/method.h"
#include "runtime/operators/quantize.h"

using namespace talpa;

// Addresses and sizes as from a loader; volatile, so that nothing is folded away.
volatile std::uintptr_t probe_address;
volatile std::size_t probe_size;
npu::Device* volatile probe_device;

namespace {

std::span<std::uint8_t> memory() {
    return {reinterpret_cast<std::uint8_t*>(probe_address), probe_size};
}

Result<void> run_everything() {
    TRY_ASSIGN(const pte::Program program, pte::Program::open(memory()));
    TRY_ASSIGN(const pte::MethodView view, program.find_method("forward"));
    TRY_ASSIGN(const std::size_t bytes, runtime::Method::pool_bytes(view));
    runtime::LoadOptions options;
    options.operators = runtime::operators::kQuantizeOperators;
    options.device = probe_device;
    TRY_ASSIGN(runtime::Method method, runtime::Method::load(program, "forward", memory().first(bytes), options));
    const runtime::Pool arena = memory().first(method.need().planned_total());
    TRY(method.bind({{&arena, 1}, memory(), memory(), memory()}));
    for (std::uint32_t i = 0; i < method.input_count(); ++i) TRY(method.set_input(i, memory()));
    for (std::uint32_t i = 0; i < method.output_count(); ++i) TRY(method.set_output_memory(i, memory()));
    TRY(method.execute());
    TRY_ASSIGN(const runtime::Tensor* const out, method.output_tensor(0));
    probe_address = reinterpret_cast<std::uintptr_t>(out->data);
    return {};
}

}  // namespace

extern "C" void probe_main() {
    const auto done = run_everything();
    if (done) return;
    char line[128];
    probe_size = done.error().render(line).size();
}
