// Memory as the core's instructions see it: protection, alignment rules, the private peripheral bus, RAM and devices;
// and the page tables that let most accesses skip all of that.
#pragma once

#include <optional>
#include <vector>

#include "board/cpu/bus.h"
#include "board/cpu/core.h"
#include "board/cpu/memory_access.h"
#include "board/cpu/mpu.h"

namespace talpa::board::cpu {

class Memory {
  public:
    Memory(Machine& machine, Bus& bus);
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    /// Data accesses with all checks; nothing, or the fault. `access` as in memory_access.h.
    std::optional<Fault> read(u32 address, unsigned size, bool privileged, unsigned access, u32& value);
    std::optional<Fault> write(u32 address, unsigned size, bool privileged, unsigned access, u32 value);
    /// A halfword of code; marks it as such.
    std::optional<Fault> fetch(u32 address, bool privileged, u32& value);

    /// Forgets what the page tables hold: after changes of the MPU or of the code marks.
    void flush_pages();
    /// Points the core at the tables of its privilege.
    void select(bool privileged);
    /// Code marks of all RAM, when the block cache is emptied.
    void forget_code();

  private:
    struct Table {
        std::uintptr_t* entries = nullptr;  ///< kPageTableWords of them
        std::vector<u32> filled;
    };

    [[nodiscard]] bool ignores_faults() const;
    void fill(Table& table, u32 address, const Region& region);
    std::optional<Fault> read_once(u32 address, unsigned size, bool privileged, bool by_bytes, u32& value);
    std::optional<Fault> write_once(u32 address, unsigned size, bool privileged, bool by_bytes, u32 value);

    Machine& machine_;
    Bus& bus_;
    std::uintptr_t* memory_ = nullptr;  ///< all four tables
    Table tables_[2][2];                ///< [privileged][write]
};

}  // namespace talpa::board::cpu
