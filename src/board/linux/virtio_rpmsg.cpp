#include "board/linux/virtio_rpmsg.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/host/error.h"

namespace talpa::board {

VirtioRpmsg::VirtioRpmsg(Config config, SystemMemory& memory, Mailbox& mailbox, KernelLog& log, DriverFactory factory)
    : config_(std::move(config)), memory_(memory), mailbox_(mailbox), log_(log), factory_(std::move(factory)) {}

VirtioRpmsg::~VirtioRpmsg() {
    remove();
}

void VirtioRpmsg::remove() {
    std::map<std::uint32_t, Endpoint> endpoints;
    {
        const std::lock_guard interrupts(interrupt_mutex_);
        const std::lock_guard lock(mutex_);
        if (gone_) return;
        gone_ = true;
        endpoints.swap(endpoints_);
    }
    buffer_free_.notify_all();
    endpoints.clear();
    set_status(0);
}

void VirtioRpmsg::set_status(std::uint8_t status) {
    __atomic_store_n(config_.table + config_.vdev.table_offset + offsetof(link::VdevResource, status), status,
                     __ATOMIC_RELEASE);
}

int VirtioRpmsg::probe() {
    set_status(0);
    set_status(link::kVirtioAcknowledge);
    set_status(link::kVirtioAcknowledge | link::kVirtioDriver);
    if (config_.vdev.vrings.size() != 2) {
        log_.line("virtio_rpmsg_bus virtio{}: probe failed: {} vrings", config_.index, config_.vdev.vrings.size());
        return -EINVAL;
    }
    store_le(config_.table + config_.vdev.table_offset + offsetof(link::VdevResource, gfeatures),
             config_.vdev.features & link::kRpmsgFeatureNameService);
    link::VringDriver* const rings[] = {&receive_, &transmit_};
    for (std::size_t i = 0; i < 2; ++i) {
        const VringEntry& entry = config_.vdev.vrings[i];
        const link::VringLayout layout{entry.num, entry.align};
        std::uint8_t* const ring = memory_.at(entry.da, layout.size_bytes());
        if (ring == nullptr) return -ENOMEM;
        *rings[i] = link::VringDriver(ring, layout);
        rings[i]->clear();
        store_le(config_.table + entry.table_offset, entry.da);
    }
    transmit_.suppress_interrupts(true);
    const std::uint32_t count = std::min(config_.vdev.vrings[0].num, kBuffersPerRing);
    for (std::uint32_t i = 0; i < count; ++i)
        receive_.offer(static_cast<std::uint16_t>(i), config_.buffers + i * link::kRpmsgBufferBytes,
                       link::kRpmsgBufferBytes, link::kDescWrite);
    free_transmit_.clear();
    for (std::uint32_t i = std::min(config_.vdev.vrings[1].num, kBuffersPerRing); i-- > 0;)
        free_transmit_.push_back(static_cast<std::uint16_t>(i));
    {
        const std::lock_guard lock(mutex_);
        gone_ = false;
    }
    set_status(link::kVirtioAcknowledge | link::kVirtioDriver | link::kVirtioDriverOk);
    kick(config_.vdev.vrings[0].notify_id);
    log_.line("virtio_rpmsg_bus virtio{}: rpmsg host is online", config_.index);
    return 0;
}

void VirtioRpmsg::kick(std::uint32_t notify_id) {
    if (!mailbox_.send(notify_id << 16))
        log_.line("imx-rproc remoteproc-cm33: imx_rproc_kick: failed ({}, err:{})", notify_id, -ETIME);
}

void VirtioRpmsg::interrupt() {
    const std::lock_guard one_at_a_time(interrupt_mutex_);
    drain_receive();
    bool freed = false;
    {
        const std::lock_guard lock(mutex_);
        if (gone_) return;
        while (const auto used = transmit_.take_used()) {
            if (used->id >= config_.vdev.vrings[1].num) continue;  // the firmware's mistake
            free_transmit_.push_back(static_cast<std::uint16_t>(used->id));
            freed = true;
        }
    }
    if (freed) buffer_free_.notify_all();
}

void VirtioRpmsg::drain_receive() {
    bool returned = false;
    for (;;) {
        link::RpmsgHeader header;
        std::vector<std::uint8_t> payload;
        bool deliverable = false;
        {
            const std::lock_guard lock(mutex_);
            if (gone_) return;
            const auto used = receive_.take_used();
            if (!used) break;
            if (used->id >= kBuffersPerRing) {
                log_.line("virtio_rpmsg_bus virtio{}: id {} out of range", config_.index, used->id);
                continue;
            }
            const std::uint32_t address =
                config_.buffers + used->id * static_cast<std::uint32_t>(link::kRpmsgBufferBytes);
            const std::uint8_t* const bytes = memory_.at(address, link::kRpmsgBufferBytes);
            if (bytes != nullptr && used->length >= link::kRpmsgHeaderBytes) {
                header = link::RpmsgHeader::read(bytes);
                if (used->length > link::kRpmsgBufferBytes || header.length > used->length - link::kRpmsgHeaderBytes) {
                    log_.line("rpmsg: inbound msg too big: ({}, {})", used->length, header.length);
                } else {
                    payload.assign(bytes + link::kRpmsgHeaderBytes, bytes + link::kRpmsgHeaderBytes + header.length);
                    deliverable = true;
                }
            }
            receive_.offer(static_cast<std::uint16_t>(used->id), address, link::kRpmsgBufferBytes, link::kDescWrite);
            returned = true;
        }
        if (deliverable) deliver(header, payload);
    }
    bool wanted = false;
    {
        const std::lock_guard lock(mutex_);
        wanted = !gone_ && receive_.kick_wanted();
    }
    if (returned && wanted) kick(config_.vdev.vrings[0].notify_id);
}

void VirtioRpmsg::trace(const char* direction, std::uint32_t source, std::uint32_t destination, Bytes payload) {
    if (config_.tracer == nullptr || !config_.tracer->wants(TraceSource::Rpmsg)) return;
    config_.tracer->line(TraceSource::Rpmsg, "{} 0x{:x} -> 0x{:x}, {} bytes {}", direction, source, destination,
                         payload.size(), show_bytes({reinterpret_cast<const char*>(payload.data()), payload.size()}));
}

void VirtioRpmsg::deliver(const link::RpmsgHeader& header, Bytes payload) {
    trace("M33 to Linux", header.source, header.destination, payload);
    if (header.destination == link::kNameServiceAddress) {
        name_service(payload);
        return;
    }
    std::shared_ptr<RpmsgChannelDriver> driver;
    {
        const std::lock_guard lock(mutex_);
        if (const auto found = endpoints_.find(header.destination); found != endpoints_.end())
            driver = found->second.driver;
    }
    if (driver == nullptr) {
        log_.line("virtio_rpmsg_bus virtio{}: msg received with no recipient", config_.index);
        return;
    }
    driver->received(header.source, payload);
}

void VirtioRpmsg::name_service(Bytes payload) {
    const auto message = link::NameServiceMessage::read(payload);
    if (!message) {
        log_.line("virtio_rpmsg_bus virtio{}: {}", config_.index, host::Error(message.error()).message);
        return;
    }
    const std::string name(message->name);
    std::uint32_t local = 0;
    Endpoint removed;
    {
        const std::lock_guard lock(mutex_);
        if (gone_) return;
        const auto same = std::find_if(endpoints_.begin(), endpoints_.end(), [&](const auto& e) {
            return e.second.channel.name == name && e.second.channel.remote == message->address;
        });
        if (message->destroy) {
            if (same != endpoints_.end()) {
                removed = std::move(same->second);
                endpoints_.erase(same);
            }
        } else if (same != endpoints_.end()) {
            log_.line("virtio_rpmsg_bus virtio{}: channel {}:ffffffff:{:x} already exist", config_.index, name,
                      message->address);
            return;
        } else {
            local = next_local_++;
            endpoints_[local] = {{name, message->address, local}, nullptr};
        }
    }
    log_.line("virtio_rpmsg_bus virtio{}: {} channel {} addr 0x{:x}", config_.index,
              message->destroy ? "destroying" : "creating", name, message->address);
    if (message->destroy) return;  // `removed` unbinds its driver here, outside the lock
    std::shared_ptr<RpmsgChannelDriver> driver = factory_(*this, {name, message->address, local});
    const std::lock_guard lock(mutex_);
    if (const auto found = endpoints_.find(local); found != endpoints_.end()) found->second.driver = std::move(driver);
}

VirtioRpmsg::SendResult VirtioRpmsg::try_send(std::uint32_t local, std::uint32_t remote, Bytes payload) {
    return send(local, remote, payload, 0);
}

VirtioRpmsg::SendResult VirtioRpmsg::send(std::uint32_t local, std::uint32_t remote, Bytes payload,
                                          unsigned timeout_ms) {
    if (payload.size() > link::kRpmsgMaxPayload) return SendResult::TooLong;
    bool wanted = false;
    {
        std::unique_lock lock(mutex_);
        // What the firmware has used already is taken back here too: it need not tell while interrupts are suppressed.
        const auto reclaim = [&] {
            while (const auto used = transmit_.take_used())
                if (used->id < config_.vdev.vrings[1].num)
                    free_transmit_.push_back(static_cast<std::uint16_t>(used->id));
            return gone_ || !free_transmit_.empty();
        };
        if (gone_) return SendResult::Gone;
        if (!reclaim()) {
            if (timeout_ms == 0) return SendResult::NoBuffer;
            transmit_.suppress_interrupts(false);
            const bool free = buffer_free_.wait_for(lock, std::chrono::milliseconds(timeout_ms), reclaim);
            if (gone_) return SendResult::Gone;
            transmit_.suppress_interrupts(true);
            if (!free) return SendResult::NoBuffer;
        }
        if (gone_) return SendResult::Gone;
        const std::uint16_t id = free_transmit_.back();
        const std::uint32_t address =
            config_.buffers + (kBuffersPerRing + id) * static_cast<std::uint32_t>(link::kRpmsgBufferBytes);
        std::uint8_t* const bytes = memory_.at(address, link::kRpmsgBufferBytes);
        if (bytes == nullptr) return SendResult::Gone;
        free_transmit_.pop_back();
        link::RpmsgHeader{local, remote, static_cast<std::uint16_t>(payload.size())}.write(bytes);
        std::memcpy(bytes + link::kRpmsgHeaderBytes, payload.data(), payload.size());
        transmit_.offer(id, address, static_cast<std::uint32_t>(link::kRpmsgHeaderBytes + payload.size()), 0);
        wanted = transmit_.kick_wanted();
    }
    trace("Linux to M33", local, remote, payload);
    if (wanted) kick(config_.vdev.vrings[1].notify_id);
    return SendResult::Sent;
}

std::vector<VirtioRpmsg::Channel> VirtioRpmsg::channels() const {
    const std::lock_guard lock(mutex_);
    std::vector<Channel> out;
    for (const auto& [local, endpoint] : endpoints_) out.push_back(endpoint.channel);
    return out;
}

}  // namespace talpa::board
