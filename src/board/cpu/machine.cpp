#include "board/cpu/machine.h"

#include <algorithm>
#include <chrono>

#include "board/cpu/exec_branch.h"
namespace talpa::board::cpu {

Machine::Machine(Bus& bus, const Options& o)
    : options(o),
      scs(*this),
      exceptions(*this),
      memory((core.machine = this, *this), bus),
      cache(*this),
      translator(*this) {}

void Machine::forget_code() {
    cache.flush();
    translator.flush();
    memory.forget_code();
    memory.flush_pages();
    code_changed_ = false;
}

void Machine::reset(u32 vtor) {
    forget_code();
    core.r.fill(0xFFFFFFFF);  // UNKNOWN after reset; this makes use of them visible
    core.f.fill(0);
    core.fpscr = 0;
    core.set_nzcv(0);
    core.q = core.ge = core.it = 0;
    core.signal = Signal::None;
    core.exclusive = core.event = false;
    scs.reset_vtor = vtor;
    scs.reset();
    nvic.reset();
    mpu.reset();
    systick.reset();
    exceptions.reset();
    sleeping = sleeping_for_event = system_reset_ = false;
    u32 sp = 0;
    u32 pc = 0;
    if (memory.read(vtor, 4, true, kAligned, sp) || memory.read(vtor + 4, 4, true, kAligned, pc)) {
        exceptions.locked_up = true;  // no vector table: the HardFault of a reset cannot be taken either
        scs.hfsr |= Scs::kVecttbl;
        core.pc = 0xEFFFFFFE;
        return;
    }
    exceptions.set_main_stack(sp);
    core.pc = pc & ~1U;
    if ((pc & 1) == 0) exceptions.handle_fault(Fault::InvalidState, 0);
}

void Machine::set_horizon(u64 until) {
    const u64 time = now();
    inside_block_ = false;
    horizon_ = until;
    core.budget = static_cast<i64>(until - time);
}

/// What may have changed since the last block: lines, timer, code, requests.
void Machine::look_around() {
    core.attention = 0;
    if (code_changed_ || translator.full()) forget_code();
    if (external_event_.exchange(false)) core.event = true;
    nvic.collect_lines();
    if (systick.advance(now())) nvic.set_pending(kSysTick, true);
}

bool Machine::wakes_up() {
    if (exceptions.would_wake(!sleeping_for_event)) return true;
    if (!sleeping_for_event) return false;
    if (!core.event && (scs.scr & Scs::kEventOnPend) != 0)
        for (unsigned word = 0; word < Nvic::kWords; word++) core.event = core.event || nvic.pending_word(word) != 0;
    if (!core.event) return false;
    core.event = false;
    return true;
}

Stop Machine::run(u64 limit) {
    const u64 until = limit > SysTick::kNever - now() ? SysTick::kNever : now() + limit;
    while (true) {
        inside_block_ = false;
        if (system_reset_) {
            reset(scs.reset_vtor);
            return Stop::Reset;
        }
        look_around();
        if (stop_requested.exchange(false)) return Stop::Requested;
        if (exceptions.locked_up) return Stop::Lockup;
        if (sleeping) {
            if (!wakes_up()) return Stop::Sleeping;
            sleeping = false;
        }
        if (now() >= until) return Stop::Limit;
        if (exceptions.take_pending()) continue;
        set_horizon(std::min({until, systick.next_event(now()), now() + (u64{1} << 40)}));
        if (breakpoints.contains(core.pc) && core.pc != resume_at_) {
            resume_at_ = core.pc;
            return Stop::Breakpoint;
        }
        run_blocks();
        if (core.signal != Signal::None)
            if (auto stop = handle_signal()) return *stop;
    }
}

void Machine::run_blocks() {
    do {
        Block* block = &cache.find(core.pc, core.it, false);
        if (block->count > core.budget) [[unlikely]]
            block = &cache.find(core.pc, core.it, true);
        const bool whole = block->count <= core.budget;
        if (whole && block->code == nullptr && core.it == 0 && block->runs++ == options.translate_after &&
            breakpoints.empty())
            translator.translate(*block);
        core.it = 0;
        if (whole && block->code != nullptr) {
            run_translated(*block);
        } else {
            core.budget -= block->count;
            const Op* first = block->ops.data();
            first->threaded(&core, first);
        }
        inside_block_ = false;
        if (!breakpoints.empty()) [[unlikely]] {
            resume_at_ = 1;
            if (breakpoints.contains(core.pc)) return;
        }
    } while (core.budget > 0 && core.signal == Signal::None && core.attention.load(std::memory_order_relaxed) == 0);
}

void Machine::run_translated(const Block& block) {
    translator.note_entry(block);
    const Leave leave = translator.run(block.code);
    switch (leave) {
        case Leave::Look:
            return;
        case Leave::Indirect:
            interworking_branch(core, core.r[kPc]);
            return;
        case Leave::IndirectPlain:
            core.pc = core.r[kPc] & ~1U;
            if ((core.r[kPc] & 1) == 0) core.signal = Signal::InvalidState;
            return;
        default:
            break;
    }
    // A direct exit: from now on it goes straight to its block, if that has been translated.
    const Block& next = cache.find(core.pc, 0, false);
    if (next.code != nullptr) translator.join(static_cast<u32>(leave) - static_cast<u32>(Leave::FirstLink), next);
}

std::optional<Stop> Machine::handle_signal() {
    const Signal signal = core.signal;
    core.signal = Signal::None;
    switch (signal) {
        case Signal::Fault:
            exceptions.handle_fault(core.fault, core.fault_address);
            break;
        case Signal::SupervisorCall:
            exceptions.supervisor_call();
            break;
        case Signal::Breakpoint:
            if (options.stop_at_bkpt) return Stop::Bkpt;
            exceptions.breakpoint();
            break;
        case Signal::ExceptionReturn:
            exceptions.exception_return(core.pc);
            break;
        case Signal::InvalidState:
            exceptions.handle_fault(Fault::InvalidState, 0);
            break;
        case Signal::WaitInterrupt:
            sleeping = true;
            sleeping_for_event = false;
            break;
        case Signal::WaitEvent:
            if (core.event) {
                core.event = false;
                break;
            }
            sleeping = sleeping_for_event = true;
            break;
        case Signal::None:
        case Signal::Reschedule:
            break;
    }
    return std::nullopt;
}

void Machine::wake() {
    core.attention = 1;
    const std::lock_guard lock(mutex_);
    woken_ = true;
    changed_.notify_all();
}

bool Machine::wait(u64 microseconds) {
    std::unique_lock lock(mutex_);
    const bool woken = changed_.wait_for(lock, std::chrono::microseconds(microseconds), [&] { return woken_; });
    woken_ = false;
    return woken;
}

void Machine::skip(u64 cycles) {
    const u64 time = now() + cycles;
    inside_block_ = false;
    horizon_ = time;
    core.budget = 0;
    skipped_ += cycles;
}

u64 Machine::cycles_until_timer() const {
    const u64 next = systick.next_event(now());
    return next == SysTick::kNever ? next : next - now();
}

}  // namespace talpa::board::cpu
