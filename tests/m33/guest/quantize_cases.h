// Inputs of the differential test of quantize and dequantize: the same on the simulated M33 and on the host.
#pragma once

#include <stdint.h>
#include <string.h>

enum { kCount = 4099 }; // not a multiple of four

struct quantize_case {
    float scale;
    int32_t zero_point;
    int is_signed;
};

static const struct quantize_case kCases[] = {
    {1.0f, 0, 1},          {0.5f, -3, 1},       {0.018658448f, -14, 1}, {0.0039215689f, -128, 1}, {0.0186584499f, 114, 0},
    {1.0f, 255, 0},        {3.7e-5f, 127, 1},   {1.17549435e-38f, 0, 1}, {2.5e38f, 5, 1},         {0.1f, 4194304, 1},
    {0.1f, -4194304, 1},   {0.25f, 128, 0},     {7.0e-45f, 1, 0},
};
enum { kCaseCount = sizeof kCases / sizeof *kCases };

static uint32_t next_random(uint32_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

// Half of them at or beside a rounding tie of the scale, the others any bits: NaN, infinities, denormals.
static float next_value(uint32_t *state, float scale) {
    const uint32_t r = next_random(state);
    const int32_t halves = static_cast<int32_t>(next_random(state) % 2400) - 1200;
    float value;
    uint32_t bits;
    if ((r & 1) != 0) {
        value = static_cast<float>(halves) * 0.5f * scale;
        memcpy(&bits, &value, 4);
        bits += (r >> 1) % 3 - 1;  // the neighbours too
    } else {
        bits = next_random(state);
    }
    memcpy(&value, &bits, 4);
    return value;
}

static uint32_t hash_bytes(uint32_t hash, const void *bytes, uint32_t count) {
    const uint8_t *p = static_cast<const uint8_t *>(bytes);
    while (count--) hash = (hash ^ *p++) * 16777619u;
    return hash;
}
