#include "link/host/board_access.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <termios.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <set>

#include <fmt/ranges.h>

#include "base/host/file.h"
#include "base/host/printable.h"

namespace talpa::link::host {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTtyPrefix = "ttyRPMSG";
const std::string kFolderPrefix = "remoteproc";
constexpr std::size_t kTraceLines = 12;
constexpr std::uint64_t kSmallFile = 64 << 10;

std::string one_line(const fs::path& path) {
    auto text = talpa::host::read_text(path, kSmallFile);
    if (!text) return {};
    while (!text->empty() && (text->back() == '\n' || text->back() == '\0')) text->pop_back();
    return *std::move(text);
}

/// Raw: the runner's lines come as they are, and nothing is echoed to it. (section 4.2)
bool make_raw(int fd) {
    termios settings{};
    if (::tcgetattr(fd, &settings) != 0) return false;
    ::cfmakeraw(&settings);
    settings.c_cflag |= CLOCAL | CREAD;
    settings.c_cc[VMIN] = 1;
    settings.c_cc[VTIME] = 0;
    return ::tcsetattr(fd, TCSANOW, &settings) == 0;
}

class DirectAccess final : public BoardAccess {
  public:
    explicit DirectAccess(BoardPaths paths) : paths_(std::move(paths)) {}

    BoardResult<Fd> open_memory() override {
        const std::string device = paths_.memory.empty() ? paths_.memory_of(find().folder) : paths_.memory;
        const fs::path path = paths_.under(device);
        // O_SYNC as every program in the field opens it; for memory that the kernel does not map it changes nothing.
        Fd fd(::open(path.c_str(), O_RDWR | O_SYNC | O_CLOEXEC));
        if (fd) return fd;
        const int error = errno;
        auto failed = board_failure(error == ENOENT ? BoardFault::MemoryMissing : BoardFault::MemoryDenied,
                                    "cannot open {}: {}", path.string(), std::strerror(error));
        failed.error().error.hint =
            error == ENOENT
                ? "in a container: is /dev bound (-v /dev:/dev)? on the board: CONFIG_DEVMEM=y"
                : "it wants root with CAP_SYS_RAWIO: run as root, in a container with --privileged. If it is "
                  "so already: add iomem=relaxed to the kernel's command line (cat /proc/cmdline)";
        return failed;
    }

