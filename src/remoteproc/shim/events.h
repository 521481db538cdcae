// Events to containerd: the shim is a ttrpc client of it, and containerd may be away for a while. In order, each until
// it is taken or has failed often enough. (remoteproc-runtime, section 11)
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "remoteproc/shim/loop.h"
#include "remoteproc/shim/ttrpc.h"

namespace talpa::remoteproc::shim {

class EventPublisher {
  public:
    /// `address`: containerd's ttrpc socket, from TTRPC_ADDRESS; empty: events go nowhere.
    EventPublisher(Loop& loop, std::string address, std::string namespace_name);

    void publish(std::string_view topic, std::string_view type, std::string_view event);
    [[nodiscard]] bool idle() const { return queue_.empty(); }

  private:
    struct Waiting {
        std::string request;
        std::string topic;
        int attempts = 0;
    };
    void send_next();
    bool connect();
    void lost(const std::string& why);
    void receive();
    void give_back(const std::string& why);

    Loop& loop_;
    std::string address_, namespace_;
    Fd socket_;
    FrameReader frames_;
    std::deque<Waiting> queue_;
    std::uint32_t next_stream_ = 1, awaited_ = 0;
    std::uint64_t attempt_ = 0;
    bool paused_ = false;
};

}  // namespace talpa::remoteproc::shim
