// Reply lines that wait for a free RPMsg buffer, in order. Bounded: who has more to say than there is room for waits,
// or takes no question before there is room for its answer.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "firmware/request.h"
#include "link/rpmsg.h"

namespace talpa::firmware {

class Outbox {
  public:
    static constexpr std::size_t kBytes = 4096;
    static constexpr std::size_t kHeader = 12;  ///< bytes beside the text of each message

    /// Appends one message of at most link::kRpmsgMaxPayload bytes; false when there is no room for it.
    [[nodiscard]] bool push(Peer peer, std::string_view text) {
        if (room() < kHeader + text.size()) return false;
        write_word(peer.endpoint);
        write_word(peer.address);
        write_word(static_cast<std::uint32_t>(text.size()));
        for (const char c : text) write(static_cast<std::uint8_t>(c));
        return true;
    }

    [[nodiscard]] bool empty() const { return used_ == 0; }
    [[nodiscard]] std::size_t room() const { return kBytes - used_; }
    void clear() { used_ = 0; }

    /// Hands the oldest message to `send(Peer, std::string_view) -> bool` and removes it when that says true; goes on
    /// until it says false or nothing is left.
    template <typename Send>
    void flush(Send&& send) {
        while (used_ != 0) {
            const Peer peer{read_word(0), read_word(4)};
            const std::size_t size = read_word(8);
            for (std::size_t i = 0; i < size; ++i) message_[i] = static_cast<char>(peek(kHeader + i));
            if (!send(peer, std::string_view(message_.data(), size))) return;
            start_ = (start_ + kHeader + size) % kBytes;
            used_ -= kHeader + size;
        }
    }

  private:
    void write(std::uint8_t b) {
        ring_[(start_ + used_) % kBytes] = b;
        ++used_;
    }
    void write_word(std::uint32_t w) {
        for (int i = 0; i < 4; ++i) write(static_cast<std::uint8_t>(w >> (8 * i)));
    }
    [[nodiscard]] std::uint8_t peek(std::size_t i) const { return ring_[(start_ + i) % kBytes]; }
    [[nodiscard]] std::uint32_t read_word(std::size_t i) const {
        return static_cast<std::uint32_t>(peek(i)) | (static_cast<std::uint32_t>(peek(i + 1)) << 8) |
               (static_cast<std::uint32_t>(peek(i + 2)) << 16) | (static_cast<std::uint32_t>(peek(i + 3)) << 24);
    }

    std::array<std::uint8_t, kBytes> ring_{};
    std::array<char, link::kRpmsgMaxPayload> message_{};
    std::size_t start_ = 0, used_ = 0;
};

}  // namespace talpa::firmware
