#include "remoteproc/oci/process_table.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <optional>
#include <vector>

#include "remoteproc/sys/os_error.h"
#include "remoteproc/sys/process.h"

namespace talpa::remoteproc {
namespace {

std::vector<std::uint64_t> numbers(std::string_view text) {
    std::vector<std::uint64_t> out;
    while (true) {
        text.remove_prefix(std::min(text.find_first_not_of(" \n"), text.size()));
        if (text.empty()) return out;
        std::uint64_t value = 0;
        std::from_chars(text.data(), text.data() + text.size(), value);
        out.push_back(value);
        text.remove_prefix(std::min(text.find(' '), text.size()));
    }
}

// Fields of /proc/PID/stat from the third on (the state's letter, read as 0), as proc(5) numbers them.
class Stat {
  public:
    explicit Stat(pid_t pid) {
        const std::string text = read_proc(fmt::format("/proc/{}/stat", pid));
        if (const std::size_t close = text.rfind(')'); close != std::string::npos)
            fields_ = numbers(std::string_view(text).substr(close + 1));
    }
    [[nodiscard]] bool known() const { return fields_.size() >= 20; }
    [[nodiscard]] std::uint64_t field(std::size_t number) const { return fields_[number - 3]; }
    [[nodiscard]] std::uint64_t cpu_ticks() const { return field(14) + field(15); }

  private:
    std::vector<std::uint64_t> fields_;
};

std::uint64_t ticks_a_second() {
    return static_cast<std::uint64_t>(std::max(::sysconf(_SC_CLK_TCK), 1L));
}

std::uint64_t boot_seconds() {
    const std::string text = read_proc("/proc/stat");
    const std::size_t at = text.find("\nbtime ");
    const auto found =
        at == std::string::npos ? std::vector<std::uint64_t>() : numbers(std::string_view(text).substr(at + 7));
    return found.empty() ? 0 : found.front();
}

// "17:53" of today, "Nov30" of this year, else the year.
std::string start_text(std::time_t started, std::time_t now) {
    std::tm then{}, today{};
    ::localtime_r(&started, &then);
    ::localtime_r(&now, &today);
    const bool same_year = then.tm_year == today.tm_year;
    char text[16];
    const char* form = same_year && then.tm_yday == today.tm_yday ? "%H:%M" : same_year ? "%b%d" : "%Y";
    return std::string(text, std::strftime(text, sizeof text, form, &then));
}

}  // namespace

ProcessUse use_of(pid_t pid) {
    ProcessUse use;
    if (const Stat stat(pid); stat.known()) use.cpu_ns = stat.cpu_ticks() * (1'000'000'000u / ticks_a_second());
    const auto pages = numbers(read_proc(fmt::format("/proc/{}/statm", pid)));
    if (pages.size() > 1) use.memory_bytes = pages[1] * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    return use;
}

std::string ps_line(pid_t pid) {
    const Stat stat(pid);
    struct stat info;
    if (!stat.known() || ::stat(fmt::format("/proc/{}", pid).c_str(), &info) != 0) return "";
    const std::time_t now = std::time(nullptr);
    const std::uint64_t cpu = stat.cpu_ticks() / ticks_a_second();
    const auto started = static_cast<std::time_t>(boot_seconds() + stat.field(22) / ticks_a_second());
    const auto lived = static_cast<std::uint64_t>(std::max<std::time_t>(now - started, 1));
    const std::uint64_t tty = stat.field(7);
    std::string arguments = process_arguments(pid);
    while (!arguments.empty() && arguments.back() == '\0') arguments.pop_back();
    std::ranges::replace(arguments, '\0', ' ');
    return fmt::format("{:<8} {:>7} {:>7} {:>2} {:>5} {:<8} {:02}:{:02}:{:02} {}\n",
                       info.st_uid == 0 ? "root" : std::to_string(info.st_uid), pid, stat.field(4),
                       std::min<std::uint64_t>(cpu * 100 / lived, 99), start_text(started, now),
                       tty == 0 ? "?" : fmt::format("pts/{}", tty & 0xFF), cpu / 3600, cpu / 60 % 60, cpu % 60,
                       printable(arguments));
}

}  // namespace talpa::remoteproc
