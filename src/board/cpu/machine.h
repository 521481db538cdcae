// The parts of one Cortex-M33 together, and the loop that runs blocks and looks around between them. Cpu (cpu.h) is its
// public face.
#pragma once

#include <condition_variable>
#include <mutex>
#include <set>

#include "board/cpu/block_cache.h"
#include "board/cpu/bus.h"
#include "board/cpu/cpu.h"
#include "board/cpu/exceptions.h"
#include "board/cpu/memory.h"
#include "board/cpu/mpu.h"
#include "board/cpu/nvic.h"
#include "board/cpu/scs.h"
#include "board/cpu/systick.h"
#include "board/cpu/translator.h"

namespace talpa::board::cpu {

class Machine {
  public:
    Machine(Bus& bus, const Options& options);

    void reset(u32 vtor);
    Stop run(u64 limit);

    Options options;
    Core core;
    Mpu mpu;
    Nvic nvic;
    SysTick systick;
    Scs scs;
    Exceptions exceptions;
    Memory memory;
    BlockCache cache;
    Translator translator;

    /// Core cycles so far, exact at block borders and after note_progress.
    [[nodiscard]] u64 now() const { return inside_block_ ? progress_ : horizon_ - static_cast<u64>(core.budget); }
    /// Called by slow paths inside a block: time is that of the instruction.
    void note_progress(const Op& op) {
        progress_ = horizon_ - static_cast<u64>(core.budget) - op.remaining;
        inside_block_ = true;
    }
    void request_code_flush() {
        code_changed_ = true;
        core.attention = 1;
    }
    void request_attention() { core.attention = 1; }
    void request_system_reset() {
        system_reset_ = true;
        core.attention = 1;
    }
    void forget_code();

    void wake();  ///< any thread
    bool wait(u64 microseconds);
    void skip(u64 cycles);
    [[nodiscard]] u64 cycles_until_timer() const;

    std::atomic<bool> stop_requested{false};
    std::set<u32> breakpoints;
    bool sleeping = false;
    bool sleeping_for_event = false;
    u64 exceptions_taken = 0;
    [[nodiscard]] u64 skipped() const { return skipped_; }
    void set_event() {
        external_event_ = true;
        wake();
    }

  private:
    void set_horizon(u64 until);
    void look_around();
    bool wakes_up();
    void run_blocks();
    void run_translated(const Block& block);
    std::optional<Stop> handle_signal();

    u64 horizon_ = 0;  ///< time at which the budget is used up
    u64 progress_ = 0;
    bool inside_block_ = false;
    bool code_changed_ = false;
    bool system_reset_ = false;
    u32 resume_at_ = 1;  ///< a breakpoint that has been reported and is to be passed
    std::mutex mutex_;
    std::condition_variable changed_;
    bool woken_ = false;
    std::atomic<bool> external_event_{false};
    u64 skipped_ = 0;
};

}  // namespace talpa::board::cpu
