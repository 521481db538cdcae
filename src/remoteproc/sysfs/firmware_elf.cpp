#include "remoteproc/sysfs/firmware_elf.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/core/byte_reader.h"

namespace talpa::remoteproc {
namespace {

// imx93-remoteproc, 1.2: what the driver maps itself, and the DDR windows whose inside the kernel checks against the
// device tree's memory regions.
constexpr std::array<CoreWindow, 8> kImx93Windows{{
    {0x0FFC0000, 0x40000, "code TCM"},
    {0x1FFC0000, 0x40000, "code TCM, secure"},
    {0x20000000, 0x40000, "data TCM"},
    {0x30000000, 0x40000, "data TCM, secure"},
    {0x80000000, 0x10000000, "DDR"},
    {0x90000000, 0x10000000, "DDR, secure"},
    {0xC0000000, 0x10000000, "DDR"},
    {0xD0000000, 0x10000000, "DDR, secure"},
}};

constexpr std::uint16_t kArm = 40;  // EM_ARM

constexpr std::array<CoreFacts, 1> kCores{{
    {"imx-rproc", "fsl,imx93", kArm, "32-bit Arm (Cortex-M33)", kImx93Windows, true},
}};

constexpr std::size_t kMaxProgramHeaders = 1024, kMaxSections = 8192, kMaxNames = 1 << 20;
constexpr std::uint32_t kLoad = 1;  // PT_LOAD

// Where a field lies in ELF32 and in ELF64.
struct Layout {
    std::size_t header, phoff, shoff, phentsize, phnum, shentsize, shnum, shstrndx, address_bytes;
    std::size_t ph_offset, ph_paddr, ph_filesz, ph_memsz, ph_size;
    std::size_t sh_offset, sh_bytes, sh_size;
};
constexpr Layout kElf32{52, 28, 32, 42, 44, 46, 48, 50, 4, 4, 12, 16, 20, 32, 16, 20, 40};
constexpr Layout kElf64{64, 32, 40, 54, 56, 58, 60, 62, 8, 8, 24, 32, 40, 56, 24, 32, 64};

std::uint64_t word(const std::uint8_t* p, const Layout& layout) {
    return layout.address_bytes == 4 ? load_le<std::uint32_t>(p) : load_le<std::uint64_t>(p);
}

std::unexpected<host::Error> bad(std::string text) {
    return std::unexpected(host::Error(ErrorCode::InvalidProgram, std::move(text)));
}

std::string map_of(const CoreFacts& core) {
    std::string text = fmt::format("{} loads into", core.processor);
    for (const CoreWindow& w : core.windows)
        text += fmt::format("\n    {:#010x}..{:#010x} {}", w.base, w.base + w.size - 2, w.name);
    return text + "\n  (physical addresses of the program headers; readelf -lW shows them)";
}

class Checker {
  public:
    Checker(const FirmwareBytes& file, const CoreFacts* core) : file_(file), core_(core) {}

    Result<void> header() {
        if (file_.size < 16 || !file_.read(0, std::span(head_).first(16)))
            return bad(fmt::format("the file has {} bytes, too few for an ELF", file_.size));
        if (!is_magic()) return bad("not an ELF file: it does not begin with 7f 45 4c 46");
        if (head_[4] != 1 && head_[4] != 2) return bad(fmt::format("ELF class {} is neither 32 nor 64 bits", head_[4]));
        layout_ = head_[4] == 1 ? &kElf32 : &kElf64;
        if (head_[5] != 1) return bad("the ELF is big-endian; remoteproc loads little-endian ones only");
        if (file_.size < layout_->header || !file_.read(0, std::span(head_).first(layout_->header)))
            return bad(fmt::format("the file has {} bytes, too few for an ELF header", file_.size));
        const std::uint16_t machine = load_le<std::uint16_t>(&head_[18]);
        if (core_ != nullptr && (machine != core_->elf_machine || head_[4] != 1))
            return bad(fmt::format("the ELF is for machine {} ({} bits), {} wants {} ({})", machine,
                                   head_[4] == 1 ? 32 : 64, core_->processor, core_->elf_machine, core_->machine_name));
        return {};
    }

