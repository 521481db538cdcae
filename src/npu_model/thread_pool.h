// A few threads for parallel loops inside one operation. With one thread everything runs in the caller.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace talpa::npu_model {

class ThreadPool {
  public:
    /// `threads` in all, the caller's included; at least 1.
    explicit ThreadPool(unsigned threads);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    [[nodiscard]] unsigned threads() const { return static_cast<unsigned>(workers_.size()) + 1; }

    /// Calls body(i) for each i of 0..count-1, on all threads; returns when all are done. `body` must not throw.
    void run(std::uint32_t count, const std::function<void(std::uint32_t)>& body);

  private:
    void work(const std::stop_token& stop);
    void take(std::uint32_t count, const std::function<void(std::uint32_t)>& body);

    std::mutex mutex_;
    std::condition_variable_any wake_;
    std::condition_variable done_;
    std::uint64_t generation_ = 0;  // of the current loop, under mutex_
    unsigned busy_ = 0;             // workers inside it
    std::uint32_t count_ = 0;
    const std::function<void(std::uint32_t)>* body_ = nullptr;
    std::atomic<std::uint32_t> next_ = 0;
    std::vector<std::jthread> workers_;
};

}  // namespace talpa::npu_model
