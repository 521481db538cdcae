// Both sides of a legacy virtio split ring: the device (the M33, or whoever plays it) and the driver (Linux, or the
// virtual board's Linux). One descriptor a message, no chaining, no event index. The other side runs at the same time,
// so its index words are read with acquire and ours written with release order. (imx93-remoteproc, section 4)
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/core/byte_reader.h"

namespace talpa::link {

inline constexpr std::uint16_t kDescNext = 1, kDescWrite = 2;
inline constexpr std::uint16_t kAvailNoInterrupt = 1, kUsedNoNotify = 1;

/// Where the parts of a ring lie. `num` is a power of two, `align` a power of two of at least 4.
struct VringLayout {
    std::uint32_t num = 0;
    std::uint32_t align = 0;

    [[nodiscard]] constexpr std::size_t avail_offset() const { return std::size_t{16} * num; }
    [[nodiscard]] constexpr std::size_t used_offset() const {
        return round_up<std::size_t>(avail_offset() + 6 + std::size_t{2} * num, align);
    }
    [[nodiscard]] constexpr std::size_t size_bytes() const { return used_offset() + 6 + std::size_t{8} * num; }
    [[nodiscard]] constexpr bool valid() const {
        return num != 0 && num <= 32768 && (num & (num - 1)) == 0 && align >= 4 && align <= 65536 &&
               (align & (align - 1)) == 0;
    }
};
static_assert(VringLayout{256, 4096}.avail_offset() == 0x1000 && VringLayout{256, 4096}.used_offset() == 0x2000);
static_assert(VringLayout{256, 4096}.size_bytes() == 0x2806);

struct VringDescriptor {
    std::uint64_t address = 0;
    std::uint32_t length = 0;
    std::uint16_t flags = 0;
    std::uint16_t id = 0;  ///< of the descriptor: what `push_used` takes
};

/// What the two sides share: typed access to a ring in memory that the other side changes.
class VringMemory {
  public:
    VringMemory() = default;
    /// `ring`: layout.size_bytes() bytes, 16-byte aligned.
    VringMemory(std::uint8_t* ring, VringLayout layout) : ring_(ring), layout_(layout) {}

  protected:
    [[nodiscard]] std::uint16_t load(std::size_t offset) const {
        return __atomic_load_n(word(offset), __ATOMIC_ACQUIRE);
    }
    void store(std::size_t offset, std::uint16_t v) { __atomic_store_n(word(offset), v, __ATOMIC_RELEASE); }
    [[nodiscard]] std::uint16_t* word(std::size_t offset) const {
        return reinterpret_cast<std::uint16_t*>(ring_ + offset);
    }
    [[nodiscard]] volatile std::uint32_t* long_word(std::size_t offset) const {
        return reinterpret_cast<volatile std::uint32_t*>(ring_ + offset);
    }

    [[nodiscard]] std::size_t avail_flags() const { return layout_.avail_offset(); }
    [[nodiscard]] std::size_t avail_index() const { return layout_.avail_offset() + 2; }
    [[nodiscard]] std::size_t avail_slot(std::uint16_t i) const {
        return layout_.avail_offset() + 4 + std::size_t{2} * (i & (layout_.num - 1));
    }
    [[nodiscard]] std::size_t used_flags() const { return layout_.used_offset(); }
    [[nodiscard]] std::size_t used_index() const { return layout_.used_offset() + 2; }
    [[nodiscard]] std::size_t used_slot(std::uint16_t i) const {
        return layout_.used_offset() + 4 + std::size_t{8} * (i & (layout_.num - 1));
    }

    std::uint8_t* ring_ = nullptr;
    VringLayout layout_;
};

/// The M33's side: takes what is available, gives it back as used.
class VringDevice : public VringMemory {
  public:
    using VringMemory::VringMemory;

    /// The next available descriptor, or nothing. One with an id outside the ring is skipped: the ring's slot is
    /// consumed and nothing is given back, since there is nothing to give. The caller checks address and length.
    [[nodiscard]] std::optional<VringDescriptor> pop();
    void push_used(std::uint16_t id, std::uint32_t length);
    /// Does the driver want to be told about used buffers?
    [[nodiscard]] bool notify_wanted() const { return (load(avail_flags()) & kAvailNoInterrupt) == 0; }
    /// Has the driver zeroed the ring since? It does when it starts anew, and may be ready again before anybody looked
    /// at its status in between.
    [[nodiscard]] bool reset_by_driver() const { return load(used_index()) != used_; }
    /// Tells the driver not to kick for buffers that it returns.
    void suppress_kicks() { store(used_flags(), kUsedNoNotify); }

  private:
    std::uint16_t next_ = 0;
    std::uint16_t used_ = 0;
};

/// Linux's side: offers buffers, collects used ones.
class VringDriver : public VringMemory {
  public:
    using VringMemory::VringMemory;

    struct Used {
        std::uint32_t id = 0;
        std::uint32_t length = 0;
    };

    /// Makes the ring empty; must be done before the device sees DRIVER_OK.
    void clear();
    /// Offers descriptor `id` (< num); the caller keeps track of which are free.
    void offer(std::uint16_t id, std::uint64_t address, std::uint32_t length, std::uint16_t flags);
    /// The next used buffer, or nothing. `id` comes from the device and may be out of range.
    [[nodiscard]] std::optional<Used> take_used();
    [[nodiscard]] bool kick_wanted() const { return (load(used_flags()) & kUsedNoNotify) == 0; }
    void suppress_interrupts(bool suppress) { store(avail_flags(), suppress ? kAvailNoInterrupt : 0); }

  private:
    std::uint16_t offered_ = 0;
    std::uint16_t taken_ = 0;
};

}  // namespace talpa::link
