#include "board/machine/memory_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/core/checked_math.h"
#include "link/memory_map.h"

namespace talpa::board {
namespace {

/// What is fitted, by system address.
constexpr MemoryWindow kWindows[] = {
    {"M33 code TCM", link::kItcmSystem, link::kItcm.size},
    {"M33 data TCM", link::kDtcmSystem, link::kDtcm.size},
    kOcramWindow,
    kRingsWindow,
    {"ethosu_region", link::kEthosuRegion.base, link::kEthosuRegion.size},
    {"model", link::kModelRegion.base, link::kModelRegion.size},
};

// A file that was cut has no pages behind the cut: an access there is a SIGBUS. Every mapping of this process is known
// here to the handler, which makes its file whole again; the access is then repeated.
struct Mapped {
    std::atomic<const std::uint8_t*> begin;
    std::atomic<std::size_t> size;
    std::atomic<int> fd;
};
constexpr std::size_t kMostMapped = 1024 * std::size(kWindows);
Mapped mapped[kMostMapped];
std::atomic<std::size_t> mapped_count;
struct Cut {
    std::atomic<std::uint64_t> inode, size;
} last_cut;

// Of each thread: two that wait at different places must not begin each other's count anew.
thread_local const std::uint8_t* last_place = nullptr;
thread_local int same_place = 0;
constexpr int kPatience = 100;  ///< faults in a row at one address, 20 ms apart

void make_whole(int signal, siginfo_t* info, void*) {
    const auto* const at = static_cast<const std::uint8_t*>(info->si_addr);
    const int before = errno;
    for (std::size_t i = 0; i < mapped_count.load(); ++i) {
        const std::uint8_t* const begin = mapped[i].begin.load();
        if (begin == nullptr || at < begin || at >= begin + mapped[i].size.load()) continue;
        const int fd = mapped[i].fd.load();
        struct stat st{};
        if (::fstat(fd, &st) != 0 || ::ftruncate(fd, static_cast<off_t>(kMemoryFileBytes)) != 0) break;
        if (static_cast<std::uint64_t>(st.st_size) < kMemoryFileBytes) {  // not mended by another thread meanwhile
            last_cut.size = static_cast<std::uint64_t>(st.st_size);
            last_cut.inode = st.st_ino;
            same_place = 0;
        } else if (last_place != at) {
            last_place = at;
            same_place = 0;
        } else if (++same_place == kPatience) {
            // The file is whole and the page cannot be had all the same.
            constexpr char kText[] = "talpa: the disk is full: no space for the board's memory. The board ends.\n";
            (void)!::write(STDERR_FILENO, kText, sizeof kText - 1);
            break;
        } else {
            const timespec moment{.tv_sec = 0, .tv_nsec = 20'000'000};  // somebody may free some
            ::nanosleep(&moment, nullptr);
        }
        errno = before;
        return;
    }
    ::signal(signal, SIG_DFL);  // not ours, or not to be had: the access is repeated, and ends the process
}

void remember(const std::uint8_t* begin, std::size_t size, int fd) {
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    static const bool installed = [] {
        struct sigaction action{};
        action.sa_sigaction = make_whole;
        action.sa_flags = SA_SIGINFO;
        return ::sigaction(SIGBUS, &action, nullptr) == 0;
    }();
    (void)installed;
    std::size_t i = 0;
    while (i < mapped_count.load() && mapped[i].begin.load() != nullptr) ++i;
    if (i == kMostMapped) return;
    mapped[i].size = size;
    mapped[i].fd = fd;
    mapped[i].begin = begin;
    if (i == mapped_count.load()) ++mapped_count;
}

void forget(const std::uint8_t* begin) {
    for (std::size_t i = 0; i < mapped_count.load(); ++i)
        if (mapped[i].begin.load() == begin) mapped[i].begin = nullptr;
}

}  // namespace

std::optional<std::uint64_t> take_cut(std::uint64_t inode) {
    std::uint64_t expected = inode;
    if (!last_cut.inode.compare_exchange_strong(expected, 0)) return std::nullopt;
    return last_cut.size.load();
}

host::Result<MemoryFile> MemoryFile::create(const std::filesystem::path& path) {
    const auto failed = [&](const char* doing) {
        return host::failure(ErrorCode::AccessFailed, "{} {}: {}", doing, path.empty() ? "board memory" : path.string(),
                             std::strerror(errno));
    };
    const int fd = path.empty() ? ::memfd_create("talpa-board-memory", MFD_CLOEXEC)
                                : ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) return failed("cannot create");
    MemoryFile file;
    file.fd_ = fd;
    bool good = ::ftruncate(fd, static_cast<off_t>(kMemoryFileBytes)) == 0;
    for (const MemoryWindow& window : kWindows) {
        if (!good) break;
        void* const at =
            ::mmap(nullptr, window.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(window.base));
        good = at != MAP_FAILED;
        if (!good) break;
        file.mappings_.push_back({window.base, {static_cast<std::uint8_t*>(at), window.size}});
        remember(static_cast<const std::uint8_t*>(at), window.size, fd);
    }
    if (!good) return failed("cannot map");
    return file;
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept
    : mappings_(std::exchange(other.mappings_, {})), fd_(std::exchange(other.fd_, -1)) {}

MemoryFile::~MemoryFile() {
    for (const Mapping& mapping : mappings_) {
        forget(mapping.bytes.data());
        ::munmap(mapping.bytes.data(), mapping.bytes.size());
    }
    if (fd_ >= 0) ::close(fd_);
}

std::span<std::uint8_t> MemoryFile::rest(std::uint64_t address) {
    for (const Mapping& mapping : mappings_)
        if (address >= mapping.base && address - mapping.base < mapping.bytes.size())
            return mapping.bytes.subspan(address - mapping.base);
    return {};
}

std::uint8_t* MemoryFile::at(std::uint64_t address, std::size_t size) {
    const auto bytes = rest(address);
    return size <= bytes.size() && !bytes.empty() ? bytes.data() : nullptr;
}

std::span<std::uint8_t> MemoryFile::window(std::uint32_t base) {
    for (const Mapping& mapping : mappings_)
        if (mapping.base == base) return mapping.bytes;
    return {};
}

}  // namespace talpa::board
