// /dev/ttyRPMSGn: a pseudo-terminal whose master side is an RPMsg channel. Its slave behaves like the board's tty,
// since it has the same line discipline; initial settings, message sizes and node numbers are those of the two drivers
// in the field. A pseudo-terminal holds 8 KiB that nobody reads, the buffers of the board's tty 640 KiB: what does not
// fit waits here. (imx93-remoteproc, sections 4.2 and 13)
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/host/error.h"
#include "board/linux/virtio_rpmsg.h"

namespace talpa::board {

enum class TtyFlavour : std::uint8_t {
    Mainline,  ///< rpmsg_tty: channel "rpmsg-tty", the lowest free number, no echo, 496 bytes a message
    Nxp,  ///< imx_rpmsg_tty: the vendor's channel names, number = remote address, echo, 256 bytes, greets with "hello
          ///< world!"
};

/// Is there a driver of this flavour for a channel of this name?
[[nodiscard]] bool tty_serves(TtyFlavour flavour, std::string_view channel_name);

/// The ttys that exist now, by number, where their slaves are and whose they are. `changed` is called (without a lock)
/// when one comes or goes: that is where the board makes and removes the links /dev/ttyRPMSGn.
class TtyRegistry {
  public:
    std::function<void(int number, const std::string& slave, bool present)> changed;

    [[nodiscard]] std::vector<std::pair<int, std::string>> ttys() const;
    /// The number of the tty that a device of the rpmsg bus has; -1: none.
    [[nodiscard]] int number_of(std::string_view device) const;

  private:
    friend class RpmsgTty;
    struct Tty {
        std::string slave, device;
    };
    int add(int wanted, const Tty& tty);
    void remove(int number);

    mutable std::mutex mutex_;
    std::map<int, Tty> ttys_;
};

class RpmsgTty final : public RpmsgChannelDriver {
  public:
    struct Config {
        TtyFlavour flavour = TtyFlavour::Mainline;
        std::string ptmx = "/dev/ptmx";  ///< of the devpts in which the slave shall appear
        std::string
            slave_folder;  ///< where that devpts is mounted for the registry's readers; empty: as the kernel says
        KernelLog* log = nullptr;
        std::string device = {};  ///< on the rpmsg bus
    };
    /// TTYB_DEFAULT_MEM_LIMIT: what a tty's buffers hold for a reader that does not read.
    static constexpr std::size_t kUnreadBytes = 640 * 1024;

    [[nodiscard]] static host::Result<std::unique_ptr<RpmsgTty>> create(VirtioRpmsg& bus,
                                                                        const VirtioRpmsg::Channel& channel,
                                                                        Config config, TtyRegistry& registry);
    ~RpmsgTty() override;

    void received(std::uint32_t source, Bytes payload) override;

  private:
    RpmsgTty(VirtioRpmsg& bus, VirtioRpmsg::Channel channel, Config config, TtyRegistry& registry);
    void pump();
    /// One read of what the user wrote, or the news that he threw away what he had not read.
    [[nodiscard]] bool forward(std::span<std::uint8_t> buffer);
    void write_unread();
    void wake(char why);

    VirtioRpmsg& bus_;
    VirtioRpmsg::Channel channel_;
    Config config_;
    TtyRegistry& registry_;
    int master_ = -1;
    int slave_ = -1;  ///< kept open, so that settings last and the last close of a user is no hang-up
    int wake_[2] = {-1, -1};
    int number_ = -1;
    std::mutex unread_mutex_;
    std::string unread_;       ///< what the pseudo-terminal did not take yet
    bool truncating_ = false;  ///< told once a time, as the kernel limits the rate of that line
    std::thread pump_;
};

}  // namespace talpa::board
