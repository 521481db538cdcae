#include "topo/target/probe.h"

#include <algorithm>
#include <charconv>
#include <random>

#include "topo/system/text.h"

namespace talpa::topo {
namespace {

std::string boundary(const std::string& nonce) {
    return "__TOPO_" + nonce + "__";
}

std::string variable_name(std::string name) {
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

std::string fresh_nonce() {
    std::random_device device;
    return fmt::format("{:08x}{:08x}", device(), device());
}

}  // namespace

std::string probe_script(const std::vector<ProbeCheck>& checks, const std::string& nonce) {
    // timeout(1) is in coreutils and in busybox; where it is missing the limit of the whole remains.
    std::string script =
        "topo_limit() { s=$1; shift; if [ $s -gt 0 ] && command -v timeout >/dev/null 2>&1; then timeout $s \"$@\"; "
        "else \"$@\"; fi; }\n";
    for (const ProbeCheck& check : checks)
        script += fmt::format(
            "echo {0}begin {1}\ntopo_limit {2} /bin/sh -c {3} 2>&1 </dev/null\ns=$?\nexport TOPO_STATUS_{4}=$s\necho\n"
            "echo {0}end {1} $s\n",
            boundary(nonce), check.name, check.limit_s, shell_quoted(check.script), variable_name(check.name));
    return script + "exit 0\n";
}

ProbeAnswers parse_probe(std::string_view text, const std::string& nonce) {
    ProbeAnswers answers;
    const std::string begin = boundary(nonce) + "begin ", end = boundary(nonce) + "end ";
    std::string name, out;
    bool open = false;
    for (const std::string& line : lines_of(text)) {
        if (line.starts_with(begin)) {
            name = line.substr(begin.size());
            out.clear();
            open = true;
        } else if (open && line.starts_with(end + name + " ")) {
            const std::string_view number = std::string_view(line).substr(end.size() + name.size() + 1);
            ProbeAnswer answer;
            const auto [stop, error] = std::from_chars(number.data(), number.data() + number.size(), answer.status);
            if (error != std::errc() || stop != number.data() + number.size()) continue;
            if (out.ends_with("\n")) out.pop_back();  // the line end that the script put in
            answer.out = std::move(out);
            answers[name] = std::move(answer);
            open = false;
        } else if (open) {
            out += line + "\n";
        }
    }
    return answers;
}

host::Result<ProbeAnswers> probe(const Target& target, const std::vector<ProbeCheck>& checks, Milliseconds timeout) {
    const std::string nonce = fresh_nonce();
    TRY_ASSIGN(const Outcome outcome, target.run(probe_script(checks, nonce), timeout));
    ProbeAnswers answers = parse_probe(outcome.out, nonce);
    if (answers.empty() && !checks.empty() && !outcome.timed_out) {
        const std::string said = printable(trimmed(outcome.err.empty() ? outcome.out : outcome.err).substr(0, 500));
        return std::unexpected(
            host::Error(ErrorCode::AccessFailed,
                        fmt::format("{} did not run the probe (exit status {}){}", target.destination().uri(),
                                    outcome.status, said.empty() ? "" : " | it said: " + said),
                        "the login shell must be able to run /bin/sh"));
    }
    return answers;
}

std::vector<ProbeCheck> hardware_checks() {
    return {
        {"lscpu-path", "command -v lscpu"},
        {"lscpu", "LC_ALL=C; export LC_ALL; lscpu --json 2>/dev/null || lscpu"},
        {"remoteproc", "cat /sys/class/remoteproc/*/name 2>/dev/null"},
        {"meminfo", "cat /proc/meminfo"},
    };
}

host::Result<Hardware> hardware_from(const ProbeAnswers& answers, bool local) {
    const auto answer = [&](const char* name) {
        const auto it = answers.find(name);
        return it == answers.end() ? ProbeAnswer{.status = 124, .out = {}} : it->second;
    };
    const auto late = [](const char* what) {
        return host::failure(ErrorCode::Timeout, "collecting {}: timed out", what);
    };
    Hardware hardware;
    const ProbeAnswer path = answer("lscpu-path"), cpu = answer("lscpu"), remote = answer("remoteproc"),
                      memory = answer("meminfo");
    if (path.timed_out() || (path.ok() && cpu.timed_out())) return late("CPU info");
    if (!path.ok())
        return host::failure(ErrorCode::NotFound, "collecting CPU info: \"lscpu\" not found {}",
                             local ? "in $PATH" : "on remote target's $PATH");
    if (!cpu.ok())
        return host::failure(ErrorCode::AccessFailed, "collecting CPU info: lscpu failed with exit status {}: {}",
                             cpu.status, one_line(cpu.out));
    TRY_ASSIGN(hardware.host_processors, host::with_context(parse_lscpu(cpu.out), "collecting CPU info"));
    if (remote.timed_out()) return late("remote processors");
    if (remote.ok()) hardware.remote_processors = parse_remoteprocs(remote.out);
    if (memory.timed_out()) return late("memory info");
    TRY_ASSIGN(hardware.total_memory_kb, host::with_context(parse_meminfo(memory.out), "collecting memory info"));
    return hardware;
}

}  // namespace talpa::topo
