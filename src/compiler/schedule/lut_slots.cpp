#include "compiler/schedule/lut_slots.h"

#include <algorithm>

namespace talpa::compiler {

LutSlots::Found LutSlots::find(const Table& table) {
    const auto slots = static_cast<unsigned>(table.size() / kLutSlotBytes);
    for (unsigned s = 0; s + slots <= kLutSlots; s += slots)
        if (held_[s].table == table && held_[s].slots == slots) {
            touch(s, slots);
            return {static_cast<std::uint8_t>(s), true};
        }
    unsigned best = 0;
    std::uint64_t oldest = UINT64_MAX;
    for (unsigned s = 0; s + slots <= kLutSlots; s += slots) {
        std::uint64_t used = 0;
        for (unsigned i = s; i < s + slots; ++i) used = std::max(used, held_[i].used);
        if (used < oldest) {
            oldest = used;
            best = s;
        }
    }
    for (unsigned i = best; i < best + slots; ++i) forget(i);
    held_[best].table = table;
    held_[best].slots = slots;
    touch(best, slots);
    return {static_cast<std::uint8_t>(best), false};
}

void LutSlots::forget_all() {
    for (unsigned i = 0; i < kLutSlots; ++i) held_[i] = {};
}

void LutSlots::touch(unsigned slot, unsigned slots) {
    ++now_;
    for (unsigned i = slot; i < slot + slots; ++i) held_[i].used = now_;
}

// A table that begins before the slot may reach into it.
void LutSlots::forget(unsigned slot) {
    for (unsigned i = 0; i <= slot; ++i)
        if (i + held_[i].slots > slot) held_[i] = {};
}

}  // namespace talpa::compiler
