#include "base/host/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstring>

#include "base/host/exit_status.h"

namespace talpa::host {
namespace {

enum SlotState : int { kFree, kBeingChanged, kInUse };

/// Fixed memory and lock-free atomics only: a signal handler reads it.
struct Slot {
    std::atomic<int> state = kFree;
    std::array<char, PATH_MAX> path{};
};
std::array<Slot, 16> slots;

void on_signal(int signal) {
    for (const Slot& slot : slots)
        if (slot.state.load() == kInUse) ::unlink(slot.path.data());
    if (signal == SIGINT) ::_exit(kExitInterrupted);
    ::signal(signal, SIG_DFL);
    ::raise(signal);
}

}  // namespace

void clean_up_on_interrupt() {
    struct ::sigaction action{};
    action.sa_handler = on_signal;
    ::sigemptyset(&action.sa_mask);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        struct ::sigaction old{};
        // A signal that the parent wants ignored (nohup, a background job of a plain shell) stays so.
        if (::sigaction(signal, nullptr, &old) == 0 && old.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);
    }
}

TemporaryFileGuard::TemporaryFileGuard(const std::filesystem::path& path) {
    const std::string& text = path.native();
    if (text.size() >= PATH_MAX) return;
    for (std::size_t i = 0; i < slots.size(); ++i) {
        int expected = kFree;
        if (!slots[i].state.compare_exchange_strong(expected, kBeingChanged)) continue;
        std::memcpy(slots[i].path.data(), text.c_str(), text.size() + 1);
        slots[i].state.store(kInUse);
        slot_ = static_cast<int>(i);
        return;
    }
}

TemporaryFileGuard::~TemporaryFileGuard() {
    if (slot_ >= 0) slots[static_cast<std::size_t>(slot_)].state.store(kFree);
}

}  // namespace talpa::host