    BoardResult<OpenedTty> open_tty() override {
        std::vector<std::string> candidates;
        std::string folder;
        bool others = false;  ///< are all that there are another processor's?
        if (!paths_.tty.empty()) {
            candidates.push_back(paths_.tty);
        } else {
            folder = find().folder;
            const RpmsgTtys known = rpmsg_ttys_of(paths_.under(paths_.rpmsg_devices), folder);
            for (const unsigned number : rpmsg_tty_numbers(paths_.under("/dev"))) {
                const std::string name = fmt::format("{}{}", kTtyPrefix, number);
                const auto in = [&](const std::vector<std::string>& names) {
                    return std::find(names.begin(), names.end(), name) != names.end();
                };
                if (known.own.empty() ? !in(known.others) : in(known.own))
                    candidates.push_back("/dev/" + name);
                else
                    others = true;
            }
        }
        if (std::error_code error; !paths_.tty.empty() && !fs::exists(paths_.under(paths_.tty), error)) {
            std::string there;
            for (const unsigned number : rpmsg_tty_numbers(paths_.under("/dev")))
                there += fmt::format("{}/dev/{}{}", there.empty() ? "" : ", ", kTtyPrefix, number);
            auto failed = board_failure(BoardFault::NoTty, "{} does not exist", paths_.tty);
            if (!there.empty()) failed.error().error.hint = fmt::format("there is {}", there);
            return failed;
        }
        std::string tried;
        for (const std::string& candidate : candidates) {
            const fs::path path = paths_.under(candidate);
            Fd fd(::open(path.c_str(), O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
            if (fd && make_raw(fd.get())) {
                // Not flushed here: another program may be waiting for what is in it. That is done under the lock.
                return OpenedTty{std::move(fd), candidate};
            }
            tried += fmt::format("{}{}: {}", tried.empty() ? "" : "; ", candidate, std::strerror(errno));
        }
        if (candidates.empty() && others)
            return board_failure(BoardFault::NoTty, "no /dev/{}* is of {}", kTtyPrefix, folder);
        if (candidates.empty()) return board_failure(BoardFault::NoTty, "there is no /dev/{}*", kTtyPrefix);
        return board_failure(BoardFault::NoTty, "no RPMsg tty can be used: {}", tried);
    }

    RemoteprocLook look() override {
        RemoteprocLook look = find();
        if (look.folder.empty()) return look;
        const fs::path folder = paths_.under(paths_.remoteproc_class) / look.folder;
        look.state = one_line(folder / "state");
        look.firmware = one_line(folder / "firmware");
        look.trace_lines = one_line(paths_.under(paths_.debug_class) / look.folder / "trace0");
        look.trace_lines = fmt::format("{}", fmt::join(last_lines(look.trace_lines, kTraceLines), "\n"));
        return look;
    }

  private:
    /// Its folder, or what else there is.
    [[nodiscard]] RemoteprocLook find() const {
        RemoteprocLook look;
        std::error_code ignored;
        std::vector<fs::path> folders;
        for (const auto& entry : fs::directory_iterator(paths_.under(paths_.remoteproc_class), ignored))
            folders.push_back(entry.path());
        std::sort(folders.begin(), folders.end());
        std::vector<std::string> names, with_folders;
        for (const fs::path& folder : folders) {
            const std::string name = one_line(folder / "name"), number = folder.filename();
            const std::string& wanted = paths_.remoteproc_name;
            if (name == wanted || (!name.empty() && (number == wanted || number == kFolderPrefix + wanted))) {
                look.folder = number;
                look.name = name;
                return look;
            }
            if (name.empty()) continue;
            names.push_back(name);
            with_folders.push_back(fmt::format("{} ({})", number, name));
        }
        const bool distinct = std::set(names.begin(), names.end()).size() == names.size();
        look.other_names = fmt::format("{}", fmt::join(distinct ? names : with_folders, ", "));
        return look;
    }

    BoardPaths paths_;
};

}  // namespace

fs::path BoardPaths::under(std::string_view path) const {
    if (root.empty()) return fs::path(path);
    return root / fs::path(path).relative_path();
}

std::string BoardPaths::memory_of(std::string_view folder) const {
    if (folder.starts_with(kFolderPrefix) && folder != kFolderPrefix + "0") {
        const std::string own = fmt::format("/dev/mem{}", folder.substr(kFolderPrefix.size()));
        std::error_code ignored;
        if (fs::exists(under(own), ignored)) return own;
    }
    return "/dev/mem";
}

RpmsgTtys rpmsg_ttys_of(const fs::path& rpmsg_devices, std::string_view folder) {
    RpmsgTtys found;
    std::error_code ignored;
    for (const auto& device : fs::directory_iterator(rpmsg_devices, ignored)) {
        const fs::path real = fs::canonical(device.path(), ignored);
        if (ignored) continue;
        const bool own = std::find(real.begin(), real.end(), folder) != real.end();
        for (const auto& tty : fs::directory_iterator(real / "tty", ignored))
            (own ? found.own : found.others).push_back(tty.path().filename());
    }
    return found;
}

std::unique_ptr<BoardAccess> direct_access(BoardPaths paths) {
    return std::make_unique<DirectAccess>(std::move(paths));
}

std::vector<unsigned> rpmsg_tty_numbers(const fs::path& dev) {
    std::vector<unsigned> numbers;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(dev, ignored)) {
        const std::string name = entry.path().filename();
        if (!name.starts_with(kTtyPrefix)) continue;
        unsigned number = 0;
        const char* const end = name.data() + name.size();
        const auto [at, error] = std::from_chars(name.data() + kTtyPrefix.size(), end, number);
        if (error == std::errc() && at == end) numbers.push_back(number);
    }
    std::sort(numbers.begin(), numbers.end());
    return numbers;
}

std::vector<std::string> last_lines(std::string_view text, std::size_t count) {
    constexpr std::size_t kMaxBytes = 200;
    std::vector<std::string> lines;
    while (!text.empty() && lines.size() < count) {
        if (text.back() == '\n') text.remove_suffix(1);
        const std::size_t start = text.rfind('\n') + 1;  // npos + 1 is 0
        lines.push_back(talpa::host::printable(text.substr(start).substr(0, kMaxBytes), talpa::host::LineEnds::Keep));
        text = text.substr(0, start);
    }
    std::reverse(lines.begin(), lines.end());
    return lines;
}

}  // namespace talpa::link::host
