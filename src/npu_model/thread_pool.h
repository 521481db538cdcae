// A few threads for parallel loops inside one operation. With one thread everything runs in the caller. Loops of an NPU
// stream follow each other within microseconds, so workers spin for some tens of them before they sleep; between runs
// they sleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
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
    /// loop at a time.
    void run(std::uint32_t count, const std::function<void(std::uint32_t)>& body);

  private:
    void work();
    void take();

    unsigned threads_;
    // The loop under way: [63:42] its number, [41:21] how many turns it has, [20:0] the next turn to take. A worker
    // that comes late sees from the word alone that nothing is left, and looks at `body_` only with a turn in its hand.
    std::atomic<std::uint64_t> ticket_ = 0;
    std::atomic<std::uint32_t> done_ = 0;   // turns of the current loop
    std::atomic<std::uint32_t> epoch_ = 0;  // counts loops, for workers to wait on
    std::atomic<bool> stop_ = false;
    const std::function<void(std::uint32_t)>* body_ = nullptr;
    std::vector<std::jthread> workers_;
};

}  // namespace talpa::npu_model
