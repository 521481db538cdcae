#include "npu_model/fast/isa.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>

namespace talpa::npu_model::fast {
namespace {

constexpr std::array<std::string_view, 3> kNames{"generic", "avx2", "avx512"};
constexpr std::array<Isa, 3> kAll{Isa::Generic, Isa::Avx2, Isa::Avx512Vnni};

std::size_t detect_count() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2")) return 1;
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni");
    return avx512 ? 3 : 2;
#else
    return 1;
#endif
}

Isa default_isa() {
    const auto supported = supported_isas();
    if (const char* wanted = std::getenv("TALPA_ISA"); wanted != nullptr) {
        const auto name = std::find(kNames.begin(), kNames.end(), std::string_view(wanted));
        const auto index = static_cast<std::size_t>(name - kNames.begin());
        if (index < supported.size()) return kAll[index];
    }
    return supported.back();
}

std::atomic<Isa>& chosen() {
    static std::atomic<Isa> isa = default_isa();
    return isa;
}

}  // namespace

std::string_view isa_name(Isa isa) {
    return kNames[static_cast<std::size_t>(isa)];
}

std::span<const Isa> supported_isas() {
    static const std::size_t count = detect_count();
    return std::span(kAll).first(count);
}

Isa current_isa() {
    return chosen().load(std::memory_order_relaxed);
}

void force_isa(Isa isa) {
    chosen().store(isa, std::memory_order_relaxed);
}

}  // namespace talpa::npu_model::fast
