#include "remoteproc/oci/privileges.h"

#include <link.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

extern "C" const ElfW(Ehdr) __ehdr_start;  // NOLINT: the linker's

namespace talpa::remoteproc {
namespace {

#if defined(__x86_64__)
constexpr unsigned kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr unsigned kArchitecture = 0;
#endif

// Reading and writing what is open, opening trace buffers and a tty, waiting, memory of the C library, and ending.
constexpr std::array kAllowed{
    SYS_read,
    SYS_pread64,
    SYS_write,
    SYS_pwrite64,
    SYS_writev,
    SYS_openat,
    SYS_close,
    SYS_lseek,
    SYS_fstat,
    SYS_newfstatat,
    SYS_ftruncate,
    SYS_fcntl,
    SYS_ioctl,
    SYS_ppoll,
    SYS_clock_gettime,
    SYS_nanosleep,
    SYS_clock_nanosleep,
    SYS_restart_syscall,
    SYS_rt_sigreturn,
    SYS_rt_sigprocmask,
    SYS_rt_sigaction,
    SYS_brk,
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_mprotect,
    SYS_futex,
    SYS_getpid,
    SYS_gettid,
    SYS_wait4,
    SYS_exit,
    SYS_exit_group,
    SYS_getrandom,
    SYS_prctl,
#ifdef SYS_poll
    SYS_poll,
#endif
};

constexpr sock_filter load(unsigned offset) {
    return {BPF_LD | BPF_W | BPF_ABS, 0, 0, offset};
}
constexpr sock_filter jump_if_equal(unsigned value, unsigned char yes, unsigned char no) {
    return {BPF_JMP | BPF_JEQ | BPF_K, yes, no, value};
}
constexpr sock_filter result(unsigned value) {
    return {BPF_RET | BPF_K, 0, 0, value};
}

[[maybe_unused]] constexpr auto make_filter() {
    std::array<sock_filter, kAllowed.size() + 6> program{};
    std::size_t n = 0;
    program[n++] = load(offsetof(seccomp_data, arch));
    program[n++] = jump_if_equal(kArchitecture, 1, 0);
    program[n++] = result(SECCOMP_RET_ERRNO | EPERM);
    program[n++] = load(offsetof(seccomp_data, nr));
    for (std::size_t i = 0; i < kAllowed.size(); ++i)
        program[n++] =
            jump_if_equal(static_cast<unsigned>(kAllowed[i]), static_cast<unsigned char>(kAllowed.size() - i), 0);
    program[n++] = result(SECCOMP_RET_ERRNO | EPERM);
    program[n++] = result(SECCOMP_RET_ALLOW);
    return program;
}

}  // namespace

bool drop_capabilities() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, 2> none{};
    ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    ::syscall(SYS_capset, &header, none.data());
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

bool drop_privileges() {
    if (!drop_capabilities() || kArchitecture == 0) return false;
#if defined(TALPA_SANITIZED)
    return false;  // the sanitizers' run time calls what it likes
#else
    static constexpr auto kFilter = make_filter();
    const sock_fprog program{static_cast<unsigned short>(kFilter.size()), const_cast<sock_filter*>(kFilter.data())};
    return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
#endif
}

void release_idle_pages() {
    // The program's own headers as the linker placed them: the C library's list would touch pages of its own.
    const auto image = reinterpret_cast<std::uintptr_t>(&__ehdr_start);
    const auto* headers = reinterpret_cast<const ElfW(Phdr)*>(image + __ehdr_start.e_phoff);
    const std::span segments(headers, __ehdr_start.e_phnum);
    const auto first = std::ranges::find(segments, ElfW(Word){PT_LOAD}, &ElfW(Phdr)::p_type);
    if (first == segments.end()) return;
    constexpr std::uintptr_t kPage = 4096;  // begins are a multiple of larger pages, too, by the linker's doing
    for (const auto& segment : segments) {
        if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
        const std::uintptr_t begin = (image - first->p_vaddr + segment.p_vaddr) & ~(kPage - 1);
        ::madvise(reinterpret_cast<void*>(begin), segment.p_memsz, MADV_DONTNEED);
    }
}

}  // namespace talpa::remoteproc
