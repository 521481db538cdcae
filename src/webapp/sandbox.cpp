#include "webapp/sandbox.h"

#include <fmt/format.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace talpa::webapp {
namespace {

std::string reason() {
    return std::strerror(errno);
}

SandboxStep drop_user(const SandboxOptions& options) {
    SandboxStep step{.what = "user", .applied = false, .detail = {}};
    if (::geteuid() != 0) {
        step.detail = fmt::format("not root to begin with: uid {}", ::geteuid());
        return step;
    }
    if (::setgroups(0, nullptr) != 0 || ::setresgid(options.group, options.group, options.group) != 0 ||
        ::setresuid(options.user, options.user, options.user) != 0) {
        step.detail = "still root: " + reason();
        return step;
    }
    step.applied = true;
    step.detail = fmt::format("uid {}, gid {}", options.user, options.group);
    return step;
}

SandboxStep drop_capabilities() {
    SandboxStep step{.what = "capabilities", .applied = false, .detail = {}};
    ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[2] = {};
    if (::syscall(SYS_capset, &header, none) != 0) {
        step.detail = reason();
        return step;
    }
    step.applied = true;
    step.detail = "none left";
    return step;
}

SandboxStep restrict_files() {
    SandboxStep step{.what = "landlock", .applied = false, .detail = {}};
    const long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (abi < 1) {
        step.detail = "not in this kernel (" + reason() + ")";
        return step;
    }
    // Newer rights than this header knows, by their bits: refer (ABI 2), truncate (3), connect by TCP (4), ioctl on
    // devices (5).
    constexpr std::uint64_t kAllOfAbi1 = (std::uint64_t{1} << 13) - 1;
    struct {
        std::uint64_t handled_access_fs, handled_access_net;
    } rules{kAllOfAbi1, 0};
    if (abi >= 2) rules.handled_access_fs |= 1 << 13;
    if (abi >= 3) rules.handled_access_fs |= 1 << 14;
    if (abi >= 5) rules.handled_access_fs |= 1 << 15;
    if (abi >= 4) rules.handled_access_net = 3;  // bind and connect
    const std::size_t size = abi >= 4 ? sizeof rules : sizeof rules.handled_access_fs;
    const long ruleset = ::syscall(SYS_landlock_create_ruleset, &rules, size, 0);
    if (ruleset < 0 || ::syscall(SYS_landlock_restrict_self, ruleset, 0) != 0) {
        step.detail = reason();
    } else {
        step.applied = true;
        step.detail = fmt::format("no file can be opened{} (ABI {})", abi >= 4 ? ", no connection made" : "", abi);
    }
    if (ruleset >= 0) ::close(static_cast<int>(ruleset));
    return step;
}

// What the server does once it runs: sockets that it has, memory, threads, time. Anything else is refused with EPERM,
// not punished: a libc that tries something new falls back, and what it tried does not happen.
constexpr int kAllowed[] = {
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_recvfrom,
    SYS_sendto,
    SYS_recvmsg,
    SYS_sendmsg,
    SYS_accept,
    SYS_accept4,
    SYS_shutdown,
    SYS_getsockname,
    SYS_getpeername,
    SYS_getsockopt,
    SYS_setsockopt,
    SYS_epoll_ctl,
    SYS_epoll_pwait,
    SYS_ppoll,
    SYS_pselect6,
    SYS_eventfd2,
    SYS_timerfd_create,
    SYS_timerfd_settime,
    SYS_close,
    SYS_dup,
    SYS_fcntl,
    SYS_flock,
    SYS_lseek,
    SYS_fstat,
    SYS_ioctl,
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_mprotect,
    SYS_madvise,
    SYS_brk,
    SYS_futex,
    SYS_clone,
    SYS_clone3,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_set_tid_address,
    SYS_exit,
    SYS_exit_group,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_rt_sigtimedwait,
    SYS_sigaltstack,
    SYS_tgkill,
    SYS_getpid,
    SYS_gettid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getrandom,
    SYS_clock_gettime,
    SYS_clock_nanosleep,
    SYS_clock_getres,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_sched_getparam,
    SYS_sched_getscheduler,
    SYS_getrusage,
    SYS_sysinfo,
    SYS_uname,
    SYS_prlimit64,
    SYS_restart_syscall,
    SYS_membarrier,
    SYS_wait4,
    SYS_prctl,
    SYS_readlinkat,
#ifdef SYS_epoll_wait
    SYS_epoll_wait,
#endif
#ifdef SYS_poll
    SYS_poll,
#endif
#ifdef SYS_newfstatat
    SYS_newfstatat,
#endif
};

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "which architecture does seccomp call this?"
#endif

SandboxStep restrict_calls() {
    SandboxStep step{.what = "seccomp", .applied = false, .detail = {}};
    const auto statement = [](unsigned code, std::uint32_t k) {
        return sock_filter{static_cast<std::uint16_t>(code), 0, 0, k};
    };
    std::vector<sock_filter> program;
    program.push_back(statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)));
    program.push_back({BPF_JMP | BPF_JEQ | BPF_K, 1, 0, kArchitecture});
    program.push_back(statement(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
    program.push_back(statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
    for (const int call : kAllowed) {
        program.push_back({BPF_JMP | BPF_JEQ | BPF_K, 0, 1, static_cast<std::uint32_t>(call)});
        program.push_back(statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    }
    program.push_back(statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
    const sock_fprog filter{static_cast<std::uint16_t>(program.size()), program.data()};
    if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) != 0) {
        step.detail = reason();
        return step;
    }
    step.applied = true;
    step.detail = fmt::format("{} system calls allowed, the rest answered with EPERM", std::size(kAllowed));
    return step;
}

}  // namespace

std::vector<SandboxStep> enter_sandbox(const SandboxOptions& options) {
    std::vector<SandboxStep> steps;
    if (!options.enabled) {
        steps.push_back({.what = "sandbox", .applied = false, .detail = "switched off (--no-sandbox)"});
        return steps;
    }
    ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    // The bounding set first: changing it wants CAP_SETPCAP, which goes with the user. It takes nothing away now.
    for (int cap = 0; cap <= 63; ++cap) ::prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
    steps.push_back(drop_user(options));
    steps.push_back(drop_capabilities());
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    steps.push_back(restrict_files());
    steps.push_back(restrict_calls());
    return steps;
}

}  // namespace talpa::webapp
