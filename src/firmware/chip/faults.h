// What happens when the core faults: registers go to the trace buffer and to the control block, where Linux can read
// them through /dev/mem, since on i.MX 93 remoteproc sees nothing of an M33 fault. (imx93-remoteproc, section 5)
#pragma once

#include <cstdint>

namespace talpa::firmware {

/// Vector of every fault and of NMI.
void fault_entry();

/// Called from it with the exception frame (R0..R3, R12, LR, PC, xPSR) and EXC_RETURN. Writes the record and stops.
extern "C" [[noreturn]] void report_fault(const std::uint32_t* frame, std::uint32_t exc_return);

}  // namespace talpa::firmware
