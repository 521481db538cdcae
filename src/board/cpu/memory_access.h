// Loads and stores of the instruction bodies: RAM pages by host pointer, everything else through the machine's slow
// path (devices, unaligned addresses, protection, pages that hold code).
#pragma once

#include <cstring>

#include "board/cpu/op.h"

namespace talpa::board::cpu {

/// How an access differs from a plain one of the current mode.
enum Access : u8 {
    kPlain = 0,
    kUnprivileged = 1,  ///< LDRT and family
    kAligned = 2,       ///< faults when unaligned, whatever memory it is
};

/// Slow paths (memory.cpp). On false the fault is raised and `value` untouched.
bool load_slow(Core& core, const Op& op, u32 address, unsigned size, unsigned access, u32& value);
bool store_slow(Core& core, const Op& op, u32 address, unsigned size, unsigned access, u32 value);

template <typename T>
[[nodiscard]] inline bool load(Core& core, const Op& op, u32 address, u32& value) {
    const std::uintptr_t page = core.pages[page_index(address, sizeof(T))];
    if (page != 0) [[likely]] {
        T host;
        std::memcpy(&host, reinterpret_cast<const void*>(page + address), sizeof(T));
        value = host;
        return true;
    }
    return load_slow(core, op, address, sizeof(T), kPlain, value);
}

template <typename T>
[[nodiscard]] inline bool store(Core& core, const Op& op, u32 address, u32 value) {
    const std::uintptr_t page = core.pages[kPageTableWords + page_index(address, sizeof(T))];
    if (page != 0) [[likely]] {
        const T host = static_cast<T>(value);
        std::memcpy(reinterpret_cast<void*>(page + address), &host, sizeof(T));
        return true;
    }
    return store_slow(core, op, address, sizeof(T), kPlain, value);
}

}  // namespace talpa::board::cpu
