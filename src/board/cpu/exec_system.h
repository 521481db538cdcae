// System instructions: special registers, exceptions on purpose, sleep, barriers. What they do to the machine is in
// exec_system.cpp; none of them is hot.
#pragma once

#include "board/cpu/op.h"

namespace talpa::board::cpu {

bool mrs(Core& core, const Op& op);  ///< rd = special register imm
bool msr(Core& core, const Op& op);  ///< special register imm = rn, mask aux (bit 1: NZCVQ, bit 0: GE); ends the block
bool cps(Core& core, const Op& op);  ///< aux bit 0: FAULTMASK, bit 1: PRIMASK; imm 1 sets; ends the block
bool svc(Core& core, const Op& op);
bool bkpt(Core& core, const Op& op);
bool undefined(Core& core, const Op& op);
bool no_coprocessor(Core& core, const Op& op);
bool secure_only(Core& core, const Op& op);  ///< BXNS and BLXNS to the non-secure state, which is not modelled
bool wfi(Core& core, const Op& op);
bool wfe(Core& core, const Op& op);
bool sev(Core& core, const Op& op);
bool barrier(Core& core, const Op& op);              ///< DMB, DSB
bool instruction_barrier(Core& core, const Op& op);  ///< ISB: ends the block
bool test_target(Core& core, const Op& op);          ///< TT, TTT: aux bit 0 T, bit 1 A

/// A fetch that failed when the block was decoded faults when it is reached: aux is the Fault.
bool fetch_fault(Core& core, const Op& op);

}  // namespace talpa::board::cpu
