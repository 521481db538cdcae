// A whole virtual board in this process: its machines, their remote processors, and the files through which programs
// reach them, below one folder that is the board's "/".
#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/host/error.h"
#include "board/host/firmware_search.h"
#include "board/host/memory_watch.h"
#include "board/host/options.h"
#include "board/linux/kernel_log.h"
#include "board/linux/remoteproc.h"
#include "board/linux/rpmsg_tty.h"
#include "board/machine/machine.h"
#include "board/sysfs/file_tree.h"
#include "board/sysfs/fuse_server.h"
#include "board/sysfs/remoteproc_files.h"

namespace talpa::board {

/// How a board's kernel can end by itself: the exit status of the board's process.
enum class KernelDeath : int { Panicked = 3, Froze = 4 };

/// Where the board's files are, as this process sees them.
struct BoardPlaces {
    std::filesystem::path root;                                  ///< the board's "/"
    std::filesystem::path sys;                                   ///< an empty folder: the tree of /sys is mounted there
    std::filesystem::path dev;                                   ///< a folder for mem, ethosu0, ttyRPMSG*
    std::string ptmx = "/dev/ptmx";                              ///< of the devpts that the board's programs see
    std::string slaves = "/dev/pts";                             ///< where they see it
    std::function<void(KernelDeath)> died = [](KernelDeath) {};  ///< its log says why; need not return
};

/// The memory of a remote processor, in /dev.
[[nodiscard]] std::string memory_device(unsigned index);

class Board {
  public:
    [[nodiscard]] static host::Result<std::unique_ptr<Board>> create(const BoardOptions& options,
                                                                     const BoardPlaces& places, KernelLog& log);
    /// Stops the processors, unmounts, removes what it put into `dev`.
    ~Board();
    Board(const Board&) = delete;
    Board& operator=(const Board&) = delete;

    /// Processors and ttys as of now, one JSON document.
    [[nodiscard]] std::string status_json() const;
    [[nodiscard]] Tracer& tracer() { return tracer_; }
    /// The hardware of remoteproc`index`, or null.
    [[nodiscard]] Machine* machine(std::size_t index) {
        return index < processors_.size() ? processors_[index]->machine.get() : nullptr;
    }

  private:
    struct Processor {
        std::unique_ptr<Machine> machine;
        std::unique_ptr<Remoteproc> linux;
        std::mutex mutex;
        std::condition_variable changed;
        bool faulted = false, ending = false;
        std::thread reporter;  ///< tells Linux of faults, with Quirk::FaultCrashes
        ~Processor();
    };

    Board(const BoardOptions& options, BoardPlaces places, KernelLog& log);
    [[nodiscard]] host::Result<void> wire();
    [[nodiscard]] host::Result<void> add_processor(unsigned index);
    [[nodiscard]] host::Result<void> start_as_u_boot(Machine& machine);
    void report_faults(Processor& processor);
    void panic(const char* why);
    void freeze(const char* why);
    [[nodiscard]] host::Result<void> make_devices();
    void tty_changed(int number, const std::string& slave, bool present);
    void remove(const std::filesystem::path& device);

    BoardOptions options_;
    BoardPlaces places_;
    KernelLog& log_;
    Tracer tracer_;
    CoreDumps dumps_;
    FirmwareSearch firmware_;
    TtyRegistry ttys_;
    std::vector<std::unique_ptr<Processor>> processors_;
    MemoryWatch memory_watch_{log_};
    FileTree tree_;
    std::unique_ptr<FuseServer> server_;
};

}  // namespace talpa::board
