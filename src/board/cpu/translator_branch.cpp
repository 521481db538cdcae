// Translation of branches: the ways out of a block, and the host condition under which a guest's condition holds.
#include <cstddef>

#include "board/cpu/translator.h"

namespace talpa::board::cpu {

using namespace x86;

void Translator::exit_to(u32 target) {
    exits_.push_back({a_.jump(), target});
}

/// eax = target with its Thumb bit.
void Translator::indirect(Leave leave) {
    a_.load(rcx, Place::of(rax));
    a_.op_immediate(Op8::And, Place::of(rcx), 2 * (kJumpEntries - 1));
    a_.place(0x8B, rdx, Place::field(offsetof(Core, jump_table)), true);
    static_assert(sizeof(JumpEntry) == 16);
    a_.indexed(0x3B, rax, rdx, rcx, 3, 0);  // cmp eax, [rdx + 8 rcx]
    const u32 miss = a_.jump_if(kNe);
    a_.indexed(0xFF, 4, rdx, rcx, 3, 8);  // jmp [rdx + 8 rcx + 8]
    a_.bind(miss);
    a_.store(reg(kPc), rax);
    a_.load_immediate(Place::of(rax), static_cast<u32>(leave));
    a_.jump_to(leave_saving_);
}

/// The host condition under which a guest condition holds; taken from the host's flags where they still are those of
/// the last operation (`from_host`), else computed from the Core.
Condition Translator::condition(unsigned guest, bool& from_host) {
    static constexpr Condition kBorrow[] = {kE, kNe, kAe, kB, kS, kNs, kO, kNo, kA, kBe, kGe, kL, kG, kLe};
    static constexpr Condition kDirect[] = {kE, kNe, kB, kAe, kS, kNs, kO, kNo, kA, kBe, kGe, kL, kG, kLe};
    from_host = true;
    if (host_flags_ == HostFlags::Borrow) return kBorrow[guest];
    if (host_flags_ == HostFlags::Direct && guest != 8 && guest != 9) return kDirect[guest];
    if (host_flags_ == HostFlags::Logic && (guest < 2 || guest == 4 || guest == 5)) return kBorrow[guest];
    from_host = false;
    const Place nz = Place::field(offsetof(Core, nz));
    const Place carry = Place::field(offsetof(Core, carry));
    const Place overflow = Place::field(offsetof(Core, overflow));
    const auto test_byte = [&](Place p, u32 mask) {
        a_.place(0xF6, 0, p);
        a_.byte(mask);
    };
    const bool inverted = (guest & 1) != 0;
    switch (guest >> 1) {
        case 0:
            test_byte(nz, kZ);
            return inverted ? kE : kNe;
        case 1:
            test_byte(carry, 1);
            return inverted ? kE : kNe;
        case 2:
            test_byte(nz, kN);
            return inverted ? kE : kNe;
        case 3:
            test_byte(overflow, 1);
            return inverted ? kE : kNe;
        case 4:  // C and not Z: Z as 0 or 1 is below C
            a_.place(0x1B6, rax, nz);
            a_.shift(5, rax, 6);
            a_.op_immediate(Op8::And, Place::of(rax), 1);
            a_.place(0x3A, rax, carry);
            return inverted ? kAe : kB;
        case 5:
            a_.place(0x1B6, rax, nz);
            a_.shift(5, rax, 7);
            a_.place(0x3A, rax, overflow);
            return inverted ? kNe : kE;
        default:  // not Z and N = V
            a_.place(0x1B6, rax, nz);
            a_.load(rcx, Place::of(rax));
            a_.shift(5, rax, 7);
            a_.place(0x32, rax, overflow);
            a_.op_immediate(Op8::And, Place::of(rcx), kZ);
            a_.op(Op8::Or, rax, Place::of(rcx));
            return inverted ? kNe : kE;
    }
}

void Translator::branch_if(const Op& op, unsigned guest) {
    bool from_host = false;
    const Condition taken = condition(guest, from_host);
    exits_.push_back({a_.jump_if(taken), op.imm});
    exit_to(op.imm2);
}

void Translator::skip_unless(std::size_t index) {
    const Op& op = block_->ops[index];
    bool from_host = false;
    const Condition holds = condition(op.aux, from_host);
    labels_[index + 1 + op.rd].push_back(a_.jump_if(static_cast<Condition>(holds ^ 1)));
}

}  // namespace talpa::board::cpu
