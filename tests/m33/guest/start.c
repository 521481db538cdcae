/* Vector table, reset, and the few library functions that GCC expects. Handlers are weak: a test defines what it needs. */
#include <stddef.h>
#include <stdint.h>

#include "semihosting.h"

extern uint32_t stack_top, bss_start, bss_end;
int main(void);
void reset_handler(void);

void unexpected(void) {
    uint32_t ipsr;
    __asm__ volatile("mrs %0, ipsr" : "=r"(ipsr));
    print_hex("unexpected exception", ipsr);
    print_hex("cfsr", *(volatile uint32_t *)0xE000ED28);
    print_hex("hfsr", *(volatile uint32_t *)0xE000ED2C);
    finish(3);
}

#define WEAK(name) void name(void) __attribute__((weak, alias("unexpected")))
WEAK(nmi_handler);
WEAK(hard_fault_handler);
WEAK(mem_manage_handler);
WEAK(bus_fault_handler);
WEAK(usage_fault_handler);
WEAK(secure_fault_handler);
WEAK(svc_handler);
WEAK(debug_monitor_handler);
WEAK(pendsv_handler);
WEAK(systick_handler);
WEAK(irq0_handler);
WEAK(irq1_handler);
WEAK(irq2_handler);
WEAK(irq3_handler);

__attribute__((section(".vectors"), used, aligned(1024))) void *const vectors[16 + 8] = {
    &stack_top,          reset_handler,         nmi_handler, hard_fault_handler, mem_manage_handler, bus_fault_handler,
    usage_fault_handler, secure_fault_handler,  0,           0,                  0,                  svc_handler,
    debug_monitor_handler, 0,                   pendsv_handler, systick_handler, irq0_handler,       irq1_handler,
    irq2_handler,        irq3_handler,          unexpected,  unexpected,         unexpected,         unexpected};

void reset_handler(void) {
    for (uint32_t *p = &bss_start; p < &bss_end; p++) *p = 0;
    *(volatile uint32_t *)0xE000ED88 |= 0xF00000; /* CPACR: floating point */
    __asm__ volatile("dsb\n isb");
    finish(main());
}

void *memset(void *to, int value, size_t count) {
    uint8_t *p = to;
    while (count--) *p++ = (uint8_t)value;
    return to;
}

void *memcpy(void *to, const void *from, size_t count) {
    uint8_t *p = to;
    const uint8_t *q = from;
    while (count--) *p++ = *q++;
    return to;
}

void print_hex(const char *label, uint32_t value) {
    char line[64];
    size_t n = 0;
    while (label[n] != 0 && n < 50) {
        line[n] = label[n];
        n++;
    }
    line[n++] = ' ';
    for (int shift = 28; shift >= 0; shift -= 4) line[n++] = "0123456789abcdef"[(value >> shift) & 15];
    line[n++] = '\n';
    line[n] = 0;
    print(line);
}

uint32_t argument_number(uint32_t fallback) {
    static char text[80];
    const uint32_t block[2] = {(uint32_t)text, sizeof text};
    if (semihosting(0x15, block) != 0) return fallback;
    uint32_t value = 0;
    int digits = 0;
    for (const char *p = text; *p; p++) {
        if (*p == ' ') {
            value = 0;
            digits = 0;
        } else if (*p >= '0' && *p <= '9') {
            value = value * 10 + (uint32_t)(*p - '0');
            digits++;
        } else {
            value = 0;
            digits = -100;
        }
    }
    return digits > 0 ? value : fallback;
}
