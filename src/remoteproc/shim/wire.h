// Protocol-buffer wire format, as little as the shim's messages need: varints, lengths and fixed fields, unknown fields
// skipped. Checked against protobuf itself in tests/remoteproc_shim_test.py. (remoteproc-runtime, sections 10 and 11)
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace talpa::remoteproc::shim {

/// Builds a message. Fields of the default value are left out, as proto3 does.
class WireWriter {
  public:
    void number(unsigned field, std::uint64_t value);
    void text(unsigned field, std::string_view value);
    /// A message or bytes that must appear even when empty.
    void message(unsigned field, std::string_view value);
    [[nodiscard]] const std::string& bytes() const { return out_; }

  private:
    void varint(std::uint64_t value);
    std::string out_;
};

/// Walks the fields of a message. `next` is false at its end and at the first malformed byte; `sound` tells which.
class WireReader {
  public:
    explicit WireReader(std::string_view bytes) : rest_(bytes) {}
    bool next();
    [[nodiscard]] bool sound() const { return sound_; }

    [[nodiscard]] unsigned field() const { return field_; }
    /// Value of a varint or fixed field; 0 for one with a length.
    [[nodiscard]] std::uint64_t number() const { return number_; }
    /// Bytes of a field with a length; empty for others.
    [[nodiscard]] std::string_view bytes() const { return bytes_; }

  private:
    bool varint(std::uint64_t& value);
    std::string_view rest_, bytes_;
    std::uint64_t number_ = 0;
    unsigned field_ = 0;
    bool sound_ = true;
};

/// The first field of that number with a length, and the last number of that field, for messages that are read once.
[[nodiscard]] std::string_view find_bytes(std::string_view message, unsigned field);
[[nodiscard]] std::uint64_t find_number(std::string_view message, unsigned field);
/// Whether all of `message` can be walked.
[[nodiscard]] bool is_sound(std::string_view message);

/// google.protobuf.Timestamp
[[nodiscard]] std::string timestamp(std::uint64_t unix_ns);
/// google.protobuf.Any, with a bare type name as containerd uses it.
[[nodiscard]] std::string any(std::string_view type, std::string_view value);

}  // namespace talpa::remoteproc::shim
