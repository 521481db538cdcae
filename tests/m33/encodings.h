// The encodings that the differential test draws from, one line each, by group. Written from the architecture manual's
// tables, apart from the decoder in src/board/cpu, so that the two can disagree.
#pragma once

#include <span>
#include <string_view>

namespace talpa::m33_test {

/// What random bits alone would get wrong.
enum class Rule {
    None,
    NotInIt,       ///< unpredictable inside an IT block
    ModifiedImm,   ///< a replicated byte must not be zero
    Field,         ///< lsb + width <= 32 (SBFX, UBFX)
    Insert,        ///< msb >= lsb (BFI, BFC)
    DistinctPair,  ///< RdLo and RdHi, Rt and Rt2 differ
    FpList,        ///< VLDM/VSTM: registers exist
    ShiftedZero,   ///< SSAT, USAT with ASR: amount not zero
    FixedWidth,    ///< VCVT fixed point: fraction bits fit the width
    FpCorePair,    ///< VMOV with two S registers: the second exists
    FlagsOfApsr,   ///< MSR APSR
    SameRegister,  ///< CLZ and relatives name their source twice
};

struct Encoding {
    std::string_view group;
    std::string_view name;
    /// 16 or 32 bits, most significant first; blanks do not count. 0 1 fixed; i random; registers: d destination, n m a
    /// sources, e second destination; t transfer, u second transfer, b base, x index, v status, l list, p code pointer.
    std::string_view pattern;
    Rule rule = Rule::None;
};

[[nodiscard]] std::span<const Encoding> encodings();

}  // namespace talpa::m33_test
