// The board's physical memory: one sparse file whose offsets are system addresses, mapped window by window. What is
// bound at /dev/mem is this same file, so that a program's stores are the M33's loads. (imx93-remoteproc, section 13)
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "base/host/error.h"
#include "board/linux/platform.h"

namespace talpa::board {

struct MemoryWindow {
    std::string_view name;
    std::uint32_t base;
    std::uint32_t size;
};

/// What is fitted, by system address.
[[nodiscard]] std::span<const MemoryWindow> fitted_memory();

class MemoryFile final : public SystemMemory {
  public:
    /// Creates the file (in a memory file system, as a rule) and maps the fitted windows. An empty path: an anonymous
    /// one.
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
};

}  // namespace talpa::board
