// Inputs and outputs that lie in slow memory and are read or written in short runs pass through SRAM: a copy by DMA in
// long runs, and the operation works on the copy. (ethos-u65, section 8.4)
#pragma once

#include "compiler/lower/network.h"
#include "compiler/schedule/blocks.h"
#include "compiler/schedule/target.h"

namespace talpa::compiler {

/// Inserts the copies where the cycle model says that they pay. Only the network's own inputs and outputs are touched.
void stage_io(Network& network, const Target& target, BlockChooser& chooser);

}  // namespace talpa::compiler
