#include "npu_model/thread_pool.h"

#include <algorithm>

namespace talpa::npu_model {

ThreadPool::ThreadPool(unsigned threads) {
    for (unsigned i = 1; i < std::max(1u, threads); ++i)
        workers_.emplace_back([this](const std::stop_token& stop) { work(stop); });
}

ThreadPool::~ThreadPool() {
    for (auto& worker : workers_) worker.request_stop();
    wake_.notify_all();
}

void ThreadPool::take(std::uint32_t count, const std::function<void(std::uint32_t)>& body) {
    for (std::uint32_t i = next_.fetch_add(1); i < count; i = next_.fetch_add(1)) body(i);
}

void ThreadPool::run(std::uint32_t count, const std::function<void(std::uint32_t)>& body) {
    if (workers_.empty() || count <= 1) {
        for (std::uint32_t i = 0; i < count; ++i) body(i);
        return;
    }
    {
        const std::lock_guard lock(mutex_);
        next_ = 0;
        count_ = count;
        body_ = &body;
        busy_ = static_cast<unsigned>(workers_.size());
        ++generation_;
    }
    wake_.notify_all();
    take(count, body);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
}

void ThreadPool::work(const std::stop_token& stop) {
    std::uint64_t seen = 0;
    for (;;) {
        std::unique_lock lock(mutex_);
        if (!wake_.wait(lock, stop, [&] { return generation_ != seen; })) return;
        seen = generation_;
        const auto* body = body_;
        const std::uint32_t count = count_;
        lock.unlock();
        take(count, *body);
        lock.lock();
        if (--busy_ == 0) done_.notify_one();
    }
}

}  // namespace talpa::npu_model
