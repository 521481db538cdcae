// Packets of GDB's remote serial protocol: "$payload#checksum", acknowledged by + or - until both sides agree to leave
// that. (GDB manual, appendix E)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace talpa::board::gdb {

struct Event {
    enum class Kind : std::uint8_t {
        Packet,     ///< `payload`, escapes resolved
        Damaged,    ///< a packet with a wrong checksum: ask again
        Nack,       ///< the other side wants the last packet again
        Interrupt,  ///< Ctrl-C
    } kind = Kind::Packet;
    std::string payload;
};

/// Cuts a byte stream into events. Bytes outside packets that mean nothing are skipped.
class PacketReader {
  public:
    static constexpr std::size_t kMaxPayload = 16384;  ///< longer ones are Damaged

    [[nodiscard]] std::vector<Event> feed(std::string_view bytes);

  private:
    enum class State : std::uint8_t { Outside, Payload, FirstDigit, SecondDigit } state_ = State::Outside;
    std::string raw_;
    int first_digit_ = 0;
};

/// The packet that carries a payload; $ # } * are escaped.
[[nodiscard]] std::string framed(std::string_view payload);

[[nodiscard]] std::string to_hex(std::string_view bytes);
/// Nothing when the text is no even number of hex digits.
[[nodiscard]] std::optional<std::string> from_hex(std::string_view text);
/// A hex number of at most 32 bits, the whole text.
[[nodiscard]] std::optional<std::uint32_t> hex_number(std::string_view text);

}  // namespace talpa::board::gdb
