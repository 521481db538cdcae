/* Semihosting calls (BKPT AB) that these programs use; qemu-system-arm -semihosting and guest_board.cpp answer them. */
#pragma once

#include <stdint.h>

static inline uint32_t semihosting(uint32_t operation, const volatile void *argument) {
    register uint32_t r0 __asm__("r0") = operation;
    register const volatile void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

static inline void print(const char *text) { semihosting(4, text); }

static inline void finish(int status) {
    const uint32_t block[2] = {0x20026, (uint32_t)status};
    semihosting(0x20, block);
    for (;;) {
    }
}

void print_hex(const char *label, uint32_t value); /* "label 0123abcd\n" */
uint32_t argument_number(uint32_t fallback);       /* the number on the command line */
