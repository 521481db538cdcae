// docs/formats/command-stream.md, from the tables that the decoder, encoder and printer use. A test fails when the
// committed page is another.
#include <fmt/format.h>

#include "npu/hardware.h"
#include "npu/host/command_reference.h"
#include "npu/registers_used.h"

namespace talpa::npu {

namespace {

constexpr const char* kIntroduction = R"(# The command stream

<!-- Made from the tables in src/npu/ by talpa_npu_test; TALPA_UPDATE_DOCS=1 writes it anew. -->

What an Ethos-U55 or U65 executes: 32-bit little-endian words, in the `cmd_data` of a delegate. `talpa inspect` prints them.

## Words

| bits | meaning |
| --- | --- |
| 9:0 | code |
| 13:10 | zero |
| 15:14 | 0: the command is one word; 1: a second word follows, the payload; 2 and 3 are illegal |
| 31:16 | parameter |

Codes below 0x100 without payload are operations; all others write registers. Of addresses, strides and the length of a DMA
the payload is bits 31:0 and the parameter's low byte bits 39:32; strides are signed.

A register keeps its value until it is written again, across operations, so compilers leave out every write that would change
nothing. An operation takes the registers as they are when its word comes. What a register holds at the start of a stream is not
defined. A stream ends with STOP.

Offsets are relative to the base address of their region: 0 constants, 1 scratch (with inputs and outputs), 2 fast scratch, 3 and 4
inputs and outputs where they are separate.

## Feature maps

Four tiles and three strides: element (y, x, c) lies in tile 0, unless x >= WIDTH0 (tile 1, or 3 below HEIGHT1) or y >= HEIGHT0
(tile 2), and there, counted from the tile's first row and column, at

    NHWC:     BASE[t] + y * STRIDE_Y + x * STRIDE_X + c * size
    NHCWB16:  BASE[t] + y * STRIDE_Y + c / 16 * STRIDE_C + x * 16 * size + c % 16 * size

What a window operation reads has no registers of its own: it follows from OFM size, kernel, strides and padding.

## Order

Block operations run in order, at most two at a time; copies (DMA) run in order, at most two at a time on the U65 and one on
the U55. Nothing else orders them: a copy that touches what a block operation uses needs KERNEL_WAIT before it, a block operation
that touches what a copy writes needs DMA_WAIT. Between two block operations BLOCKDEP says how many blocks of the first may
still be unfinished when the second starts.
)";

std::string uses_text(std::uint16_t uses) {
    if ((uses & use::kSecondCore) != 0) return "two cores";
    if ((uses & use::kRecords) != 0) return "scale per channel";
    if ((uses & use::kWeights) != 0) return "CONV, DEPTHWISE";
    if ((uses & use::kScalar) != 0) return "scalar IFM2";
    if ((uses & use::kSecondMap) != 0) return "IFM2 in memory";
    if ((uses & use::kTwoOperands) != 0) return "two operands";
    if ((uses & use::kOperandScale) != 0) return "ADD, SUB";
    if ((uses & use::kElementwise) != 0) return "elementwise";
    if ((uses & use::kWindow) != 0) return "CONV, DEPTHWISE, POOL";
    if ((uses & use::kGlobalScale) != 0) return "one scale";
    if ((uses & use::kDma3d) != 0) return "3D DMA";
    if ((uses & use::kDma2d) != 0) return "2D, 3D DMA";
    if ((uses & use::kDma) != 0) return "DMA";
    return "block operations";
}

std::uint16_t uses_of_register(const RegisterReference& r) {
    if (r.has_payload) {
        for (const auto& u : used_cmd1())
            if (static_cast<std::uint16_t>(u.code) == r.code) return u.uses;
    } else {
        for (const auto& u : used_cmd0())
            if (static_cast<std::uint16_t>(u.code) == r.code) return u.uses;
    }
    return 0;
}

std::string register_table(bool with_payload) {
    std::string text = "| code | name | used by | meaning |\n| --- | --- | --- | --- |\n";
    for (const RegisterReference& r : register_reference()) {
        if (r.has_payload != with_payload) continue;
        const Command command{0, r.code, r.has_payload, 0, 0};
        text += fmt::format("| 0x{:03X} | {} | {} | {} |\n", r.code, *command_name(command),
                            uses_text(uses_of_register(r)), r.meaning);
    }
    return text;
}

}  // namespace

std::string command_stream_page() {
    std::string text = kIntroduction;
    text += "\n## Operations\n\n| code | name | parameter | what it does |\n| --- | --- | --- | --- |\n";
    for (const OperationReference& o : operation_reference()) {
        const Command command{0, static_cast<std::uint16_t>(o.code), false, 0, 0};
        text +=
            fmt::format("| 0x{:03X} | {} | {} | {} |\n", command.code, *command_name(command), o.parameter, o.meaning);
    }
    text += "\n## Registers of one word\n\n" + register_table(false);
    text += "\n## Registers with a payload\n\n" + register_table(true);
    text +=
        "\n## Configurations\n\n| name | CONFIG | MACs per cycle | cores | smallest block HxWxC | shared RAM banks | "
        "DMAs at a time |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n";
    for (const Hardware& h : kHardware)
        text += fmt::format("| {} | {:#010x} | {} | {} | {}x{}x{} | {} | {} |\n", h.name, h.config, h.macs, h.cores,
                            h.ublock_height, h.ublock_width, h.ublock_depth, h.shram_banks, h.max_dmas);
    return text;
}

}  // namespace talpa::npu
