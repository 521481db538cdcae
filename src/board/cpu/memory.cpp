#include "board/cpu/memory.h"

#include <sys/mman.h>

#include <cstring>
#include <new>

#include "board/cpu/machine.h"

namespace talpa::board::cpu {

namespace {
constexpr std::size_t kTablesBytes = 4 * kPageTableWords * sizeof(std::uintptr_t);
constexpr u32 kPpbBase = 0xE0000000;

bool is_ppb(u32 address) {
    return (address >> 20) == kPpbBase >> 20;
}
}  // namespace

Memory::Memory(Machine& machine, Bus& bus) : machine_(machine), bus_(bus) {
    // Only the pages of the tables that are used ever take memory.
    void* memory =
        mmap(nullptr, kTablesBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    memory_ = static_cast<std::uintptr_t*>(memory);
    for (std::size_t i = 0; i < 4; i++) tables_[i / 2][i % 2].entries = memory_ + i * kPageTableWords;
    select(true);
}

Memory::~Memory() {
    munmap(memory_, kTablesBytes);
}

void Memory::select(bool privileged) {
    machine_.core.pages = tables_[privileged ? 1 : 0][0].entries;
}

void Memory::flush_pages() {
    for (auto& row : tables_)
        for (Table& table : row) {
            for (u32 page : table.filled) table.entries[page] = 0;
            table.filled.clear();
        }
}

void Memory::forget_code() {
    for (const Region& region : bus_.regions())
        if (region.ram != nullptr) region.ram->forget_code();
}

/// A page may skip the checks when all of it is RAM under one rule; a page for writing also must hold no code.
void Memory::fill(Table& table, u32 address, const Region& region) {
    const u32 first = address & ~(kPageSize - 1);
    if (table.entries[first >> kPageBits] != 0 || !region.contains(first) || !region.contains(first + kPageSize - 1))
        return;
    if (!machine_.mpu.uniform(address)) return;
    const std::size_t offset = region.ram_offset + (first - region.base);
    const bool for_writing = &table == &tables_[0][1] || &table == &tables_[1][1];
    if (for_writing && region.ram->holds_code(offset, kPageSize)) return;
    if (!region.ram->initialised(offset, kPageSize)) return;
    table.entries[first >> kPageBits] = reinterpret_cast<std::uintptr_t>(region.ram->bytes().data() + offset) - first;
    table.filled.push_back(first >> kPageBits);
}

/// CCR.BFHFNMIGN: handlers at priority -1 and above ignore precise bus faults.
bool Memory::ignores_faults() const {
    return machine_.scs.ignores_bus_faults() && machine_.exceptions.negative_priority();
}

std::optional<Fault> Memory::read(u32 address, unsigned size, bool privileged, unsigned access, u32& value) {
    if ((access & kUnprivileged) != 0) privileged = false;
    if ((address & (size - 1)) == 0) return read_once(address, size, privileged, false, value);
    if ((access & kAligned) != 0 || machine_.scs.traps_unaligned()) return Fault::Unaligned;
    u32 whole = 0;
    for (unsigned i = 0; i < size; i++) {
        u32 byte = 0;
        if (auto fault = read_once(address + i, 1, privileged, true, byte)) return fault;
        whole |= byte << (8 * i);
    }
    value = whole;
    return std::nullopt;
}

std::optional<Fault> Memory::read_once(u32 address, unsigned size, bool privileged, bool by_bytes, u32& value) {
    const Attributes attributes =
        machine_.mpu.check(address, privileged, Use::Read, machine_.exceptions.negative_priority());
    if (!attributes.allowed) return Fault::DataAccess;
    if (by_bytes && attributes.device) return Fault::Unaligned;
    if (is_ppb(address)) {
        if (!machine_.scs.read(address, size, privileged, value)) return Fault::DataBus;
        return std::nullopt;
    }
    const Region* region = bus_.find(address);
    if (region == nullptr || !region->contains(address + size - 1)) {
        if (!ignores_faults()) return Fault::DataBus;
        value = 0;
        return std::nullopt;
    }
    if (region->ram != nullptr) {
        const std::size_t offset = region->ram_offset + (address - region->base);
        if (!region->ram->initialised(offset, size)) return Fault::DataBus;
        value = 0;
        std::memcpy(&value, region->ram->bytes().data() + offset, size);
        if (!by_bytes) fill(tables_[privileged ? 1 : 0][0], address, *region);
        return std::nullopt;
    }
    u32 word = 0;
    if (!region->device->read(address - region->base, size, word) && !ignores_faults()) return Fault::DataBus;
    value = size == 4 ? word : word & ((1U << (8 * size)) - 1);
    return std::nullopt;
}

std::optional<Fault> Memory::write(u32 address, unsigned size, bool privileged, unsigned access, u32 value) {
    if ((access & kUnprivileged) != 0) privileged = false;
    if ((address & (size - 1)) == 0) return write_once(address, size, privileged, false, value);
    if ((access & kAligned) != 0 || machine_.scs.traps_unaligned()) return Fault::Unaligned;
    for (unsigned i = 0; i < size; i++)
        if (auto fault = write_once(address + i, 1, privileged, true, (value >> (8 * i)) & 0xFF)) return fault;
    return std::nullopt;
}

std::optional<Fault> Memory::write_once(u32 address, unsigned size, bool privileged, bool by_bytes, u32 value) {
    const Attributes attributes =
        machine_.mpu.check(address, privileged, Use::Write, machine_.exceptions.negative_priority());
    if (!attributes.allowed) return Fault::DataAccess;
    if (by_bytes && attributes.device) return Fault::Unaligned;
    if (size < 4) value &= (1U << (8 * size)) - 1;
    if (is_ppb(address)) {
        if (!machine_.scs.write(address, size, privileged, value)) return Fault::DataBus;
        return std::nullopt;
    }
    const Region* region = bus_.find(address);
    if (region == nullptr || !region->contains(address + size - 1)) {
        if (!ignores_faults()) return Fault::DataBus;
        return std::nullopt;
    }
    if (region->ram != nullptr) {
        const std::size_t offset = region->ram_offset + (address - region->base);
        if (size < 4 && !region->ram->initialised(offset, size)) return Fault::DataBus;
        std::memcpy(region->ram->bytes().data() + offset, &value, size);
        region->ram->note_written(offset, size);
        if (region->ram->holds_code(offset, size)) machine_.request_code_flush();
        if (!by_bytes) fill(tables_[privileged ? 1 : 0][1], address, *region);
        return std::nullopt;
    }
    if (!region->device->write(address - region->base, size, value) && !ignores_faults()) return Fault::DataBus;
    return std::nullopt;
}

std::optional<Fault> Memory::fetch(u32 address, bool privileged, u32& value) {
    const Attributes attributes =
        machine_.mpu.check(address, privileged, Use::Execute, machine_.exceptions.negative_priority());
    if (!attributes.allowed || is_ppb(address)) return Fault::InstructionAccess;
    const Region* region = bus_.find(address);
    if (region == nullptr || !region->contains(address + 1)) return Fault::InstructionBus;
    if (region->ram == nullptr) {
        if (!region->device->read(address - region->base, 2, value)) return Fault::InstructionBus;
        value &= 0xFFFF;
        return std::nullopt;
    }
    const std::size_t offset = region->ram_offset + (address - region->base);
    if (!region->ram->initialised(offset, 2)) return Fault::InstructionBus;
    value = 0;
    std::memcpy(&value, region->ram->bytes().data() + offset, 2);
    if (!region->ram->holds_code(offset, 2)) {
        // Writes to this granule must be seen from now on, through whatever address they come.
        region->ram->mark_code(offset, 2);
        flush_pages();
    }
    return std::nullopt;
}

bool load_slow(Core& core, const Op& op, u32 address, unsigned size, unsigned access, u32& value) {
    Machine& machine = *core.machine;
    machine.note_progress(op);
    if (auto fault = machine.memory.read(address, size, core.privileged, access, value))
        return raise(core, op, *fault, address);
    return true;
}

bool store_slow(Core& core, const Op& op, u32 address, unsigned size, unsigned access, u32 value) {
    Machine& machine = *core.machine;
    machine.note_progress(op);
    if (auto fault = machine.memory.write(address, size, core.privileged, access, value))
        return raise(core, op, *fault, address);
    return true;
}

}  // namespace talpa::board::cpu
