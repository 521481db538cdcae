#include "board/cpu/translator.h"

#include <cstddef>

#include "board/cpu/exec_fpu.h"
#include "board/cpu/exec_memory.h"
#include "board/cpu/machine.h"

namespace talpa::board::cpu {

using namespace x86;

namespace {

constexpr std::size_t kBufferSize = std::size_t{16} << 20;
constexpr std::size_t kRoomForBlock = 64 * 1024;

/// Host registers of guest registers; the rest stay in memory.
struct Home {
    unsigned guest;
    Reg host;
};
constexpr Home kHomes[] = {{0, r8},  {1, r9},  {2, r10}, {3, r11},   {4, r12},
                           {5, r13}, {6, r14}, {7, r15}, {kSp, rbp}, {kLr, rsi}};

constexpr std::size_t guest_offset(unsigned n) {
    return offsetof(Core, r) + 4 * n;
}

}  // namespace

Place Translator::reg(unsigned n) {
    for (const Home& home : kHomes)
        if (home.guest == n) return Place::of(home.host);
    return Place::field(guest_offset(n));
}

Translator::Translator(Machine& machine)
    : machine_(machine),
      buffer_(machine.options.translate ? kBufferSize : 0),
      a_(buffer_.writable()),
      jumps_(kJumpEntries) {
    if (usable()) make_entry();
}

void Translator::spill() {
    for (const Home& home : kHomes) a_.place(0x89, home.host, Place::field(guest_offset(home.guest)));
}

void Translator::reload() {
    for (const Home& home : kHomes) a_.place(0x8B, home.host, Place::field(guest_offset(home.guest)));
    a_.place(0x8B, rdi, Place::field(offsetof(Core, pages)), true);
}

/// The ways in and out: u32 enter(Core*, code), the two ways to leave, and the call of a Body from out-of-line code.
void Translator::make_entry() {
    constexpr u8 kSaved[] = {rbp, rbx, r12, r13, r14, r15};
    enter_ = a_.position();
    for (u8 r : kSaved) {
        if (r >= r8) a_.byte(0x41);
        a_.byte(0x50U | (r & 7U));
    }
    a_.op_immediate(Op8::Sub, Place::of(rsp), 8, true);
    a_.place(0x89, rdi, Place::of(rbx), true);  // the Core
    a_.place(0x89, rsi, Place::of(rax), true);  // the code
    reload();
    a_.byte(0xFF);  // jmp rax
    a_.byte(0xE0);
    leave_saving_ = a_.position();
    spill();
    leave_quiet_ = a_.position();
    a_.op_immediate(Op8::Add, Place::of(rsp), 8, true);
    for (std::size_t i = std::size(kSaved); i-- > 0;) {
        if (kSaved[i] >= r8) a_.byte(0x41);
        a_.byte(0x58U | (kSaved[i] & 7U));
    }
    a_.byte(0xC3);
    // rax = operation. Calls its Body; returns with registers reloaded, or leaves when the Body says so.
    call_thunk_ = a_.position();
    a_.op_immediate(Op8::Sub, Place::of(rsp), 8, true);
    spill();
    a_.place(0x89, rax, Place::of(rsi), true);
    a_.place(0x89, rbx, Place::of(rdi), true);
    a_.memory(0xFF, 2, rax, static_cast<i32>(offsetof(Op, body)));
    a_.byte(0x84);  // test al, al
    a_.byte(0xC0);
    const u32 left = a_.jump_if(kE);
    reload();
    a_.op_immediate(Op8::Add, Place::of(rsp), 8, true);
    a_.byte(0xC3);
    a_.bind(left);
    a_.op_immediate(Op8::Add, Place::of(rsp), 16, true);  // the return address too
    a_.load_immediate(Place::of(rax), 0);
    a_.jump_to(leave_quiet_);
    first_block_ = a_.position();
}

void Translator::flush() {
    if (!usable()) return;
    a_.seek(first_block_);
    links_.clear();
    std::fill(jumps_.begin(), jumps_.end(), JumpEntry{});
    full_ = false;
}

// Clang looks for a function's type in front of it; translated code has none there.
#ifdef __clang__
__attribute__((no_sanitize("function")))
#endif
Leave Translator::run(const void* code) {
    machine_.core.jump_table = jumps_.data();
    using Enter = u32 (*)(Core*, const void*);
    const auto enter = reinterpret_cast<Enter>(reinterpret_cast<std::uintptr_t>(buffer_.executable() + enter_));
    return static_cast<Leave>(enter(&machine_.core, code));
}

void Translator::join(u32 link, const Block& target) {
    const auto code = static_cast<u32>(static_cast<const u8*>(target.code) - buffer_.executable());
    a_.bind(links_[link].site, code);
}

void Translator::translate(Block& block) {
    if (!usable() || full_) return;
    if (a_.room() < kRoomForBlock) {
        full_ = true;
        machine_.request_attention();
        return;
    }
    block_ = &block;
    slow_paths_.clear();
    exits_.clear();
    labels_.assign(block.ops.size() + 1, {});
    host_flags_ = HostFlags::None;
    const u32 begin = a_.position();
    // The head: somebody wants attention, or too few instructions are left for all of the block.
    a_.op_immediate(Op8::Cmp, Place::field(offsetof(Core, attention)), 0);
    const u32 wanted = a_.jump_if(kNe);
    a_.op_immediate(Op8::Sub, Place::field(offsetof(Core, budget)), block.count, true);
    const u32 short_of = a_.jump_if(kL);
    bool reachable = true;
    for (std::size_t i = 0; i < block.ops.size() && (reachable || !labels_[i].empty()); i++) {
        if (!labels_[i].empty()) host_flags_ = HostFlags::None;
        for (u32 site : labels_[i]) a_.bind(site);
        reachable = operation(i);
    }
    a_.bind(short_of);
    a_.op_immediate(Op8::Add, Place::field(offsetof(Core, budget)), block.count, true);
    a_.bind(wanted);
    a_.load_immediate(Place::field(offsetof(Core, pc)), block.pc);
    a_.load_immediate(Place::of(rax), 0);
    a_.jump_to(leave_saving_);
    for (const SlowPath& path : slow_paths_) {
        a_.bind(path.site);
        a_.load_immediate64(rax, reinterpret_cast<u64>(path.op));
        a_.call_to(call_thunk_);
        if (path.resume != 0) a_.jump_to(path.resume);
    }
    for (const Exit& exit : exits_) {
        a_.bind(exit.site);
        a_.load_immediate(Place::field(offsetof(Core, pc)), exit.target);
        a_.load_immediate(Place::of(rax), static_cast<u32>(Leave::FirstLink) + static_cast<u32>(links_.size()));
        links_.push_back(exit);
        a_.jump_to(leave_saving_);
    }
    block.code = buffer_.executable() + begin;
}

/// False when nothing behind the operation is reached from it.
bool Translator::operation(std::size_t index) {
    const Op& op = block_->ops[index];
    if (op.body == nullptr) {
        skip_unless(index);
        host_flags_ = HostFlags::None;
        return true;
    }
    const Shape shape = shape_of(op.body);
    const auto finish = [&](bool reachable) {
        if (shape.form != Form::Data) host_flags_ = HostFlags::None;
        return reachable;
    };
    switch (shape.form) {
        case Form::Data:
            data(op, shape);
            return true;
        case Form::ShiftRegister:
            shift_by_register(op, shape);
            return finish(true);
        case Form::StackImmediate: {
            if ((op.imm & 3) != 0) break;
            a_.lea(rax, rbp, static_cast<i32>(static_cast<Alu>(shape.a) == Alu::Sub ? 0 - op.imm : op.imm));
            a_.op(Op8::Cmp, rax, Place::field(offsetof(Core, stack_limit)));
            slow(a_.jump_if(kB), op);
            a_.store(reg(kSp), rax);
            slow_paths_.back().resume = a_.position();
            return finish(true);
        }
        case Form::AlignStack:
            a_.op_immediate(Op8::And, reg(kSp), ~3U);
            return finish(true);
        case Form::MoveTop:
            a_.load(rax, reg(op.rd));
            a_.place(0x1B7, rax, Place::of(rax));  // movzx eax, ax
            a_.op_immediate(Op8::Or, Place::of(rax), op.imm << 16);
            a_.store(reg(op.rd), rax);
            return finish(true);
        case Form::BitField:
            bit_field(op, shape.a);
            return finish(true);
        case Form::ExtendRegister:
            extend_register(op, shape);
            return finish(true);
        case Form::Reverse:
            a_.load(rax, reg(op.rm));
            a_.byte(0x0F);
            a_.byte(0xC8);  // bswap eax
            a_.store(reg(op.rd), rax);
            return finish(true);
        case Form::CountZeros:
            a_.load_immediate(Place::of(rcx), 63);
            a_.place(0x1BD, rax, reg(op.rm));             // bsr
            a_.place(0x100 | 0x44, rax, Place::of(rcx));  // cmovz: no one bit gives 63
            a_.op_immediate(Op8::Xor, Place::of(rax), 31);
            a_.store(reg(op.rd), rax);
            return finish(true);
        case Form::Multiply:
        case Form::MultiplyFlags:
            a_.load(rax, reg(op.rn));
            a_.place(0x1AF, rax, reg(op.rm));
            a_.store(reg(op.rd), rax);
            if (shape.form == Form::MultiplyFlags) {
                a_.test(Place::of(rax), rax);
                store_nz();
            }
            return finish(true);
        case Form::MultiplyAdd:
            a_.load(rax, reg(op.rn));
            a_.place(0x1AF, rax, reg(op.rm));
            a_.op(Op8::Add, rax, reg(op.ra));
            a_.store(reg(op.rd), rax);
            return finish(true);
        case Form::MultiplySubtract:
            a_.load(rcx, reg(op.rn));
            a_.place(0x1AF, rcx, reg(op.rm));
            a_.load(rax, reg(op.ra));
            a_.op(Op8::Sub, rax, Place::of(rcx));
            a_.store(reg(op.rd), rax);
            return finish(true);
        case Form::MultiplyLong:
            multiply_long(op, shape);
            return finish(true);
        case Form::Divide:
            divide(op, shape.a != 0);
            return finish(true);
        case Form::Nop:
            return true;
        case Form::ExposePc:
            a_.load_immediate(reg(kPc), op.imm);
            return finish(true);
        case Form::Load:
            transfer(op, shape, true);
            return finish(true);
        case Form::Store:
            transfer(op, shape, false);
            return finish(true);
        case Form::Dual:
            dual(op, shape);
            return finish(true);
        case Form::LoadMultiple:
            multiple(op, shape, true);
            return finish(shape.a == 0);
        case Form::StoreMultiple:
            multiple(op, shape, false);
            return finish(true);
        case Form::Branch:
            exit_to(op.imm);
            return finish(false);
        case Form::BranchIf:
            branch_if(op, shape.a);
            return finish(false);
        case Form::BranchOnRegister: {
            a_.load(rax, reg(op.rn));
            a_.test(Place::of(rax), rax);
            exits_.push_back({a_.jump_if(shape.a != 0 ? kNe : kE), op.imm});
            exit_to(op.imm2);
            return finish(false);
        }
        case Form::BranchLink:
            a_.load_immediate(reg(kLr), op.imm2);
            exit_to(op.imm);
            return finish(false);
        case Form::BranchExchange:
            a_.load(rax, reg(op.rm));
            indirect(Leave::Indirect);
            return finish(false);
        case Form::BranchLinkExchange:
            a_.load(rax, reg(op.rm));
            a_.load_immediate(reg(kLr), op.imm2);
            indirect(Leave::IndirectPlain);
            return finish(false);
        case Form::TableBranch:
            table_branch(op, shape.a != 0);
            return finish(false);
        case Form::BlockEnd:
            if (op.aux == 0) {
                exit_to(op.imm);
            } else {
                a_.store_byte(Place::field(offsetof(Core, it)), op.aux);
                a_.load_immediate(Place::field(offsetof(Core, pc)), op.imm);
                a_.load_immediate(Place::of(rax), 0);
                a_.jump_to(leave_saving_);
            }
            return finish(false);
        default:
            if (floating(op, shape)) return finish(true);
            break;
    }
    call_body(op);
    host_flags_ = HostFlags::None;
    return true;
}

void Translator::call_body(const Op& op) {
    a_.load_immediate64(rax, reinterpret_cast<u64>(&op));
    a_.call_to(call_thunk_);
}

void Translator::slow(u32 site, const Op& op) {
    slow_paths_.push_back({site, &op, 0});
}

}  // namespace talpa::board::cpu
