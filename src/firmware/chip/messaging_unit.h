// Messaging Unit 1, side A: how Linux's kicks arrive and ours leave. (imx93-remoteproc, section 3)
#pragma once

#include <cstdint>

namespace talpa::firmware {

/// Drains words that an earlier start left (the unit is not reset with the core), and enables the receive interrupt.
void messaging_unit_start();

/// Tells Linux that ring `notify_id` changed. When an earlier word is still unread nothing is written: Linux looks at
/// every ring on any word, and stops reading for good when it stops the core.
void messaging_unit_notify(std::uint32_t notify_id);

/// True once after one or more kicks arrived.
[[nodiscard]] bool messaging_unit_kicked();

}  // namespace talpa::firmware
