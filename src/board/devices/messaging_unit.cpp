#include "board/devices/messaging_unit.h"

#include <chrono>

namespace talpa::board {
namespace {

constexpr cpu::u32 kVer = 0x000, kPar = 0x004, kCr = 0x008, kSr = 0x00C, kCcr0 = 0x010, kCier0 = 0x014, kCssr0 = 0x018;
constexpr cpu::u32 kFcr = 0x100, kFsr = 0x104, kGier = 0x110, kGcr = 0x114, kGsr = 0x118, kTcr = 0x120, kTsr = 0x124,
                   kRcr = 0x128, kRsr = 0x12C;
constexpr cpu::u32 kTr = 0x200, kRr = 0x280;
constexpr cpu::u32 kVersion = 0x03000000, kParameters = 0x03040404;
constexpr cpu::u32 kFour = 0xF;

}  // namespace

MessagingUnit::MessagingUnit(std::function<void(bool)> m33_interrupt, std::function<void()> received)
    : interrupt_(std::move(m33_interrupt)), received_(std::move(received)), delivery_([this] { deliver(); }) {}

MessagingUnit::~MessagingUnit() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    changed_.notify_all();
    delivery_.join();
}

bool MessagingUnit::m33_line() const {
    const std::uint32_t empty = ~linux_.full & kFour;  // our transmit registers are free where Linux has read its word
    return (m33_.gsr & m33_.gier) != 0 || (empty & m33_.tcr) != 0 || (m33_.full & m33_.rcr) != 0;
}

void MessagingUnit::update_line(std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    changed_.notify_all();
    // Both sides change the line. Told in another order than it changed, a rise that is over would stay for ever, and
    // the M33 would take the interrupt without end.
    const std::lock_guard in_order(line_mutex_);
    {
        const std::lock_guard again(mutex_);
        if (m33_line() == line_) return;
        line_ = !line_;
    }
    interrupt_(line_);
}

bool MessagingUnit::read(cpu::u32 offset, unsigned size, cpu::u32& value) {
    if (size != 4) return false;
    std::unique_lock lock(mutex_);
    value = 0;
    if (offset >= kRr && offset < kRr + 4 * kRegisters) {
        const unsigned n = (offset - kRr) / 4;
        value = m33_.receive[n];
        if ((m33_.full & (1u << n)) != 0) trace("M33 reads RR{} = 0x{:08x}", n, value);
        m33_.full &= ~(1u << n);
        update_line(lock);
        return true;
    }
    switch (offset) {
        case kVer:
            value = kVersion;
            break;
        case kPar:
            value = kParameters;
            break;
        case kSr:
            value = ((m33_.full & kFour) != 0 ? 1u << 6 : 0) | ((~linux_.full & kFour) != 0 ? 1u << 5 : 0) |
                    (m33_.gsr != 0 ? 1u << 4 : 0);
            break;
        case kCcr0:
            value = m33_.ccr;
            break;
        case kCier0:
            value = m33_.cier;
            break;
        case kFcr:
            value = m33_.fcr;
            break;
        case kFsr:
            value = linux_.fcr;
            break;
        case kGier:
            value = m33_.gier;
            break;
        case kGcr:
            value = linux_.gsr;
            break;  // a request stands until the other side clears it
        case kGsr:
            value = m33_.gsr;
            break;
        case kTcr:
            value = m33_.tcr;
            break;
        case kTsr:
            value = ~linux_.full & kFour;
            break;
        case kRcr:
            value = m33_.rcr;
            break;
        case kRsr:
            value = m33_.full;
            break;
        case kCr:
        case kCssr0:
            break;
        default:
            break;
    }
    return true;
}

bool MessagingUnit::write(cpu::u32 offset, unsigned size, cpu::u32 value) {
    if (size != 4) return false;
    std::unique_lock lock(mutex_);
    if (offset >= kTr && offset < kTr + 4 * kRegisters) {
        const unsigned n = (offset - kTr) / 4;
        trace("M33 writes TR{} = 0x{:08x}{}", n, value, (linux_.full & (1u << n)) != 0 ? " over an unread word" : "");
        linux_.receive[n] = value;  // an unread word is overwritten, silently as in hardware
        linux_.full |= 1u << n;
        update_line(lock);
        return true;
    }
    switch (offset) {
        case kCr:
            if ((value & 1) != 0) m33_ = linux_ = {};
            break;
        case kCcr0:
            m33_.ccr = value;
            break;
        case kCier0:
            m33_.cier = value;
            break;
        case kFcr:
            m33_.fcr = value & 7;
            break;
        case kGier:
            m33_.gier = value & kFour;
            break;
        case kGcr:
            linux_.gsr |= value & kFour;
            break;
        case kGsr:
            m33_.gsr &= ~value;
            break;
        case kTcr:
            m33_.tcr = value & kFour;
            break;
        case kRcr:
            m33_.rcr = value & kFour;
            break;
        default:
            break;  // TSR, RSR and the identification are read-only
    }
    update_line(lock);
    return true;
}

bool MessagingUnit::send(std::uint32_t word) {
    constexpr auto kLimit = std::chrono::milliseconds(100);
    const auto until = std::chrono::steady_clock::now() + kLimit;
    std::unique_lock lock(mutex_);
    const auto read_by_m33 = [this] { return ending_ || (m33_.full & (1u << kChannel)) == 0; };
    // Linux waits after its write until the M33 has read it; a word that an earlier wait gave up on is still there.
    if (!changed_.wait_until(lock, until, read_by_m33)) {
        trace("Linux cannot write TR{}: 0x{:08x} is still unread", kChannel, m33_.receive[kChannel]);
        return false;
    }
    trace("Linux writes TR{} = 0x{:08x}", kChannel, word);
    m33_.receive[kChannel] = word;
    m33_.full |= 1u << kChannel;
    update_line(lock);
    lock.lock();
    return changed_.wait_until(lock, until, read_by_m33) && !ending_;
}

void MessagingUnit::listen(bool enable) {
    std::unique_lock lock(mutex_);
    listening_ = enable;
    changed_.notify_all();
    // As free_irq does: afterwards no handler runs any more. (A handler that stops the core would wait for itself.)
    if (!enable && std::this_thread::get_id() != delivery_.get_id())
        changed_.wait(lock, [this] { return ending_ || !delivering_; });
}

void MessagingUnit::reset() {
    std::unique_lock lock(mutex_);
    m33_ = linux_ = {};
    update_line(lock);
}

// Linux's interrupt handler: reads the word, which frees the M33's transmit register, then looks at its rings.
void MessagingUnit::deliver() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return ending_ || (listening_ && (linux_.full & (1u << kChannel)) != 0); });
        if (ending_) return;
        linux_.full &= ~(1u << kChannel);
        trace("Linux reads RR{} = 0x{:08x}", kChannel, linux_.receive[kChannel]);
        delivering_ = true;
        update_line(lock);
        received_();
        lock.lock();
        delivering_ = false;
        changed_.notify_all();
    }
}

}  // namespace talpa::board
