#include "oracle.h"

#include <unicorn/unicorn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

namespace talpa::m33_test {

namespace {

void check(uc_err error, const char* what) {
    if (error == UC_ERR_OK) return;
    std::fprintf(stderr, "m33_differential: unicorn: %s: %s\n", what, uc_strerror(error));
    std::exit(1);
}

// r0-r12, sp, lr, then APSR, FPSCR, s0-s31.
constexpr int kIds = 15 + 2 + 32;
std::array<int, kIds> register_ids() {
    std::array<int, kIds> ids{};
    for (int i = 0; i < 13; i++) ids[static_cast<unsigned>(i)] = UC_ARM_REG_R0 + i;
    ids[13] = UC_ARM_REG_SP;
    ids[14] = UC_ARM_REG_LR;
    ids[15] = UC_ARM_REG_APSR;
    ids[16] = UC_ARM_REG_FPSCR;
    for (int i = 0; i < 32; i++) ids[static_cast<unsigned>(17 + i)] = UC_ARM_REG_S0 + i;
    return ids;
}

}  // namespace

Oracle::Oracle(std::span<std::uint8_t> code, std::span<std::uint8_t> data) {
    check(uc_open(UC_ARCH_ARM, static_cast<uc_mode>(UC_MODE_THUMB | UC_MODE_MCLASS), &engine_), "open");
    check(uc_ctl_set_cpu_model(engine_, UC_CPU_ARM_CORTEX_M33), "Cortex-M33 model");
    check(uc_mem_map_ptr(engine_, kCode, code.size(), UC_PROT_ALL, code.data()), "code memory");
    check(uc_mem_map_ptr(engine_, kData, data.size(), UC_PROT_ALL, data.data()), "data memory");
    std::uint32_t access = 0x00F00000;
    check(uc_reg_write(engine_, UC_ARM_REG_C1_C0_2, &access), "FPU access");
    std::uint32_t enable = 0x40000000;
    check(uc_reg_write(engine_, UC_ARM_REG_FPEXC, &enable), "FPU enable");
    // The first FP instruction starts a new FP context, which would reset FPSCR in the middle of a test.
    const std::uint8_t vmrs[] = {0xF1, 0xEE, 0x10, 0x0A};
    std::copy(std::begin(vmrs), std::end(vmrs), code.begin());
    check(uc_emu_start(engine_, kCode | 1, kCode + 4, 0, 0), "first FP instruction");
}

Oracle::~Oracle() {
    uc_close(engine_);
}

void Oracle::forget_code() {
    check(uc_ctl_remove_cache(engine_, kCode, kCode + kCodeSize), "forget code");
}

std::uint32_t Oracle::run(std::uint32_t begin, std::uint32_t end, State& state, std::string& error) {
    static const std::array<int, kIds> kRegisters = register_ids();
    std::array<std::uint64_t, kIds> values{};
    std::array<void*, kIds> pointers{};
    std::array<int, kIds> ids = kRegisters;
    for (unsigned i = 0; i < kIds; i++) pointers[i] = &values[i];
    for (unsigned i = 0; i < 15; i++) values[i] = state.r[i];
    values[15] = state.apsr & 0xF8000000;
    values[16] = state.fpscr;
    for (unsigned i = 0; i < 32; i++) values[17 + i] = state.s[i];
    check(uc_reg_write_batch(engine_, ids.data(), pointers.data(), kIds), "write registers");
    const uc_err result = uc_emu_start(engine_, begin | 1, end, 0, 0);
    if (result != UC_ERR_OK) error = uc_strerror(result);
    values.fill(0);
    check(uc_reg_read_batch(engine_, ids.data(), pointers.data(), kIds), "read registers");
    for (unsigned i = 0; i < 15; i++) state.r[i] = static_cast<std::uint32_t>(values[i]);
    state.apsr = static_cast<std::uint32_t>(values[15]) & 0xF80F0000;
    state.fpscr = static_cast<std::uint32_t>(values[16]);
    for (unsigned i = 0; i < 32; i++) state.s[i] = static_cast<std::uint32_t>(values[17 + i]);
    std::uint32_t pc = 0;
    check(uc_reg_read(engine_, UC_ARM_REG_PC, &pc), "read pc");
    return pc;
}

bool Oracle::stopped_at_undefined(const std::string& error) {
    return error == uc_strerror(UC_ERR_EXCEPTION) || error == uc_strerror(UC_ERR_INSN_INVALID);
}

}  // namespace talpa::m33_test
