// A few threads for parallel loops inside one operation. With one thread everything runs in the caller. Loops of an NPU
// stream follow each other within microseconds, so workers spin for some tens of them before they sleep; between runs
// they sleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace talpa::npu_model {

class ThreadPool {
  public:
    /// `threads` in all, the caller's included; at least 1. They start with the first loop that has work for them.
    explicit ThreadPool(unsigned threads);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    [[nodiscard]] unsigned threads() const { return threads_; }

    /// Calls body(i) for each i of 0..count-1, on all threads; returns when all are done. `body` must not throw. One
    /// loop at a time. Each thread begins with a range of its own, the same part of 0..count-1 in every loop, so that
    /// what it wrote in one loop is in its cache for the next; it helps others when it is done.
    void run(std::uint32_t count, const std::function<void(std::uint32_t)>& body);

  private:
    void work(unsigned self);
    void take(unsigned self);

    // What is left of a thread's range: first turn << 32 | end. Its owner takes from the front, others from the end. A
    // thread that comes late sees from the word alone that nothing is left, or helps with the next loop, and looks at
    // `body_` only with a turn in its hand.
    struct alignas(64) Share {
        std::atomic<std::uint64_t> left = 0;
    };

    unsigned threads_;
    std::unique_ptr<Share[]> shares_;
    alignas(64) std::atomic<std::uint32_t> done_ = 0;   // turns of the current loop
    alignas(64) std::atomic<std::uint32_t> epoch_ = 0;  // counts loops, for workers to wait on
    std::atomic<bool> stop_ = false;
    const std::function<void(std::uint32_t)>* body_ = nullptr;
    std::vector<std::jthread> workers_;
};

}  // namespace talpa::npu_model
