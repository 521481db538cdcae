// Memory attributes: DDR as Normal memory.
#pragma once

namespace talpa::firmware {

/// Makes 80000000..DFFFFFFF Normal non-cacheable. In the default map A0000000 and up is Device memory, where each
/// unaligned access faults and nothing is merged. (imx93-remoteproc, section 1.7)
void protect_memory();

}  // namespace talpa::firmware
