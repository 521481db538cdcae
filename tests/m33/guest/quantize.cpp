// The M33's inner loops of quantize and dequantize on the test's inputs: a hash a case, then the DWT's cycles for 4096
// elements.
#include "runtime/operators/quantize_m33.h"

extern "C" {
#include "semihosting.h"
int main(void);
}
#include "quantize_cases.h"

using namespace talpa::runtime::operators::m33;

static float real[kCount];
static std::uint8_t quantized[kCount + 1];

static volatile std::uint32_t& word(std::uint32_t address) {
    return *reinterpret_cast<volatile std::uint32_t*>(address);
}
static std::uint32_t cycles() {
    return word(0xE0001004);
}

int main(void) {
    std::uint32_t random = 2463534242u;
    for (const quantize_case& c : kCases) {
        for (float& x : real) x = next_value(&random, c.scale);
        // One byte off: the output of a program may begin anywhere.
        (c.is_signed != 0 ? quantize_int8 : quantize_uint8)(real, quantized + 1, kCount, 1.0f / c.scale, c.zero_point);
        print_hex("q", hash_bytes(2166136261u, quantized + 1, kCount));
        for (std::uint32_t i = 0; i < kCount; ++i) quantized[i] = static_cast<std::uint8_t>(next_random(&random));
        (c.is_signed != 0 ? dequantize_int8 : dequantize_uint8)(quantized, real, kCount, c.scale, c.zero_point);
        print_hex("d", hash_bytes(2166136261u, real, sizeof real));
    }
    word(0xE000EDFC) |= 1u << 24;
    word(0xE0001000) |= 1;
    const std::uint32_t start = cycles();
    quantize_int8(real, quantized, 4096, 2.0f, 3);
    const std::uint32_t middle = cycles();
    dequantize_int8(quantized, real, 4096, 0.5f, 3);
    const std::uint32_t end = cycles();
    print_hex("quantize", middle - start);
    print_hex("dequantize", end - middle);
    return 0;
}
