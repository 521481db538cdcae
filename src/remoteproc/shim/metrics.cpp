#include "remoteproc/shim/metrics.h"

#include <sys/vfs.h>
#include <unistd.h>

#include <charconv>

#include "remoteproc/shim/wire.h"
#include "remoteproc/sys/process.h"

namespace talpa::remoteproc::shim {
namespace {

// "key: value kB" of /proc/PID/status, in bytes
std::uint64_t status_bytes(std::string_view text, std::string_view key) {
    const std::size_t at = text.find(key);
    if (at == std::string_view::npos) return 0;
    const std::size_t begin = text.find_first_of("0123456789", at);
    std::uint64_t value = 0;
    std::from_chars(text.data() + begin, text.data() + text.size(), value);
    return value * 1024;
}

std::uint64_t cpu_ns(pid_t pid) {
    const std::string text = read_proc(fmt::format("/proc/{}/stat", pid));
    std::size_t at = text.rfind(')');
    std::uint64_t ticks = 0;
    for (int field = 2; at != std::string::npos && field <= 15; ++field) {
        if (field == 14 || field == 15) {
            std::uint64_t value = 0;
            std::from_chars(text.data() + at + 1, text.data() + text.size(), value);
            ticks += value;
        }
        at = text.find(' ', at + 1);
    }
    return ticks * (1'000'000'000u / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK)));
}

bool unified_cgroups() {
    constexpr long kCgroup2 = 0x63677270;  // CGROUP2_SUPER_MAGIC
    struct statfs info;
    return ::statfs("/sys/fs/cgroup", &info) == 0 && info.f_type == kCgroup2;
}

}  // namespace

std::string metrics(pid_t pid) {
    const std::string status = read_proc(fmt::format("/proc/{}/status", pid));
    const std::uint64_t resident = status_bytes(status, "VmRSS:"), anonymous = status_bytes(status, "RssAnon:");
    const std::uint64_t cpu = cpu_ns(pid);
    WireWriter out, pids, memory, processor;
    pids.number(1, 1);
    if (unified_cgroups()) {
        processor.number(1, cpu / 1000);
        processor.number(2, cpu / 1000);
        memory.number(1, anonymous);
        memory.number(2, resident - anonymous);
        memory.number(32, resident);  // usage
        out.message(1, pids.bytes());
        out.message(2, processor.bytes());
        out.message(4, memory.bytes());
        return any("io.containerd.cgroups.v2.Metrics", out.bytes());
    }
    WireWriter use, entry;
    use.number(1, cpu);
    use.number(3, cpu);
    processor.message(1, use.bytes());
    entry.number(2, resident);
    memory.number(2, anonymous);
    memory.message(33, entry.bytes());  // usage
    out.message(2, pids.bytes());
    out.message(3, processor.bytes());
    out.message(4, memory.bytes());
    return any("io.containerd.cgroups.v1.Metrics", out.bytes());
}

}  // namespace talpa::remoteproc::shim
