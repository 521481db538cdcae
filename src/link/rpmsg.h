// RPMsg messages, and the M33's end of the link: waits for the driver, announces its channels, moves messages. What the
// firmware runs on silicon is what the host tests run here. (imx93-remoteproc, sections 2.3, 3 and 4)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/core/byte_reader.h"
#include "link/memory_map.h"
#include "link/resource_table.h"
#include "link/vring.h"

namespace talpa::link {

inline constexpr std::size_t kRpmsgBufferBytes = 512;
inline constexpr std::size_t kRpmsgHeaderBytes = 16;
inline constexpr std::size_t kRpmsgMaxPayload = kRpmsgBufferBytes - kRpmsgHeaderBytes;
inline constexpr std::uint32_t kNameServiceAddress = 0x35;

struct RpmsgHeader {
    std::uint32_t source = 0, destination = 0;
    std::uint16_t length = 0;  ///< of the payload

    [[nodiscard]] static RpmsgHeader read(const std::uint8_t* p);
    void write(std::uint8_t* p) const;
};

/// A name service message: channel name (31 characters at most), address, create or destroy.
struct NameServiceMessage {
    static constexpr std::size_t kBytes = 40;
    std::string_view name;
    std::uint32_t address = 0;
    bool destroy = false;

    void write(std::uint8_t* p) const;
    /// From a payload; InvalidArgument unless it is 40 bytes with a terminated name ("malformed ns msg").
    [[nodiscard]] static Result<NameServiceMessage> read(Bytes payload);
};

/// A channel that the firmware announces.
struct Channel {
    std::string_view name;
    std::uint32_t address;
};

/// What the link needs of the chip. Addresses are system addresses.
class RpmsgPlatform {
  public:
    /// Memory of `size` bytes at `address`, or null if that is not memory of this link (buffers and rings only).
    [[nodiscard]] virtual std::uint8_t* memory(std::uint64_t address, std::size_t size) = 0;
    /// Tells Linux that a ring changed, unless an earlier notification is still unread.
    virtual void notify(std::uint32_t notify_id) = 0;
    /// Receives a message; `payload` is a copy that lives during the call. Returns how much of it was taken: the rest
    /// is handed over by the next `service`, and no other message before it.
    [[nodiscard]] virtual std::size_t received(const Channel& channel, std::uint32_t source, Bytes payload) = 0;
    /// A new link is up: peers, and what they said or were to be told, are those of an earlier one.
    virtual void link_is_new() = 0;

  protected:
    ~RpmsgPlatform() = default;
};

/// The M33's end of one RPMsg device.
class RpmsgDevice {
  public:
    /// `live_table`: the table that Linux updates (not the linked copy), which stays valid; `channels` likewise.
    RpmsgDevice(volatile FirmwareResourceTable* live_table, std::span<const Channel> channels, RpmsgPlatform& platform)
        : table_(live_table), channels_(channels), platform_(platform) {}

    /// Does what there is to do: brings the link up or down as the driver's status says, announces channels, hands
    /// every waiting message to the platform, until one is not taken wholly. Call it after each Messaging Unit
    /// interrupt and now and then without one: kicks can be lost.
    void service();

    /// Is the link up and every channel announced?
    [[nodiscard]] bool ready() const { return up_ && announced_ == channels_.size(); }

    /// Sends one message of at most kRpmsgMaxPayload bytes. False: the link is down or Linux has no free buffer; try
    /// again after the next `service`.
    [[nodiscard]] bool send(std::uint32_t source, std::uint32_t destination, Bytes payload);

  private:
    void bring_up();
    void announce();
    void receive();
    [[nodiscard]] bool hand_over();
    [[nodiscard]] std::uint8_t* buffer(const VringDescriptor& descriptor);

    volatile FirmwareResourceTable* table_;
    std::span<const Channel> channels_;
    RpmsgPlatform& platform_;
    VringDevice to_linux_, from_linux_;
    bool up_ = false;
    std::size_t announced_ = 0;
    /// The last message that was taken off the ring, of which [begin_, end_) is still to be handed over.
    std::array<std::uint8_t, kRpmsgMaxPayload> message_{};
    RpmsgHeader header_;
    std::size_t begin_ = 0, end_ = 0;
};

}  // namespace talpa::link
