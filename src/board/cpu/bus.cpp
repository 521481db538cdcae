#include "board/cpu/bus.h"

#include <algorithm>
#include <cstring>

namespace talpa::board::cpu {

Ram::Ram(std::size_t size) : own_(size), memory_(own_), code_(size / kGranule + 1) {
    poison();
}

Ram::Ram(std::span<u8> memory) : memory_(memory), code_(memory.size() / kGranule + 1) {}

void Ram::poison() {
    for (std::size_t i = 0; i < memory_.size(); i++) memory_[i] = static_cast<u8>(kPoison >> (8 * (i % 4)));
}

bool Ram::holds_code(std::size_t offset, std::size_t length) const {
    for (std::size_t g = offset / kGranule; g <= (offset + length - 1) / kGranule && g < code_.size(); g++)
        if (code_[g] != 0) return true;
    return false;
}

void Ram::mark_code(std::size_t offset, std::size_t length) {
    for (std::size_t g = offset / kGranule; g <= (offset + length - 1) / kGranule && g < code_.size(); g++)
        code_[g] = 1;
}

bool Ram::initialised(std::size_t offset, std::size_t length) const {
    if (written_.empty()) return true;
    for (std::size_t i = offset / 4; i <= (offset + length - 1) / 4; i++)
        if (written_[i] == 0) return false;
    return true;
}

void Ram::note_written(std::size_t offset, std::size_t length) {
    if (written_.empty()) return;
    for (std::size_t i = offset / 4; i <= (offset + length - 1) / 4; i++) written_[i] = 1;
}

void Ram::forget_code() {
    std::fill(code_.begin(), code_.end(), u8{0});
}

host::Result<void> Bus::add(Region region) {
    if (region.size == 0 || region.base + (region.size - 1) < region.base)
        return host::failure(ErrorCode::InvalidArgument, "region {} at {:#x} of {:#x} bytes is empty or wraps around",
                             region.name, region.base, region.size);
    for (const Region& other : regions_)
        if (other.contains(region.base) || region.contains(other.base))
            return host::failure(ErrorCode::InvalidArgument, "region {} at {:#x} overlaps {} at {:#x}", region.name,
                                 region.base, other.name, other.base);
    regions_.insert(std::upper_bound(regions_.begin(), regions_.end(), region.base,
                                     [](u32 base, const Region& r) { return base < r.base; }),
                    std::move(region));
    return {};
}

host::Result<void> Bus::add_ram(std::string_view name, u32 base, u32 size, Ram& ram, u32 ram_offset) {
    if (ram_offset > ram.bytes().size() || size > ram.bytes().size() - ram_offset)
        return host::failure(ErrorCode::InvalidArgument,
                             "region {}: {:#x} bytes from offset {:#x} do not fit RAM of {:#x} bytes", name, size,
                             ram_offset, ram.bytes().size());
    return add({base, size, &ram, ram_offset, nullptr, std::string(name)});
}

host::Result<void> Bus::add_device(std::string_view name, u32 base, u32 size, Device& device) {
    return add({base, size, nullptr, 0, &device, std::string(name)});
}

const Region* Bus::find(u32 address) const {
    auto it =
        std::upper_bound(regions_.begin(), regions_.end(), address, [](u32 a, const Region& r) { return a < r.base; });
    if (it == regions_.begin()) return nullptr;
    --it;
    return it->contains(address) ? &*it : nullptr;
}

bool Bus::read(u32 address, std::span<u8> out) const {
    for (std::size_t done = 0; done < out.size();) {
        const Region* region = find(address + w(done));
        if (region == nullptr || region->ram == nullptr) return false;
        const u32 offset = address + w(done) - region->base;
        const std::size_t n = std::min<std::size_t>(out.size() - done, region->size - offset);
        std::memcpy(out.data() + done, region->ram->bytes().data() + region->ram_offset + offset, n);
        done += n;
    }
    return true;
}

bool Bus::write(u32 address, std::span<const u8> data) {
    for (std::size_t done = 0; done < data.size();) {
        const Region* region = find(address + w(done));
        if (region == nullptr || region->ram == nullptr) return false;
        const u32 offset = address + w(done) - region->base;
        const std::size_t n = std::min<std::size_t>(data.size() - done, region->size - offset);
        std::memcpy(region->ram->bytes().data() + region->ram_offset + offset, data.data() + done, n);
        region->ram->note_written(region->ram_offset + offset, n);
        done += n;
    }
    return true;
}

}  // namespace talpa::board::cpu
