// Reset and the vector table. Order at reset: imx93-remoteproc, section 6.
#include <cstdint>

#include "firmware/chip/faults.h"
#include "firmware/chip/mpu.h"
#include "firmware/chip/registers.h"
#include "link/memory_map.h"

extern "C" {
extern std::uint32_t bss_start[], bss_end[], stack_limit[], stack_top[], tcm_end[];
[[noreturn]] void reset_handler();
void messaging_unit_irq();
void npu_irq();
void systick_handler();
}

int main();

namespace talpa::firmware {
namespace {

// Anything that nobody enabled: stop the line, so that a stuck source does not starve the rest.
void unexpected_irq() {
    std::uint32_t ipsr = 0;
    __asm volatile("mrs %0, ipsr" : "=r"(ipsr));
    if (ipsr >= 16) disable_irq(ipsr - 16);
}

void clear_words(std::uint32_t* from, const std::uint32_t* to) {
    // volatile: with a plain loop the compiler calls memset, whose byte stores would read uninitialised TCM
    for (volatile std::uint32_t* p = from; p < to; ++p) *p = 0;
}

using Handler = void (*)();
/// Up to the last one that is ever enabled: the other 89 of the chip stay as reset leaves them, disabled.
constexpr unsigned kExternalInterrupts = link::kNpuIrq + 1;

struct SystemVectors {
    std::uint32_t* initial_sp;
    Handler system[15];
};

/// What the core boots with: no interrupt is enabled yet.
[[gnu::section(".interrupts"), gnu::used]] constinit const SystemVectors kVectors{
    stack_top,
    {reset_handler, fault_entry, fault_entry, fault_entry, fault_entry, fault_entry, fault_entry, unexpected_irq,
     unexpected_irq, unexpected_irq, fault_entry, unexpected_irq, unexpected_irq, unexpected_irq, systick_handler}};

/// The whole table, in the data TCM: nearly all of it is one word, which code TCM is too dear for. (VTOR wants the
/// alignment of its size, rounded up to a power of two.)
alignas(1024) constinit struct {
    SystemVectors system;
    Handler irq[kExternalInterrupts];
} vectors{};
static_assert(sizeof vectors <= 1024);

void fill_vectors() {
    vectors.system = kVectors;
    for (Handler& handler : vectors.irq) handler = unexpected_irq;
    vectors.irq[link::kMessagingUnitIrq] = messaging_unit_irq;
    vectors.irq[link::kNpuIrq] = npu_irq;
    dsb();
    reg32(scs::kVtor) = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(&vectors));
    dsb();
    isb();
}

[[gnu::noinline, noreturn]] void start() {
    clear_words(bss_start, bss_end);
    clear_words(stack_top, tcm_end);
    fill_vectors();
    reg32(scs::kShcsr) |= scs::kShcsrFaultEnables;
    protect_memory();
    main();
    for (;;) wfe();
}

}  // namespace
}  // namespace talpa::firmware

// Naked: nothing may touch the stack before its words have been written once (ECC), nor floating point before it is on.
extern "C" [[gnu::naked]] void reset_handler() {
    __asm volatile(
        "cpsid i\n"
        "movw r0, #0xED08\n"
        "movt r0, #0xE000\n"  // VTOR: the boot loader's idea of it is not to be trusted
        "movw r1, #:lower16:%c0\n"
        "movt r1, #:upper16:%c0\n"
        "str r1, [r0]\n"
        "movw r0, #:lower16:stack_limit\n"
        "movt r0, #:upper16:stack_limit\n"
        "movw r1, #:lower16:stack_top\n"
        "movt r1, #:upper16:stack_top\n"
        "msr msp, r1\n"
        "msr msplim, r0\n"
        "movs r2, #0\n"
        "1: cmp r0, r1\n"
        "itt lo\n"
        "strlo r2, [r0], #4\n"
        "blo 1b\n"
        "movw r0, #0xED88\n"
        "movt r0, #0xE000\n"  // CPACR: floating point on
        "ldr r1, [r0]\n"
        "orr r1, r1, #0xF00000\n"
        "str r1, [r0]\n"
        "dsb\n"
        "isb\n"
        "b %c1\n" ::"i"(&talpa::firmware::kVectors),
        "i"(&talpa::firmware::start));
}
