// Choosing the body for an operation whose form is known: tables from (operation, operand, flags) to code.
#include <array>
#include <utility>

#include "board/cpu/decoder.h"
#include "board/cpu/exec_branch.h"
#include "board/cpu/exec_dsp.h"
#include "board/cpu/exec_fpu.h"
#include "board/cpu/exec_memory.h"
#include "board/cpu/exec_multiply.h"
#include "board/cpu/exec_system.h"

namespace talpa::board::cpu {

namespace {

using Setter = void (*)(Op&);

// data: index (alu * 3 + operand) * 2 + flags.
template <std::size_t... I>
constexpr std::array<Setter, sizeof...(I)> data_table(std::index_sequence<I...>) {
    return {&set_body<data<static_cast<Alu>(I / 6), static_cast<Operand>(I / 2 % 3), I % 2 != 0>>...};
}
constexpr auto kData = data_table(std::make_index_sequence<kAluCount * 6>{});

template <std::size_t... I>
constexpr std::array<Setter, sizeof...(I)> shift_table(std::index_sequence<I...>) {
    return {&set_body<shift_register<static_cast<ShiftKind>(I / 2), I % 2 != 0>>...};
}
constexpr auto kShift = shift_table(std::make_index_sequence<8>{});

template <std::size_t... I>
constexpr std::array<Setter, sizeof...(I)> branch_table(std::index_sequence<I...>) {
    return {&set_body<branch_if<I>>...};
}
constexpr auto kBranchIf = branch_table(std::make_index_sequence<14>{});

// Transfers: width * 5 + address mode.
template <std::size_t... I>
constexpr std::array<Setter, sizeof...(I)> load_table(std::index_sequence<I...>) {
    return {&set_body<load_register<static_cast<Width>(I / 5), static_cast<Address>(I % 5)>>...};
}
template <std::size_t... I>
constexpr std::array<Setter, sizeof...(I)> store_table(std::index_sequence<I...>) {
    return {&set_body<store_register<static_cast<Width>(I / 5), static_cast<Address>(I % 5)>>...};
}
constexpr auto kLoad = load_table(std::make_index_sequence<25>{});
constexpr auto kStore = store_table(std::make_index_sequence<25>{});
template <std::size_t... I>
constexpr std::array<Setter, sizeof...(I)> load_pc_table(std::index_sequence<I...>) {
    return {&set_body<load_pc<static_cast<Address>(I)>>...};
}
constexpr auto kLoadPc = load_pc_table(std::make_index_sequence<5>{});

template <std::size_t... I>
constexpr std::array<Setter, sizeof...(I)> extend_table(std::index_sequence<I...>) {
    return {&set_body<extend<static_cast<Extend>(I / 2), I % 2 != 0>>...};
}
constexpr auto kExtend = extend_table(std::make_index_sequence<12>{});

void set_operand(Op& op, const Operand2& operand) {
    op.imm = operand.imm;
    op.rm = operand.rm;
    op.aux = operand.aux;
}

void expose(Emitter& e, const Instruction& i) {
    e.add<expose_pc>().imm = i.pc_value();
}

}  // namespace

void Emitter::check_fp() {
    if (fp_checked) return;
    add<fp_check>();
    if (current_.it == 0) fp_checked = true;
}

void emit_undefined(Emitter& e) {
    e.add<undefined>();
    e.ended = true;
}

Operand2 Operand2::shifted(unsigned rm, unsigned kind, unsigned amount) {
    if (kind == kLsl && amount == 0) return reg(rm);
    if (kind == kRor && amount == 0) return {Operand::Shifted, 1, static_cast<u8>(rm), kRrx};
    return {Operand::Shifted, amount == 0 ? 32 : amount, static_cast<u8>(rm), static_cast<u8>(kind)};
}

void emit_data(Emitter& e, const Instruction& i, Alu alu, bool set_flags, unsigned rd, unsigned rn, Operand2 operand) {
    const bool unary = alu == Alu::Mov || alu == Alu::Mvn;
    if ((!unary && rn == kPc) || (operand.kind != Operand::Immediate && operand.rm == kPc)) expose(e, i);
    const bool writes = !is_compare(alu);
    if (writes && rd == kSp && rn == kSp && (alu == Alu::Add || alu == Alu::Sub)) {
        const bool sub = alu == Alu::Sub;
        if (set_flags) emit_data(e, i, sub ? Alu::Cmp : Alu::Cmn, true, 0, rn, operand);
        Op* op = nullptr;
        switch (operand.kind) {
            case Operand::Immediate:
                op = sub ? &e.add<stack_arithmetic<Alu::Sub, Operand::Immediate>>()
                         : &e.add<stack_arithmetic<Alu::Add, Operand::Immediate>>();
                break;
            case Operand::Register:
                op = sub ? &e.add<stack_arithmetic<Alu::Sub, Operand::Register>>()
                         : &e.add<stack_arithmetic<Alu::Add, Operand::Register>>();
                break;
            case Operand::Shifted:
                op = sub ? &e.add<stack_arithmetic<Alu::Sub, Operand::Shifted>>()
                         : &e.add<stack_arithmetic<Alu::Add, Operand::Shifted>>();
                break;
        }
        set_operand(*op, operand);
        return;
    }
    Op& op = e.add<nop>();
    kData[(static_cast<std::size_t>(alu) * 3 + static_cast<std::size_t>(operand.kind)) * 2 + (set_flags ? 1 : 0)](op);
    op.rd = static_cast<u8>(rd);
    op.rn = static_cast<u8>(rn);
    set_operand(op, operand);
    if (!writes) return;
    if (rd == kSp) e.add<align_stack_pointer>();
    if (rd == kPc) {
        e.add<branch_to_pc>();
        e.ended = true;
    }
}

void emit_shift_register(Emitter& e, unsigned kind, bool set_flags, unsigned rd, unsigned rn, unsigned rm) {
    Op& op = e.add<nop>();
    kShift[kind * 2 + (set_flags ? 1 : 0)](op);
    op.rd = static_cast<u8>(rd);
    op.rn = static_cast<u8>(rn);
    op.rm = static_cast<u8>(rm);
}

void emit_branch_if(Emitter& e, const Instruction& i, unsigned condition, u32 target) {
    Op& op = e.add<branch>();
    kBranchIf[condition](op);
    op.imm = target;
    op.imm2 = i.next();
    e.ended = true;
}

void emit_transfer(Emitter& e, Transfer t, unsigned width, unsigned address_mode, unsigned rt, unsigned rn, unsigned rm,
                   u32 imm, unsigned shift) {
    Op& op = e.add<nop>();
    if (t == Transfer::Load && rt == kPc) {
        kLoadPc[address_mode](op);
        e.ended = true;
    } else {
        (t == Transfer::Load ? kLoad : kStore)[width * 5 + address_mode](op);
    }
    op.rd = static_cast<u8>(rt);
    op.rn = static_cast<u8>(rn);
    op.rm = static_cast<u8>(rm);
    op.imm = imm;
    op.aux = static_cast<u8>(shift);
    if (t == Transfer::Load && rt == kSp) e.add<align_stack_pointer>();
}

void emit_multiple(Emitter& e, Transfer t, unsigned rn, u32 list, bool down, bool write_back) {
    const bool pc = t == Transfer::Load && bit(list, kPc);
    Op& op = t == Transfer::Store ? e.add<store_multiple>()
             : pc                 ? e.add<load_multiple<true>>()
                                  : e.add<load_multiple<false>>();
    op.rn = static_cast<u8>(rn);
    op.imm = list;
    op.aux = static_cast<u8>((down ? kMultipleDown : 0) | (write_back ? kMultipleWriteBack : 0));
    if (pc) e.ended = true;
}

void emit_extend(Emitter& e, unsigned kind, unsigned rd, unsigned rn, unsigned rm, unsigned rotation) {
    Op& op = e.add<nop>();
    kExtend[kind * 2 + (rn == kPc ? 0 : 1)](op);
    op.rd = static_cast<u8>(rd);
    op.rn = static_cast<u8>(rn);
    op.rm = static_cast<u8>(rm);
    op.aux = static_cast<u8>(rotation);
}

void emit_hint(Emitter& e, unsigned hint) {
    switch (hint) {
        case 2:
            e.add<wfe>();
            break;
        case 3:
            e.add<wfi>();
            break;
        case 4:
            e.add<sev>();
            return;
        default:
            e.add<nop>();
            return;
    }
    e.barrier = true;
}

}  // namespace talpa::board::cpu
