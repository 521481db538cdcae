#include "link/rpmsg.h"

#include <algorithm>

namespace talpa::link {
namespace {

// The buffers may be Device memory: byte by byte, whatever the alignment, and never a library copy.
void copy_out(std::uint8_t* to, const volatile std::uint8_t* from, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) to[i] = from[i];
}
void copy_in(volatile std::uint8_t* to, const std::uint8_t* from, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) to[i] = from[i];
}

}  // namespace

RpmsgHeader RpmsgHeader::read(const std::uint8_t* p) {
    return {load_le<std::uint32_t>(p), load_le<std::uint32_t>(p + 4), load_le<std::uint16_t>(p + 12)};
}

void RpmsgHeader::write(std::uint8_t* p) const {
    store_le(p, source);
    store_le(p + 4, destination);
    store_le(p + 8, std::uint32_t{0});
    store_le(p + 12, length);
    store_le(p + 14, std::uint16_t{0});
}

void NameServiceMessage::write(std::uint8_t* p) const {
    for (std::size_t i = 0; i < 32; ++i) p[i] = i < name.size() && i < 31 ? static_cast<std::uint8_t>(name[i]) : 0;
    store_le(p + 32, address);
    store_le(p + 36, std::uint32_t{destroy ? 1u : 0u});
}

Result<NameServiceMessage> NameServiceMessage::read(Bytes payload) {
    if (payload.size() != kBytes) return fail(ErrorCode::InvalidArgument, "malformed ns msg ({})", payload.size());
    const auto end = std::find(payload.begin(), payload.begin() + 32, 0);
    if (end == payload.begin() + 32)
        return fail(ErrorCode::InvalidArgument, "malformed ns msg: the name is not terminated");
    return NameServiceMessage{
        {reinterpret_cast<const char*>(payload.data()), static_cast<std::size_t>(end - payload.begin())},
        load_le<std::uint32_t>(&payload[32]),
        (load_le<std::uint32_t>(&payload[36]) & 1) != 0};
}

void RpmsgDevice::service() {
    const bool driver_ok = (table_->vdev.status & kVirtioDriverOk) != 0;
    if (!driver_ok) {
        up_ = false;
        return;
    }
    if (up_ && (to_linux_.reset_by_driver() || from_linux_.reset_by_driver())) up_ = false;
    if (!up_) bring_up();
    if (!up_) return;
    announce();
    receive();
}

void RpmsgDevice::bring_up() {
    // Linux has zeroed the rings and written their addresses before it set DRIVER_OK; all state of an earlier link is
    // void.
    VringDevice* const rings[] = {&to_linux_, &from_linux_};
    for (std::size_t i = 0; i < 2; ++i) {
        const VringLayout layout{table_->vring[i].num, table_->vring[i].align};
        if (!layout.valid()) return;
        std::uint8_t* const memory = platform_.memory(table_->vring[i].da, layout.size_bytes());
        if (memory == nullptr) return;
        *rings[i] = VringDevice(memory, layout);
    }
    // Linux needs not tell us about every receive buffer that it returns: a lost kick there only costs it 100 ms.
    to_linux_.suppress_kicks();
    announced_ = 0;
    begin_ = end_ = 0;
    up_ = true;
    platform_.link_is_new();
}

void RpmsgDevice::announce() {
    while (announced_ < channels_.size()) {
        const Channel& channel = channels_[announced_];
        std::array<std::uint8_t, NameServiceMessage::kBytes> payload{};
        NameServiceMessage{channel.name, channel.address, false}.write(payload.data());
        if (!send(channel.address, kNameServiceAddress, payload)) return;  // no buffer yet: the next service goes on
        ++announced_;
    }
}

std::uint8_t* RpmsgDevice::buffer(const VringDescriptor& d) {
    if (d.length < kRpmsgHeaderBytes || d.length > kRpmsgBufferBytes) return nullptr;
    return platform_.memory(d.address, d.length);
}

/// False when the platform does not take all of the last message.
bool RpmsgDevice::hand_over() {
    for (const Channel& channel : channels_) {
        if (begin_ == end_) break;
        if (channel.address != header_.destination) continue;
        begin_ += platform_.received(channel, header_.source, {message_.data() + begin_, end_ - begin_});
        return begin_ == end_;
    }
    begin_ = end_;  // to an address that was never announced
    return true;
}

// What the platform cannot take stays on the ring. When that is full it is Linux that waits, and no message is lost.
void RpmsgDevice::receive() {
    bool returned = false;
    while (hand_over()) {
        const auto descriptor = from_linux_.pop();
        if (!descriptor) break;
        const std::uint8_t* const bytes = buffer(*descriptor);
        if (bytes != nullptr) {
            std::array<std::uint8_t, kRpmsgHeaderBytes> head{};
            copy_out(head.data(), bytes, head.size());
            header_ = RpmsgHeader::read(head.data());
            begin_ = 0;
            end_ = std::min<std::size_t>(header_.length, descriptor->length - kRpmsgHeaderBytes);
            copy_out(message_.data(), bytes + kRpmsgHeaderBytes, end_);
        }
        // Given back before it is handled: the buffer is no longer needed.
        from_linux_.push_used(descriptor->id, descriptor->length);
        returned = true;
    }
    if (returned && from_linux_.notify_wanted()) platform_.notify(table_->vring[1].notifyid);
}

bool RpmsgDevice::send(std::uint32_t source, std::uint32_t destination, Bytes payload) {
    if (!up_ || payload.size() > kRpmsgMaxPayload) return false;
    while (const auto descriptor = to_linux_.pop()) {
        std::uint8_t* const bytes = buffer(*descriptor);
        if (bytes == nullptr || descriptor->length < kRpmsgHeaderBytes + payload.size()) {
            to_linux_.push_used(descriptor->id, 0);  // not usable for this; Linux gets it back empty
            continue;
        }
        std::array<std::uint8_t, kRpmsgHeaderBytes> head{};
        RpmsgHeader{source, destination, static_cast<std::uint16_t>(payload.size())}.write(head.data());
        copy_in(bytes, head.data(), head.size());
        copy_in(bytes + kRpmsgHeaderBytes, payload.data(), payload.size());
        to_linux_.push_used(descriptor->id, static_cast<std::uint32_t>(kRpmsgHeaderBytes + payload.size()));
        if (to_linux_.notify_wanted()) platform_.notify(table_->vring[0].notifyid);
        return true;
    }
    return false;
}

}  // namespace talpa::link
