#include "board/cpu/nvic.h"

#include <algorithm>
#include <bit>

namespace talpa::board::cpu {

void Nvic::reset() {
    latched_.fill(false);
    active_.fill(false);
    enabled_.fill(false);
    priority_.fill(0);
    maybe_.fill(0);
    active_count_ = 0;
    priority_group = 0;
    for (unsigned e : {kNmi, kHardFault, kSvCall, kPendSv, kSysTick}) enabled_[e] = true;
    for (auto& word : edges_) word = 0;
}

void Nvic::set_line(unsigned irq, bool level) {
    if (irq >= kIrqs) return;
    const u32 mask = 1U << (irq % 32);
    if (!level) {
        lines_[irq / 32].fetch_and(~mask);
        return;
    }
    if ((lines_[irq / 32].fetch_or(mask) & mask) == 0) edges_[irq / 32].fetch_or(mask);
}

bool Nvic::collect_lines() {
    bool any = false;
    for (unsigned word = 0; word < kWords; word++) {
        u32 edges = edges_[word].load(std::memory_order_relaxed) == 0 ? 0 : edges_[word].exchange(0);
        for (; edges != 0; edges &= edges - 1)
            set_pending(kFirstIrq + 32 * word + static_cast<unsigned>(std::countr_zero(edges)), true);
        if (lines_[word].load() != 0) any = true;
    }
    for (u32 word : maybe_) any = any || word != 0;
    return any;
}

bool Nvic::pending(unsigned exception) const {
    if (latched_[exception]) return true;
    if (exception < kFirstIrq) return false;
    const unsigned irq = exception - kFirstIrq;
    return !active_[exception] && bit(lines_[irq / 32].load(), irq % 32);
}

void Nvic::set_pending(unsigned exception, bool on) {
    latched_[exception] = on;
    const unsigned slot = exception < kFirstIrq ? kWords : (exception - kFirstIrq) / 32;
    const u32 mask = 1U << (exception < kFirstIrq ? exception : (exception - kFirstIrq) % 32);
    maybe_[slot] = on ? maybe_[slot] | mask : maybe_[slot] & ~mask;
}

void Nvic::set_active(unsigned exception, bool on) {
    if (active_[exception] != on) active_count_ += on ? 1U : 0U - 1U;
    active_[exception] = on;
}

int Nvic::full_priority(unsigned exception) const {
    switch (exception) {
        case kReset:
            return -4;
        case kNmi:
            return -2;
        case kHardFault:
            return -1;
        default:
            return priority_[exception];
    }
}

int Nvic::group_priority(unsigned exception) const {
    const int full = full_priority(exception);
    return full < 0 ? full : full & group_mask();
}

unsigned Nvic::highest_pending() const {
    unsigned best = 0;
    int best_priority = kNoPriority;
    const auto consider = [&](unsigned e) {
        if (!enabled_[e] || !pending(e)) return;
        const int priority = full_priority(e);
        if (priority < best_priority) {
            best = e;
            best_priority = priority;
        }
    };
    for (unsigned e = kNmi; e < kFirstIrq; e++) consider(e);
    for (unsigned word = 0; word < kWords; word++) {
        u32 candidates = maybe_[word] | lines_[word].load();
        for (; candidates != 0; candidates &= candidates - 1)
            consider(kFirstIrq + 32 * word + static_cast<unsigned>(std::countr_zero(candidates)));
    }
    return best;
}

int Nvic::active_priority() const {
    int best = kNoPriority;
    if (active_count_ == 0) return best;
    unsigned left = active_count_;
    for (unsigned e = kReset; e < kExceptions && left != 0; e++) {
        if (!active_[e]) continue;
        left--;
        best = std::min(best, group_priority(e));
    }
    return best;
}

u32 Nvic::pending_word(unsigned word) const {
    u32 value = 0;
    for (unsigned i = 0; i < 32; i++) value |= pending(kFirstIrq + 32 * word + i) ? 1U << i : 0;
    return value;
}
u32 Nvic::enabled_word(unsigned word) const {
    u32 value = 0;
    for (unsigned i = 0; i < 32; i++) value |= enabled_[kFirstIrq + 32 * word + i] ? 1U << i : 0;
    return value;
}
u32 Nvic::active_word(unsigned word) const {
    u32 value = 0;
    for (unsigned i = 0; i < 32; i++) value |= active_[kFirstIrq + 32 * word + i] ? 1U << i : 0;
    return value;
}

}  // namespace talpa::board::cpu
