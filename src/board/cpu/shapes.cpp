#include "board/cpu/shapes.h"

#include <unordered_map>
#include <utility>

#include "board/cpu/exec_branch.h"
#include "board/cpu/exec_fpu.h"
#include "board/cpu/exec_memory.h"
#include "board/cpu/exec_multiply.h"

namespace talpa::board::cpu {

namespace {

using Map = std::unordered_map<Body, Shape>;

constexpr u8 n(std::size_t value) {
    return static_cast<u8>(value);
}

template <std::size_t... I>
void add_data(Map& map, std::index_sequence<I...>) {
    (map.emplace(&data < static_cast<Alu>(I / 6), static_cast<Operand>(I / 2 % 3), I % 2 != 0 >,
                 Shape{Form::Data, n(I / 6), n(I / 2 % 3), n(I % 2)}),
     ...);
}
template <std::size_t... I>
void add_shifts(Map& map, std::index_sequence<I...>) {
    (map.emplace(&shift_register < static_cast<ShiftKind>(I / 2), I % 2 != 0 >,
                 Shape{Form::ShiftRegister, n(I / 2), 0, n(I % 2)}),
     ...);
}
template <std::size_t... I>
void add_extends(Map& map, std::index_sequence<I...>) {
    (map.emplace(&extend < static_cast<Extend>(I / 2), I % 2 != 0 >,
                 Shape{Form::ExtendRegister, n(I / 2), n(I % 2), 0}),
     ...);
}
template <std::size_t... I>
void add_transfers(Map& map, std::index_sequence<I...>) {
    (map.emplace(&load_register<static_cast<Width>(I / 5), static_cast<Address>(I % 5)>,
                 Shape{Form::Load, n(I / 5), n(I % 5), 0}),
     ...);
    (map.emplace(&store_register<static_cast<Width>(I / 5), static_cast<Address>(I % 5)>,
                 Shape{Form::Store, n(I / 5), n(I % 5), 0}),
     ...);
}
template <std::size_t... I>
void add_branches(Map& map, std::index_sequence<I...>) {
    (map.emplace(&branch_if<I>, Shape{Form::BranchIf, n(I), 0, 0}), ...);
}
template <std::size_t... I>
void add_fp(Map& map, std::index_sequence<I...>) {
    (map.emplace(&fp_binary<static_cast<Fp2>(I)>, Shape{Form::FpBinary, n(I), 0, 0}), ...);
}
template <bool Load>
void add_dual(Map& map) {
    map.emplace(&dual<Load, Address::Offset>, Shape{Form::Dual, Load, n(0), 0});
    map.emplace(&dual<Load, Address::Before>, Shape{Form::Dual, Load, n(3), 0});
    map.emplace(&dual<Load, Address::After>, Shape{Form::Dual, Load, n(4), 0});
}

Map make_map() {
    Map map;
    add_data(map, std::make_index_sequence<kAluCount * 6>{});
    add_shifts(map, std::make_index_sequence<8>{});
    add_extends(map, std::make_index_sequence<8>{});
    add_transfers(map, std::make_index_sequence<25>{});
    add_branches(map, std::make_index_sequence<14>{});
    add_fp(map, std::make_index_sequence<15>{});
    add_dual<true>(map);
    add_dual<false>(map);
    const std::pair<Body, Shape> others[] = {
        {&stack_arithmetic<Alu::Add, Operand::Immediate>, {Form::StackImmediate, n(std::size_t(Alu::Add)), 0, 0}},
        {&stack_arithmetic<Alu::Sub, Operand::Immediate>, {Form::StackImmediate, n(std::size_t(Alu::Sub)), 0, 0}},
        {&align_stack_pointer, {Form::AlignStack, 0, 0, 0}},
        {&movt, {Form::MoveTop, 0, 0, 0}},
        {&ubfx, {Form::BitField, 0, 0, 0}},
        {&sbfx, {Form::BitField, 1, 0, 0}},
        {&bfi, {Form::BitField, 2, 0, 0}},
        {&bfc, {Form::BitField, 3, 0, 0}},
        {&rev, {Form::Reverse, 0, 0, 0}},
        {&clz, {Form::CountZeros, 0, 0, 0}},
        {&mul, {Form::Multiply, 0, 0, 0}},
        {&muls, {Form::MultiplyFlags, 0, 0, 0}},
        {&mla, {Form::MultiplyAdd, 0, 0, 0}},
        {&mls, {Form::MultiplySubtract, 0, 0, 0}},
        {&multiply_long<false, false>, {Form::MultiplyLong, 0, 0, 0}},
        {&multiply_long<false, true>, {Form::MultiplyLong, 0, 1, 0}},
        {&multiply_long<true, false>, {Form::MultiplyLong, 1, 0, 0}},
        {&multiply_long<true, true>, {Form::MultiplyLong, 1, 1, 0}},
        {&udiv, {Form::Divide, 0, 0, 0}},
        {&sdiv, {Form::Divide, 1, 0, 0}},
        {&nop, {Form::Nop, 0, 0, 0}},
        {&expose_pc, {Form::ExposePc, 0, 0, 0}},
        {&load_multiple<false>, {Form::LoadMultiple, 0, 0, 0}},
        {&load_multiple<true>, {Form::LoadMultiple, 1, 0, 0}},
        {&store_multiple, {Form::StoreMultiple, 0, 0, 0}},
        {&branch, {Form::Branch, 0, 0, 0}},
        {&branch_on_register<false>, {Form::BranchOnRegister, 0, 0, 0}},
        {&branch_on_register<true>, {Form::BranchOnRegister, 1, 0, 0}},
        {&branch_link, {Form::BranchLink, 0, 0, 0}},
        {&branch_exchange, {Form::BranchExchange, 0, 0, 0}},
        {&branch_link_exchange, {Form::BranchLinkExchange, 0, 0, 0}},
        {&table_branch<false>, {Form::TableBranch, 0, 0, 0}},
        {&table_branch<true>, {Form::TableBranch, 1, 0, 0}},
        {&block_end, {Form::BlockEnd, 0, 0, 0}},
        {&fp_check, {Form::FpCheck, 0, 0, 0}},
        {&fp_unary<Fp1::Move>, {Form::FpUnary, n(std::size_t(Fp1::Move)), 0, 0}},
        {&fp_unary<Fp1::Abs>, {Form::FpUnary, n(std::size_t(Fp1::Abs)), 0, 0}},
        {&fp_unary<Fp1::Neg>, {Form::FpUnary, n(std::size_t(Fp1::Neg)), 0, 0}},
        {&fp_immediate, {Form::FpImmediate, 0, 0, 0}},
        {&fp_transfer<true, 1>, {Form::FpTransfer, 1, 1, 0}},
        {&fp_transfer<false, 1>, {Form::FpTransfer, 0, 1, 0}},
        {&fp_to_core, {Form::FpToCore, 0, 0, 0}},
        {&fp_from_core, {Form::FpFromCore, 0, 0, 0}},
        {&fp_to_fixed<false>, {Form::FpToInteger, 0, 0, 0}},
        {&fp_from_fixed<false>, {Form::FpFromInteger, 0, 0, 0}},
        {&vmrs_flags, {Form::FpFlags, 0, 0, 0}},
    };
    for (const auto& [body, shape] : others) map.emplace(body, shape);
    return map;
}

using Setter = void (*)(Op&);
template <std::size_t... I>
constexpr std::array<Setter, sizeof...(I)> plain_data(std::index_sequence<I...>) {
    return {&set_body<data<static_cast<Alu>(I / 3), static_cast<Operand>(I % 3), false>>...};
}
constexpr auto kPlainData = plain_data(std::make_index_sequence<kAluCount * 3>{});

}  // namespace

Shape shape_of(Body body) {
    static const Map kMap = make_map();
    const auto found = kMap.find(body);
    return found == kMap.end() ? Shape{} : found->second;
}

void drop_flags(Op& op, const Shape& shape) {
    kPlainData[shape.a * 3U + shape.b](op);
}

}  // namespace talpa::board::cpu
