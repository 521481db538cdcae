#include "board/cpu/fusion.h"

#include "board/cpu/shapes.h"

namespace talpa::board::cpu {

namespace {

// Which flags matter behind an operation.
enum : u8 { kLiveNz = 1, kLiveC = 2, kLiveV = 4, kAllLive = 7 };

u8 read_by_condition(unsigned condition) {
    switch (condition >> 1) {
        case 0:
        case 2:
            return kLiveNz;
        case 1:
            return kLiveC;
        case 3:
            return kLiveV;
        case 4:
            return kLiveNz | kLiveC;
        default:
            return kLiveNz | kLiveV;
    }
}

struct Effect {
    u8 reads = 0;
    u8 sets = 0;
};

Effect effect_of(const Op& op, const Shape& shape) {
    switch (shape.form) {
        case Form::Data: {
            const auto alu = static_cast<Alu>(shape.a);
            const auto operand = static_cast<Operand>(shape.b);
            Effect e;
            const bool shifter_carry =
                operand == Operand::Shifted || (operand == Operand::Immediate && op.aux != kCarryKept);
            if (shape.c != 0) {
                if (is_arithmetic(alu))
                    e.sets = kAllLive;
                else
                    e.sets = shifter_carry ? kLiveNz | kLiveC : kLiveNz;
            }
            if (reads_carry(alu) || (operand == Operand::Shifted && op.aux == kRrx)) e.reads |= kLiveC;
            return e;
        }
        case Form::ShiftRegister:
            return {0, static_cast<u8>(shape.c != 0 ? kLiveNz : 0)};  // C only for amounts above zero
        case Form::MultiplyFlags:
            return {0, kLiveNz};
        case Form::AlignStack:
        case Form::MoveTop:
        case Form::BitField:
        case Form::ExtendRegister:
        case Form::Reverse:
        case Form::CountZeros:
        case Form::Multiply:
        case Form::MultiplyAdd:
        case Form::MultiplySubtract:
        case Form::MultiplyLong:
        case Form::Nop:
        case Form::ExposePc:
        case Form::FpUnary:
        case Form::FpBinary:
        case Form::FpImmediate:
        case Form::FpToCore:
        case Form::FpFromCore:
        case Form::FpToInteger:
        case Form::FpFromInteger:
            return {0, 0};
        default:
            return {kAllLive, 0};  // may fault, leave or look at the flags in ways not told here
    }
}

}  // namespace

void fuse(Block& block) {
    std::vector<bool> conditional(block.ops.size(), false);
    for (std::size_t i = 0; i < block.ops.size(); i++)
        if (block.ops[i].body == nullptr)
            for (std::size_t k = i + 1; k <= i + block.ops[i].rd; k++) conditional[k] = true;
    u8 live = kAllLive;
    for (std::size_t i = block.ops.size(); i-- > 0;) {
        Op& op = block.ops[i];
        if (op.body == nullptr) {  // skip: reads its condition
            live |= read_by_condition(op.aux);
            continue;
        }
        const Shape shape = shape_of(op.body);
        const Effect effect = effect_of(op, shape);
        if (shape.form == Form::Data && effect.sets != 0 && (effect.sets & live) == 0) {
            drop_flags(op, shape);
            live |= effect_of(op, shape_of(op.body)).reads;
            continue;
        }
        if (!conditional[i]) live &= static_cast<u8>(~effect.sets);
        live |= effect.reads;
    }
}

}  // namespace talpa::board::cpu
