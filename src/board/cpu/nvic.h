// Exceptions as the interrupt controller sees them: pending, active, enabled, priorities (manual B3, B11). Interrupt
// lines may be driven by any thread; everything else belongs to the thread that runs the core.
#pragma once

#include <array>
#include <atomic>

#include "board/cpu/types.h"

namespace talpa::board::cpu {

enum Exception : unsigned {
    kReset = 1,
    kNmi = 2,
    kHardFault = 3,
    kMemManage = 4,
    kBusFault = 5,
    kUsageFault = 6,
    kSecureFault = 7,
    kSvCall = 11,
    kDebugMonitor = 12,
    kPendSv = 14,
    kSysTick = 15,
    kFirstIrq = 16,
};

class Nvic {
  public:
    static constexpr unsigned kIrqs = 268;
    static constexpr unsigned kWords = 9;  ///< words of 32 interrupts
    static constexpr unsigned kExceptions = kFirstIrq + 32 * kWords;
    static constexpr int kNoPriority = 256;  ///< that of Thread mode with nothing active
    static constexpr u8 kPriorityBits = 0xE0;

    void reset();

    /// Any thread. The level of an interrupt line; out-of-range numbers are ignored.
    void set_line(unsigned irq, bool level);
    /// Folds rising edges into the pending state; true when something came in.
    bool collect_lines();

    [[nodiscard]] bool pending(unsigned exception) const;
    void set_pending(unsigned exception, bool on);
    [[nodiscard]] bool active(unsigned exception) const { return active_[exception]; }
    void set_active(unsigned exception, bool on);
    [[nodiscard]] unsigned active_count() const { return active_count_; }
    [[nodiscard]] bool enabled(unsigned exception) const { return enabled_[exception]; }
    void set_enabled(unsigned exception, bool on) { enabled_[exception] = on; }
    void set_priority(unsigned exception, u8 value) { priority_[exception] = value & kPriorityBits; }
    [[nodiscard]] u8 priority_byte(unsigned exception) const { return priority_[exception]; }

    /// Group priority: fixed ones are negative.
    [[nodiscard]] int group_priority(unsigned exception) const;
    /// BASEPRI and the like, reduced to the group.
    [[nodiscard]] int group_of(u8 priority) const { return priority & group_mask(); }
    /// The pending, enabled exception that would be taken first; 0 for none.
    [[nodiscard]] unsigned highest_pending() const;
    /// The most urgent group priority among active exceptions.
    [[nodiscard]] int active_priority() const;

    [[nodiscard]] u32 pending_word(unsigned word) const;
    [[nodiscard]] u32 enabled_word(unsigned word) const;
    [[nodiscard]] u32 active_word(unsigned word) const;

    u32 priority_group = 0;  ///< AIRCR.PRIGROUP

  private:
    [[nodiscard]] int group_mask() const { return static_cast<int>(0xFFU << (priority_group + 1)) & 0xFF; }
    [[nodiscard]] int full_priority(unsigned exception) const;

    std::array<bool, kExceptions> latched_{};
    std::array<bool, kExceptions> active_{};
    std::array<bool, kExceptions> enabled_{};
    std::array<u8, kExceptions> priority_{};
    std::array<std::atomic<u32>, kWords> lines_{};
    std::array<std::atomic<u32>, kWords> edges_{};
    unsigned active_count_ = 0;
    /// Exceptions that may be pending: the search stays short however many lines the chip has.
    std::array<u32, kWords + 1> maybe_{};
};

}  // namespace talpa::board::cpu
