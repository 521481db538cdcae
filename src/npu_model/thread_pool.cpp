#include "npu_model/thread_pool.h"

#include <algorithm>

namespace talpa::npu_model {

namespace {

constexpr unsigned kFieldBits = 21;
constexpr std::uint64_t kFieldMask = (std::uint64_t{1} << kFieldBits) - 1;
constexpr std::uint32_t kMaxTurns = 1u << 20;  // leaves room for threads that reach past the end
// About 50 microseconds of pauses.
constexpr int kSpins = 2000;

void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
}

}  // namespace

ThreadPool::ThreadPool(unsigned threads) : threads_(std::max(1u, threads)) {}

ThreadPool::~ThreadPool() {
    stop_ = true;
    epoch_.fetch_add(1);
    epoch_.notify_all();
}

void ThreadPool::take() {
    for (;;) {
        const std::uint64_t ticket = ticket_.fetch_add(1, std::memory_order_acq_rel);
        const auto turn = static_cast<std::uint32_t>(ticket & kFieldMask);
        if (turn >= ((ticket >> kFieldBits) & kFieldMask)) return;
        (*body_)(turn);
        done_.fetch_add(1, std::memory_order_release);
    }
}

void ThreadPool::run(std::uint32_t count, const std::function<void(std::uint32_t)>& body) {
    if (threads_ == 1 || count <= 1 || count > kMaxTurns) {
        for (std::uint32_t i = 0; i < count; ++i) body(i);
        return;
    }
    while (workers_.size() + 1 < threads_) workers_.emplace_back([this] { work(); });
    body_ = &body;
    done_.store(0, std::memory_order_relaxed);
    const std::uint64_t number = (ticket_.load(std::memory_order_relaxed) >> (2 * kFieldBits)) + 1;
    ticket_.store((number << (2 * kFieldBits)) | (std::uint64_t{count} << kFieldBits), std::memory_order_release);
    epoch_.fetch_add(1, std::memory_order_release);
    epoch_.notify_all();
    take();
    for (int spins = 0; done_.load(std::memory_order_acquire) != count; ++spins) {
        if (spins < kSpins)
            pause();
        else
            std::this_thread::yield();
    }
}

void ThreadPool::work() {
    std::uint32_t seen = 0;  // loops before the first one that this thread may see are none of its business
    for (;;) {
        for (int spins = 0; epoch_.load(std::memory_order_acquire) == seen && spins < kSpins; ++spins) pause();
        epoch_.wait(seen, std::memory_order_acquire);
        seen = epoch_.load(std::memory_order_acquire);
        if (stop_.load(std::memory_order_acquire)) return;
        take();
    }
}

}  // namespace talpa::npu_model
