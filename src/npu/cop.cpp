#include "npu/cop.h"

#include <bit>

#include "npu/hardware.h"

namespace talpa::npu {

static_assert(std::endian::native == std::endian::little, "command words are used where they lie");

namespace {

enum Action : std::uint8_t { kConfig = 1, kStream = 2, kReadRegisters = 3, kDumpShram = 4, kNop = 5 };

constexpr std::uint64_t kCop2StreamHeader = 0x24;  // the VEUM block and its end mark

Words words_of(Bytes bytes) {
    return {reinterpret_cast<const std::uint32_t*>(bytes.data()), bytes.size() / 4};
}

Result<Payload> parse_cop1(Words words) {
    Payload payload;
    bool configured = false;
    for (std::size_t i = 1; i < words.size(); ++i) {
        const std::uint32_t word = words[i];
        switch (word & 0xFF) {
            case kNop:
                break;
            case kConfig:
                if (words.size() - i <= 2)
                    return fail(ErrorCode::InvalidProgram,
                                "NPU payload offset {}: the configuration is cut off at {} bytes", i * 4,
                                words.size() * 4);
                payload.config = words[i + 1];
                payload.id = words[i + 2];
                configured = true;
                i += 2;
                break;
            case kStream: {
                const std::uint64_t length = (word >> 16) | ((word & 0xFF00) << 8);
                if (!configured)
                    return fail(ErrorCode::InvalidProgram,
                                "NPU payload offset {}: the command stream comes before the configuration", i * 4);
                if (length == 0)
                    return fail(ErrorCode::InvalidProgram, "NPU payload offset {}: the command stream is empty", i * 4);
                if (length > words.size() - i - 1)
                    return fail(ErrorCode::InvalidProgram,
                                "NPU payload offset {}: a command stream of {} bytes does not fit the payload of {}",
                                i * 4, length * 4, words.size() * 4);
                payload.stream_offset_bytes = static_cast<std::uint32_t>((i + 1) * 4);
                payload.stream = words.subspan(i + 1, static_cast<std::size_t>(length));
                for (std::size_t tail = i + 1 + static_cast<std::size_t>(length); tail < words.size(); ++tail)
                    if (words[tail] != 0 && (words[tail] & 0xFF) != kNop)
                        return fail(ErrorCode::InvalidProgram,
                                    "NPU payload offset {}: {} follows the command stream, which must end the payload",
                                    tail * 4, hex(words[tail]));
                return payload;
            }
            case kReadRegisters:
            case kDumpShram:
                return fail(ErrorCode::NotSupported,
                            "NPU payload offset {}: driver action {} is obsolete and not supported", i * 4,
                            word & 0xFF);
            default:
                return fail(ErrorCode::InvalidProgram, "NPU payload offset {}: {} is no driver action", i * 4,
                            hex(word));
        }
    }
    return fail(ErrorCode::InvalidProgram, "the NPU payload of {} bytes has no command stream", words.size() * 4);
}

Result<Payload> parse_cop2(Words words) {
    // 16 bytes of header, then records {type, bytes after this word, …}; of type 1: the offset of the stream after the
    // third word, VEUM {1, 0x14, CONFIG, ID, flags, 0, 0}, 0xFFFFFFFF, the stream.
    constexpr std::size_t kHeader = 4, kRecord = 3, kBlock = kCop2StreamHeader / 4;
    const std::uint64_t size = words.size() * 4;
    if (words.size() < kHeader + kRecord + kBlock)
        return fail(ErrorCode::InvalidProgram, "the COP2 NPU payload is cut off at {} bytes", size);
    if ((words[1] & 0xFFFF) != 1)
        return fail(ErrorCode::NotSupported, "the COP2 NPU payload has version {}, only 1 is known", words[1] & 0xFFFF);
    const std::uint64_t content = words[2];
    if (content > size - 16)
        return fail(ErrorCode::InvalidProgram, "the COP2 NPU payload announces {} bytes after its header and has {}",
                    content, size - 16);
    if (words[4] != 1)
        return fail(ErrorCode::InvalidProgram, "NPU payload offset 16: COP2 record type {}, wanted 1 (command stream)",
                    words[4]);
    const std::uint64_t record_end = 24 + std::uint64_t{words[5]}, header = words[6];
    if (record_end > size || record_end % 4 != 0)
        return fail(ErrorCode::InvalidProgram,
                    "NPU payload offset 20: a COP2 record that ends at {} does not fit the payload of {} bytes",
                    record_end, size);
    if (header < kCop2StreamHeader || header % 4 != 0 || 28 + header >= record_end)
        return fail(ErrorCode::InvalidProgram,
                    "NPU payload offset 24: the COP2 stream offset {} does not fit its record, which ends at {}",
                    header, record_end);
    if (words[7] != kVeum)
        return fail(ErrorCode::InvalidProgram, "NPU payload offset 28: {} where COP2 has its VEUM block",
                    hex(words[7]));
    Payload payload;
    payload.format = Payload::Format::Cop2;
    payload.config = words[10];
    payload.id = words[11];
    payload.separate_io = words[12] == 2;
    payload.stream_offset_bytes = static_cast<std::uint32_t>(28 + header);
    payload.stream = words.subspan(payload.stream_offset_bytes / 4,
                                   static_cast<std::size_t>((record_end - payload.stream_offset_bytes) / 4));
    return payload;
}

}  // namespace

bool is_payload(Bytes bytes) {
    if (bytes.size() < 4) return false;
    const auto magic = load_le<std::uint32_t>(bytes.data());
    return magic == kCop1 || magic == kCop2;
}

Result<Payload> parse_payload(Bytes bytes) {
    if (bytes.size() % 4 != 0)
        return fail(ErrorCode::InvalidProgram, "the NPU payload has {} bytes, which is no multiple of 4", bytes.size());
    if (reinterpret_cast<std::uintptr_t>(bytes.data()) % 4 != 0)
        return fail(ErrorCode::InvalidProgram, "the NPU payload does not lie at a 4-aligned address");
    if (!is_payload(bytes))
        return fail(ErrorCode::InvalidProgram, "the NPU payload of {} bytes begins with neither COP1 nor COP2",
                    bytes.size());
    const Words words = words_of(bytes);
    return words[0] == kCop1 ? parse_cop1(words) : parse_cop2(words);
}

Result<void> match_config(std::uint32_t wanted_config, std::uint32_t wanted_id, std::uint32_t present_config,
                          std::uint32_t present_id) {
    const ConfigWord wanted{wanted_config}, present{present_config};
    const IdWord wanted_arch{wanted_id}, present_arch{present_id};
    constexpr auto kCode = ErrorCode::DelegateIncompatible;
    if (wanted.product() != present.product() || wanted.macs_log2() != present.macs_log2())
        return fail(kCode, "NPU config match: the program is compiled for {}-{}, this NPU is an {}-{}",
                    product_name(wanted.product()), wanted.macs(), product_name(present.product()), present.macs());
    if (wanted.stream_version() != present.stream_version())
        return fail(kCode,
                    "NPU config match: the program has command stream version {}, this NPU ({}-{}) reads version {}",
                    wanted.stream_version(), product_name(present.product()), present.macs(), present.stream_version());
    if (wanted.custom_dma() && !present.custom_dma())
        return fail(kCode, "NPU config match: the program needs a custom DMA, this NPU ({}-{}) has none",
                    product_name(present.product()), present.macs());
    if (wanted_arch.arch_major() != present_arch.arch_major() || wanted_arch.arch_minor() > present_arch.arch_minor())
        return fail(kCode, "NPU arch match: the program needs architecture {}.{}, this NPU has {}.{}",
                    wanted_arch.arch_major(), wanted_arch.arch_minor(), present_arch.arch_major(),
                    present_arch.arch_minor());
    return {};
}

}  // namespace talpa::npu
