// Maps that only elementwise operations touch may have any shape: read in runs of a whole row instead of a pixel's few
// channels, they take a fraction of the bursts. (ethos-u65, sections 8.2 and 10.1)
#pragma once

#include "compiler/lower/network.h"
#include "compiler/schedule/blocks.h"
#include "compiler/schedule/target.h"

namespace talpa::compiler {

/// Gives such tensors, and the views of them, the shape of as many elements a row that costs least by the cycle model.
/// Before layouts are chosen.
void lengthen_rows(Network& network, const Target& target, BlockChooser& chooser);

}  // namespace talpa::compiler
