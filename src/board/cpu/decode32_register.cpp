// Register forms: shifts, extension, parallel arithmetic, multiplication and division (manual C2.3.8 to C2.3.10).
#include <array>
#include <utility>

#include "board/cpu/decoder.h"
#include "board/cpu/exec_dsp.h"
#include "board/cpu/exec_multiply.h"

namespace talpa::board::cpu {

namespace {

using Setter = void (*)(Op&);

struct Fields {
    unsigned rd;
    unsigned rn;
    unsigned rm;
    unsigned ra;
};

Fields fields(const Instruction& i) {
    return {bits(i.second, 8, 4), bits(i.first, 0, 4), bits(i.second, 0, 4), bits(i.second, 12, 4)};
}

void add(Emitter& e, Setter setter, const Fields& f) {
    Op& op = e.add<nop>();
    setter(op);
    op.rd = static_cast<u8>(f.rd);
    op.rn = static_cast<u8>(f.rn);
    op.rm = static_cast<u8>(f.rm);
    op.ra = static_cast<u8>(f.ra);
}

template <Rule R>
constexpr std::array<Setter, 8> parallel_row() {
    return {&set_body<parallel<R, Lanes::Add8>>, &set_body<parallel<R, Lanes::Add16>>,
            &set_body<parallel<R, Lanes::Asx>>,  nullptr,
            &set_body<parallel<R, Lanes::Sub8>>, &set_body<parallel<R, Lanes::Sub16>>,
            &set_body<parallel<R, Lanes::Sax>>,  nullptr};
}
/// By bits 6:4 of the second halfword: signed, then unsigned.
constexpr std::array<Setter, 8> kNoRow{};
constexpr std::array<std::array<Setter, 8>, 8> kParallel = {
    parallel_row<Rule::Signed>(),        parallel_row<Rule::SignedSaturate>(),
    parallel_row<Rule::SignedHalve>(),   kNoRow,
    parallel_row<Rule::Unsigned>(),      parallel_row<Rule::UnsignedSaturate>(),
    parallel_row<Rule::UnsignedHalve>(), kNoRow};

/// QADD and other lone operations: bits 5:4 of the first halfword, then 5:4 of the second.
constexpr Setter kMiscellaneous[4][4] = {
    {&set_body<saturating_add<false, false>>, &set_body<saturating_add<false, true>>,
     &set_body<saturating_add<true, false>>, &set_body<saturating_add<true, true>>},
    {&set_body<rev>, &set_body<rev16>, &set_body<rbit>, &set_body<revsh>},
    {&set_body<sel>, nullptr, nullptr, nullptr},
    {&set_body<clz>, nullptr, nullptr, nullptr}};

void decode_register(const Instruction& i, Emitter& e) {
    const unsigned op1 = bits(i.first, 4, 4);
    const unsigned op2 = bits(i.second, 4, 4);
    const Fields f = fields(i);
    if (f.ra != 15) return emit_undefined(e);
    if (op1 < 8 && op2 == 0) {
        emit_shift_register(e, op1 >> 1, bit(op1, 0), f.rd, f.rn, f.rm);
        return;
    }
    if (op1 < 6 && op2 >= 8) {
        static constexpr Extend kKinds[] = {Extend::Sxth,   Extend::Uxth, Extend::Sxtb16,
                                            Extend::Uxtb16, Extend::Sxtb, Extend::Uxtb};
        if (bit(op2, 2)) return emit_undefined(e);
        return emit_extend(e, static_cast<unsigned>(kKinds[op1]), f.rd, f.rn, f.rm, 8 * (op2 & 3));
    }
    Setter setter = nullptr;
    if (op1 >= 8 && op2 < 8) setter = kParallel[op2][op1 & 7];
    if (op1 >= 8 && op1 < 12 && (op2 >> 2) == 2) setter = kMiscellaneous[op1 & 3][op2 & 3];
    if (setter == nullptr) return emit_undefined(e);
    add(e, setter, f);
}

template <std::size_t... I>
constexpr std::array<Setter, sizeof...(I)> halves_table(std::index_sequence<I...>) {
    return {&set_body<multiply_halves<(I & 2) != 0, (I & 1) != 0, (I & 4) != 0>>...};
}
constexpr auto kHalves = halves_table(std::make_index_sequence<8>{});

template <std::size_t... I>
constexpr std::array<Setter, sizeof...(I)> long_halves_table(std::index_sequence<I...>) {
    return {&set_body<smlal_halves<(I & 2) != 0, (I & 1) != 0>>...};
}
constexpr auto kLongHalves = long_halves_table(std::make_index_sequence<4>{});

void decode_multiply(const Instruction& i, Emitter& e) {
    const Fields f = fields(i);
    const unsigned op1 = bits(i.first, 4, 3);
    const unsigned op2 = bits(i.second, 4, 2);
    const bool plus = f.ra != 15;  // accumulating form
    if (bits(i.second, 6, 2) != 0) return emit_undefined(e);
    const bool low = bit(op2, 0);
    Setter setter = nullptr;
    switch (op1) {
        case 0:
            if (op2 == 0) setter = plus ? &set_body<mla> : &set_body<mul>;
            if (op2 == 1) setter = &set_body<mls>;
            break;
        case 1:
            setter = kHalves[op2 + (plus ? 4 : 0)];
            break;
        case 2:
            if (op2 < 2) {
                setter = plus ? (low ? &set_body<multiply_dual<false, true, true>>
                                     : &set_body<multiply_dual<false, false, true>>)
                              : (low ? &set_body<multiply_dual<false, true, false>>
                                     : &set_body<multiply_dual<false, false, false>>);
            }
            break;
        case 3:
            if (op2 < 2) {
                setter =
                    plus
                        ? (low ? &set_body<multiply_word_half<true, true>> : &set_body<multiply_word_half<false, true>>)
                        : (low ? &set_body<multiply_word_half<true, false>>
                               : &set_body<multiply_word_half<false, false>>);
            }
            break;
        case 4:
            if (op2 < 2) {
                setter = plus ? (low ? &set_body<multiply_dual<true, true, true>>
                                     : &set_body<multiply_dual<true, false, true>>)
                              : (low ? &set_body<multiply_dual<true, true, false>>
                                     : &set_body<multiply_dual<true, false, false>>);
            }
            break;
        case 5:
            if (op2 < 2) {
                setter = plus ? (low ? &set_body<most_significant<Most::Add, true>>
                                     : &set_body<most_significant<Most::Add, false>>)
                              : (low ? &set_body<most_significant<Most::Multiply, true>>
                                     : &set_body<most_significant<Most::Multiply, false>>);
            }
            break;
        case 6:
            if (op2 < 2)
                setter = low ? &set_body<most_significant<Most::Subtract, true>>
                             : &set_body<most_significant<Most::Subtract, false>>;
            break;
        default:
            if (op2 == 0) setter = plus ? &set_body<sum_of_differences<true>> : &set_body<sum_of_differences<false>>;
            break;
    }
    if (setter == nullptr) return emit_undefined(e);
    add(e, setter, f);
}

void decode_long_multiply(const Instruction& i, Emitter& e) {
    // The results go to RdLo (bits 15:12) and RdHi (11:8): rd and ra of the operation.
    const Fields f = fields(i);
    const Fields pair = {f.ra, f.rn, f.rm, f.rd};
    const unsigned op2 = bits(i.second, 4, 4);
    const bool x = bit(op2, 0);
    switch (bits(i.first, 4, 3)) {
        case 0:
            if (op2 == 0) return add(e, &set_body<multiply_long<true, false>>, pair);
            break;
        case 1:
            if (op2 == 15 && f.ra == 15) return add(e, &set_body<sdiv>, f);
            break;
        case 2:
            if (op2 == 0) return add(e, &set_body<multiply_long<false, false>>, pair);
            break;
        case 3:
            if (op2 == 15 && f.ra == 15) return add(e, &set_body<udiv>, f);
            break;
        case 4:
            if (op2 == 0) return add(e, &set_body<multiply_long<true, true>>, pair);
            if ((op2 >> 2) == 2) return add(e, kLongHalves[op2 & 3], pair);
            if ((op2 >> 1) == 6)
                return add(e,
                           x ? &set_body<multiply_dual_long<false, true>> : &set_body<multiply_dual_long<false, false>>,
                           pair);
            break;
        case 5:
            if ((op2 >> 1) == 6)
                return add(e,
                           x ? &set_body<multiply_dual_long<true, true>> : &set_body<multiply_dual_long<true, false>>,
                           pair);
            break;
        case 6:
            if (op2 == 0) return add(e, &set_body<multiply_long<false, true>>, pair);
            if (op2 == 6) return add(e, &set_body<umaal>, pair);
            break;
        default:
            break;
    }
    emit_undefined(e);
}

}  // namespace

void decode_register32(const Instruction& i, Emitter& e) {
    if (!bit(i.first, 8)) return decode_register(i, e);
    if (!bit(i.first, 7)) return decode_multiply(i, e);
    decode_long_multiply(i, e);
}

}  // namespace talpa::board::cpu
