#include "board/host/ssh.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

#include "base/host/file.h"
#include "base/host/program.h"
#include "board/host/covers.h"
#include "board/host/mounts.h"

namespace talpa::board {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr const char* kSshd = "/usr/sbin/sshd";
constexpr const char* kPidFile = "/run/sshd.pid";

/// A key pair without passphrase.
host::Result<void> make_key(const fs::path& path, const std::string& comment) {
    if (fs::exists(path)) return {};
    const std::string name = path.string();
    TRY_ASSIGN(
        const pid_t child,
        host::start_program({.arguments = {"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", name},
                             .out = STDERR_FILENO}));
    if (host::wait_for_end(child) != 0)
        return host::failure(ErrorCode::AccessFailed, "ssh-keygen could not make {}", name);
    return {};
}

fs::path private_key(const BoardRecord& record) {
    return record.folder / "id_ed25519";
}
/// `disk`: as the user's machine sees it, or the board.
fs::path host_key(const fs::path& disk) {
    return disk / "sshd/host_key";
}
std::string alias(const BoardRecord& record) {
    return "talpa-board-" + record.name;
}

/// An account whose password is locked is refused without PAM, even with a key; a password that cannot be typed is not.
void unlock_root() {
    auto shadow = host::read_text("/etc/shadow");
    if (!shadow || !shadow->starts_with("root:!")) return;
    const auto end = shadow->find(':', 5);
    if (end == std::string::npos) return;
    shadow->replace(5, end - 5, "*");
    (void)host::write_text("/etc/shadow", *shadow);
    (void)!::chmod("/etc/shadow", 0640);
}

}  // namespace

bool has_sshd() {
    return ::access(kSshd, X_OK) == 0;
}

host::Result<void> prepare_ssh(const BoardRecord& record) {
    TRY(make_key(private_key(record), alias(record)));
    TRY(make_folder(record.disk / "sshd", 0700));
    TRY(make_folder(record.disk / "ssh", 0700));
    TRY(make_key(host_key(record.disk), alias(record)));
    TRY_ASSIGN(const std::string client, host::read_text(private_key(record).string() + ".pub"));
    TRY_ASSIGN(const std::string host, host::read_text(host_key(record.disk).string() + ".pub"));
    TRY(host::write_text(record.disk / "ssh/authorized_keys", client));
    TRY(host::write_text(record.folder / "known_hosts", alias(record) + " " + host));
    return host::write_text(record.disk / "sshd/config", fmt::format(R"(# The sshd of a talpa board.
Port {}
ListenAddress 0.0.0.0
ListenAddress ::
HostKey {}
PidFile {}
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
PrintMotd no
AcceptEnv LANG LC_*
SetEnv PATH={} TALPA_BOARD={}
Subsystem sftp internal-sftp
)",
                                                                     kSshPort, host_key(kBoardDisk).string(), kPidFile,
                                                                     kProgramFolders, record.name));
}

int open_sshd_log(const BoardRecord& record) {
    return ::open((record.folder / "sshd.log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

host::Result<void> start_sshd(const BoardRecord& record, int log) {
    unlock_root();
    TRY_ASSIGN(
        const pid_t child,
        host::start_program({.arguments = {kSshd, "-D", "-e", "-f", (fs::path(kBoardDisk) / "sshd/config").string()},
                             .out = log,
                             .err = log}));
    for (const auto until = std::chrono::steady_clock::now() + 10s; std::chrono::steady_clock::now() < until;) {
        if (fs::exists(kPidFile)) return {};  // it writes that once it listens
        if (::waitpid(child, nullptr, WNOHANG) == child) break;
        std::this_thread::sleep_for(5ms);
    }
    return host::failure(ErrorCode::AccessFailed, "sshd did not come up; it says why in {}",
                         (record.folder / "sshd.log").string());
}

std::string ssh_config(const BoardRecord& record, const std::string& talpa) {
    std::string text = fmt::format("Host {}\n", record.name);
    if (record.ssh_port != 0)
        text += fmt::format("    HostName 127.0.0.1\n    Port {}\n", record.ssh_port);
    else
        text += fmt::format("    HostName {}\n    ProxyCommand {} board connect --name {} {}\n", alias(record), talpa,
                            record.name, kSshPort);
    text += fmt::format(
        "    User root\n    IdentityFile {}\n    IdentitiesOnly yes\n    HostKeyAlias {}\n    UserKnownHostsFile {}\n"
        "    StrictHostKeyChecking yes\n",
        private_key(record).string(), alias(record), (record.folder / "known_hosts").string());
    return text;
}

}  // namespace talpa::board
