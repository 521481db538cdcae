#include "board/cpu/systick.h"

namespace talpa::board::cpu {

/// How often the counter has reached zero by counting: a first time from the value it had, then once a period. A
/// counter cleared by a write starts at zero without having counted to it.
u64 SysTick::zeros(u64 elapsed) const {
    const u64 first = start_value_ > 0 && elapsed >= start_value_ ? 1 : 0;
    if (elapsed <= start_value_ || reload_ == 0) return first;
    return first + (elapsed - start_value_) / (u64{reload_} + 1);
}

void SysTick::restart(u64 now, u32 value) {
    start_ = now;
    start_value_ = value;
    seen_ = 0;
}

bool SysTick::advance(u64 now) {
    if ((control_ & kEnable) == 0) return false;
    const u64 count = zeros(now - start_);
    if (count == seen_) return false;
    seen_ = count;
    flag_ = true;
    return (control_ & kInterrupt) != 0;
}

u64 SysTick::next_event(u64 now) const {
    if ((control_ & (kEnable | kInterrupt)) != (kEnable | kInterrupt)) return kNever;
    const u64 elapsed = now - start_;
    if (start_value_ > 0 && elapsed < start_value_) return start_ + start_value_;
    if (reload_ == 0) return kNever;
    const u64 period = u64{reload_} + 1;
    return start_ + start_value_ + ((elapsed - start_value_) / period + 1) * period;
}

u32 SysTick::read_control(u64 now) {
    advance(now);
    const u32 value = control_ | (flag_ ? kCountFlag : 0);
    flag_ = false;
    return value;
}

void SysTick::write_control(u64 now, u32 value) {
    const u32 at = current(now);
    if ((value & kEnable) != (control_ & kEnable)) restart(now, at);
    control_ = value & 7;
}

void SysTick::write_reload(u64 now, u32 value) {
    restart(now, current(now));
    reload_ = value & 0xFFFFFF;
}

u32 SysTick::current(u64 now) const {
    if ((control_ & kEnable) == 0) return start_value_;
    const u64 elapsed = now - start_;
    if (elapsed <= start_value_) return start_value_ - static_cast<u32>(elapsed);
    if (reload_ == 0) return 0;
    const u64 period = u64{reload_} + 1;
    const u64 into = (elapsed - start_value_) % period;
    return into == 0 ? 0 : static_cast<u32>(period - into);
}

void SysTick::clear_current(u64 now) {
    restart(now, 0);
    flag_ = false;
}

}  // namespace talpa::board::cpu
