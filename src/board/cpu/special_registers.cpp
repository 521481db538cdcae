// The special registers as MRS and MSR name them by SYSm (manual D1.2).
#include <algorithm>
#include <array>

#include "board/cpu/exception_bits.h"
#include "board/cpu/exceptions.h"
#include "board/cpu/machine.h"

namespace talpa::board::cpu {

namespace {

enum Sysm : unsigned {
    kMsp = 8,
    kPsp = 9,
    kMspLim = 10,
    kPspLim = 11,
    kPrimask = 16,
    kBasepri = 17,
    kBasepriMax = 18,
    kFaultmask = 19,
    kControl = 20,
};

struct NonSecure {
    unsigned sysm;
    u32 writable;
};
/// MSP_NS and its relatives, in the order of Exceptions::nonsecure_.
constexpr std::array<NonSecure, 8> kNonSecure{{
    {0x88, ~3U},                  // MSP
    {0x89, ~3U},                  // PSP
    {0x8A, ~7U},                  // MSPLIM
    {0x8B, ~7U},                  // PSPLIM
    {0x90, 1},                    // PRIMASK
    {0x91, Nvic::kPriorityBits},  // BASEPRI
    {0x93, 1},                    // FAULTMASK
    {0x94, 3},                    // CONTROL
}};

/// The place of a non-secure register; kNonSecure.size() if it is none.
std::size_t nonsecure_index(unsigned sysm) {
    const auto* row =
        std::find_if(kNonSecure.begin(), kNonSecure.end(), [&](const NonSecure& r) { return r.sysm == sysm; });
    return static_cast<std::size_t>(row - kNonSecure.begin());
}

}  // namespace

u32 Exceptions::xpsr() const {
    const Core& core = machine_.core;
    const u32 it = core.it;
    return core.nzcv() | (core.q != 0 ? 1U << 27 : 0) | (bits(it, 0, 2) << 25) | (thumb ? kThumbBit : 0) |
           (u32{core.ge} << 16) | (bits(it, 2, 6) << 10) | current;
}

u32 Exceptions::read_special(unsigned sysm, bool privileged) const {
    if (sysm < 8) {
        u32 value = 0;
        if (bit(sysm, 0) && privileged) value |= current;
        if (!bit(sysm, 2)) value |= xpsr() & 0xF80F0000U;
        return value;
    }
    if (sysm == kControl) return control;
    if (!privileged) return 0;
    switch (sysm) {
        case kMsp:
            return main_stack();
        case kPsp:
            return process_stack();
        case kMspLim:
            return main_limit_;
        case kPspLim:
            return process_limit_;
        case kPrimask:
            return primask ? 1 : 0;
        case kBasepri:
        case kBasepriMax:
            return basepri;
        case kFaultmask:
            return faultmask ? 1 : 0;
        default:
            break;
    }
    const std::size_t i = nonsecure_index(sysm);
    return i < kNonSecure.size() ? nonsecure_[i] : 0;
}

void Exceptions::write_special(unsigned sysm, unsigned mask, u32 value) {
    Core& core = machine_.core;
    if (sysm < 4) {
        if (bit(mask, 1)) {
            core.set_nzcv(value);
            core.q = bit(value, 27) ? 1 : 0;
        }
        if (bit(mask, 0)) core.ge = static_cast<u8>(bits(value, 16, 4));
        return;
    }
    if (!core.privileged) return;
    const u8 priority = static_cast<u8>(value & Nvic::kPriorityBits);
    switch (sysm) {
        case kMsp:
            set_main_stack(value);
            break;
        case kPsp:
            set_process_stack(value);
            break;
        case kMspLim:
            main_limit_ = value & ~7U;
            break;
        case kPspLim:
            process_limit_ = value & ~7U;
            break;
        case kPrimask:
            primask = bit(value, 0);
            break;
        case kBasepri:
            basepri = priority;
            break;
        case kBasepriMax:
            if (priority != 0 && (basepri == 0 || priority < basepri)) basepri = priority;
            break;
        case kFaultmask:
            if (!bit(value, 0) || execution_priority() > -1) faultmask = bit(value, 0);
            break;
        case kControl: {
            u32 writable = kUnprivilegedThread | kFpActive | kSecureFpActive;
            if (current == 0) writable |= kProcessStack;
            control = (control & ~writable) | (value & writable);
            break;
        }
        default: {
            const std::size_t i = nonsecure_index(sysm);
            if (i < kNonSecure.size()) nonsecure_[i] = value & kNonSecure[i].writable;
            break;
        }
    }
    apply_mode();
}

}  // namespace talpa::board::cpu