    Result<void> segments() {
        const std::uint64_t at = word(&head_[layout_->phoff], *layout_);
        const std::size_t count = load_le<std::uint16_t>(&head_[layout_->phnum]),
                          each = load_le<std::uint16_t>(&head_[layout_->phentsize]);
        if (count == 0) return bad("the ELF has no program headers: nothing to load (an object file?)");
        if (count > kMaxProgramHeaders)
            return bad(fmt::format("{} program headers, at most {} are read", count, kMaxProgramHeaders));
        if (each < layout_->ph_size)
            return bad(fmt::format("program headers of {} bytes, {} are wanted", each, layout_->ph_size));
        std::vector<std::uint8_t> table(count * each);
        if (!range_inside(at, table.size(), file_.size) || !file_.read(at, table))
            return bad(fmt::format("program headers at {:#x} are not inside the file of {:#x} bytes", at, file_.size));
        std::size_t loads = 0;
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint8_t* p = &table[i * each];
            if (load_le<std::uint32_t>(p) != kLoad) continue;
            ++loads;
            const std::uint64_t offset = word(p + layout_->ph_offset, *layout_),
                                address = word(p + layout_->ph_paddr, *layout_),
                                in_file = word(p + layout_->ph_filesz, *layout_),
                                in_memory = word(p + layout_->ph_memsz, *layout_);
            const std::string where = fmt::format("segment {} at {:#x}, {:#x} bytes", i, address, in_memory);
            if (in_file > in_memory)
                return bad(fmt::format("{}: has {:#x} bytes in the file, more than in memory", where, in_file));
            if (!range_inside(offset, in_file, file_.size))
                return bad(fmt::format("{}: its bytes at {:#x} are not inside the file of {:#x} bytes", where, offset,
                                       file_.size));
            if (core_ != nullptr) TRY(placement(where, address, in_memory));
        }
        if (loads == 0) return bad("the ELF has no segment to load (no PT_LOAD)");
        return {};
    }

    Result<void> resource_table() {
        const std::uint64_t at = word(&head_[layout_->shoff], *layout_);
        const std::size_t count = load_le<std::uint16_t>(&head_[layout_->shnum]),
                          each = load_le<std::uint16_t>(&head_[layout_->shentsize]),
                          names_index = load_le<std::uint16_t>(&head_[layout_->shstrndx]);
        std::vector<std::uint8_t> table(std::min(count, kMaxSections) * each);
        const bool sound = count > 0 && count <= kMaxSections && each >= layout_->sh_size && names_index < count &&
                           range_inside(at, table.size(), file_.size) && file_.read(at, table);
        if (!sound) return missing_table("its section headers are missing or damaged (strip only debug sections)");
        const auto place = [&](std::size_t index) {
            const std::uint8_t* p = &table[index * each];
            return std::pair(word(p + layout_->sh_offset, *layout_), word(p + layout_->sh_bytes, *layout_));
        };
        const auto [names_at, names_size] = place(names_index);
        if (names_size > kMaxNames || !range_inside(names_at, names_size, file_.size))
            return missing_table("its section names are damaged");
        std::vector<std::uint8_t> names(static_cast<std::size_t>(names_size));
        if (!file_.read(names_at, names)) return missing_table("its section names cannot be read");
        names.push_back(0);
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint32_t name = load_le<std::uint32_t>(&table[i * each]);
            if (name >= names.size()) continue;
            if (std::string_view(reinterpret_cast<const char*>(&names[name])) != ".resource_table") continue;
            const auto [offset, size] = place(i);
            return table_contents(offset, size);
        }
        return missing_table("it has no section .resource_table");
    }

    [[nodiscard]] bool is_magic() const {
        return head_[0] == 0x7F && head_[1] == 'E' && head_[2] == 'L' && head_[3] == 'F';
    }

