// Firmware files where the kernel looks for them: a copy under a name of its own for each start, recorded in an index,
// so that only what is ours is ever removed. (remoteproc-runtime, section 7)
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "remoteproc/sysfs/device.h"
#include "remoteproc/sysfs/firmware_elf.h"

namespace talpa::remoteproc {

/// Tells one file's content from what may take its place later.
struct FileIdentity {
    std::uint64_t device = 0, inode = 0, size = 0, mtime_ns = 0;
    friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

struct FirmwareSource {
    Fd file;
    std::string path;  ///< for messages: the rootfs's path joined with the name
    FileIdentity identity;
    unsigned mode = 0600;

    [[nodiscard]] FirmwareBytes bytes() const;
};

inline constexpr std::uint64_t kDefaultFirmwareLimit = 64ull << 20;

/// Opens the firmware named by a container's argument below its root folder. Refuses names that leave it or would trick
/// the kernel, and everything that is not a regular file of at most `limit_bytes`.
[[nodiscard]] Result<FirmwareSource> open_firmware(const std::string& root_folder, std::string_view argument,
                                                   std::uint64_t limit_bytes);

/// The folder that the kernel searches first: the firmware_class parameter, else /lib/firmware.
[[nodiscard]] std::string firmware_folder(const SystemPaths& paths);

struct StoredFirmware {
    std::string path;    ///< full path of the copy
    std::string sha256;  ///< of what was copied
};

/// Index of the files that this runtime made; one small file each, in a folder of its own.
class FirmwareIndex {
  public:
    explicit FirmwareIndex(std::string folder) : folder_(std::move(folder)) {}
    /// Notes that `stored` belongs to the container whose state is in `state_folder`.
    [[nodiscard]] Result<void> add(const std::string& stored, const std::string& state_folder) const;
    void forget(const std::string& stored) const;
    [[nodiscard]] bool owns(const std::string& stored) const;
    /// Calls back for each entry: stored path and the owner's state folder.
    void for_each(const std::function<void(const std::string& stored, const std::string& state_folder)>& visit) const;

  private:
    std::string folder_;
};

/// Copies to `folder` as STEM_YYYYmmdd_HHMMSS_hex8.EXT. Errors begin with what engines match (section 8, E10).
[[nodiscard]] Result<StoredFirmware> store_firmware(const FirmwareSource& source, const std::string& folder,
                                                    const FirmwareIndex& index, const std::string& state_folder);

/// Whether a path looks like a copy of `firmware` in `folder`, for states of the original, which keeps no index.
[[nodiscard]] bool is_stored_name(std::string_view path, std::string_view folder, std::string_view firmware);

/// Removes a copy (one that is gone already is fine) and its entry.
[[nodiscard]] Result<void> remove_firmware(const std::string& stored, const FirmwareIndex& index);

}  // namespace talpa::remoteproc
