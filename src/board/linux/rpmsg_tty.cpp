#include "board/linux/rpmsg_tty.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace talpa::board {
namespace {

constexpr std::string_view kNxpChannels[] = {"rpmsg-virtual-tty-channel-1", "rpmsg-virtual-tty-channel",
                                             "rpmsg-openamp-demo-channel"};
constexpr std::size_t kNxpMessage = 256;
constexpr char kEnd = 'e', kUnread = 'u';   // why the pump is woken
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
    std::vector<std::pair<int, std::string>> out;
    for (const auto& [number, tty] : ttys_) out.emplace_back(number, tty.slave);
    return out;
}

int TtyRegistry::number_of(std::string_view device) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, tty] : ttys_)
        if (tty.device == device) return number;
    return -1;
}

int TtyRegistry::add(int wanted, const Tty& tty) {
    int number = wanted;
    {
        const std::lock_guard lock(mutex_);
        if (number < 0)
            for (number = 0; ttys_.contains(number);) ++number;
        else if (ttys_.contains(number))
            return -1;
        ttys_[number] = tty;
    }
    if (changed) changed(number, tty.slave, true);
    return number;
}

void TtyRegistry::remove(int number) {
    std::string slave;
    {
        const std::lock_guard lock(mutex_);
        slave = ttys_[number].slave;
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
    int packets = 1;  // so that a flush of the reader is told
    if (::ioctl(tty->master_, TIOCSPTLCK, &unlock) != 0 || ::ioctl(tty->master_, TIOCGPTN, &index) != 0 ||
        ::ioctl(tty->master_, TIOCPKT, &packets) != 0)
        return errno_error("cannot unlock a pseudo-terminal");
    // Opened through the master, so that it works whatever is mounted where.
    tty->slave_ = ::ioctl(tty->master_, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (tty->slave_ < 0) return errno_error("cannot open a pseudo-terminal's slave");
    const termios settings = initial_settings(tty->config_.flavour);
    if (::tcsetattr(tty->slave_, TCSANOW, &settings) != 0) return errno_error("cannot set up a pseudo-terminal");
    if (::pipe2(tty->wake_, O_CLOEXEC) != 0) return errno_error("cannot make a pipe");

    const std::string folder = tty->config_.slave_folder.empty() ? "/dev/pts" : tty->config_.slave_folder;
    const int wanted = tty->config_.flavour == TtyFlavour::Nxp ? static_cast<int>(channel.remote) : -1;
    tty->number_ = registry.add(wanted, {folder + "/" + std::to_string(index), tty->config_.device});
    if (tty->number_ < 0) return host::failure(ErrorCode::InvalidState, "ttyRPMSG{} exists already", wanted);
    tty->pump_ = std::thread([raw = tty.get()] { raw->pump(); });
    return tty;
}

RpmsgTty::~RpmsgTty() {
    if (pump_.joinable()) {
        wake(kEnd);
        pump_.join();
    }
    if (number_ >= 0) registry_.remove(number_);
    for (const int fd : {slave_, master_, wake_[0], wake_[1]})
        if (fd >= 0) ::close(fd);
}

void RpmsgTty::wake(char why) {
    (void)!::write(wake_[1], &why, 1);
}

// What the firmware sends goes to whoever reads. When nobody does and the tty's buffers are full, it is lost, as on the
// board.
void RpmsgTty::received(std::uint32_t, Bytes payload) {
    const std::lock_guard lock(unread_mutex_);
    const bool waited = !unread_.empty();
    const std::size_t room = kUnreadBytes - unread_.size();
    if (payload.size() > room && !truncating_ && config_.log != nullptr)
        config_.log->line("rpmsg_tty: Trunc buffer: available space is {}", room);
    truncating_ = payload.size() > room;
    unread_.append(reinterpret_cast<const char*>(payload.data()), std::min(payload.size(), room));
    if (waited) return;  // the pump waits until it can be written
    write_unread();
    if (!unread_.empty()) wake(kUnread);
}

/// With the lock held.
void RpmsgTty::write_unread() {
    std::size_t written = 0;
    while (written < unread_.size()) {
        const ssize_t n = ::write(master_, unread_.data() + written, unread_.size() - written);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        written += static_cast<std::size_t>(n);
    }
    unread_.erase(0, written);
}

bool RpmsgTty::forward(std::span<std::uint8_t> buffer) {
    const ssize_t n = ::read(master_, buffer.data(), buffer.size());
    if (n <= 0) return true;
    if (buffer[0] != TIOCPKT_DATA) {
        const std::lock_guard lock(unread_mutex_);
        if ((buffer[0] & TIOCPKT_FLUSHREAD) != 0) unread_.clear();
        return true;
    }
    if (n == 1) return true;
    return bus_.send(channel_.local, channel_.remote, buffer.subspan(1, static_cast<std::size_t>(n - 1)),
                     kSendTimeoutMs) != VirtioRpmsg::SendResult::Gone;
}

void RpmsgTty::pump() {
    if (config_.flavour == TtyFlavour::Nxp) {
        static constexpr std::string_view kGreeting = "hello world!";
        (void)bus_.send(channel_.local, channel_.remote,
                        Bytes(reinterpret_cast<const std::uint8_t*>(kGreeting.data()), kGreeting.size()),
                        kSendTimeoutMs);
    }
    std::array<std::uint8_t, 1 + link::kRpmsgMaxPayload> buffer{};  // a packet begins with its kind
    const std::size_t most = config_.flavour == TtyFlavour::Nxp ? 1 + kNxpMessage : buffer.size();
    for (;;) {
        short wanted = POLLIN | POLLPRI;
        {
            const std::lock_guard lock(unread_mutex_);
            if (!unread_.empty()) wanted |= POLLOUT;
        }
        pollfd fds[] = {{master_, wanted, 0}, {wake_[0], POLLIN, 0}};
        if (::poll(fds, 2, -1) < 0 && errno != EINTR) return;
        char why = kUnread;
        if (fds[1].revents != 0 && (::read(wake_[0], &why, 1) != 1 || why == kEnd)) return;
        // News of a flush come first: they are about what would be written.
        if ((fds[0].revents & (POLLIN | POLLPRI)) != 0) {
            if (!forward(std::span(buffer).first(most))) return;
        } else if ((fds[0].revents & POLLOUT) != 0) {
            const std::lock_guard lock(unread_mutex_);
            write_unread();
        }
    }
}

}  // namespace talpa::board
