#include "topo/deploy/project_lock.h"

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "topo/deploy/words.h"
#include "topo/system/companion.h"
#include "topo/system/log.h"
#include "topo/system/text.h"
#include "topo/target/ssh_error.h"

namespace talpa::topo {
namespace {

constexpr Milliseconds kPause(1000), kPatience(600'000);
// The holder is heard of this often; the script below takes one for dead of which nothing was heard for a minute.
constexpr Milliseconds kSignOfLife(15'000);

std::string who_we_are(const std::string& purpose) {
    std::array<char, 256> host{};
    if (::gethostname(host.data(), host.size() - 1) != 0) host = {"?"};
    const passwd* user = ::getpwuid(::geteuid());
    return fmt::format("topo {} of {}@{} (process {})", purpose, user != nullptr ? user->pw_name : "?", host.data(),
                       ::getpid());
}

// Answers "locked" and holds on until its input ends, or "held WHO since WHEN", or "none WHY". A connection that has
// died may leave its holder behind for hours on the target: it is known by the age of the file, and ended. The
// project's name has only letters, digits, '-' and '_' (compose_model.cpp).
std::string script(const std::string& project, const std::string& who) {
    return fmt::format(
        "d=\"${{XDG_STATE_HOME:-$HOME/.local/state}}/topo/locks\"; f=\"$d/\"{0}\n"
        "command -v flock >/dev/null 2>&1 || {{ echo none flock is not installed; exit 0; }}\n"
        "umask 077; mkdir -p \"$d\" 2>/dev/null && true 2>/dev/null >> \"$f\" || {{ echo none \"$f\" cannot be "
        "written; "
        "exit 0; }}\n"
        "exec 9>> \"$f\"\n"
        "if ! flock -n 9; then\n"
        "  p=$(sed -n 1p \"$f\"); case $p in *[!0-9]*|'') p=0;; esac\n"
        "  if [ -n \"$(find \"$f\" -mmin +1)\" ] && grep -q topo/locks /proc/$p/cmdline 2>/dev/null; then kill $p; fi\n"
        "  echo held \"$(sed -n 2p \"$f\")\"; exit 0\n"
        "fi\n"
        "printf '%s\\n%s since %s\\n' $$ {1} \"$(date -u '+%Y-%m-%d %H:%M:%S UTC')\" > \"$f\"\n"
        "echo locked\n"
        "while IFS= read -r alive; do touch \"$f\"; done\n",
        shell_quoted(project), shell_quoted(who));
}

}  // namespace

struct ProjectLock::Holding {
    std::unique_ptr<Companion> companion;
    std::mutex mutex;
    std::condition_variable changed;
    bool over = false;
    std::thread signs;

    explicit Holding(std::unique_ptr<Companion> session) : companion(std::move(session)) {
        signs = std::thread([this] {
            std::unique_lock lock(mutex);
            while (!changed.wait_for(lock, kSignOfLife, [this] { return over; }))
                if (!companion->say("")) return;
        });
    }
    ~Holding() {
        {
            const std::lock_guard lock(mutex);
            over = true;
        }
        changed.notify_all();
        signs.join();
    }
};

ProjectLock::ProjectLock(std::unique_ptr<Holding> holding) : holding_(std::move(holding)) {}
ProjectLock::ProjectLock(ProjectLock&&) noexcept = default;
ProjectLock::~ProjectLock() = default;

host::Result<ProjectLock> ProjectLock::take(const Target& target, const std::string& project,
                                            const std::string& purpose, const std::stop_token& stop) {
    Command command = target.shell(script(project, who_we_are(purpose)));
    command.timeout = kQuestion;
    const auto until = std::chrono::steady_clock::now() + kPatience;
    std::string told;
    int refused = 0;
    for (;;) {
        Outcome failed;
        TRY_ASSIGN(std::unique_ptr<Companion> session, Companion::start(command, failed));
        const std::string answer = session ? session->first_line() : std::string();
        if (answer == "locked") {
            ProjectLock lock(std::make_unique<Holding>(std::move(session)));
            lock.waited_ = !told.empty();
            return lock;
        }
        if (answer.starts_with("none ")) {
            warn(fmt::format("no other topo is kept from changing \"{}\" at the same time: {}", project,
                             printable(answer.substr(5), LineEnds::Replace)));
            return ProjectLock(nullptr);
        }
        const bool held = answer.starts_with("held");
        const bool again = !session && !target.is_local() && refused_for_now(failed.status, failed.err) &&
                           ++refused < 15 && !stop.stop_requested();
        if (!held && !again) {
            if (!session && !target.is_local() && (failed.status == 255 || failed.timed_out))
                return std::unexpected(ssh_error(target.destination(), failed.err, failed.status, failed.timed_out));
            return host::failure(ErrorCode::AccessFailed, "the lock of \"{}\" on the target cannot be taken: {}",
                                 project, printable(trimmed(session ? answer : failed.err), LineEnds::Replace));
        }
        if (held) {
            std::string who = printable(trimmed(std::string_view(answer).substr(4)), LineEnds::Replace);
            if (who.empty()) who = "another topo";  // which has not written its name yet
            const std::string where = target.is_local() ? "this machine" : target.destination().uri();
            if (std::chrono::steady_clock::now() >= until || stop.stop_requested())
                return std::unexpected(host::Error(
                    ErrorCode::InvalidState, fmt::format("\"{}\" on {} is being changed by {}", project, where, who),
                    "try again when that has ended"));
            if (told != who) warn(fmt::format("waiting: \"{}\" on {} is being changed by {}", project, where, who));
            told = who;
        }
        session.reset();
        for (Milliseconds waited(0); waited < kPause && !interrupted(); waited += Milliseconds(50))
            std::this_thread::sleep_for(Milliseconds(50));
        if (interrupted()) return std::unexpected(interruption());
    }
}

host::Result<void> ProjectLock::still_held() const {
    if (!holding_) return {};
    const std::lock_guard lock(holding_->mutex);
    if (!holding_->companion->ended()) return {};
    return std::unexpected(host::Error(ErrorCode::AccessFailed,
                                       "the session that kept other topos from changing the project has ended",
                                       "run it again: what had been done stays"));
}

}  // namespace talpa::topo
