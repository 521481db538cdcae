#include "remoteproc/shim/wire.h"

namespace talpa::remoteproc::shim {
namespace {

constexpr unsigned kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5;

}  // namespace

void WireWriter::varint(std::uint64_t value) {
    while (value >= 0x80) {
        out_ += static_cast<char>(value | 0x80);
        value >>= 7;
    }
    out_ += static_cast<char>(value);
}

void WireWriter::number(unsigned field, std::uint64_t value) {
    if (value == 0) return;
    varint(std::uint64_t{field} << 3 | kVarint);
    varint(value);
}

void WireWriter::text(unsigned field, std::string_view value) {
    if (!value.empty()) message(field, value);
}

void WireWriter::message(unsigned field, std::string_view value) {
    varint(std::uint64_t{field} << 3 | kLength);
    varint(value.size());
    out_ += value;
}

bool WireReader::varint(std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (rest_.empty()) return false;
        const auto byte = static_cast<unsigned char>(rest_.front());
        rest_.remove_prefix(1);
        if (shift == 63 && byte > 1) return false;
        value |= std::uint64_t{byte & 0x7Fu} << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

bool WireReader::next() {
    if (rest_.empty() || !sound_) return false;
    std::uint64_t key = 0, length = 0;
    number_ = 0;
    bytes_ = {};
    sound_ = varint(key) && key >> 3 != 0 && key >> 3 < (1u << 29);
    if (!sound_) return false;
    field_ = static_cast<unsigned>(key >> 3);
    switch (key & 7) {
        case kVarint:
            sound_ = varint(number_);
            break;
        case kFixed64:
        case kFixed32: {
            const std::size_t size = (key & 7) == kFixed64 ? 8 : 4;
            sound_ = rest_.size() >= size;
            if (!sound_) break;
            for (std::size_t i = size; i-- > 0;) number_ = number_ << 8 | static_cast<unsigned char>(rest_[i]);
            rest_.remove_prefix(size);
            break;
        }
        case kLength:
            sound_ = varint(length) && length <= rest_.size();
            if (!sound_) break;
            bytes_ = rest_.substr(0, static_cast<std::size_t>(length));
            rest_.remove_prefix(static_cast<std::size_t>(length));
            break;
        default:
            sound_ = false;  // groups, which nobody sends any more
    }
    return sound_;
}

std::string_view find_bytes(std::string_view message, unsigned field) {
    std::string_view found;
    for (WireReader reader(message); reader.next();)
        if (reader.field() == field) found = reader.bytes();
    return found;
}

std::uint64_t find_number(std::string_view message, unsigned field) {
    std::uint64_t found = 0;
    for (WireReader reader(message); reader.next();)
        if (reader.field() == field) found = reader.number();
    return found;
}

bool is_sound(std::string_view message) {
    WireReader reader(message);
    while (reader.next()) {
    }
    return reader.sound();
}

std::string timestamp(std::uint64_t unix_ns) {
    WireWriter w;
    w.number(1, unix_ns / 1'000'000'000u);
    w.number(2, unix_ns % 1'000'000'000u);
    return w.bytes();
}

std::string any(std::string_view type, std::string_view value) {
    WireWriter w;
    w.text(1, type);
    w.text(2, value);
    return w.bytes();
}

}  // namespace talpa::remoteproc::shim
