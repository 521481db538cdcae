// Translation of loads and stores: the page table of memory_access.h in seven instructions, everything else by the
// Body.
#include <bit>
#include <cstddef>

#include "board/cpu/exec_memory.h"
#include "board/cpu/translator.h"

namespace talpa::board::cpu {

using namespace x86;

namespace {
constexpr unsigned kRotateRight = 1;
constexpr unsigned kShiftRight = 5;
constexpr unsigned kShiftLeft = 4;
constexpr i32 kWriteTable = static_cast<i32>(kPageTableWords * sizeof(std::uintptr_t));
}  // namespace

/// eax = the address of the access.
void Translator::address(const Op& op, Address mode) {
    const Place n = reg(op.rn);
    switch (mode) {
        case Address::Absolute:
            return a_.load_immediate(Place::of(rax), op.imm);
        case Address::After:
            return a_.load(rax, n);
        case Address::Register: {
            const Place m = reg(op.rm);
            if (!n.memory && !m.memory) {
                a_.indexed(0x8D, rax, n.reg, m.reg, op.aux, 0);
                return;
            }
            a_.load(rax, m);
            if (op.aux != 0) a_.shift(kShiftLeft, rax, op.aux);
            return a_.op(Op8::Add, rax, n);
        }
        default:
            if (!n.memory && op.imm != 0) return a_.lea(rax, n.reg, static_cast<i32>(op.imm));
            a_.load(rax, n);
            if (op.imm != 0) a_.op_immediate(Op8::Add, Place::of(rax), op.imm);
    }
}

/// rcx = host address minus guest address for the page of eax, or the slow path.
void Translator::find_page(const Op& op, unsigned size, bool write) {
    const unsigned turn = size == 4 ? 2 : size == 2 ? 1 : 0;
    a_.load(rcx, Place::of(rax));
    if (turn != 0) a_.shift(kRotateRight, rcx, turn);
    a_.shift(kShiftRight, rcx, kPageBits - turn);
    a_.indexed(0x8B, rcx, rdi, rcx, 3, write ? kWriteTable : 0, true);
    a_.place(0x85, rcx, Place::of(rcx), true);
    slow(a_.jump_if(kE), op);
}

/// `bytes` from eax must not leave the page.
void Translator::within_page(const Op& op, u32 bytes) {
    a_.load(rcx, Place::of(rax));
    a_.op_immediate(Op8::And, Place::of(rcx), kPageSize - 1);
    a_.op_immediate(Op8::Cmp, Place::of(rcx), kPageSize - bytes);
    slow(a_.jump_if(kA), op);
}

void Translator::transfer(const Op& op, const Shape& shape, bool load) {
    const auto width = static_cast<Width>(shape.a);
    const auto mode = static_cast<Address>(shape.b);
    const std::size_t first = slow_paths_.size();
    if (writes_back(mode) && op.rn == kSp) {
        a_.lea(rdx, rbp, static_cast<i32>(op.imm));
        a_.op(Op8::Cmp, rdx, Place::field(offsetof(Core, stack_limit)));
        slow(a_.jump_if(kB), op);
    }
    address(op, mode);
    find_page(op, bytes_of(width), !load);
    const Place d = reg(op.rd);
    if (load) {
        static constexpr u32 kOpcodes[] = {0x1B6, 0x1BE, 0x1B7, 0x1BF, 0x8B};
        const Reg to = d.memory ? rcx : d.reg;
        // With write-back the base moves first: if it is the loaded register too, the loaded value wins.
        if (writes_back(mode)) {
            a_.indexed(kOpcodes[shape.a], rcx, rcx, rax, 0, 0);
            a_.op_immediate(Op8::Add, reg(op.rn), op.imm);
            if (op.rn == kSp) a_.op_immediate(Op8::And, reg(kSp), ~3U);
            a_.store(d, rcx);
        } else {
            a_.indexed(kOpcodes[shape.a], to, rcx, rax, 0, 0);
            if (d.memory) a_.store(d, rcx);
        }
    } else {
        Reg value = rdx;
        d.memory ? a_.load(rdx, d) : void(value = d.reg);
        switch (bytes_of(width)) {
            case 4:
                a_.indexed(0x89, value, rcx, rax, 0, 0);
                break;
            case 2:
                a_.indexed(0x89, value, rcx, rax, 0, 0, false, 0x66);
                break;
            default:
                a_.indexed(0x88, value, rcx, rax, 0, 0, false, 0, true);
                break;
        }
        if (writes_back(mode)) {
            a_.op_immediate(Op8::Add, reg(op.rn), op.imm);
            if (op.rn == kSp) a_.op_immediate(Op8::And, reg(kSp), ~3U);
        }
    }
    for (std::size_t i = first; i < slow_paths_.size(); i++) slow_paths_[i].resume = a_.position();
}

void Translator::dual(const Op& op, const Shape& shape) {
    const bool load = shape.a != 0;
    const auto mode = static_cast<Address>(shape.b);
    if (writes_back(mode) && op.rn == kSp) return call_body(op);
    const std::size_t first = slow_paths_.size();
    address(op, mode);
    within_page(op, 8);
    find_page(op, 4, !load);
    if (load) {
        a_.indexed(0x8B, rdx, rcx, rax, 0, 0);
        a_.indexed(0x8B, rcx, rcx, rax, 0, 4);
        if (writes_back(mode)) a_.op_immediate(Op8::Add, reg(op.rn), op.imm);
        a_.store(reg(op.rd), rdx);
        a_.store(reg(op.ra), rcx);
    } else {
        a_.load(rdx, reg(op.rd));
        a_.indexed(0x89, rdx, rcx, rax, 0, 0);
        a_.load(rdx, reg(op.ra));
        a_.indexed(0x89, rdx, rcx, rax, 0, 4);
        if (writes_back(mode)) a_.op_immediate(Op8::Add, reg(op.rn), op.imm);
    }
    for (std::size_t i = first; i < slow_paths_.size(); i++) slow_paths_[i].resume = a_.position();
}

void Translator::multiple(const Op& op, const Shape& shape, bool load) {
    const bool down = (op.aux & kMultipleDown) != 0;
    const bool wb = (op.aux & kMultipleWriteBack) != 0;
    const bool pc = load && shape.a != 0;
    const u32 bytes = 4 * w(std::popcount(op.imm));
    if (bit(op.imm, kSp)) return call_body(op);
    const std::size_t first = slow_paths_.size();
    a_.load(rax, reg(op.rn));
    if (down) a_.op_immediate(Op8::Sub, Place::of(rax), bytes);
    if (wb && op.rn == kSp && down) {
        a_.op(Op8::Cmp, rax, Place::field(offsetof(Core, stack_limit)));
        slow(a_.jump_if(kB), op);
    }
    if (bytes > 4) within_page(op, bytes);
    find_page(op, 4, !load);
    a_.place(0x01, rax, Place::of(rcx), true);  // add rcx, rax: the host address
    const auto write_back = [&] {
        if (!wb) return;
        if (!down) a_.op_immediate(Op8::Add, Place::of(rax), bytes);
        a_.store(reg(op.rn), rax);
    };
    // The base changes before registers are loaded over it, and after it was stored itself.
    if (load) write_back();
    i32 offset = 0;
    for (u32 list = op.imm & 0x7FFF; list != 0; list &= list - 1, offset += 4) {
        const Place r = reg(w(std::countr_zero(list)));
        if (load) {
            const Reg to = r.memory ? rdx : r.reg;
            a_.memory(0x8B, to, rcx, offset);
            if (r.memory) a_.store(r, rdx);
        } else {
            Reg from = rdx;
            r.memory ? a_.load(rdx, r) : void(from = r.reg);
            a_.memory(0x89, from, rcx, offset);
        }
    }
    if (!load) write_back();
    if (pc) {
        a_.memory(0x8B, rax, rcx, offset);
        indirect(Leave::Indirect);
        return;  // the slow path leaves too
    }
    for (std::size_t i = first; i < slow_paths_.size(); i++) slow_paths_[i].resume = a_.position();
}

void Translator::table_branch(const Op& op, bool half) {
    if (op.rn == kPc) {
        a_.load(rax, reg(op.rm));
        if (half) a_.shift(kShiftLeft, rax, 1);
        a_.op_immediate(Op8::Add, Place::of(rax), op.imm);
    } else {
        a_.load(rax, reg(op.rm));
        if (half) a_.shift(kShiftLeft, rax, 1);
        a_.op(Op8::Add, rax, reg(op.rn));
    }
    find_page(op, half ? 2 : 1, false);
    a_.indexed(half ? 0x1B7 : 0x1B6, rax, rcx, rax, 0, 0);
    a_.place(0x01, rax, Place::of(rax));  // doubled
    a_.op_immediate(Op8::Add, Place::of(rax), op.imm + 1);
    indirect(Leave::IndirectPlain);
}

}  // namespace talpa::board::cpu
