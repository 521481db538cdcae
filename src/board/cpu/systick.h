// SysTick: a 24-bit down-counter of core cycles (manual B11.1). Nothing ticks: the value at a time is computed.
#pragma once

#include "board/cpu/types.h"

namespace talpa::board::cpu {

class SysTick {
  public:
    static constexpr u64 kNever = ~u64{0};
    static constexpr u32 kEnable = 1;
    static constexpr u32 kInterrupt = 2;
    static constexpr u32 kCountFlag = 1U << 16;

    void reset() { *this = {}; }

    /// Brings the counter to `now`; true when it reached zero since the last call and an interrupt is wanted.
    bool advance(u64 now);
    /// The next time the counter reaches zero with the interrupt enabled.
    [[nodiscard]] u64 next_event(u64 now) const;

    [[nodiscard]] u32 read_control(u64 now);
    void write_control(u64 now, u32 value);
    [[nodiscard]] u32 reload() const { return reload_; }
    void write_reload(u64 now, u32 value);
    [[nodiscard]] u32 current(u64 now) const;
    void clear_current(u64 now);

  private:
    [[nodiscard]] u64 zeros(u64 elapsed) const;
    void restart(u64 now, u32 value);

    u32 control_ = 0;
    u32 reload_ = 0;
    u32 start_value_ = 0;  ///< the counter at start_
    u64 start_ = 0;
    u64 seen_ = 0;  ///< zeros already reported
    bool flag_ = false;
};

}  // namespace talpa::board::cpu
