#include "board/cpu/scs.h"

#include "board/cpu/float32.h"
#include "board/cpu/machine.h"

namespace talpa::board::cpu {

namespace {

// Offsets from E0000000.
constexpr u32 kScs = 0xE000;

constexpr u32 kVectKey = 0x05FA;
constexpr u32 kSysResetReq = 1U << 2;
constexpr u32 kAircrWritable = (1U << 14) | (1U << 13) | (1U << 4) | (1U << 3);  // PRIS BFHFNMINS IESB SYSRESETREQS

constexpr u32 kCcrWritable = (1U << 1) | Scs::kUnalignedTrap | Scs::kDivideTrap | Scs::kBusFaultIgnore | (1U << 10);
constexpr u32 kCcrFixed = (1U << 9) | 1U;  // STKALIGN, NONBASETHRDENA

/// ED40..ED7C: PFR0, PFR1, DFR0, AFR0, MMFR0-3, ISAR0-5, CLIDR, CTR. As the reference emulator's Cortex-M33 has them.
constexpr u32 kIdRegisters[16] = {0x00000030, 0x00000210, 0x00200000, 0x00000000, 0x00101F40, 0x00000000,
                                  0x01000000, 0x00000000, 0x01101110, 0x02212000, 0x20232232, 0x01111131,
                                  0x01310132, 0x00000000, 0x00000000, 0x8000C000};

/// SHCSR: which exception each active and pended bit belongs to.
struct HandlerBit {
    unsigned bit;
    Exception exception;
};
constexpr HandlerBit kActiveBits[] = {{0, kMemManage},   {1, kBusFault}, {2, kHardFault}, {3, kUsageFault},
                                      {4, kSecureFault}, {5, kNmi},      {7, kSvCall},    {8, kDebugMonitor},
                                      {10, kPendSv},     {11, kSysTick}};
constexpr HandlerBit kPendedBits[] = {{12, kUsageFault}, {13, kMemManage},   {14, kBusFault},
                                      {15, kSvCall},     {20, kSecureFault}, {21, kHardFault}};
constexpr HandlerBit kEnableBits[] = {{16, kMemManage}, {17, kBusFault}, {18, kUsageFault}, {19, kSecureFault}};

}  // namespace

void Scs::reset() {
    vtor = reset_vtor;
    aircr = scr = shcsr_enables = cfsr = hfsr = dfsr = mmfar = bfar = cpacr = fpcar = fpdscr = demcr = actlr = sfsr = 0;
    ccr = kCcrFixed;
    fpccr = kAspen | kLspen | (1U << 2);  // S: the FP context belongs to the Secure state
    dwt_control_ = 0;
    cycle_base_ = 0;
    cycle_stopped_ = 0;
    sau_.fill(0);
}

bool Scs::fp_enabled(bool privileged) const {
    const u32 access = bits(cpacr, 20, 2);
    return access == 3 || (access == 1 && privileged);
}

u32 Scs::cycle_counter() const {
    return (dwt_control_ & 1) != 0 ? w(machine_.now() - cycle_base_) : cycle_stopped_;
}

bool Scs::read(u32 address, unsigned size, bool privileged, u32& value) {
    if (!privileged) return false;
    const u32 offset = address & 0xFFFFC;
    const u32 word = read_word(offset);
    value = word >> (8 * (address & 3));
    if (size < 4) value &= (1U << (8 * size)) - 1;
    return true;
}

bool Scs::write(u32 address, unsigned size, bool privileged, u32 value) {
    const u32 offset = address & 0xFFFFC;
    constexpr u32 kUserSetMpend = 2;
    if (!privileged && !(offset == kScs + 0xF00 && (ccr & kUserSetMpend) != 0)) return false;
    const unsigned shift = 8 * (address & 3);
    const u32 mask = size == 4 ? ~0U : ((1U << (8 * size)) - 1) << shift;
    write_word(offset, value << shift, mask);
    machine_.request_attention();
    return true;
}

u32 Scs::read_word(u32 offset) {
    if ((offset >> 12) == 1) return read_dwt(offset & 0xFFF);
    if ((offset >> 12) != 0xE) return 0;
    const u32 reg = offset & 0xFFF;
    const u64 now = machine_.now();
    if (reg >= 0x100 && reg < 0x500) return read_nvic(reg);
    if (reg >= 0xD40 && reg < 0xD80) return kIdRegisters[(reg - 0xD40) / 4];
    if (reg >= 0xD90 && reg < 0xDC8) return read_mpu(reg);
    if (reg >= 0xDD0 && reg < 0xDE4) return sau_[(reg - 0xDD0) / 4];
    switch (reg) {
        case 0x004:
            return (Nvic::kIrqs - 1) / 32;
        case 0x008:
            return actlr;
        case 0x010:
            return machine_.systick.read_control(now);
        case 0x014:
            return machine_.systick.reload();
        case 0x018:
            return machine_.systick.current(now);
        case 0x01C:
            return 0;  // CALIB: no reference value
        case 0xD00:
            return machine_.options.cpuid;
        case 0xD04:
            return read_icsr();
        case 0xD08:
            return vtor;
        case 0xD0C:
            return 0xFA050000U | (machine_.nvic.priority_group << 8) | aircr;
        case 0xD10:
            return scr;
        case 0xD14:
            return ccr;
        case 0xD18:
        case 0xD1C:
        case 0xD20: {
            u32 value = 0;
            for (unsigned i = 0; i < 4; i++)
                value |= u32{machine_.nvic.priority_byte(4 + (reg - 0xD18) + i)} << (8 * i);
            return value;
        }
        case 0xD24:
            return read_shcsr();
        case 0xD28:
            return cfsr;
        case 0xD2C:
            return hfsr;
        case 0xD30:
            return dfsr;
        case 0xD34:
            return mmfar;
        case 0xD38:
            return bfar;
        case 0xD88:
            return cpacr;
        case 0xDE4:
            return sfsr;
        case 0xDFC:
            return demcr;
        case 0xF34:
            return fpccr;
        case 0xF38:
            return fpcar;
        case 0xF3C:
            return fpdscr;
        case 0xF40:
            return 0x10110021;
        case 0xF44:
            return 0x11000011;
        case 0xF48:
            return 0x00000040;
        default:
            return 0;
    }
}

void Scs::write_word(u32 offset, u32 value, u32 mask) {
    if ((offset >> 12) == 1) return write_dwt(offset & 0xFFF, value);
    if ((offset >> 12) != 0xE) return;
    const u32 reg = offset & 0xFFF;
    const u64 now = machine_.now();
    const auto merge = [&](u32& target, u32 writable = ~0U) {
        target = (target & ~(mask & writable)) | (value & mask & writable);
    };
    if (reg >= 0x100 && reg < 0x500) return write_nvic(reg, value, mask);
    if (reg >= 0xD90 && reg < 0xDC8) return write_mpu(reg, value);
    if (reg >= 0xDD0 && reg < 0xDE4) return merge(sau_[(reg - 0xDD0) / 4]);
    switch (reg) {
        case 0x008:
            return merge(actlr);
        case 0x010:
            return machine_.systick.write_control(now, value);
        case 0x014:
            return machine_.systick.write_reload(now, value);
        case 0x018:
            return machine_.systick.clear_current(now);
        case 0xD04:
            return write_icsr(value);
        case 0xD08:
            return merge(vtor, ~0x7FU);
        case 0xD0C:
            return write_aircr(value);
        case 0xD10:
            return merge(scr, 0x1E);
        case 0xD14:
            merge(ccr, kCcrWritable);
            ccr |= kCcrFixed;
            return;
        case 0xD18:
        case 0xD1C:
        case 0xD20:
            for (unsigned i = 0; i < 4; i++)
                if (bits(mask, 8 * i, 8) != 0)
                    machine_.nvic.set_priority(4 + (reg - 0xD18) + i, static_cast<u8>(value >> (8 * i)));
            return;
        case 0xD24:
            return write_shcsr(value);
        case 0xD28:
            cfsr &= ~(value & mask);
            return;
        case 0xD2C:
            hfsr &= ~(value & mask);
            return;
        case 0xD30:
            dfsr &= ~(value & mask);
            return;
        case 0xD34:
            return merge(mmfar);
        case 0xD38:
            return merge(bfar);
        case 0xD88:
            merge(cpacr, 0x00F0FFFF);
            machine_.exceptions.update_fp_ready();
            return;
        case 0xDE4:
            sfsr &= ~(value & mask);
            return;
        case 0xDFC:
            return merge(demcr, 0x010F07F1);
        case 0xF00:
            if ((value & 0x1FF) < Nvic::kIrqs) machine_.nvic.set_pending(kFirstIrq + (value & 0x1FF), true);
            return;
        case 0xF34:
            merge(fpccr, kAspen | kLspen | kLspens | kClronret | kClronrets | kTs | 0x7FB);
            machine_.exceptions.update_fp_ready();
            return;
        case 0xF38:
            return merge(fpcar, ~7U);
        case 0xF3C:
            return merge(fpdscr, 0x07C00000);
        default:
            return;
    }
}

// --- NVIC
// ---------------------------------------------------------------------------------------------------------------

u32 Scs::read_nvic(u32 reg) const {
    if (reg >= 0x400) {
        u32 value = 0;
        for (unsigned i = 0; i < 4; i++) {
            const unsigned exception = kFirstIrq + (reg - 0x400) + i;
            if (exception < Nvic::kExceptions) value |= u32{machine_.nvic.priority_byte(exception)} << (8 * i);
        }
        return value;
    }
    const unsigned word = (reg & 0x7F) / 4;
    if (word >= Nvic::kWords) return 0;
    switch (reg & 0x780) {
        case 0x100:
        case 0x180:
            return machine_.nvic.enabled_word(word);
        case 0x200:
        case 0x280:
            return machine_.nvic.pending_word(word);
        case 0x300:
            return machine_.nvic.active_word(word);
        default:
            return 0;  // ITNS: all interrupts are Secure
    }
}

void Scs::write_nvic(u32 reg, u32 value, u32 mask) {
    value &= mask;
    if (reg >= 0x400) {
        for (unsigned i = 0; i < 4; i++) {
            const unsigned exception = kFirstIrq + (reg - 0x400) + i;
            if (exception < kFirstIrq + Nvic::kIrqs && bits(mask, 8 * i, 8) != 0)
                machine_.nvic.set_priority(exception, static_cast<u8>(value >> (8 * i)));
        }
        return;
    }
    const unsigned word = (reg & 0x7F) / 4;
    for (unsigned i = 0; i < 32 && word < Nvic::kWords; i++) {
        const unsigned exception = kFirstIrq + 32 * word + i;
        if (!bit(value, i) || exception >= kFirstIrq + Nvic::kIrqs) continue;
        switch (reg & 0x780) {
            case 0x100:
                machine_.nvic.set_enabled(exception, true);
                break;
            case 0x180:
                machine_.nvic.set_enabled(exception, false);
                break;
            case 0x200:
                machine_.nvic.set_pending(exception, true);
                break;
            case 0x280:
                machine_.nvic.set_pending(exception, false);
                break;
            default:
                break;
        }
    }
}

// --- system control
// -----------------------------------------------------------------------------------------------------

u32 Scs::read_icsr() const {
    const Nvic& nvic = machine_.nvic;
    const unsigned current = machine_.exceptions.current;
    const unsigned pending = nvic.highest_pending();
    bool irq_pending = false;
    for (unsigned word = 0; word < Nvic::kWords; word++) irq_pending = irq_pending || nvic.pending_word(word) != 0;
    // RETTOBASE: no other exception is active than the current one.
    const bool lone = nvic.active_count() == 0 || (nvic.active_count() == 1 && current != 0 && nvic.active(current));
    return current | (lone ? 1U << 11 : 0) | (pending << 12) | (irq_pending ? 1U << 22 : 0) |
           (nvic.pending(kSysTick) ? 1U << 26 : 0) | (nvic.pending(kPendSv) ? 1U << 28 : 0) |
           (nvic.pending(kNmi) ? 1U << 31 : 0);
}

void Scs::write_icsr(u32 value) {
    Nvic& nvic = machine_.nvic;
    if (bit(value, 25)) nvic.set_pending(kSysTick, false);
    if (bit(value, 26)) nvic.set_pending(kSysTick, true);
    if (bit(value, 27)) nvic.set_pending(kPendSv, false);
    if (bit(value, 28)) nvic.set_pending(kPendSv, true);
    if (bit(value, 30)) nvic.set_pending(kNmi, false);
    if (bit(value, 31)) nvic.set_pending(kNmi, true);
}

void Scs::write_aircr(u32 value) {
    if ((value >> 16) != kVectKey) return;
    machine_.nvic.priority_group = bits(value, 8, 3);
    aircr = value & kAircrWritable;
    if ((value & kSysResetReq) != 0) machine_.request_system_reset();
}

u32 Scs::read_shcsr() const {
    u32 value = 0;
    for (const HandlerBit& b : kActiveBits) value |= machine_.nvic.active(b.exception) ? 1U << b.bit : 0;
    for (const HandlerBit& b : kPendedBits) value |= machine_.nvic.pending(b.exception) ? 1U << b.bit : 0;
    for (const HandlerBit& b : kEnableBits) value |= machine_.nvic.enabled(b.exception) ? 1U << b.bit : 0;
    return value;
}

void Scs::write_shcsr(u32 value) {
    for (const HandlerBit& b : kActiveBits)
        if (b.exception != kHardFault && b.exception != kNmi) machine_.nvic.set_active(b.exception, bit(value, b.bit));
    for (const HandlerBit& b : kPendedBits) machine_.nvic.set_pending(b.exception, bit(value, b.bit));
    for (const HandlerBit& b : kEnableBits) machine_.nvic.set_enabled(b.exception, bit(value, b.bit));
}

// --- MPU
// ----------------------------------------------------------------------------------------------------------------

u32 Scs::read_mpu(u32 reg) const {
    const Mpu& mpu = machine_.mpu;
    switch (reg) {
        case 0xD90:
            return Mpu::kRegions << 8;
        case 0xD94:
            return mpu.control;
        case 0xD98:
            return mpu.number;
        case 0xDC0:
            return mpu.mair[0];
        case 0xDC4:
            return mpu.mair[1];
        default:
            break;
    }
    if (reg < 0xD9C || reg > 0xDB8) return 0;
    const u32 alias = (reg - 0xD9C) / 8;
    const u32 region = alias == 0 ? mpu.number : (mpu.number & ~3U) + alias;
    if (region >= Mpu::kRegions) return 0;
    return (reg - 0xD9C) % 8 == 0 ? mpu.rbar[region] : mpu.rlar[region];
}

void Scs::write_mpu(u32 reg, u32 value) {
    Mpu& mpu = machine_.mpu;
    switch (reg) {
        case 0xD94:
            mpu.control = value & 7;
            break;
        case 0xD98:
            mpu.number = value & 0xFF;
            return;
        case 0xDC0:
            mpu.mair[0] = value;
            break;
        case 0xDC4:
            mpu.mair[1] = value;
            break;
        default: {
            if (reg < 0xD9C || reg > 0xDB8) return;
            const u32 alias = (reg - 0xD9C) / 8;
            const u32 region = alias == 0 ? mpu.number : (mpu.number & ~3U) + alias;
            if (region >= Mpu::kRegions) return;
            ((reg - 0xD9C) % 8 == 0 ? mpu.rbar : mpu.rlar)[region] = value;
            break;
        }
    }
    machine_.memory.flush_pages();
    machine_.request_code_flush();  // rights to execute were judged when blocks were decoded
    machine_.exceptions.apply_mode();
}

// --- DWT
// ----------------------------------------------------------------------------------------------------------------

u32 Scs::read_dwt(u32 reg) const {
    switch (reg) {
        case 0x000:
            return dwt_control_;
        case 0x004:
            return cycle_counter();
        default:
            return 0;
    }
}

void Scs::write_dwt(u32 reg, u32 value) {
    constexpr u32 kTrcena = 1U << 24;
    if (reg == 0x000) {
        const u32 count = cycle_counter();
        dwt_control_ = value & 1;
        cycle_stopped_ = count;
        cycle_base_ = machine_.now() - count;
    } else if (reg == 0x004 && (demcr & kTrcena) != 0) {
        cycle_stopped_ = value;
        cycle_base_ = machine_.now() - value;
    }
}

}  // namespace talpa::board::cpu
