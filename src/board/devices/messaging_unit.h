// Messaging Unit 1: side A as registers on the M33's bus, side B as Linux's mailbox driver uses it. The unit lies in
// the always-on domain: stopping the M33 leaves its words where they are. (imx93-remoteproc, section 3)
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "board/cpu/bus.h"
#include "board/linux/platform.h"
#include "board/linux/tracer.h"

namespace talpa::board {

class MessagingUnit final : public cpu::Device, public Mailbox {
  public:
    /// `m33_interrupt`: level of the M33's line, called from any thread, one call at a time; it may not
    /// come back here. `received`: Linux's handler of
    /// words from the M33, called on the unit's own thread.
    MessagingUnit(std::function<void(bool)> m33_interrupt, std::function<void()> received);
    ~MessagingUnit() override;
    MessagingUnit(const MessagingUnit&) = delete;
    MessagingUnit& operator=(const MessagingUnit&) = delete;

    // The M33's side
    [[nodiscard]] bool read(cpu::u32 offset, unsigned size, cpu::u32& value) override;
    [[nodiscard]] bool write(cpu::u32 offset, unsigned size, cpu::u32 value) override;

    // Linux's side
    [[nodiscard]] bool send(std::uint32_t word) override;
    void listen(bool enable) override;

    /// Before the first word.
    void trace_to(Tracer* tracer) { tracer_ = tracer; }
    /// Empties every register of both sides, as module reset does: for a board that boots without old words.
    void reset();

  private:
    static constexpr unsigned kRegisters = 4;
    static constexpr unsigned kChannel = 1;

    /// What one side sees.
    struct Side {
        std::array<std::uint32_t, kRegisters> receive{};
        std::uint32_t full = 0;  ///< RSR: words that arrived and are unread
        std::uint32_t gier = 0, gsr = 0, tcr = 0, rcr = 0, fcr = 0, ccr = 0, cier = 0;
    };

    [[nodiscard]] bool m33_line() const;
    void update_line(std::unique_lock<std::mutex>& lock);
    void deliver();
    template <typename... Args>
    void trace(fmt::format_string<Args...> format, Args&&... args) {
        if (tracer_ != nullptr) tracer_->line(TraceSource::Mu, format, std::forward<Args>(args)...);
    }

    std::function<void(bool)> interrupt_;
    std::function<void()> received_;
    Tracer* tracer_ = nullptr;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    Side m33_, linux_;
    std::mutex line_mutex_;  ///< orders the calls of interrupt_
    bool line_ = false;      ///< what it was last told
    bool listening_ = false;
    bool delivering_ = false;  ///< Linux's handler runs
    bool ending_ = false;
    std::thread delivery_;
};

}  // namespace talpa::board
