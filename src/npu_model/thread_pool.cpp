#include "npu_model/thread_pool.h"

#include <algorithm>

namespace talpa::npu_model {

namespace {

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

ThreadPool::ThreadPool(unsigned threads)
    : threads_(std::max(1u, threads)), shares_(std::make_unique<Share[]>(threads_)) {}

ThreadPool::~ThreadPool() {
    stop_ = true;
    epoch_.fetch_add(1);
    epoch_.notify_all();
}

void ThreadPool::take(unsigned self) {
    for (unsigned k = 0; k < threads_; ++k) {
        std::atomic<std::uint64_t>& left = shares_[(self + k) % threads_].left;
        std::uint64_t range = left.load(std::memory_order_acquire);
        for (;;) {
            const auto begin = static_cast<std::uint32_t>(range >> 32), end = static_cast<std::uint32_t>(range);
            if (begin >= end) break;
            const std::uint64_t rest = k == 0 ? range + (std::uint64_t{1} << 32) : range - 1;
            if (!left.compare_exchange_weak(range, rest, std::memory_order_acq_rel, std::memory_order_acquire))
                continue;
            (*body_)(k == 0 ? begin : end - 1);
            done_.fetch_add(1, std::memory_order_release);
            range = left.load(std::memory_order_acquire);
        }
    }
}

void ThreadPool::run(std::uint32_t count, const std::function<void(std::uint32_t)>& body) {
    if (threads_ == 1 || count <= 1) {
        for (std::uint32_t i = 0; i < count; ++i) body(i);
        return;
    }
    while (workers_.size() + 1 < threads_)
        workers_.emplace_back([this, self = static_cast<unsigned>(workers_.size()) + 1] { work(self); });
    body_ = &body;
    done_.store(0, std::memory_order_relaxed);
    for (unsigned k = 0; k < threads_; ++k) {
        const std::uint64_t begin = std::uint64_t{count} * k / threads_,
                            end = std::uint64_t{count} * (k + 1) / threads_;
        shares_[k].left.store(begin << 32 | end, std::memory_order_release);
    }
    epoch_.fetch_add(1, std::memory_order_release);
    epoch_.notify_all();
    take(0);
    for (int spins = 0; done_.load(std::memory_order_acquire) != count; ++spins) {
        if (spins < kSpins)
            pause();
        else
            std::this_thread::yield();
    }
}

void ThreadPool::work(unsigned self) {
    std::uint32_t seen = 0;  // loops before the first one that this thread may see are none of its business
    for (;;) {
        for (int spins = 0; epoch_.load(std::memory_order_acquire) == seen && spins < kSpins; ++spins) pause();
        epoch_.wait(seen, std::memory_order_acquire);
        seen = epoch_.load(std::memory_order_acquire);
        if (stop_.load(std::memory_order_acquire)) return;
        take(self);
    }
}

}  // namespace talpa::npu_model
