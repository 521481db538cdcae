// Which of the NPU's slots for tables holds which, so that what is still there is not loaded again.
#pragma once

#include <array>
#include <cstdint>

#include "compiler/lower/network.h"

namespace talpa::compiler {

constexpr unsigned kLutSlots = 8, kLutSlotBytes = 256;

class LutSlots {
  public:
    struct Found {
        std::uint8_t slot = 0;
        bool loaded = false;
    };
    /// Where the table is, or where it goes: the place that was not used for longest.
    Found find(const Table& table);
    /// Parts without banks of their own for tables lose them to any other operation.
    void forget_all();

  private:
    void touch(unsigned slot, unsigned slots);
    void forget(unsigned slot);

    struct Held {
        Table table;
        unsigned slots = 0;
        std::uint64_t used = 0;
    };
    std::array<Held, kLutSlots> held_;
    std::uint64_t now_ = 0;
};

}  // namespace talpa::compiler
