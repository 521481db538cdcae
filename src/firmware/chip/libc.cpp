// The few functions of the C library that the compiler calls and the headers-only packages do not bring. Word by word
// where both sides are aligned: the memory may be DDR without a cache.
#include <cstddef>
#include <cstdint>

extern "C" {

void* memcpy(void* __restrict to, const void* __restrict from, std::size_t n) {
    auto* d = static_cast<std::uint8_t*>(to);
    const auto* s = static_cast<const std::uint8_t*>(from);
    if (((reinterpret_cast<std::uintptr_t>(d) | reinterpret_cast<std::uintptr_t>(s)) & 3) == 0) {
        auto* dw = reinterpret_cast<std::uint32_t*>(d);
        const auto* sw = reinterpret_cast<const std::uint32_t*>(s);
        for (; n >= 16; n -= 16) {
            const std::uint32_t a = sw[0], b = sw[1], c = sw[2], e = sw[3];
            dw[0] = a;
            dw[1] = b;
            dw[2] = c;
            dw[3] = e;
            dw += 4;
            sw += 4;
        }
        for (; n >= 4; n -= 4) *dw++ = *sw++;
        d = reinterpret_cast<std::uint8_t*>(dw);
        s = reinterpret_cast<const std::uint8_t*>(sw);
    }
    for (; n > 0; --n) *d++ = *s++;
    return to;
}

void* memmove(void* to, const void* from, std::size_t n) {
    auto* d = static_cast<std::uint8_t*>(to);
    const auto* s = static_cast<const std::uint8_t*>(from);
    if (d <= s || d >= s + n) return memcpy(to, from, n);
    while (n-- > 0) d[n] = s[n];
    return to;
}

void* memset(void* to, int value, std::size_t n) {
    auto* d = static_cast<std::uint8_t*>(to);
    const auto byte = static_cast<std::uint8_t>(value);
    for (; n > 0 && (reinterpret_cast<std::uintptr_t>(d) & 3) != 0; --n) *d++ = byte;
    const std::uint32_t word = byte * 0x01010101u;
    auto* dw = reinterpret_cast<std::uint32_t*>(d);
    for (; n >= 4; n -= 4) *dw++ = word;
    d = reinterpret_cast<std::uint8_t*>(dw);
    for (; n > 0; --n) *d++ = byte;
    return to;
}

int memcmp(const void* a, const void* b, std::size_t n) {
    const auto* x = static_cast<const std::uint8_t*>(a);
    const auto* y = static_cast<const std::uint8_t*>(b);
    for (; n > 0; --n, ++x, ++y)
        if (*x != *y) return *x < *y ? -1 : 1;
    return 0;
}

void* memchr(const void* s, int value, std::size_t n) {
    for (const auto* p = static_cast<const std::uint8_t*>(s); n > 0; --n, ++p)
        if (*p == static_cast<std::uint8_t>(value)) return const_cast<std::uint8_t*>(p);
    return nullptr;
}

std::size_t strlen(const char* s) {
    std::size_t n = 0;
    while (s[n] != '\0') ++n;
    return n;
}

[[noreturn]] void abort() {
    __asm volatile("udf #0");
    __builtin_unreachable();
}

// A pure virtual call is a fault of ours; the fault handler reports where.
[[noreturn]] void __cxa_pure_virtual() {
    abort();
}
}
