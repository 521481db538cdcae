// The innermost loops, once per instruction set, behind a table of functions. They know vectors of 16 channels and
// nothing of operations: the planners (conv.cpp, depthwise.cpp, …) prepare what they eat. This header is all that the
// files compiled for other instruction sets may share with the rest: plain data, no inline functions (a linker would be
// free to keep the AVX-512 copy of an inline function for every caller).
#pragma once

#include <cstddef>
#include <cstdint>

namespace talpa::npu_model::fast {

inline constexpr int kLanes = 16;      // channels per vector
inline constexpr int kMaxVectors = 3;  // per tile, where a tile has several pixels

/// Requantization of 16 channels, as the kernels want it. `bias` starts the accumulator.
///   narrow: out = ((((acc << left) * multiplier) >> 32) + round) >> shift  shift = s + left - 32 in 1..31
///   wide:   out = ((acc * multiplier + half) >> s) + offset in 64 bits    s = 0..63, any rounding mode
/// The zero point is inside `round` or `offset`.
struct ChannelBlock {
    std::int32_t bias[kLanes];
    std::int32_t multiplier[kLanes];      // below 2^31, or (narrow, special) 2^32 less
    std::int32_t multiplier_odd[kLanes];  // multiplier of lane 2i+1 in lane 2i
    std::int32_t round[kLanes];           // narrow
    std::int32_t shift[kLanes];           // narrow: s + left - 32; wide: s
    std::int32_t left[kLanes];            // narrow: brings small s up to 33
    std::int32_t large[kLanes];           // narrow: all ones where the multiplier is 2^31 or more
    std::int32_t is_special;              // any of `left` and `large` is not 0
};

/// From accumulators to bytes: requantize, clamp, table, store.
struct Epilogue {
    bool wide = false;
    bool tfl = false;                    // wide only: TFL rounding (ethos-u65, section 5.1)
    std::int32_t offset = 0;             // wide only: zero point - (unsigned ? 128 : 0)
    std::int8_t low = -128, high = 127;  // clamp, before the flip
    std::uint8_t flip = 0;               // 0x80 for unsigned outputs: computed as signed, 128 less
    const std::uint8_t* lut = nullptr;   // 256 bytes indexed by the byte after the flip, or null
    std::int32_t* raw = nullptr;         // if set: accumulators go here unscaled, [pixel][vectors * 16]
};

/// Where the bytes of a tile go. The last vector may hold fewer than 16 channels.
struct Output {
    std::uint8_t* data = nullptr;
    std::ptrdiff_t pixel_stride = 0;
    std::ptrdiff_t vector_stride = 0;  // from one vector of channels to the next
    int last_channels = kLanes;        // of the last vector of this call
};

/// A run of activations that lie together: `steps` words of 4 bytes (4 x 8 bits, or 2 x 16 bits).
struct Segment {
    const std::uint8_t* data = nullptr;  // of the row's first pixel
    std::ptrdiff_t steps = 0;
};

/// `pixels` neighbours of one output row, `vectors` (1..kMaxVectors) of 16 output channels.
struct ConvTask {
    const Segment* segments = nullptr;
    std::ptrdiff_t segment_count = 0;
    std::ptrdiff_t pitch = 0;               // bytes from the activations of one output pixel to those of the next
    std::uint32_t flip = 0;                 // 0x80808080 turns signed bytes into unsigned ones
    const std::uint8_t* weights = nullptr;  // [step][vectors][16 channels][4 bytes]
    int vectors = 1;
    int pixels = 0;
    const ChannelBlock* blocks = nullptr;  // [vectors]
    Output out;
    Epilogue epilogue;
};

/// One output row of 16 channels; activations were spread by `spread`.
struct DepthwiseTask {
    const std::uint8_t* const* groups = nullptr;  // [group_count] rows of [pixel][16 channels][4 bytes]
    std::ptrdiff_t group_count = 0;
    const std::uint8_t* weights = nullptr;  // [group][16 channels][4 bytes]
    int pixels = 0;
    const ChannelBlock* block = nullptr;
    Output out;
    Epilogue epilogue;
};

/// Puts neighbours in x beside each other: out[pixel][channel] = 4 bytes = the values of that channel at
/// x = pixel * stride + {0, 1, 2, 3} * dilation (8 bits), or + {0, 1} * dilation (16 bits). `line` is [x][16 channels]
/// and holds 64 more bytes than any x that is used.
struct SpreadTask {
    const std::uint8_t* line = nullptr;
    std::ptrdiff_t stride = 1;
    std::ptrdiff_t dilation = 1;
    int pixels = 0;
    std::uint32_t flip = 0;
    std::uint8_t* out = nullptr;
};

/// From the byte of an operand to the 32-bit number that it stands for; `table` always holds it, the other forms are
/// faster.
struct OperandScale {
    enum class Kind : std::uint8_t {
        Table,
        Multiplied,  // (x - zero_point) * multiplier
        Scaled,      // ((x - zero_point) * multiplier + half) >> shift in 64 bits, shift >= 1
    } kind = Kind::Table;
    bool is_signed = true;
    std::int32_t zero_point = 0;
    std::int32_t multiplier = 1;
    std::int32_t shift = 0;
    const std::int32_t* table = nullptr;  // [256], by the byte
};

enum class Combine : std::uint8_t { Add, Multiply, Min, Max };

/// out[i] = requantized(combine(a[i * step_a], b[i * step_b])). In place is fine.
struct BinaryTask {
    const std::uint8_t* a = nullptr;
    const std::uint8_t* b = nullptr;
    std::uint8_t* out = nullptr;
    std::size_t count = 0;
    std::ptrdiff_t step_a = 1, step_b = 1;
    int valid = kLanes;  // less: only so many of each 16 are stored; steps are 1 and count a multiple of 16
    OperandScale scale_a, scale_b;
    Combine combine = Combine::Add;
    const ChannelBlock* block = nullptr;  // all lanes alike
    Epilogue epilogue;
};

/// Windows over rows of [x][16 channels] bytes.
struct PoolTask {
    const std::uint8_t* const* rows = nullptr;
    int row_count = 0;
    int columns = 0;                  // of the window
    std::ptrdiff_t column_step = 16;  // bytes
    std::ptrdiff_t pixel_step = 16;   // bytes, from one output pixel's window to the next
    int pixels = 0;
    bool is_signed = true;
    std::uint8_t* largest = nullptr;  // [pixel][16] bytes
    std::int32_t* sums = nullptr;     // [pixel][16]
};

/// The table.
struct Microkernels {
    int word_elements;  // activations in a word of 4 bytes: 4 (unsigned x signed bytes) or 2 (16 bits)
    void (*conv)(const ConvTask&);
    void (*depthwise)(const DepthwiseTask&);
    void (*spread)(const SpreadTask&);
    /// 16-bit versions, for weights or activations that do not fit 8 bits.
    void (*conv16)(const ConvTask&);
    void (*depthwise16)(const DepthwiseTask&);
    void (*spread16)(const SpreadTask&);
    /// out[i] = table[in[i]]; in may be out.
    void (*map_bytes)(const std::uint8_t* in, std::uint8_t* out, std::size_t count, const std::uint8_t* table);
    void (*binary)(const BinaryTask&);
    void (*pool_max)(const PoolTask&);
    void (*pool_sum)(const PoolTask&);
    /// Requantizes [pixel][16 channels] accumulators, each pixel by its own block: blocks[pixel]. The bias of the block
    /// is added first.
    void (*finish_pixels)(const std::int32_t* accumulators, const ChannelBlock* const* blocks, int pixels,
                          const Output& out, const Epilogue& epilogue);
    /// out[column * out_stride + row] = in[row * in_stride + column]; must not overlap.
    void (*transpose)(const std::uint8_t* in, std::ptrdiff_t in_stride, std::uint8_t* out, std::ptrdiff_t out_stride,
                      std::size_t columns, std::size_t rows);
};

extern const Microkernels kGenericMicrokernels;
#if defined(__x86_64__)
extern const Microkernels kAvx2Microkernels;
extern const Microkernels kAvx512Microkernels;
#endif

}  // namespace talpa::npu_model::fast
