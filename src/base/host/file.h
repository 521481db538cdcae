// Files on the host: read whole or mapped, written by temporary file and rename so that a reader never sees half of
// one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/core/byte_reader.h"
#include "base/host/error.h"

namespace talpa::host {

/// The file's bytes. Errors name the path: NotFound, AccessFailed (a folder, no permission, a read error),
/// OutOfResources when it is larger than `limit_bytes`.
[[nodiscard]] Result<std::vector<std::uint8_t>> read_file(const std::filesystem::path& path,
                                                          std::uint64_t limit_bytes = UINT64_MAX);
[[nodiscard]] Result<std::string> read_text(const std::filesystem::path& path, std::uint64_t limit_bytes = UINT64_MAX);

/// Writes `path` by a temporary file beside it and rename; on failure the old file is as it was and the temporary is
/// gone.
[[nodiscard]] Result<void> write_file(const std::filesystem::path& path, Bytes bytes);
[[nodiscard]] Result<void> write_text(const std::filesystem::path& path, std::string_view text);

/// A file mapped read-only (page-aligned, so 16-aligned). Falls back to reading what cannot be mapped (pipes, /proc).
class MappedFile {
  public:
    static constexpr std::uint64_t kLimitBytes = std::uint64_t{4} << 30;
    static constexpr std::uint64_t kReadLimitBytes = std::uint64_t{256} << 20;  ///< of what must be read into memory
    /// OutOfResources when it is larger than `limit_bytes`, or endless as a device may be.
    [[nodiscard]] static Result<MappedFile> open(const std::filesystem::path& path,
                                                 std::uint64_t limit_bytes = kLimitBytes);
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile();

    [[nodiscard]] Bytes bytes() const { return bytes_; }

  private:
    MappedFile() = default;
    Bytes bytes_;
    void* mapping_ = nullptr;
    std::size_t mapping_size_ = 0;
    std::vector<std::uint8_t> copy_;
};

}  // namespace talpa::host