  private:
    Result<void> placement(const std::string& where, std::uint64_t address, std::uint64_t size) const {
        std::string why;
        if (size == 0) {
            why = where + ": is empty, and the driver refuses empty segments";
        } else {
            for (const CoreWindow& w : core_->windows) {
                if (address < w.base || address - w.base >= w.size) continue;
                if (size < w.size - (address - w.base)) return {};
                why = fmt::format("{}: does not end before the last byte of {} ({:#x})", where, w.name,
                                  w.base + w.size - 1);
            }
            if (why.empty()) why = where + ": is not in the core's memory";
        }
        host::Error error(ErrorCode::InvalidProgram, std::move(why));
        error.hint = map_of(*core_);
        return std::unexpected(std::move(error));
    }

    Result<void> table_contents(std::uint64_t offset, std::uint64_t size) const {
        std::array<std::uint8_t, 16> head;
        if (size < head.size() || !range_inside(offset, size, file_.size) || !file_.read(offset, head))
            return bad(
                fmt::format("the resource table at {:#x} has {:#x} bytes, or is not inside the file; 16 at least "
                            "are wanted",
                            offset, size));
        const std::uint32_t version = load_le<std::uint32_t>(&head[0]), count = load_le<std::uint32_t>(&head[4]);
        if (version != 1) return bad(fmt::format("the resource table has version {}, Linux reads 1", version));
        if (load_le<std::uint64_t>(&head[8]) != 0) return bad("the resource table's reserved words are not 0");
        if (count > (size - 16) / 4)
            return bad(fmt::format("the resource table says {} entries, {:#x} bytes hold fewer", count, size));
        return {};
    }

    static Result<void> missing_table(std::string_view why) {
        host::Error error(ErrorCode::InvalidProgram, fmt::format("the firmware has no resource table: {}", why));
        error.hint =
            "without one there is no RPMsg and no trace buffer, and some kernels crash; annotation "
            "remoteproc.resource-table=optional starts it all the same";
        return std::unexpected(std::move(error));
    }

    const FirmwareBytes& file_;
    const CoreFacts* core_;
    const Layout* layout_ = &kElf32;
    std::array<std::uint8_t, 64> head_{};
};

}  // namespace

std::span<const CoreFacts> all_known_cores() {
    return kCores;
}

const CoreFacts* known_core(const SystemPaths& paths, const Device& device) {
    std::string compatible;
    for (const std::string& folder : {paths.device_tree(), paths.below("/proc/device-tree")}) {
        const Fd fd(::open((folder + "/compatible").c_str(), O_RDONLY | O_CLOEXEC));
        if (!fd) continue;
        compatible = read_fd(fd.get(), 4096).value_or("");
        break;
    }
    for (const CoreFacts& core : kCores) {
        if (device.name != core.processor) continue;
        for (std::size_t at = 0; at < compatible.size(); at = compatible.find('\0', at) + 1) {
            if (std::string_view(compatible.c_str() + at) == core.board) return &core;
            if (compatible.find('\0', at) == std::string::npos) break;
        }
    }
    return nullptr;
}

Result<void> check_firmware(const FirmwareBytes& file, const CoreFacts* core, const ElfWishes& wishes) {
    if (wishes.policy == ElfPolicy::Off) return {};
    Checker checker(file, core);
    const Result<void> header = checker.header();
    // For a core that nothing is known of, a raw image may be what its driver loads; the kernel decides.
    if (!header && core == nullptr && wishes.policy == ElfPolicy::Auto && !checker.is_magic()) return {};
    if (!header) return header;
    TRY(checker.segments());
    const bool table =
        wishes.table.value_or(wishes.policy == ElfPolicy::Strict || (core != nullptr && core->table_wanted));
    if (table) return checker.resource_table();
    return {};
}

std::optional<std::uint16_t> elf_machine(const FirmwareBytes& file) {
    std::array<std::uint8_t, 20> head;
    if (file.size < head.size() || !file.read(0, head)) return std::nullopt;
    if (head[0] != 0x7F || head[1] != 'E' || head[2] != 'L' || head[3] != 'F') return std::nullopt;
    return head[5] == 2 ? static_cast<std::uint16_t>(head[18] << 8 | head[19]) : load_le<std::uint16_t>(&head[18]);
}

std::uint16_t host_machine() {
#if defined(__x86_64__)
    return 62;  // EM_X86_64
#elif defined(__aarch64__)
    return 183;  // EM_AARCH64
#else
    return 0;
#endif
}

}  // namespace talpa::remoteproc
