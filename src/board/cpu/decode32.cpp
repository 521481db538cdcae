// The 32-bit instructions by their top bits (manual table C2.3), each group decoded in a file of its own.
#include "board/cpu/decoder.h"

namespace talpa::board::cpu {

void decode32(const Instruction& i, Emitter& e) {
    const u32 h = i.first;
    if (bit(h, 10) && bits(h, 11, 2) != 2) return decode_coprocessor32(i, e);
    switch (bits(h, 11, 2)) {
        case 1:
            return bit(h, 9) ? decode_data32(i, e) : decode_memory32(i, e);
        case 2:
            return bit(i.second, 15) ? decode_system32(i, e) : decode_data32(i, e);
        default:
            return bit(h, 9) ? decode_register32(i, e) : decode_memory32(i, e);
    }
}

}  // namespace talpa::board::cpu
