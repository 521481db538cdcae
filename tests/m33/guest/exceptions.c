/* Exception behaviour, printed: entry and return, priorities, faults and their registers, lazy floating-point state, stacks,
 * MPU. The expected output (tests/golden/m33/exceptions.txt) was printed by qemu-system-arm 7.2, machine mps2-an505:
 *   qemu-system-arm -M mps2-an505 -display none -serial none -monitor none -semihosting -kernel exceptions.elf */
#include <stdint.h>

#include "semihosting.h"

#define REG(address) (*(volatile uint32_t *)(address))
#define ICSR REG(0xE000ED04)
#define AIRCR REG(0xE000ED0C)
#define CCR REG(0xE000ED14)
#define SHPR1 REG(0xE000ED18)
#define SHPR2 REG(0xE000ED1C)
#define SHPR3 REG(0xE000ED20)
#define SHCSR REG(0xE000ED24)
#define CFSR REG(0xE000ED28)
#define HFSR REG(0xE000ED2C)
#define MMFAR REG(0xE000ED34)
#define BFAR REG(0xE000ED38)
#define CPACR REG(0xE000ED88)
#define FPCCR REG(0xE000EF34)
#define FPCAR REG(0xE000EF38)
#define FPDSCR REG(0xE000EF3C)
#define ISER REG(0xE000E100)
#define ICER REG(0xE000E180)
#define ISPR REG(0xE000E200)
#define ICPR REG(0xE000E280)
#define IABR REG(0xE000E300)
#define IPR0 REG(0xE000E400)
#define SYST_CSR REG(0xE000E010)
#define SYST_RVR REG(0xE000E014)
#define SYST_CVR REG(0xE000E018)
#define MPU_TYPE REG(0xE000ED90)
#define MPU_CTRL REG(0xE000ED94)
#define MPU_RNR REG(0xE000ED98)
#define MPU_RBAR REG(0xE000ED9C)
#define MPU_RLAR REG(0xE000EDA0)
#define MPU_MAIR0 REG(0xE000EDC0)

#define BARRIER() __asm__ volatile("dsb\n isb" ::: "memory")

