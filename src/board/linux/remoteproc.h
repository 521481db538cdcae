// Linux's remoteproc core and its i.MX driver for one processor: the states, what each write to sysfs and debugfs does
// and which errno it gives, ELF loading, the resource table's copies, the virtio device's life. Knows no file system:
// the FUSE layer and the tests call it alike. (imx93-remoteproc, sections 1.3, 2.3 and 7)
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "board/linux/address_map.h"
#include "board/linux/coredump.h"
#include "board/linux/elf_image.h"
#include "board/linux/kernel_log.h"
#include "board/linux/platform.h"
#include "board/linux/resources.h"
#include "board/linux/tracer.h"
#include "board/linux/virtio_rpmsg.h"
#include "link/reserved_memory.h"

namespace talpa::board {

enum class KernelProfile : std::uint8_t {
    Bsp66,   ///< starts are counted: a second start succeeds and wants a second stop
    Legacy,  ///< a second start is EBUSY
};

/// Finds a firmware file by the name written to `firmware`: its bytes, or a negative errno.
struct FirmwareFile {
    std::vector<std::uint8_t> bytes;
    int error = 0;
};
using FirmwareSource = std::function<FirmwareFile(const std::string& name)>;

struct RemoteprocConfig {
    unsigned index = 0;  ///< K of remoteprocK, and of its virtio device
    std::string name = "imx-rproc";
    std::string default_firmware = "rproc-imx-rproc-fw";
    KernelProfile profile = KernelProfile::Bsp66;
    unsigned startup_delay_ms = 500;
    bool attached_at_probe = false;  ///< started by the boot loader before Linux
    bool live_table = true;          ///< the node rsc-table@2021e000 is in memory-region
    bool table_copy_only = false;    ///< quirk: Linux updates only its own copy, the firmware never sees DRIVER_OK
    std::uint32_t live_table_address = link::kResourceTableNode.base;
    std::vector<MappedBlock> mapped_blocks;
    std::vector<ReservedNode> reserved_nodes = {carveout(link::kVdev0Vring0Node), carveout(link::kVdev0Vring1Node),
                                                carveout(link::kVdev1Vring0Node), carveout(link::kVdev1Vring1Node)};
    /// Called before Linux first writes the TCMs, and before it releases the core: where boards that lack something
    /// die.
    std::function<void()> before_load = [] {}, before_release = [] {};
    /// Takes the core file of a crash, when coredump is on.
    std::function<void(std::string core)> dumped = [](const std::string&) {};
    Tracer* tracer = nullptr;
    bool send_boot_address = true;  ///< NXP's kernels pass the address of .interrupts
};

class Remoteproc {
  public:
    Remoteproc(RemoteprocConfig config, SystemMemory& memory, CoreControl& core, Mailbox& mailbox,
               FirmwareSource firmware, KernelLog& log, VirtioRpmsg::DriverFactory drivers);
    ~Remoteproc();

    // sysfs. Writes return 0 or a negative errno; text is what one write(2) carried, one trailing newline allowed.
    [[nodiscard]] std::string name() const { return config_.name + "\n"; }
    [[nodiscard]] std::string read_state() const;
    [[nodiscard]] std::string read_firmware() const;
    [[nodiscard]] std::string read_recovery() const;
    [[nodiscard]] std::string read_coredump() const;
    [[nodiscard]] int write_state(std::string_view text);
    [[nodiscard]] int write_firmware(std::string_view text);
    [[nodiscard]] int write_recovery(std::string_view text);
    [[nodiscard]] int write_coredump(std::string_view text);

    // debugfs
    /// Number of trace files there are now (0 unless running).
    [[nodiscard]] std::size_t trace_count() const;
    /// The text of a trace buffer up to its first NUL, or "Trace NAME not available\n".
    [[nodiscard]] std::string read_trace(std::size_t index) const;
    [[nodiscard]] std::string read_resource_table() const;
    [[nodiscard]] std::string read_carveouts() const;
    [[nodiscard]] int write_crash(std::string_view text);

    /// The mailbox received a word from the M33.
    void mailbox_received();
    /// The processor crashed, where hardware tells (quirk fault-crashes): type 0 mmufault, 1 watchdog, 2 fatal error.
    void report_crash(unsigned type);

    /// Channels of the running firmware.
    [[nodiscard]] std::vector<VirtioRpmsg::Channel> channels() const;

  private:
    enum class State : std::uint8_t { Offline, Suspended, Running, Crashed, Deleted, Attached, Detached };

    int boot();
    int load_and_start();
    int load_segments(const ElfImage& image);
    void stop_now();
    int attach();
    int detach();
    void recover();
    void dump();
    void set_table(std::vector<std::uint8_t> table);
    int start_devices();
    std::shared_ptr<VirtioRpmsg> device() const;

    RemoteprocConfig config_;
    SystemMemory& memory_;
    CoreControl& core_;
    Mailbox& mailbox_;
    FirmwareSource firmware_source_;
    KernelLog& log_;
    VirtioRpmsg::DriverFactory drivers_;

    mutable std::mutex lock_;  ///< rproc->lock: boot, shutdown, recovery
    std::atomic<State> state_{State::Offline};
    unsigned power_ = 0;
    bool recovery_disabled_ = false;
    std::string coredump_ = "disabled";
    unsigned crash_count_ = 0;

    mutable std::mutex facts_;  ///< what readers see while `lock_` is held by a start
    std::string firmware_;
    std::vector<TraceEntry> traces_;
    std::vector<DumpSegment> firmware_segments_;  ///< where the running firmware was loaded
    std::vector<std::uint8_t> table_;             ///< Linux's own copy
    std::uint8_t* loaded_table_ = nullptr;
    std::size_t loaded_table_size_ = 0;
    std::shared_ptr<VirtioRpmsg> rpmsg_;
};

}  // namespace talpa::board
