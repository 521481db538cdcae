#include "remoteproc/shim/ttrpc.h"

#include "remoteproc/shim/wire.h"

namespace talpa::remoteproc::shim {
namespace {

std::uint32_t big_endian(std::string_view bytes) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return value;
}

void put_big_endian(std::string& out, std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
}

}  // namespace

void FrameReader::feed(std::string_view bytes) {
    if (skip_ > 0) {
        const std::size_t skipped = std::min<std::size_t>(skip_, bytes.size());
        skip_ -= static_cast<std::uint32_t>(skipped);
        bytes.remove_prefix(skipped);
    }
    buffer_ += bytes;
}

std::optional<Frame> FrameReader::next() {
    if (skip_ > 0 || buffer_.size() < kFrameHeader) return std::nullopt;
    const std::uint32_t length = big_endian(buffer_);
    Frame f;
    f.stream = big_endian(std::string_view(buffer_).substr(4));
    f.type = static_cast<std::uint8_t>(buffer_[8]);
    f.flags = static_cast<std::uint8_t>(buffer_[9]);
    if (length > kMaxPayload) {
        f.too_long = true;
        const std::size_t here = std::min<std::size_t>(buffer_.size() - kFrameHeader, length);
        buffer_.erase(0, kFrameHeader + here);
        skip_ = length - static_cast<std::uint32_t>(here);
        return f;
    }
    if (buffer_.size() < kFrameHeader + length) return std::nullopt;
    f.payload = buffer_.substr(kFrameHeader, length);
    buffer_.erase(0, kFrameHeader + length);
    if (buffer_.empty()) buffer_.shrink_to_fit();
    return f;
}

std::string frame(std::uint32_t stream, FrameType type, std::string_view payload) {
    std::string out;
    out.reserve(kFrameHeader + payload.size());
    put_big_endian(out, static_cast<std::uint32_t>(payload.size()));
    put_big_endian(out, stream);
    out += static_cast<char>(type);
    out += '\0';
    out += payload;
    return out;
}

std::optional<Request> parse_request(std::string_view bytes) {
    Request r;
    WireReader reader(bytes);
    while (reader.next()) {
        switch (reader.field()) {
            case 1:
                r.service = reader.bytes();
                break;
            case 2:
                r.method = reader.bytes();
                break;
            case 3:
                r.payload = reader.bytes();
                break;
            case 4:
                r.timeout_ns = static_cast<std::int64_t>(reader.number());
                break;
            default:
                break;  // metadata
        }
    }
    if (!reader.sound()) return std::nullopt;
    return r;
}

std::string request_bytes(const Request& request, std::string_view namespace_name) {
    WireWriter metadata;
    metadata.text(1, "containerd-namespace-ttrpc");
    metadata.text(2, namespace_name);
    WireWriter w;
    w.text(1, request.service);
    w.text(2, request.method);
    w.text(3, request.payload);
    w.number(4, static_cast<std::uint64_t>(request.timeout_ns));
    w.message(5, metadata.bytes());
    return w.bytes();
}

std::string response_bytes(const Reply& reply) {
    WireWriter w;
    if (reply) {
        w.text(2, *reply);
        return w.bytes();
    }
    WireWriter status;
    status.number(1, static_cast<std::uint64_t>(reply.error().code));
    status.text(2, reply.error().message);
    w.message(1, status.bytes());
    return w.bytes();
}

std::optional<Reply> parse_response(std::string_view bytes) {
    WireReader reader(bytes);
    std::string payload;
    Status status;
    while (reader.next()) {
        if (reader.field() == 1) {
            if (!is_sound(reader.bytes())) return std::nullopt;
            status.code = static_cast<Code>(find_number(reader.bytes(), 1));
            status.message = find_bytes(reader.bytes(), 2);
        } else if (reader.field() == 2) {
            payload = reader.bytes();
        }
    }
    if (!reader.sound()) return std::nullopt;
    if (status.code != Code::Ok) return Reply(std::unexpected(status));
    return Reply(payload);
}

}  // namespace talpa::remoteproc::shim
