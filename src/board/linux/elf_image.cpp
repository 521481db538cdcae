#include "board/linux/elf_image.h"

#include <algorithm>
#include <cstring>

namespace talpa::board {
namespace {

using host::failure;

constexpr std::uint32_t kPtLoad = 1, kShtNobits = 8;

/// Where the fields of the two classes lie.
struct Layout {
    std::size_t header_bytes, word;  // word: size of addresses and offsets
    std::size_t entry, phoff, shoff, phentsize, phnum, shentsize, shnum, shstrndx;
    std::size_t ph_bytes, p_offset, p_paddr, p_filesz, p_memsz;
    std::size_t sh_bytes, sh_addr, sh_offset, sh_size;
};
constexpr Layout kElf32{52, 4, 24, 28, 32, 42, 44, 46, 48, 50, 32, 4, 12, 16, 20, 40, 12, 16, 20};
constexpr Layout kElf64{64, 8, 24, 32, 40, 54, 56, 58, 60, 62, 56, 8, 24, 32, 40, 64, 16, 24, 32};

}  // namespace

host::Result<ElfImage> ElfImage::open(Bytes file) {
    if (file.size() < kElf32.header_bytes || std::memcmp(file.data(),
                                                         "\x7f"
                                                         "ELF",
                                                         4) != 0)
        return failure(ErrorCode::InvalidProgram, "Image is corrupted (bad magic): not an ELF file");
    const std::uint8_t klass = file[4];
    if (klass != 1 && klass != 2) return failure(ErrorCode::InvalidProgram, "Unsupported ELF class: {}", klass);
    if (file[5] != 1) return failure(ErrorCode::InvalidProgram, "Unsupported ELF endianness: {}", file[5]);
    const Layout& l = klass == 1 ? kElf32 : kElf64;
    const ByteReader reader(file);
    if (file.size() < l.header_bytes) return failure(ErrorCode::InvalidProgram, "Image is too small");
    const auto word = [&](std::uint64_t at) -> std::uint64_t {
        return l.word == 4 ? load_le<std::uint32_t>(file.data() + at) : load_le<std::uint64_t>(file.data() + at);
    };
    const auto half = [&](std::uint64_t at) { return load_le<std::uint16_t>(file.data() + at); };

    ElfImage image;
    image.machine_ = half(18);
    image.entry_ = word(l.entry);
    const std::uint64_t phoff = word(l.phoff), shoff = word(l.shoff);
    const std::uint16_t phnum = half(l.phnum), shnum = half(l.shnum), shstrndx = half(l.shstrndx);
    if (phnum == 0) return failure(ErrorCode::InvalidProgram, "No loadable segments");
    if (phoff > file.size())
        return failure(ErrorCode::InvalidProgram, "Firmware size is too small: program headers at {} of {}", phoff,
                       file.size());
    if (!range_inside(shoff, l.sh_bytes, file.size()))
        return failure(ErrorCode::InvalidProgram, "Image is too small: section headers at {} of {}", shoff,
                       file.size());
    if (!range_inside(phoff, std::uint64_t{phnum} * l.ph_bytes, file.size()))
        return failure(ErrorCode::InvalidProgram, "{} program headers at {} cross the end of the file", phnum, phoff);

    for (std::uint16_t i = 0; i < phnum; ++i) {
        const std::uint64_t at = phoff + std::uint64_t{i} * l.ph_bytes;
        if (load_le<std::uint32_t>(file.data() + at) != kPtLoad) continue;
        const std::uint64_t offset = word(at + l.p_offset), paddr = word(at + l.p_paddr),
                            filesz = word(at + l.p_filesz), memsz = word(at + l.p_memsz);
        if (filesz > memsz)
            return failure(ErrorCode::InvalidProgram, "bad phdr filesz 0x{:x} memsz 0x{:x}", filesz, memsz);
        if (!range_inside(offset, filesz, file.size()))
            return failure(ErrorCode::InvalidProgram, "truncated fw: need 0x{:x} avail 0x{:x}", offset + filesz,
                           file.size());
        image.segments_.push_back({paddr, memsz, file.subspan(offset, filesz)});
    }

    // Sections are only looked up by name; broken ones leave the image without names, as Linux then finds no table.
    if (shstrndx < shnum && range_inside(shoff, std::uint64_t{shnum} * l.sh_bytes, file.size())) {
        const auto header = [&](std::uint16_t i) { return shoff + std::uint64_t{i} * l.sh_bytes; };
        const std::uint64_t names_offset = word(header(shstrndx) + l.sh_offset),
                            names_size = word(header(shstrndx) + l.sh_size);
        if (range_inside(names_offset, names_size, file.size())) {
            const Bytes names = file.subspan(names_offset, names_size);
            for (std::uint16_t i = 0; i < shnum; ++i) {
                const auto name_at = load_le<std::uint32_t>(file.data() + header(i));
                if (name_at >= names.size()) continue;
                const auto rest = names.subspan(name_at);
                const auto end = std::find(rest.begin(), rest.end(), 0);
                if (end == rest.end()) continue;
                const bool no_bits = load_le<std::uint32_t>(file.data() + header(i) + 4) == kShtNobits;
                const std::uint64_t offset = word(header(i) + l.sh_offset), size = word(header(i) + l.sh_size);
                if (!no_bits && !range_inside(offset, size, file.size())) continue;
                image.sections_.push_back(
                    {{reinterpret_cast<const char*>(rest.data()), static_cast<std::size_t>(end - rest.begin())},
                     word(header(i) + l.sh_addr),
                     no_bits ? Bytes{} : file.subspan(offset, size)});
            }
        }
    }
    return image;
}

const ElfSection* ElfImage::section(std::string_view name) const {
    const auto found =
        std::find_if(sections_.begin(), sections_.end(), [&](const ElfSection& s) { return s.name == name; });
    return found == sections_.end() ? nullptr : &*found;
}

}  // namespace talpa::board
