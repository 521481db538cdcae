#include "board/gdb/packet.h"

#include <fmt/format.h>

#include <charconv>

namespace talpa::board::gdb {
namespace {

int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

std::uint8_t checksum(std::string_view bytes) {
    std::uint8_t sum = 0;
    for (const char c : bytes) sum = static_cast<std::uint8_t>(sum + static_cast<std::uint8_t>(c));
    return sum;
}

std::string unescaped(std::string_view raw) {
    std::string text;
    for (std::size_t i = 0; i < raw.size(); ++i) {
        if (raw[i] == '}' && i + 1 < raw.size())
            text += static_cast<char>(raw[++i] ^ 0x20);
        else
            text += raw[i];
    }
    return text;
}

}  // namespace

std::vector<Event> PacketReader::feed(std::string_view bytes) {
    std::vector<Event> events;
    for (const char c : bytes) {
        switch (state_) {
            case State::Outside:
                if (c == '$') {
                    raw_.clear();
                    state_ = State::Payload;
                } else if (c == '-') {
                    events.push_back({Event::Kind::Nack, {}});
                } else if (c == '\x03') {
                    events.push_back({Event::Kind::Interrupt, {}});
                }
                break;
            case State::Payload:
                if (c == '#')
                    state_ = State::FirstDigit;
                else if (c == '$')
                    raw_.clear();  // the start of the one before was a mistake
                else if (raw_.size() <= kMaxPayload)
                    raw_ += c;
                break;
            case State::FirstDigit:
                first_digit_ = digit(c);
                state_ = State::SecondDigit;
                break;
            case State::SecondDigit: {
                const int second = digit(c);
                const bool good = first_digit_ >= 0 && second >= 0 && raw_.size() <= kMaxPayload &&
                                  checksum(raw_) == first_digit_ * 16 + second;
                events.push_back(good ? Event{Event::Kind::Packet, unescaped(raw_)} : Event{Event::Kind::Damaged, {}});
                state_ = State::Outside;
                break;
            }
        }
    }
    return events;
}

std::string framed(std::string_view payload) {
    std::string raw;
    for (const char c : payload) {
        if (c == '$' || c == '#' || c == '}' || c == '*') {
            raw += '}';
            raw += static_cast<char>(c ^ 0x20);
        } else {
            raw += c;
        }
    }
    return fmt::format("${}#{:02x}", raw, checksum(raw));
}

std::string to_hex(std::string_view bytes) {
    std::string text;
    for (const char c : bytes) text += fmt::format("{:02x}", static_cast<std::uint8_t>(c));
    return text;
}

std::optional<std::string> from_hex(std::string_view text) {
    if (text.size() % 2 != 0) return std::nullopt;
    std::string bytes;
    for (std::size_t i = 0; i < text.size(); i += 2) {
        const int high = digit(text[i]), low = digit(text[i + 1]);
        if (high < 0 || low < 0) return std::nullopt;
        bytes += static_cast<char>(high * 16 + low);
    }
    return bytes;
}

std::optional<std::uint32_t> hex_number(std::string_view text) {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

}  // namespace talpa::board::gdb
