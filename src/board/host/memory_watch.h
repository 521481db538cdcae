// Keeps /dev/mem as long as physical memory is: on a board a program that truncates it, as `> /dev/mem` and dd do, has
// no effect; here it is a file. What lay behind a cut is lost, and the kernel log says so.
#pragma once

#include <filesystem>
#include <thread>
#include <vector>

#include "board/linux/kernel_log.h"

namespace talpa::board {

class MemoryWatch {
  public:
    explicit MemoryWatch(KernelLog& log);
    ~MemoryWatch();
    MemoryWatch(const MemoryWatch&) = delete;
    MemoryWatch& operator=(const MemoryWatch&) = delete;

    /// One more file. Before `begin`.
    void add(const std::filesystem::path& file);
    void begin();

  private:
    struct Watched {
        int descriptor;  ///< inotify's
        std::filesystem::path path;
        int file;
    };
    void watch();
    void look(const Watched& file);

    KernelLog& log_;
    int changes_, end_;
    std::vector<Watched> files_;
    std::thread thread_;
};

}  // namespace talpa::board
