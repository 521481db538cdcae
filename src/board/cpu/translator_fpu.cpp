// Translation of the common floating-point operations. Arithmetic takes the host's answer under the same conditions as
// float32.cpp: nearest rounding, no flushing, inexact already recorded, and a plain result.
#include <cstddef>

#include "board/cpu/exec_fpu.h"
#include "board/cpu/translator.h"

namespace talpa::board::cpu {

using namespace x86;

namespace {
const Place kFpscrPlace = Place::field(offsetof(Core, fpscr));
Place single(unsigned n) {
    return Place::field(offsetof(Core, f) + 4 * n);
}
constexpr u32 kModeBits = float32::kFz | 0x00C00000U | float32::kIxc;
}  // namespace

bool Translator::floating(const Op& op, const Shape& shape) {
    const std::size_t first = slow_paths_.size();
    const auto done = [&] {
        for (std::size_t i = first; i < slow_paths_.size(); i++) slow_paths_[i].resume = a_.position();
        return true;
    };
    const auto require_plain_mode = [&] {
        a_.load(rax, kFpscrPlace);
        a_.op_immediate(Op8::And, Place::of(rax), kModeBits);
        a_.op_immediate(Op8::Cmp, Place::of(rax), float32::kIxc);
        slow(a_.jump_if(kNe), op);
    };
    switch (shape.form) {
        case Form::FpCheck:
            a_.place(0x80, 7, Place::field(offsetof(Core, fp_ready)));
            a_.byte(0);
            slow(a_.jump_if(kE), op);
            return done();
        case Form::FpBinary: {
            u32 opcode = 0;
            switch (static_cast<Fp2>(shape.a)) {
                case Fp2::Add:
                    opcode = 0x158;
                    break;
                case Fp2::Sub:
                    opcode = 0x15C;
                    break;
                case Fp2::Mul:
                    opcode = 0x159;
                    break;
                case Fp2::Div:
                    opcode = 0x15E;
                    break;
                default:
                    return false;
            }
            require_plain_mode();
            a_.place(0x110, 0, single(op.rn), false, 0xF3);   // movss xmm0, n
            a_.place(opcode, 0, single(op.rm), false, 0xF3);  // op xmm0, m
            a_.place(0x17E, 0, Place::of(rax), false, 0x66);  // movd eax, xmm0
            a_.load(rcx, Place::of(rax));
            a_.shift(5, rcx, 23);
            a_.place(0x1B6, rcx, Place::of(rcx));  // the exponent
            a_.op_immediate(Op8::Sub, Place::of(rcx), 2);
            a_.op_immediate(Op8::Cmp, Place::of(rcx), 252);
            slow(a_.jump_if(kA), op);
            a_.store(single(op.rd), rax);
            return done();
        }
        case Form::FpUnary:
            a_.load(rax, single(op.rm));
            if (static_cast<Fp1>(shape.a) == Fp1::Abs) a_.op_immediate(Op8::And, Place::of(rax), ~float32::kSignBit);
            if (static_cast<Fp1>(shape.a) == Fp1::Neg) a_.op_immediate(Op8::Xor, Place::of(rax), float32::kSignBit);
            a_.store(single(op.rd), rax);
            return true;
        case Form::FpImmediate:
            a_.load_immediate(single(op.rd), op.imm);
            return true;
        case Form::FpToCore:
            a_.load(rax, single(op.rm));
            a_.store(reg(op.rd), rax);
            return true;
        case Form::FpFromCore:
            a_.load(rax, reg(op.rd));
            a_.store(single(op.rm), rax);
            return true;
        case Form::FpTransfer: {
            if (op.rn == kPc)
                a_.load_immediate(Place::of(rax), op.imm);
            else
                address(op, Address::Offset);
            find_page(op, 4, shape.a == 0);
            if (shape.a != 0) {
                a_.indexed(0x8B, rcx, rcx, rax, 0, 0);
                a_.store(single(op.rd), rcx);
            } else {
                a_.load(rdx, single(op.rd));
                a_.indexed(0x89, rdx, rcx, rax, 0, 0);
            }
            return done();
        }
        case Form::FpFromInteger: {
            if (op.imm2 != 32 || op.imm != 0) return false;
            require_plain_mode();
            a_.place(0x12A, 0, single(op.rm), false, 0xF3);  // cvtsi2ss xmm0, m
            a_.place(0x111, 0, single(op.rd), false, 0xF3);  // movss d, xmm0
            return done();
        }
        case Form::FpToInteger: {
            if (op.imm2 != 32 || op.imm != 0 || op.aux != static_cast<u8>(float32::Round::Zero)) return false;
            require_plain_mode();
            a_.place(0x12C, rax, single(op.rm), false, 0xF3);  // cvttss2si eax, m
            a_.op_immediate(Op8::Cmp, Place::of(rax), 0x80000000U);
            slow(a_.jump_if(kE), op);  // out of range or not a number
            a_.store(single(op.rd), rax);
            return done();
        }
        case Form::FpFlags:
            a_.load(rax, kFpscrPlace);
            a_.shift(5, rax, 28);  // NZCV in bits 3:0
            a_.load(rcx, Place::of(rax));
            a_.op_immediate(Op8::And, Place::of(rcx), 1);
            a_.place(0x88, rcx, Place::field(offsetof(Core, overflow)));
            a_.load(rcx, Place::of(rax));
            a_.shift(5, rcx, 1);
            a_.op_immediate(Op8::And, Place::of(rcx), 1);
            a_.place(0x88, rcx, Place::field(offsetof(Core, carry)));
            a_.shift(4, rax, 4);  // N to bit 7, Z to bit 6
            a_.place(0x88, rax, Place::field(offsetof(Core, nz)));
            return true;
        default:
            return false;
    }
}

}  // namespace talpa::board::cpu
