#include "board/cpu/fusion.h"

namespace talpa::board::cpu {

void fuse(Block& /*block*/) {}

}  // namespace talpa::board::cpu
