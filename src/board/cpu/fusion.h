// Makes a decoded block cheaper without changing what it does: flags that nobody reads are not computed, common pairs
// become one operation. Precise faults stay precise: an operation that may fault counts as a reader of all flags.
#pragma once

#include "board/cpu/block_cache.h"

namespace talpa::board::cpu {

void fuse(Block& block);

}  // namespace talpa::board::cpu
