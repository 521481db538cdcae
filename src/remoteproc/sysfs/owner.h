// Who uses a remote processor: one record and one lock a core. The lock is held for the length of a command that reads
// the state and then acts on it; the record lasts as long as the owner's process lives. (remoteproc-runtime, section
// 14-8)
#pragma once

#include <optional>
#include <string>

#include "remoteproc/sys/lock.h"
#include "remoteproc/sys/process.h"
#include "remoteproc/sysfs/device.h"

namespace talpa::remoteproc {

struct Owner {
    std::string id;            ///< the container
    std::string state_folder;  ///< where its state lies
    std::string firmware;      ///< full path of the stored copy
    std::string sha256;        ///< of the firmware
    std::string boot;          ///< boot_id() when it was written
    pid_t pid = 0;
    std::uint64_t start_time = 0;

    /// The process that owns the core still lives, in this boot.
    [[nodiscard]] bool alive() const;
};

class CoreOwners {
  public:
    explicit CoreOwners(std::string folder) : folder_(std::move(folder)) {}

    /// Waits for the core's lock.
    [[nodiscard]] Result<FileLock> lock(const Device& device, int timeout_ms) const;
    /// The record, if there is one and it is of this boot.
    [[nodiscard]] std::optional<Owner> read(const Device& device) const;
    [[nodiscard]] Result<void> write(const Device& device, const Owner& owner) const;
    struct Record {
        std::string node;  ///< "remoteproc0"
        Owner owner;
    };
    /// The record of the container whose state lies there.
    [[nodiscard]] std::optional<Record> find(const std::string& state_folder) const;
    /// Removes the record if it is of that container.
    void clear(const Device& device, const Owner& of) const;

  private:
    std::string folder_;
};

}  // namespace talpa::remoteproc
