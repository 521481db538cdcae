#include "board/linux/rpmsg_tty.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace talpa::board {
namespace {

constexpr std::string_view kNxpChannels[] = {"rpmsg-virtual-tty-channel-1", "rpmsg-virtual-tty-channel",
                                             "rpmsg-openamp-demo-channel"};
constexpr std::size_t kNxpMessage = 256;
constexpr unsigned kSendTimeoutMs = 15000;  // rpmsg_send's own limit

/// The standard settings of a new tty, less what mainline's rpmsg_tty takes away.
termios initial_settings(TtyFlavour flavour) {
    termios t{};
    t.c_iflag = ICRNL | IXON;
    t.c_oflag = OPOST | ONLCR;
    t.c_cflag = CS8 | CREAD | HUPCL | B38400;
    t.c_lflag = ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN;
    t.c_cc[VINTR] = 3;
    t.c_cc[VQUIT] = 28;
    t.c_cc[VERASE] = 127;
    t.c_cc[VKILL] = 21;
    t.c_cc[VEOF] = 4;
    t.c_cc[VMIN] = 1;
    t.c_cc[VSTART] = 17;
    t.c_cc[VSTOP] = 19;
    t.c_cc[VSUSP] = 26;
    t.c_cc[VREPRINT] = 18;
    t.c_cc[VDISCARD] = 15;
    t.c_cc[VWERASE] = 23;
    t.c_cc[VLNEXT] = 22;
    if (flavour == TtyFlavour::Mainline) {
        t.c_lflag &= static_cast<tcflag_t>(~(ECHO | ICANON));
        t.c_oflag &= static_cast<tcflag_t>(~(OPOST | ONLCR));
    }
    return t;
}

std::unexpected<host::Error> errno_error(const char* doing) {
    return host::failure(ErrorCode::AccessFailed, "{}: {}", doing, std::strerror(errno));
}

}  // namespace

bool tty_serves(TtyFlavour flavour, std::string_view name) {
    if (flavour == TtyFlavour::Mainline) return name == "rpmsg-tty";
    for (const auto known : kNxpChannels)
        if (name == known) return true;
    return false;
}

std::vector<std::pair<int, std::string>> TtyRegistry::ttys() const {
    const std::lock_guard lock(mutex_);
    return {ttys_.begin(), ttys_.end()};
}

int TtyRegistry::add(int wanted, const std::string& slave) {
    int number = wanted;
    {
        const std::lock_guard lock(mutex_);
        if (number < 0)
            for (number = 0; ttys_.contains(number);) ++number;
        else if (ttys_.contains(number))
            return -1;
        ttys_[number] = slave;
    }
    if (changed) changed(number, slave, true);
    return number;
}

void TtyRegistry::remove(int number) {
    std::string slave;
    {
        const std::lock_guard lock(mutex_);
        slave = ttys_[number];
        ttys_.erase(number);
    }
    if (changed) changed(number, slave, false);
}

RpmsgTty::RpmsgTty(VirtioRpmsg& bus, VirtioRpmsg::Channel channel, Config config, TtyRegistry& registry)
    : bus_(bus), channel_(std::move(channel)), config_(std::move(config)), registry_(registry) {}

host::Result<std::unique_ptr<RpmsgTty>> RpmsgTty::create(VirtioRpmsg& bus, const VirtioRpmsg::Channel& channel,
                                                         Config config, TtyRegistry& registry) {
    std::unique_ptr<RpmsgTty> tty(new RpmsgTty(bus, channel, std::move(config), registry));
    tty->master_ = ::open(tty->config_.ptmx.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (tty->master_ < 0) return errno_error("cannot make a pseudo-terminal");
    int unlock = 0, index = 0;
    if (::ioctl(tty->master_, TIOCSPTLCK, &unlock) != 0 || ::ioctl(tty->master_, TIOCGPTN, &index) != 0)
        return errno_error("cannot unlock a pseudo-terminal");
    // Opened through the master, so that it works whatever is mounted where.
    tty->slave_ = ::ioctl(tty->master_, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (tty->slave_ < 0) return errno_error("cannot open a pseudo-terminal's slave");
    const termios settings = initial_settings(tty->config_.flavour);
    if (::tcsetattr(tty->slave_, TCSANOW, &settings) != 0) return errno_error("cannot set up a pseudo-terminal");
    if (::pipe2(tty->wake_, O_CLOEXEC) != 0) return errno_error("cannot make a pipe");

    const std::string folder = tty->config_.slave_folder.empty() ? "/dev/pts" : tty->config_.slave_folder;
    const int wanted = tty->config_.flavour == TtyFlavour::Nxp ? static_cast<int>(channel.remote) : -1;
    tty->number_ = registry.add(wanted, folder + "/" + std::to_string(index));
    if (tty->number_ < 0) return host::failure(ErrorCode::InvalidState, "ttyRPMSG{} exists already", wanted);
    tty->pump_ = std::thread([raw = tty.get()] { raw->pump(); });
    return tty;
}

RpmsgTty::~RpmsgTty() {
    if (pump_.joinable()) {
        (void)!::write(wake_[1], "", 1);
        pump_.join();
    }
    if (number_ >= 0) registry_.remove(number_);
    for (const int fd : {slave_, master_, wake_[0], wake_[1]})
        if (fd >= 0) ::close(fd);
}

// What the firmware sends goes to whoever reads. When nobody does and the line discipline is full, it is lost, as on
// the board.
void RpmsgTty::received(std::uint32_t, Bytes payload) {
    while (!payload.empty()) {
        const ssize_t n = ::write(master_, payload.data(), payload.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return;
        payload = payload.subspan(static_cast<std::size_t>(n));
    }
}

void RpmsgTty::pump() {
    if (config_.flavour == TtyFlavour::Nxp) {
        static constexpr std::string_view kGreeting = "hello world!";
        (void)bus_.send(channel_.local, channel_.remote,
                        Bytes(reinterpret_cast<const std::uint8_t*>(kGreeting.data()), kGreeting.size()),
                        kSendTimeoutMs);
    }
    std::array<std::uint8_t, link::kRpmsgMaxPayload> buffer{};
    const std::size_t most = config_.flavour == TtyFlavour::Nxp ? kNxpMessage : buffer.size();
    for (;;) {
        pollfd fds[] = {{master_, POLLIN, 0}, {wake_[0], POLLIN, 0}};
        if (::poll(fds, 2, -1) < 0 && errno != EINTR) return;
        if (fds[1].revents != 0) return;
        if ((fds[0].revents & POLLIN) == 0) continue;
        const ssize_t n = ::read(master_, buffer.data(), most);
        if (n <= 0) continue;
        if (bus_.send(channel_.local, channel_.remote, Bytes(buffer.data(), static_cast<std::size_t>(n)),
                      kSendTimeoutMs) == VirtioRpmsg::SendResult::Gone)
            return;
    }
}

}  // namespace talpa::board
