// Loads and stores: single, dual, multiple, exclusive, acquire-release.
#pragma once

#include <atomic>
#include <bit>

#include "board/cpu/exec_branch.h"
#include "board/cpu/exec_data.h"
#include "board/cpu/memory_access.h"

namespace talpa::board::cpu {

enum class Width : u8 { Byte, SignedByte, Half, SignedHalf, Word };

enum class Address : u8 {
    Offset,    ///< rn + imm
    Absolute,  ///< imm: a literal
    Register,  ///< rn + (rm << aux)
    Before,    ///< rn + imm, written back
    After,     ///< rn, then rn + imm written back
};

[[nodiscard]] constexpr bool writes_back(Address a) {
    return a == Address::Before || a == Address::After;
}

template <Address A>
[[nodiscard]] inline u32 address_of(const Core& c, const Op& op) {
    switch (A) {
        case Address::Absolute:
            return op.imm;
        case Address::Register:
            return c.r[op.rn] + (c.r[op.rm] << op.aux);
        case Address::After:
            return c.r[op.rn];
        default:
            return c.r[op.rn] + op.imm;
    }
}

/// Stack pointers never go below their limit by write-back; checked before memory is touched.
[[nodiscard]] inline bool limit_broken(const Core& c, unsigned rn, u32 value) {
    return rn == kSp && value < c.stack_limit;
}

inline void write_back(Core& c, unsigned rn, u32 value) {
    c.r[rn] = rn == kSp ? value & ~3U : value;
}

template <Width W>
[[nodiscard]] inline bool load_as(Core& c, const Op& op, u32 address, u32& value) {
    switch (W) {
        case Width::Byte:
            return load<u8>(c, op, address, value);
        case Width::SignedByte:
            if (!load<u8>(c, op, address, value)) return false;
            value = w(sign_extend(value, 8));
            return true;
        case Width::Half:
            return load<u16>(c, op, address, value);
        case Width::SignedHalf:
            if (!load<u16>(c, op, address, value)) return false;
            value = w(sign_extend(value, 16));
            return true;
        default:
            return load<u32>(c, op, address, value);
    }
}

template <Width W, Address A>
bool load_register(Core& c, const Op& op) {
    if constexpr (writes_back(A))
        if (limit_broken(c, op.rn, c.r[op.rn] + op.imm)) return raise(c, op, Fault::StackOverflow);
    u32 value;
    if (!load_as<W>(c, op, address_of<A>(c, op), value)) return false;
    if constexpr (writes_back(A)) write_back(c, op.rn, c.r[op.rn] + op.imm);
    c.r[op.rd] = value;
    return true;
}

template <Width W, Address A>
bool store_register(Core& c, const Op& op) {
    if constexpr (writes_back(A))
        if (limit_broken(c, op.rn, c.r[op.rn] + op.imm)) return raise(c, op, Fault::StackOverflow);
    const u32 address = address_of<A>(c, op);
    const u32 value = c.r[op.rd];
    bool done;
    switch (W) {
        case Width::Byte:
        case Width::SignedByte:
            done = store<u8>(c, op, address, value);
            break;
        case Width::Half:
        case Width::SignedHalf:
            done = store<u16>(c, op, address, value);
            break;
        default:
            done = store<u32>(c, op, address, value);
            break;
    }
    if (!done) return false;
    if constexpr (writes_back(A)) write_back(c, op.rn, c.r[op.rn] + op.imm);
    return true;
}

/// LDR PC: a branch with state change.
template <Address A>
bool load_pc(Core& c, const Op& op) {
    if constexpr (writes_back(A))
        if (limit_broken(c, op.rn, c.r[op.rn] + op.imm)) return raise(c, op, Fault::StackOverflow);
    u32 target;
    if (!load<u32>(c, op, address_of<A>(c, op), target)) return false;
    if constexpr (writes_back(A)) write_back(c, op.rn, c.r[op.rn] + op.imm);
    return interworking_branch(c, target);
}

[[nodiscard]] constexpr unsigned bytes_of(Width width) {
    return width == Width::Word ? 4 : width == Width::Half || width == Width::SignedHalf ? 2 : 1;
}

/// LDRT and family: rn + imm with the rights of unprivileged code.
template <Width W>
bool load_unprivileged(Core& c, const Op& op) {
    u32 value;
    if (!load_slow(c, op, c.r[op.rn] + op.imm, bytes_of(W), kUnprivileged, value)) return false;
    if (W == Width::SignedByte) value = w(sign_extend(value, 8));
    if (W == Width::SignedHalf) value = w(sign_extend(value, 16));
    c.r[op.rd] = value;
    return true;
}
template <Width W>
bool store_unprivileged(Core& c, const Op& op) {
    return store_slow(c, op, c.r[op.rn] + op.imm, bytes_of(W), kUnprivileged, c.r[op.rd]);
}

// Dual: rd, ra; imm the signed offset. The address must be word-aligned.
template <bool Load, Address A>
bool dual(Core& c, const Op& op) {
    const u32 address = address_of<A>(c, op);
    if constexpr (writes_back(A))
        if (limit_broken(c, op.rn, c.r[op.rn] + op.imm)) return raise(c, op, Fault::StackOverflow);
    if ((address & 3) != 0) return raise(c, op, Fault::Unaligned, address);
    if constexpr (Load) {
        u32 low;
        u32 high;
        if (!load<u32>(c, op, address, low) || !load<u32>(c, op, address + 4, high)) return false;
        if constexpr (writes_back(A)) write_back(c, op.rn, c.r[op.rn] + op.imm);
        c.r[op.rd] = low;
        c.r[op.ra] = high;
    } else {
        if (!store<u32>(c, op, address, c.r[op.rd]) || !store<u32>(c, op, address + 4, c.r[op.ra])) return false;
        if constexpr (writes_back(A)) write_back(c, op.rn, c.r[op.rn] + op.imm);
    }
    return true;
}

// Multiple: imm the register list, aux = kMultiple* bits.
inline constexpr u8 kMultipleDown = 1;
inline constexpr u8 kMultipleWriteBack = 2;

/// The host address of `count` words at `address` when they lie in one plain page.
[[nodiscard]] inline std::uintptr_t direct(const std::uintptr_t* pages, u32 address, u32 count) {
    const std::uintptr_t page = pages[address >> kPageBits];
    const bool inside = (address & (kPageSize - 1)) + 4 * count <= kPageSize;
    return page != 0 && inside ? page + address : 0;
}

struct Multiple {
    u32 start;
    u32 base_after;
    u32 count;
};
[[nodiscard]] inline Multiple multiple_span(const Core& c, const Op& op) {
    const u32 count = w(std::popcount(op.imm));
    const u32 base = c.r[op.rn];
    if ((op.aux & kMultipleDown) != 0) return {base - 4 * count, base - 4 * count, count};
    return {base, base + 4 * count, count};
}

/// LDM, POP. With PC in the list (Pc) the block ends. Faults leave all registers as they were.
template <bool Pc>
bool load_multiple(Core& c, const Op& op) {
    const Multiple m = multiple_span(c, op);
    const bool wb = (op.aux & kMultipleWriteBack) != 0;
    if (wb && limit_broken(c, op.rn, m.base_after)) return raise(c, op, Fault::StackOverflow);
    if ((m.start & 3) != 0) return raise(c, op, Fault::Unaligned, m.start);
    u32 values[16];
    if (const std::uintptr_t host = direct(c.pages, m.start, m.count); host != 0) [[likely]] {
        for (u32 i = 0; i < m.count; i++) std::memcpy(&values[i], reinterpret_cast<const void*>(host + 4 * i), 4);
    } else {
        for (u32 i = 0; i < m.count; i++)
            if (!load_slow(c, op, m.start + 4 * i, 4, kAligned, values[i])) return false;
    }
    if (wb) write_back(c, op.rn, m.base_after);
    const u32* value = values;
    for (u32 list = op.imm & 0x7FFF; list != 0; list &= list - 1) c.r[std::countr_zero(list)] = *value++;
    if (bit(op.imm, kSp)) c.r[kSp] &= ~3U;
    if constexpr (Pc) return interworking_branch(c, *value);
    return true;
}

inline bool store_multiple(Core& c, const Op& op) {
    const Multiple m = multiple_span(c, op);
    const bool wb = (op.aux & kMultipleWriteBack) != 0;
    if (wb && limit_broken(c, op.rn, m.base_after)) return raise(c, op, Fault::StackOverflow);
    if ((m.start & 3) != 0) return raise(c, op, Fault::Unaligned, m.start);
    if (std::uintptr_t host = direct(c.pages + kPageTableWords, m.start, m.count); host != 0) [[likely]] {
        for (u32 list = op.imm; list != 0; list &= list - 1, host += 4)
            std::memcpy(reinterpret_cast<void*>(host), &c.r[static_cast<unsigned>(std::countr_zero(list))], 4);
    } else {
        u32 address = m.start;
        for (u32 list = op.imm; list != 0; list &= list - 1, address += 4)
            if (!store_slow(c, op, address, 4, kAligned, c.r[static_cast<unsigned>(std::countr_zero(list))]))
                return false;
    }
    if (wb) write_back(c, op.rn, m.base_after);
    return true;
}

// Exclusive and ordered accesses; Bytes is 1, 2 or 4. The address rn + imm must be aligned.
template <unsigned Bytes, bool Exclusive>
bool load_acquire(Core& c, const Op& op) {
    const u32 address = c.r[op.rn] + op.imm;
    u32 value;
    if (!load_slow(c, op, address, Bytes, kAligned, value)) return false;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if constexpr (Exclusive) {
        c.exclusive = true;
        c.exclusive_address = address;
    }
    c.r[op.rd] = value;
    return true;
}

template <unsigned Bytes>
bool store_release(Core& c, const Op& op) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const u32 address = c.r[op.rn] + op.imm;
    if (!store_slow(c, op, address, Bytes, kAligned, c.r[op.rd])) return false;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return true;
}

/// STREX, STLEX: ra = 0 when the monitor still held this address and the store was done, else 1. An unaligned address
/// faults whatever the monitor holds.
template <unsigned Bytes>
bool store_exclusive(Core& c, const Op& op) {
    const u32 address = c.r[op.rn] + op.imm;
    if ((address & (Bytes - 1)) != 0) return raise(c, op, Fault::Unaligned, address);
    const bool held = c.exclusive && c.exclusive_address == address;
    if (held) {
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (!store_slow(c, op, address, Bytes, kAligned, c.r[op.rd])) return false;
        std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    c.exclusive = false;
    c.r[op.ra] = held ? 0 : 1;
    return true;
}

inline bool clear_exclusive(Core& c, const Op& /*op*/) {
    c.exclusive = false;
    return true;
}

}  // namespace talpa::board::cpu
