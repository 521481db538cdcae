#include "link/vring.h"

namespace talpa::link {

std::optional<VringDescriptor> VringDevice::pop() {
    while (next_ != load(avail_index())) {
        const std::uint16_t id = load(avail_slot(next_++));
        if (id >= layout_.num) continue;
        const std::size_t at = std::size_t{16} * id;
        const std::uint32_t low = *long_word(at), high = *long_word(at + 4);
        return VringDescriptor{(std::uint64_t{high} << 32) | low, *long_word(at + 8), load(at + 12), id};
    }
    return std::nullopt;
}

void VringDevice::push_used(std::uint16_t id, std::uint32_t length) {
    *long_word(used_slot(used_)) = id;
    *long_word(used_slot(used_) + 4) = length;
    store(used_index(), ++used_);
    // The flag that `notify_wanted` reads next must not be read before the index is seen.
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void VringDriver::clear() {
    for (std::size_t i = 0; i < round_up<std::size_t>(layout_.size_bytes(), 4) / 4; ++i) *long_word(i * 4) = 0;
    offered_ = taken_ = 0;
}

void VringDriver::offer(std::uint16_t id, std::uint64_t address, std::uint32_t length, std::uint16_t flags) {
    const std::size_t at = std::size_t{16} * id;
    *long_word(at) = static_cast<std::uint32_t>(address);
    *long_word(at + 4) = static_cast<std::uint32_t>(address >> 32);
    *long_word(at + 8) = length;
    store(at + 12, flags);
    store(at + 14, 0);
    store(avail_slot(offered_), id);
    store(avail_index(), ++offered_);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

std::optional<VringDriver::Used> VringDriver::take_used() {
    if (taken_ == load(used_index())) return std::nullopt;
    const Used used{*long_word(used_slot(taken_)), *long_word(used_slot(taken_) + 4)};
    ++taken_;
    return used;
}

}  // namespace talpa::link
