// ttrpc: frames on a stream socket, and the messages that every call is wrapped in. No sockets here: bytes in, bytes
// out. (remoteproc-runtime, section 10)
#pragma once

#include <cstdint>
#include <deque>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

namespace talpa::remoteproc::shim {

inline constexpr std::size_t kFrameHeader = 10;
inline constexpr std::uint32_t kMaxPayload = 4194304;

/// Numbers of google.rpc.Code that are used.
enum class Code : std::uint32_t {
    Ok = 0,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Unimplemented = 12,
    Unavailable = 14,
};

enum class FrameType : std::uint8_t { Request = 1, Response = 2, Data = 3 };

struct Frame {
    std::uint32_t stream = 0;
    std::uint8_t type = 0, flags = 0;
    bool too_long = false;  ///< its payload was discarded
    std::string payload;
};

/// Cuts a byte stream into frames. Payloads over the limit are skipped without being kept.
class FrameReader {
  public:
    void feed(std::string_view bytes);
    [[nodiscard]] std::optional<Frame> next();

  private:
    std::string buffer_;
    std::uint32_t skip_ = 0;
};

[[nodiscard]] std::string frame(std::uint32_t stream, FrameType type, std::string_view payload);

struct Request {
    std::string service, method, payload;
    std::int64_t timeout_ns = 0;
};
/// Nothing if the bytes are no sound message.
[[nodiscard]] std::optional<Request> parse_request(std::string_view bytes);
[[nodiscard]] std::string request_bytes(const Request& request, std::string_view namespace_name);

struct Status {
    Code code = Code::Ok;
    std::string message;
};
/// A reply: its message's bytes, or a status.
using Reply = std::expected<std::string, Status>;
[[nodiscard]] std::string response_bytes(const Reply& reply);
[[nodiscard]] std::optional<Reply> parse_response(std::string_view bytes);

}  // namespace talpa::remoteproc::shim
