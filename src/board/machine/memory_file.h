// The board's physical memory: one sparse file whose offsets are system addresses, mapped window by window. What is
// bound at /dev/mem is this same file, so that a program's stores are the M33's loads. (imx93-remoteproc, section 13)
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/host/error.h"
#include "board/linux/platform.h"
#include "link/memory_map.h"

namespace talpa::board {

struct MemoryWindow {
    std::string_view name;
    std::uint32_t base;
    std::uint32_t size;
};

inline constexpr std::uint64_t kMemoryFileBytes = std::uint64_t{1} << 32;

/// All of it; of its first 384 KiB the NPU may make fast scratch (link::kOcram).
inline constexpr MemoryWindow kOcramWindow{"OCRAM", link::kOcram.base, 0xA0000};
inline constexpr MemoryWindow kRingsWindow{"rings and buffers", link::kVring0.base, 0x220000};

/// How short the file of that inode number was when an access found it cut, if that happened since the last call.
[[nodiscard]] std::optional<std::uint64_t> take_cut(std::uint64_t inode);

class MemoryFile final : public SystemMemory {
  public:
    /// Creates the file (in a memory file system, as a rule) and maps the fitted windows. An empty path: an anonymous
    /// one.
    /// A program that cuts the file (as `> /dev/mem` does, or dd with seek=) takes away what lies behind the cut: the
    /// next access makes it as long as it was, and finds zeros there.
    [[nodiscard]] static host::Result<MemoryFile> create(const std::filesystem::path& path);
    MemoryFile(MemoryFile&& other) noexcept;
    MemoryFile& operator=(MemoryFile&&) = delete;
    ~MemoryFile();

    [[nodiscard]] std::uint8_t* at(std::uint64_t address, std::size_t size) override;
    /// From `address` to the end of its window; empty where nothing is fitted.
    [[nodiscard]] std::span<std::uint8_t> rest(std::uint64_t address);
    [[nodiscard]] std::span<std::uint8_t> window(std::uint32_t base);

  private:
    MemoryFile() = default;
    struct Mapping {
        std::uint32_t base = 0;
        std::span<std::uint8_t> bytes;
    };
    std::vector<Mapping> mappings_;
    int fd_ = -1;
};

}  // namespace talpa::board
