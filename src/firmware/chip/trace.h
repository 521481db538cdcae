// The trace buffer that Linux shows as trace0 in debugfs: text up to the first NUL. (imx93-remoteproc, section 6)
#pragma once

#include <string_view>

namespace talpa::firmware {

/// Empties it; must be the first use.
void trace_clear();

/// Appends a line. When the buffer is full its older half is dropped, so that the newest lines can always be read. May
/// be called from an interrupt handler.
void trace(std::string_view line);

}  // namespace talpa::firmware
