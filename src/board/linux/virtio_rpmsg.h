// Linux's virtio_rpmsg_bus over the board's memory: makes the rings, offers the receive buffers, hears the name
// service, moves messages. One object lives from start to stop. (imx93-remoteproc, sections 2.3 and 4)
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/core/byte_reader.h"
#include "board/linux/kernel_log.h"
#include "board/linux/platform.h"
#include "board/linux/resources.h"
#include "board/linux/tracer.h"
#include "link/memory_map.h"
#include "link/rpmsg.h"
#include "link/vring.h"

namespace talpa::board {

/// A channel that the firmware announced, bound to a driver of ours (the tty). Calls come from the mailbox's thread.
class RpmsgChannelDriver {
  public:
    virtual ~RpmsgChannelDriver() = default;
    virtual void received(std::uint32_t source, Bytes payload) = 0;
};

class VirtioRpmsg {
  public:
    /// A channel that the firmware announced: its name and address, and the local endpoint's address given to it.
    struct Channel {
        std::string name;
        std::uint32_t remote = 0, local = 0;

        /// Its device's name on the rpmsg bus, on virtioK.
        [[nodiscard]] std::string device(unsigned k) const { return fmt::format("virtio{}.{}.-1.{}", k, name, remote); }
    };
    /// Makes the driver of a channel; null: there is none for that name. The bus outlives the driver.
    using DriverFactory = std::function<std::unique_ptr<RpmsgChannelDriver>(VirtioRpmsg& bus, const Channel& channel)>;

    struct Config {
        VdevEntry vdev;
        std::uint8_t* table = nullptr;  ///< the table that the firmware watches, and its entry's offset is in `vdev`
        std::uint32_t buffers = link::kVringBuffers.base;  ///< DMA address of 512 buffers of 512 bytes
        unsigned index = 0;                                ///< K of virtioK
        Tracer* tracer = nullptr;
    };

    VirtioRpmsg(Config config, SystemMemory& memory, Mailbox& mailbox, KernelLog& log, DriverFactory factory);
    ~VirtioRpmsg();
    VirtioRpmsg(const VirtioRpmsg&) = delete;
    VirtioRpmsg& operator=(const VirtioRpmsg&) = delete;

    /// Resets the device, makes the rings, says DRIVER_OK. Negative errno on failure.
    [[nodiscard]] int probe();
    /// Frees the channels (their ttys hang up), then resets the status that the firmware watches. Waits for an
    /// interrupt that is being handled; afterwards nothing is sent or delivered any more.
    void remove();
    /// A word came from the M33, whatever its value: look at every ring.
    void interrupt();

    enum class SendResult { Sent, NoBuffer, TooLong, Gone };
    /// Sends one message without waiting for a buffer.
    [[nodiscard]] SendResult try_send(std::uint32_t local, std::uint32_t remote, Bytes payload);
    /// The same, waiting up to `timeout_ms` for a buffer.
    [[nodiscard]] SendResult send(std::uint32_t local, std::uint32_t remote, Bytes payload, unsigned timeout_ms);

    /// Channels announced and not destroyed.
    [[nodiscard]] std::vector<Channel> channels() const;

  private:
    struct Endpoint {
        Channel channel;
        std::shared_ptr<RpmsgChannelDriver> driver;
    };

    void set_status(std::uint8_t status);
    void drain_receive();
    void deliver(const link::RpmsgHeader& header, Bytes payload);
    void name_service(Bytes payload);
    void kick(std::uint32_t notify_id);
    void trace(const char* direction, std::uint32_t source, std::uint32_t destination, Bytes payload);

    static constexpr std::uint32_t kBuffersPerRing = 256;
    static constexpr std::uint32_t kFirstLocalAddress = 0x400;

    Config config_;
    SystemMemory& memory_;
    Mailbox& mailbox_;
    KernelLog& log_;
    DriverFactory factory_;

    std::mutex interrupt_mutex_;  ///< one interrupt at a time, so that messages keep their order
    mutable std::mutex mutex_;    ///< rings, endpoints; never held during a callback or a kick
    std::condition_variable buffer_free_;
    link::VringDriver receive_, transmit_;
    std::vector<std::uint16_t> free_transmit_;
    std::map<std::uint32_t, Endpoint> endpoints_;  ///< by local address
    std::uint32_t next_local_ = kFirstLocalAddress;
    bool gone_ = true;
};

}  // namespace talpa::board
