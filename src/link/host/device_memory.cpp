#include "link/host/device_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/core/checked_math.h"

namespace talpa::link::host {
namespace {

constexpr MemoryRange kUpper{"output copies and large programs", kOutputCopies.base,
                             kBigPrograms.end() - kOutputCopies.base};
constexpr MemoryRange kMapped[2] = {kModelRegion, kUpper};
static_assert(kUpper.contains(kBigPrograms.base, kBigPrograms.size));

std::string hint_for(int error, const MemoryRange& range) {
    if (error == EPERM)
        return fmt::format(
            "the kernel refuses it: is {} reserved with no-map (not reusable), and is iomem=relaxed on the kernel's "
            "command line? See /proc/device-tree/reserved-memory and /proc/cmdline",
            range.name);
    return "is this the memory of an i.MX 93?";
}

}  // namespace

BoardResult<DeviceMemory> DeviceMemory::map(const Fd& memory) {
    DeviceMemory mapped;
    for (std::size_t i = 0; i < std::size(kMapped); ++i) {
        const MemoryRange& range = kMapped[i];
        void* const at = ::mmap(nullptr, range.size, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(),
                                static_cast<off_t>(range.base));
        if (at == MAP_FAILED) {
            const int error = errno;
            auto failed = board_failure(BoardFault::MemoryDenied, "cannot map 0x{:X}..0x{:X} ({}) of /dev/mem: {}",
                                        range.base, range.base + (range.size - 1), range.name, std::strerror(error));
            failed.error().error.hint = hint_for(error, range);
            return failed;
        }
        mapped.windows_[i] = {range, static_cast<volatile std::uint8_t*>(at)};
    }
    struct stat kind{};
    if (::fstat(memory.get(), &kind) == 0 && S_ISREG(kind.st_mode))
        mapped.file_ = Fd(::fcntl(memory.get(), F_DUPFD_CLOEXEC, 0));
    TRY(mapped.have_room(kControlBlock.base, kControlBlock.size));
    return mapped;
}

BoardResult<void> DeviceMemory::have_room(std::uint32_t address, std::uint64_t size) const {
    // KEEP_SIZE: what lies behind the end of a file that is too short is the board's affair. What the file system
    // cannot do (EOPNOTSUPP) is no reason to refuse.
    if (!file_ || size == 0 ||
        ::fallocate(file_.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(address), static_cast<off_t>(size)) == 0)
        return {};
    if (errno != ENOSPC && errno != EDQUOT) return {};
    auto failed = board_failure(BoardFault::MemoryDenied, "no room for {} bytes of the board's memory at 0x{:X}: {}",
                                size, address, std::strerror(errno));
    failed.error().error.hint = "free some on the disk that the board's folder lies on (df)";
    return failed;
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept : file_(std::move(other.file_)) {
    for (std::size_t i = 0; i < std::size(windows_); ++i) windows_[i] = std::exchange(other.windows_[i], {});
}

DeviceMemory::~DeviceMemory() {
    for (const Window& window : windows_)
        if (window.bytes != nullptr) ::munmap(const_cast<std::uint8_t*>(window.bytes), window.range.size);
}

volatile std::uint8_t* DeviceMemory::at(std::uint64_t address, std::uint64_t size) const {
    for (const Window& window : windows_)
        if (window.range.contains(address, size)) return window.bytes + (address - window.range.base);
    return nullptr;
}

bool DeviceMemory::write(std::uint32_t address, Bytes bytes) {
    const std::uint64_t padded = (std::uint64_t{bytes.size()} + 15) / 16 * 16;
    volatile std::uint8_t* const to = at(address, padded);
    if (to == nullptr || address % 16 != 0) return false;
    auto* words = reinterpret_cast<volatile std::uint64_t*>(to);
    const std::uint8_t* from = bytes.data();
    const std::size_t whole = bytes.size() / 16;
    for (std::size_t i = 0; i < whole; ++i, words += 2, from += 16) {
        std::uint64_t pair[2];
        std::memcpy(pair, from, 16);
        words[0] = pair[0];
        words[1] = pair[1];
    }
    if (const std::size_t rest = bytes.size() % 16; rest != 0) {
        std::uint64_t pair[2] = {};
        std::memcpy(pair, from, rest);
        words[0] = pair[0];
        words[1] = pair[1];
    }
    return true;
}

bool DeviceMemory::read(std::uint32_t address, std::span<std::uint8_t> to) const {
    const std::uint64_t padded = (std::uint64_t{to.size()} + 7) / 8 * 8;
    const volatile std::uint8_t* const from = at(address, padded);
    if (from == nullptr || address % 8 != 0) return false;
    const auto* words = reinterpret_cast<const volatile std::uint64_t*>(from);
    for (std::size_t done = 0; done < to.size(); done += 8) {
        const std::uint64_t word = *words++;
        std::memcpy(to.data() + done, &word, std::min<std::size_t>(8, to.size() - done));
    }
    return true;
}

bool DeviceMemory::looks_like(std::uint32_t address, Bytes bytes) const {
    constexpr std::size_t kSample = 64, kStep = 64 << 10;
    std::uint8_t found[kSample];
    const auto same = [&](std::size_t offset) {
        const std::size_t size = std::min(kSample, bytes.size() - offset);
        return read(address + static_cast<std::uint32_t>(offset), {found, size}) &&
               std::memcmp(found, bytes.data() + offset, size) == 0;
    };
    for (std::size_t offset = 0; offset < bytes.size(); offset += kStep)
        if (!same(offset)) return false;
    return bytes.size() < kSample || same((bytes.size() - kSample + 7) / 8 * 8);
}

std::uint32_t DeviceMemory::word(std::uint32_t address) const {
    return *reinterpret_cast<const volatile std::uint32_t*>(at(address, 4));
}

void DeviceMemory::set_word(std::uint32_t address, std::uint32_t value) {
    *reinterpret_cast<volatile std::uint32_t*>(at(address, 4)) = value;
}

void DeviceMemory::barrier() {
#ifdef __aarch64__
    asm volatile("dsb sy" ::: "memory");
#else
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace talpa::link::host
