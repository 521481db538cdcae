#include "firmware/chip/faults.h"

#include "firmware/chip/registers.h"
#include "firmware/chip/trace.h"
#include "firmware/text.h"
#include "link/control_block.h"
#include "link/memory_map.h"
#include "link/runner_protocol.h"

namespace talpa::firmware {

[[gnu::naked]] void fault_entry() {
    __asm volatile(
        "tst lr, #4\n"
        "ite eq\n"
        "mrseq r0, msp\n"
        "mrsne r0, psp\n"
        // The stack may be what broke: go on with a fresh one.
        "movw r1, #:lower16:stack_top\n"
        "movt r1, #:upper16:stack_top\n"
        "mov r2, r0\n"
        "msr msp, r1\n"
        "mov r0, r2\n"
        "mov r1, lr\n"
        "b report_fault\n");
}

extern "C" [[gnu::used]] void report_fault(const std::uint32_t* frame, std::uint32_t exc_return) {
    static constexpr const char* kNames[] = {"",          "",         "NMI",        "HardFault",
                                             "MemManage", "BusFault", "UsageFault", "SecureFault"};
    std::uint32_t ipsr = 0;
    __asm volatile("mrs %0, ipsr" : "=r"(ipsr));
    const std::uint32_t kind = ipsr & 0x1FF;

    // A frame outside the TCM was not stacked (stack overflow into nowhere): do not fault again while reading it.
    const auto sp = reinterpret_cast<std::uintptr_t>(frame);
    const bool readable = sp % 4 == 0 && link::kDtcm.contains(sp, 32);
    const std::uint32_t lr = readable ? frame[5] : 0, pc = readable ? frame[6] : 0;

    auto* const control = reinterpret_cast<volatile link::ControlBlock*>(std::uintptr_t{link::kControlBlock.base});
    control->fault.kind = kind;
    control->fault.pc = pc;
    control->fault.lr = lr;
    control->fault.cfsr = reg32(scs::kCfsr);
    control->fault.hfsr = reg32(scs::kHfsr);
    control->fault.bfar = reg32(scs::kBfar);
    control->fault.mmfar = reg32(scs::kMmfar);
    control->fault.sp = static_cast<std::uint32_t>(sp);
    control->last_error = static_cast<std::uint32_t>(link::RunnerError::InternalFault);
    control->state = static_cast<std::uint32_t>(link::RunnerState::Fault);

    Text<120> line;
    line.add(TALPA_SENTENCE("{} at pc {} lr {}"), kind < 8 ? kNames[kind] : "Fault", hex(pc), hex(lr));
    trace(line.view());
    line.clear();
    line.add(TALPA_SENTENCE("  cfsr {} hfsr {} bfar {} mmfar {}"), hex(reg32(scs::kCfsr)), hex(reg32(scs::kHfsr)),
             hex(reg32(scs::kBfar)), hex(reg32(scs::kMmfar)));
    trace(line.view());
    line.clear();
    line.add(TALPA_SENTENCE("  sp {} exc_return {}"), hex(static_cast<std::uint32_t>(sp)), hex(exc_return));
    trace(line.view());
    for (;;) wfe();
}

}  // namespace talpa::firmware
