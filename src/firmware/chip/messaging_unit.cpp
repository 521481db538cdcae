#include "firmware/chip/messaging_unit.h"

#include "firmware/chip/registers.h"
#include "link/memory_map.h"

namespace talpa::firmware {
namespace {

constinit volatile bool kicked = false;

volatile std::uint32_t& mu_reg(std::uintptr_t offset) {
    return reg32(link::kMessagingUnitM33.base + offset);
}

/// Reading a word is what acknowledges it.
void read_word(unsigned i) {
    const std::uint32_t word = mu_reg(mu::kRr + 4 * i);
    static_cast<void>(word);
}

constexpr std::uint32_t kChannelBit = 1u << mu::kChannel;
constexpr unsigned kPriority = 2;

}  // namespace

void messaging_unit_start() {
    mu_reg(mu::kGier) = 0;
    mu_reg(mu::kTcr) = 0;
    mu_reg(mu::kRcr) = 0;
    for (unsigned i = 0; i < 4; ++i)
        if ((mu_reg(mu::kRsr) & (1u << i)) != 0) read_word(i);
    mu_reg(mu::kGsr) = 0xF;
    // CR.MUR would reset Linux's side too and is never used.
    mu_reg(mu::kRcr) = kChannelBit;
    kicked = true;  // one of the drained words may have been a kick of this start
    enable_irq(link::kMessagingUnitIrq, kPriority);
}

void messaging_unit_notify(std::uint32_t notify_id) {
    dsb();
    if ((mu_reg(mu::kTsr) & kChannelBit) != 0) mu_reg(mu::kTr + 4 * mu::kChannel) = notify_id << 16;
}

bool messaging_unit_kicked() {
    const CriticalSection once;
    const bool was = kicked;
    kicked = false;
    return was;
}

}  // namespace talpa::firmware

// Reading the word clears the interrupt and lets Linux, which waits up to 100 ms for that, go on.
extern "C" void messaging_unit_irq() {
    using namespace talpa::firmware;
    read_word(mu::kChannel);
    kicked = true;
}