#define MRS(name)                                          \
    ({                                                     \
        uint32_t value_;                                   \
        __asm__ volatile("mrs %0, " #name : "=r"(value_)); \
        value_;                                            \
    })
#define MSR(name, value) __asm__ volatile("msr " #name ", %0\n isb" ::"r"(value) : "memory")

/* --- recording handlers ------------------------------------------------------------------------------------------------ */

static volatile uint32_t fault_base, resume_at;

/* Every handler enters here with its frame and EXC_RETURN. */
#define ENTRY(name, body)                                                                                              \
    __attribute__((naked)) void name(void) {                                                                           \
        __asm__ volatile("tst lr, #4\n ite eq\n mrseq r0, msp\n mrsne r0, psp\n mov r1, lr\n b " #body);               \
    }

static void show_frame(const char *what, uint32_t *frame, uint32_t exc_return) {
    print(what);
    print_hex(": ipsr", MRS(ipsr));
    print_hex("  exc_return", exc_return);
    print_hex("  xpsr", frame[7] & 0xFF00FFFF); /* GE is not interesting here */
    print_hex("  pc - base", frame[6] - fault_base);
    print_hex("  frame & 7", (uint32_t)frame & 7);
}

/* Faults: show everything, then go on at resume_at. */
__attribute__((used)) void fault_body(uint32_t *frame, uint32_t exc_return) {
    show_frame("fault", frame, exc_return);
    print_hex("  cfsr", CFSR);
    print_hex("  hfsr", HFSR);
    if (CFSR & 0x80) print_hex("  mmfar", MMFAR);
    if (CFSR & 0x8000) print_hex("  bfar", BFAR);
    print_hex("  shcsr", SHCSR);
    print_hex("  icsr", ICSR & 0x800001FF);
    CFSR = 0xFFFFFFFF;
    HFSR = 0xFFFFFFFF;
    frame[6] = resume_at & ~1u;
    frame[7] = (frame[7] & ~0x0600FC00u) | 0x01000000;
}
ENTRY(hard_fault_handler, fault_body)
ENTRY(mem_manage_handler, fault_body)
ENTRY(bus_fault_handler, fault_body)
ENTRY(usage_fault_handler, fault_body)

#define CLOBBERS "r0", "r1", "r2", "r3", "r4", "r12", "lr", "memory", "cc"
/* Runs `text`, whose first instruction is fault_base; handlers of faults come back behind it. */
#define FAULT(what, text)                                                                                    \
    do {                                                                                                     \
        print("-- " what "\n");                                                                              \
        __asm__ volatile("adr.w r0, 1f\n str r0, [%0]\n adr.w r0, 2f\n str r0, [%1]\n mov r0, #0\n"          \
                         "b 1f\n .align 2\n 1:\n" text "\n nop\n .align 2\n 2:\n nop\n" ::"r"(&fault_base), \
                         "r"(&resume_at)                                                                     \
                         : CLOBBERS);                                                                        \
    } while (0)

/* --- supervisor calls --------------------------------------------------------------------------------------------------- */

static volatile uint32_t svc_mode;

__attribute__((used)) void svc_body(uint32_t *frame, uint32_t exc_return) {
    switch (svc_mode) {
        case 0:
            show_frame("svc", frame, exc_return);
            print_hex("  r0", frame[0]);
            print_hex("  r12", frame[4]);
            print_hex("  immediate", ((uint16_t *)frame[6])[-1] & 0xFF);
            print_hex("  control", MRS(control));
            frame[0] = frame[0] + 1;
            break;
        case 1: MSR(control, MRS(control) & ~1u); break; /* privileged again */
        case 2: break;
        case 3:
            print_hex("svc in lazy state: fpccr", FPCCR & 0xC0000001);
            print_hex("  control", MRS(control));
            print_hex("  fpcar is frame + 32", FPCAR == (uint32_t)frame + 32);
            __asm__ volatile("vmov.f32 s0, #2.0\n vmov.f32 s15, #3.0\n vmov.f32 s16, s16" ::: "s0", "s15");
            print_hex("  after fp use: fpccr", FPCCR & 0xC0000001);
            print_hex("  control", MRS(control));
            print_hex("  stacked s0", frame[8]);
            print_hex("  stacked s15", frame[23]);
            print_hex("  stacked fpscr", frame[24]);
            print_hex("  exc_return", exc_return);
            break;
        default: break;
    }
}
ENTRY(svc_handler, svc_body)

static uint32_t call_svc(uint32_t argument) {
    register uint32_t r0 __asm__("r0") = argument;
    register uint32_t r12 __asm__("r12") = 0x12121212;
    __asm__ volatile("adr.w r1, 1f\n str r1, [%2]\n 1: svc 42" : "+r"(r0), "+r"(r12) : "r"(&fault_base) : "r1", "r2", "r3", "lr", "memory");
    return r0;
}

static void test_svc(void) {
    print("== svc\n");
    svc_mode = 0;
    print_hex("returned", call_svc(0x100));
    /* With SP off by four: the frame is realigned and bit 9 of the stacked xPSR says so. */
    print("-- misaligned stack\n");
    __asm__ volatile("sub sp, #4");
    print_hex("returned", call_svc(0x200));
    __asm__ volatile("add sp, #4");
    /* With priority masked it escalates. */
    SHPR2 = 0x80000000;
    MSR(basepri, 0x40);
    svc_mode = 2;
    FAULT("svc at masked priority", "svc 1");
    MSR(basepri, 0);
    SHPR2 = 0;
}

/* --- priorities ----------------------------------------------------------------------------------------------------------- */

static char order[64];
static volatile uint32_t order_length;
static void note(char c) { order[order_length++] = c; }
static void show_order(void) {
    order[order_length++] = '\n';
    order[order_length] = 0;
    print(order);
    order_length = 0;
}

static volatile uint32_t nest;
static volatile uint32_t seen_icsr, seen_iabr, seen_return;

void irq0_handler(void) {
    note('[');
    note('0');
    if (nest == 1) {
        ISPR = 2;  /* more urgent: preempts at once */
        BARRIER();
        ISPR = 4; /* less urgent: waits */
        BARRIER();
        seen_icsr = ICSR;
        seen_iabr = IABR;
    }
    note(']');
}
void irq1_handler(void) {
    note('(');
    note('1');
    note(')');
}
__attribute__((used)) void irq2_body(uint32_t *frame, uint32_t exc_return) {
    (void)frame;
    seen_return = exc_return;
    note('<');
    note('2');
    note('>');
}
ENTRY(irq2_handler, irq2_body)
void irq3_handler(void) { note('3'); }
void pendsv_handler(void) { note('p'); }

static void test_priorities(void) {
    print("== priorities\n");
    ISER = 0xF;
    IPR0 = 0xE0A06080; /* irq 0: 80, 1: 60, 2: A0, 3: E0 */
    print_hex("ipr", IPR0);
    nest = 1;
    ISPR = 1;
    BARRIER();
    show_order();
    print_hex("icsr inside", seen_icsr & 0xF5FFF9FF);
    print_hex("iabr inside", seen_iabr);
    print_hex("tail-chained exc_return", seen_return);
    nest = 0;
    MSR(primask, 1);
    ISPR = 0xF;
    BARRIER();
    print_hex("icsr while masked", ICSR & 0xF5FFF9FF);
    note('-');
    MSR(primask, 0);
    show_order();
    MSR(basepri, 0x80);
    ISPR = 0xF;
    BARRIER();
    note('-');
    MSR(basepri, 0);
    show_order();
    /* Sub-priorities do not preempt but order. */
    AIRCR = 0x05FA0000 | (6 << 8); /* one bit of group priority */
    nest = 1;
    ISPR = 1;
    BARRIER();
    show_order();
    nest = 0;
    AIRCR = 0x05FA0000;
    /* BASEPRI_MAX only raises. */
    MSR(basepri_max, 0xA0);
    print_hex("basepri", MRS(basepri));
    MSR(basepri_max, 0xC0);
    print_hex("basepri", MRS(basepri));
    MSR(basepri_max, 0x40);
    print_hex("basepri", MRS(basepri));
    MSR(basepri_max, 0);
    print_hex("basepri", MRS(basepri));
    MSR(basepri, 0);
    /* Equal priorities: the lower number first; a disabled one stays pending. */
    IPR0 = 0x40404040;
    ICER = 8;
    MSR(primask, 1);
    ISPR = 0xF;
    BARRIER();
    MSR(primask, 0);
    show_order();
    print_hex("ispr", ISPR);
    ICPR = 8;
    print_hex("ispr", ISPR);
    SHPR3 = 0x00E00000;
    print_hex("shpr3", SHPR3);
    ICSR = 1u << 28;
    BARRIER();
    show_order();
}

/* --- process stack, unprivileged ------------------------------------------------------------------------------------------- */

static uint32_t process_stack[128] __attribute__((aligned(8)));

static void test_process_stack(void) {
    print("== process stack\n");
    svc_mode = 0;
    MSR(psp, (uint32_t)(process_stack + 120));
    /* On the process stack around one SVC; the frame must be there. */
    __asm__ volatile(
        "adr.w r0, 1f\n str r0, [%0]\n movs r0, #2\n msr control, r0\n isb\n movs r0, #77\n 1: svc 7\n movs r0, #0\n msr control, r0\n isb\n" ::"r"(
            &fault_base)
        : CLOBBERS);
    print_hex("r0 in the process frame", process_stack[112]);
    print_hex("psp", MRS(psp) - (uint32_t)process_stack);
    /* Unprivileged: special registers read as zero, writes are ignored, the system space faults. */
    MSR(basepri, 0x20);
    uint32_t value, control, primask;
    svc_mode = 1;
    __asm__ volatile(
        "movs r4, #1\n msr control, r4\n isb\n mrs %0, basepri\n movs r4, #0\n msr basepri, r4\n cpsid i\n mrs %1, control\n mrs %2, primask\n svc 0\n"
        : "=&r"(value), "=&r"(control), "=&r"(primask)::CLOBBERS);
    print_hex("unprivileged: basepri", value);
    print_hex("control", control);
    print_hex("primask", primask);
    print_hex("after svc: control", MRS(control));
    print_hex("basepri", MRS(basepri));
    print_hex("primask", MRS(primask));
    MSR(basepri, 0);
    FAULT("system register by unprivileged code", "movs r1, #1\n msr control, r1\n isb\n movw r1, #0xed08\n movt r1, #0xe000\n ldr r2, [r1]");
    __asm__ volatile("svc 0" ::: CLOBBERS);
    print_hex("control", MRS(control));
}

/* --- faults ----------------------------------------------------------------------------------------------------------------- */

static void test_faults(void) {
    print("== faults\n");
    FAULT("undefined, handler disabled", "udf #1");
    SHCSR |= 7u << 16;
    FAULT("undefined", "udf #1");
    FAULT("undefined, wide", "udf.w #1");
    FAULT("undefined inside IT", "movs r1, #1\n cmp r1, #1\n ittt eq\n moveq r2, #5\n udfeq #3\n moveq r2, #6");
    FAULT("even branch target", "adr.w r1, 2f\n bx r1");
    FAULT("no coprocessor 5", "mrc p5, 0, r1, c0, c0, 0");
    CPACR = 0;
    BARRIER();
    FAULT("floating point disabled", "vadd.f32 s0, s1, s2");
    FAULT("floating point disabled, vmrs", "vmrs r1, fpscr");
    CPACR = 0xF00000;
    BARRIER();
    CCR |= 1 << 4;
    FAULT("division by zero", "movs r1, #5\n movs r2, #0\n sdiv r3, r1, r2");
    CCR &= ~(1u << 4);
    FAULT("unaligned ldrd", "movw r1, #2\n movt r1, #0x3800\n ldrd r2, r3, [r1]");
    FAULT("unaligned ldm", "movw r1, #6\n movt r1, #0x3800\n ldm r1, {r2, r3}");
    FAULT("unaligned ldrex", "movw r1, #1\n movt r1, #0x3800\n ldrex r2, [r1]");
    FAULT("unaligned vldr", "movw r1, #2\n movt r1, #0x3800\n vldr s0, [r1]");
    FAULT("execute never", "movs r1, #0\n movt r1, #0x4000\n orr r1, #1\n bx r1");
    /* With the fault's priority masked it escalates. */
    MSR(basepri, 0x20);
    SHPR1 = 0x00404040;
    FAULT("undefined at masked priority", "udf #2");
    MSR(basepri, 0);
    SHPR1 = 0;
    MSR(faultmask, 1);
    print_hex("faultmask", MRS(faultmask));
    MSR(faultmask, 0);
    print_hex("faultmask", MRS(faultmask));
}

/* --- stack limits ------------------------------------------------------------------------------------------------------------- */

static void test_limits(void) {
    print("== stack limits\n");
    MSR(psp, (uint32_t)(process_stack + 64));
    MSR(psplim, (uint32_t)(process_stack + 62));
    print_hex("psplim", MRS(psplim) - (uint32_t)process_stack);
    /* Pushing below the limit faults before it writes; the entry then has no room either, so the frame is not written. */
    process_stack[61] = 0xAAAAAAAA;
    MSR(psplim, (uint32_t)(process_stack + 32));
    FAULT("push below the limit",
          "movs r0, #2\n msr control, r0\n isb\n mrs r1, psp\n sub r1, #96\n msr psp, r1\n push {r0-r3, r4, r5, r6, r7, lr}\n push {r0-r3, r4, r5, r6, r7, lr}\n");
    MSR(control, 0);
    MSR(psplim, 0);
    print_hex("process_stack[61]", process_stack[61]);
}

void nmi_handler(void) { note('N'); }

/* --- floating point -------------------------------------------------------------------------------------------------------------- */

static void test_floating_point(void) {
    print("== floating point\n");
    svc_mode = 3;
    uint32_t s0, s15, s16, fpscr;
    __asm__ volatile(
        "movw r0, #0\n movt r0, #0x3fc0\n vmov s0, r0\n vmov s15, r0\n vmov s16, r0\n mov r0, #0x03000000\n vmsr fpscr, r0\n"
        "svc 3\n"
        "vmov %0, s0\n vmov %1, s15\n vmov %2, s16\n vmrs %3, fpscr\n"
        : "=&r"(s0), "=&r"(s15), "=&r"(s16), "=&r"(fpscr)::"r0", "r1", "r2", "r3", "r12", "lr", "s0", "s15", "s16", "memory");
    print_hex("s0", s0);
    print_hex("s15", s15);
    print_hex("s16", s16);
    print_hex("fpscr", fpscr);
    print_hex("fpccr", FPCCR & 0xC0000001);
    print_hex("control", MRS(control));
    /* A handler without FP: the space stays unused, and the state is gone from FPCCR on return. */
    svc_mode = 2;
    __asm__ volatile("vmov.f32 s0, #1.5\n svc 2\n vmov %0, s0" : "=r"(s0)::"r0", "r1", "r2", "r3", "r12", "lr", "s0", "memory");
    print_hex("s0 after a handler without fp", s0);
    print_hex("fpccr", FPCCR & 0xC0000001);
    svc_mode = 3;
    /* Without lazy stacking. */
    FPCCR &= ~(1u << 30);
    __asm__ volatile(
        "movw r0, #0\n movt r0, #0x4000\n vmov s0, r0\n vmov s15, r0\n svc 3\n vmov %0, s0\n vmov %1, s15"
        : "=&r"(s0), "=&r"(s15)::"r0", "r1", "r2", "r3", "r12", "lr", "s0", "s15", "s16", "memory");
    print_hex("s0", s0);
    print_hex("s15", s15);
    FPCCR |= 1u << 30;
    __asm__ volatile("mov r0, #0\n vmsr fpscr, r0" ::: "r0");
    /* No FP context: the basic frame. */
    MSR(control, MRS(control) & ~4u);
    svc_mode = 0;
    print_hex("returned", call_svc(1));
    FPDSCR = 0x01C00000;
    uint32_t fresh;
    __asm__ volatile("vmrs %0, fpscr" : "=r"(fresh));
    print_hex("fpscr of a new context", fresh);
    FPDSCR = 0;
    __asm__ volatile("mov r0, #0\n vmsr fpscr, r0" ::: "r0");
}

/* --- MPU -------------------------------------------------------------------------------------------------------------------------- */

static uint32_t protected_words[16] __attribute__((aligned(32)));

static void region(uint32_t number, uint32_t base, uint32_t limit, uint32_t access, uint32_t never) {
    MPU_RNR = number;
    MPU_RBAR = base | access << 1 | never;
    MPU_RLAR = (limit & ~31u) | 1;
}

static void test_mpu(void) {
    print("== mpu\n");
    MPU_MAIR0 = 0x00000044;
    protected_words[0] = 0x11;
    protected_words[8] = 0x22;
    region(0, (uint32_t)protected_words, (uint32_t)protected_words + 31, 2, 1); /* read-only, privileged */
    region(1, (uint32_t)protected_words + 32, (uint32_t)protected_words + 63, 0, 1);
    MPU_CTRL = 5;
    BARRIER();
    print_hex("ctrl", MPU_CTRL);
    print_hex("read", protected_words[0]);
    __asm__ volatile("mov r4, %0" ::"r"(protected_words) : "r4");
    FAULT("write to read-only", "movs r1, #1\n str r1, [r4]");
    print_hex("word", protected_words[0] - 0x11);
    protected_words[8]++;
    print_hex("word", protected_words[8]);
    __asm__ volatile("mov r4, %0" ::"r"(protected_words) : "r4");
    FAULT("execute never", "add r1, r4, #33\n bx r1");
    uint32_t tt;
    __asm__ volatile("tt %0, %1" : "=r"(tt) : "r"(protected_words));
    print_hex("tt", tt & 0x004F01FF);
    __asm__ volatile("ttt %0, %1" : "=r"(tt) : "r"(protected_words + 8));
    print_hex("ttt", tt & 0x004F01FF);
    region(2, (uint32_t)protected_words, (uint32_t)protected_words + 63, 1, 1);
    BARRIER();
    __asm__ volatile("mov r4, %0" ::"r"(protected_words) : "r4");
    FAULT("overlapping regions", "ldr r1, [r4]");
    MPU_CTRL = 0;
    MPU_RNR = 2;
    MPU_RLAR = 0;
    BARRIER();
}

/* --- timers and sleep --------------------------------------------------------------------------------------------------------------- */

static volatile uint32_t ticks;
void systick_handler(void) { ticks++; }

static void test_sleep(void) {
    print("== sleep\n");
    SYST_RVR = 999;
    SYST_CVR = 0;
    SYST_CSR = 7;
    while (ticks < 3) __asm__ volatile("wfi");
    SYST_CSR = 0;
    print_hex("ticks at least 3", ticks >= 3);
    /* WFI wakes for a pending interrupt that PRIMASK holds back. */
    ISER = 1;
    MSR(primask, 1);
    ISPR = 1;
    __asm__ volatile("wfi");
    print("awake with primask\n");
    nest = 0;
    MSR(primask, 0);
    show_order();
    __asm__ volatile("sev\n wfe");
    print("awake after sev\n");
}

/* --- exclusive monitor --------------------------------------------------------------------------------------------------------------- */

static void test_exclusive(void) {
    print("== exclusive\n");
    static volatile uint32_t word = 5;
    uint32_t status, value;
    svc_mode = 2;
    __asm__ volatile("ldrex %1, [%2]\n adds %1, #1\n strex %0, %1, [%2]" : "=&r"(status), "=&r"(value) : "r"(&word) : "cc", "memory");
    print_hex("strex", status);
    print_hex("word", word);
    __asm__ volatile("ldrex r4, [%1]\n svc 2\n strex %0, r4, [%1]" : "=&r"(status) : "r"(&word) : "r0", "r1", "r2", "r3", "r4", "r12", "lr", "memory");
    print_hex("strex after an exception", status);
    __asm__ volatile("strex %0, %1, [%2]" : "=&r"(status) : "r"(value), "r"(&word) : "memory");
    print_hex("strex without ldrex", status);
}

int main(void) {
    test_svc();
    test_priorities();
    test_process_stack();
    test_faults();
    test_limits();
    test_floating_point();
    test_mpu();
    test_sleep();
    test_exclusive();
    ICSR = 1u << 31;
    BARRIER();
    show_order();
    print("done\n");
    return 0;
}
