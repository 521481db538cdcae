#include "board/machine/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/core/checked_math.h"
#include "link/memory_map.h"

namespace talpa::board {
namespace {

constexpr MemoryWindow kWindows[] = {
    {"M33 code TCM", link::kItcmSystem, link::kItcm.size},
    {"M33 data TCM", link::kDtcmSystem, link::kDtcm.size},
    {"OCRAM", 0x20480000, 0xA0000},
    {"rings and buffers", 0xA4000000, 0x220000},
    {"ethosu_region", link::kEthosuRegion.base, link::kEthosuRegion.size},
    {"model", link::kModelRegion.base, link::kModelRegion.size},
};
constexpr std::uint64_t kFileBytes = std::uint64_t{1} << 32;

}  // namespace

std::span<const MemoryWindow> fitted_memory() {
    return kWindows;
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
    bool good = ::ftruncate(fd, static_cast<off_t>(kFileBytes)) == 0;
    for (const MemoryWindow& window : kWindows) {
        if (!good) break;
        void* const at =
            ::mmap(nullptr, window.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(window.base));
        good = at != MAP_FAILED;
        if (good) file.mappings_.push_back({window.base, {static_cast<std::uint8_t*>(at), window.size}});
    }
    if (!good) {
        auto error = failed("cannot map");
        ::close(fd);
        return error;
    }
    ::close(fd);
    return file;
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept : mappings_(std::exchange(other.mappings_, {})) {}

MemoryFile::~MemoryFile() {
    for (const Mapping& mapping : mappings_) ::munmap(mapping.bytes.data(), mapping.bytes.size());
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
