// The configurations of the Ethos-U55 and U65 (ethos-u65, section 1 and CONFIG in 2.2) as one table: what the CONFIG
// word of a program or a device stands for, and the sizes that block layout, hazards, cycles and the driver depend on.
// Freestanding.
#pragma once

#include <array>
#include <cstdint>

namespace talpa::npu {

enum class Product : std::uint8_t { EthosU55 = 0, EthosU65 = 1, EthosU85 = 2 };
/// "ethos-u55" …, or "ethos-u?" for products that came later.
[[nodiscard]] const char* product_name(std::uint32_t product);

/// Fields of the CONFIG register and of the first configuration word of a program.
struct ConfigWord {
    std::uint32_t raw = 0;

    [[nodiscard]] constexpr std::uint32_t macs_log2() const { return raw & 0xF; }
    [[nodiscard]] constexpr std::uint32_t macs() const { return 1u << macs_log2(); }
    [[nodiscard]] constexpr std::uint32_t stream_version() const { return (raw >> 4) & 0xF; }
    [[nodiscard]] constexpr std::uint32_t shram_kib() const { return (raw >> 8) & 0xFF; }
    [[nodiscard]] constexpr bool custom_dma() const { return ((raw >> 27) & 1) != 0; }
    [[nodiscard]] constexpr std::uint32_t product() const { return raw >> 28; }
};

/// Fields of the ID register: the architecture is what programs depend on.
struct IdWord {
    std::uint32_t raw = 0;

    [[nodiscard]] constexpr std::uint32_t arch_major() const { return raw >> 28; }
    [[nodiscard]] constexpr std::uint32_t arch_minor() const { return (raw >> 20) & 0xFF; }
    [[nodiscard]] constexpr std::uint32_t arch_patch() const { return (raw >> 16) & 0xF; }
    [[nodiscard]] constexpr std::uint32_t product_major() const { return (raw >> 12) & 0xF; }
};

/// Banks that a buffer of the shared RAM is rounded up to, by what it holds.
struct BankGranules {
    std::uint8_t ifm8, ifm16, ifm8_elementwise, ifm16_elementwise, ifm32, acc16, acc32, acc40;
};

struct Hardware {
    const char* name;      ///< as compilers name it: "ethos-u65-256"
    std::uint32_t config;  ///< CONFIG register
    std::uint32_t id;      ///< ID register
    Product product;
    std::uint16_t macs;  ///< per cycle, all cores
    std::uint8_t cores;
    std::uint8_t ublock_height, ublock_width, ublock_depth;  ///< of the OFM, per core
    std::uint8_t shram_banks;                                ///< of 1 KiB, per core
    std::uint8_t reserved_end_banks;                         ///< kept for the LUT; 0: accumulators overwrite it
    std::uint8_t max_dmas;                                   ///< outstanding at a time
    BankGranules granules;

    /// Shared-RAM address of LUT slot 0: the last two banks (section 6.2).
    [[nodiscard]] constexpr std::int64_t lut_base() const { return (shram_banks - 2) * 1024; }
};

inline constexpr unsigned kMaxQueuedKernels = 2;  ///< block operations in flight on every configuration (section 3.3)

inline constexpr std::array<Hardware, 6> kHardware{{
    {"ethos-u55-32", 0x00001005, 0x10064001, Product::EthosU55, 32, 1, 1, 1, 4, 16, 0, 1, {2, 2, 2, 2, 4, 4, 4, 4}},
    {"ethos-u55-64", 0x00001006, 0x10064001, Product::EthosU55, 64, 1, 1, 1, 8, 16, 0, 1, {2, 2, 2, 2, 4, 4, 4, 8}},
    {"ethos-u55-128", 0x00001807, 0x10064001, Product::EthosU55, 128, 1, 1, 2, 8, 24, 2, 1, {4, 4, 4, 4, 8, 4, 8, 12}},
    {"ethos-u55-256",
     0x00003008,
     0x10064001,
     Product::EthosU55,
     256,
     1,
     2,
     2,
     8,
     48,
     2,
     1,
     {8, 8, 8, 8, 16, 8, 16, 20}},
    {"ethos-u65-256",
     0x10003008,
     0x10066001,
     Product::EthosU65,
     256,
     1,
     2,
     2,
     8,
     48,
     2,
     2,
     {8, 8, 8, 8, 16, 8, 16, 20}},
    {"ethos-u65-512",
     0x10006009,
     0x10066001,
     Product::EthosU65,
     512,
     2,
     2,
     2,
     8,
     48,
     2,
     2,
     {8, 8, 8, 8, 16, 8, 16, 20}},
}};
inline constexpr const Hardware& kU65_256 = kHardware[4];

/// The row whose product and MACs the CONFIG word has; null if there is none.
[[nodiscard]] const Hardware* find_hardware(std::uint32_t config);

}  // namespace talpa::npu
