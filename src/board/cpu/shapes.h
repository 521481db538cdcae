// What a Body is, for those who need to know more than how to call it: the fusion pass and the translator.
#pragma once

#include "board/cpu/exec_data.h"
#include "board/cpu/op.h"

namespace talpa::board::cpu {

enum class Form : u8 {
    Other,           ///< call the body; may read and fault on anything
    Data,            // a Alu, b Operand, c flags
    ShiftRegister,   // a ShiftKind, c flags
    StackImmediate,  // a Alu
    AlignStack,
    MoveTop,
    BitField,        // a: 0 UBFX 1 SBFX 2 BFI 3 BFC
    ExtendRegister,  // a Extend, b adds
    Reverse,
    CountZeros,
    Multiply,
    MultiplyFlags,
    MultiplyAdd,
    MultiplySubtract,
    MultiplyLong,  // a signed, b accumulates
    Divide,        // a signed
    Nop,
    ExposePc,
    Load,  // a Width, b Address
    Store,
    Dual,          // a load, b Address
    LoadMultiple,  // a with PC
    StoreMultiple,
    Branch,
    BranchIf,          // a condition
    BranchOnRegister,  // a non-zero
    BranchLink,
    BranchExchange,
    BranchLinkExchange,
    TableBranch,  // a halfwords
    BlockEnd,
    FpCheck,
    FpBinary,  // a Fp2
    FpUnary,   // a Fp1
    FpImmediate,
    FpTransfer,  // a load, b words
    FpToCore,
    FpFromCore,
    FpToInteger,    // a unsigned
    FpFromInteger,  // a unsigned
    FpFlags,
};

struct Shape {
    Form form = Form::Other;
    u8 a = 0;
    u8 b = 0;
    u8 c = 0;
};

[[nodiscard]] Shape shape_of(Body body);
/// The same data operation without flags.
void drop_flags(Op& op, const Shape& shape);

}  // namespace talpa::board::cpu
