// Just enough x86-64 machine code for the translator: 32-bit operations between host registers and fields of the Core
// (always at rbx + offset), loads and stores by base and index, jumps with 32-bit distances.
#pragma once

#include <cstring>
#include <span>

#include "board/cpu/types.h"

namespace talpa::board::cpu::x86 {

enum Reg : u8 { rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15 };

/// A host register, or the 32-bit field of the Core at an offset.
struct Place {
    bool memory = false;
    Reg reg = rax;
    i32 offset = 0;

    [[nodiscard]] static Place of(Reg r) { return {false, r, 0}; }
    [[nodiscard]] static Place field(std::size_t offset) { return {true, rbx, static_cast<i32>(offset)}; }
    friend bool operator==(const Place&, const Place&) = default;
};

/// Condition codes of Jcc, SETcc and CMOVcc.
enum Condition : u8 { kO, kNo, kB, kAe, kE, kNe, kBe, kA, kS, kNs, kP, kNp, kL, kGe, kLe, kG };

/// The operations that share the encodings of ADD.
enum class Op8 : u8 { Add, Or, Adc, Sbb, And, Sub, Xor, Cmp };

class Assembler {
  public:
    explicit Assembler(std::span<u8> memory) : memory_(memory) {}

    [[nodiscard]] u32 position() const { return at_; }
    void seek(u32 position) { at_ = position; }
    [[nodiscard]] std::size_t room() const { return memory_.size() - at_; }

    void byte(u32 value) { memory_[at_++] = static_cast<u8>(value); }
    void word(u32 value) {
        std::memcpy(&memory_[at_], &value, 4);
        at_ += 4;
    }
    void quad(u64 value) {
        std::memcpy(&memory_[at_], &value, 8);
        at_ += 8;
    }

    /// Any instruction with a ModRM byte over a Place. `opcode` above FF has the 0F escape; `prefix` 66, F2 or F3.
    void place(u32 opcode, unsigned reg, Place p, bool wide = false, u8 prefix = 0, bool byte_register = false) {
        if (p.memory) return memory(opcode, reg, rbx, p.offset, wide, prefix, byte_register);
        start(opcode, reg, 0, p.reg, wide, prefix, byte_register);
        byte(0xC0 | ((reg & 7) << 3) | (p.reg & 7U));
    }
    /// [base + offset]; base is not rsp or r12.
    void memory(u32 opcode, unsigned reg, Reg base, i32 offset, bool wide = false, u8 prefix = 0,
                bool byte_register = false) {
        start(opcode, reg, 0, base, wide, prefix, byte_register);
        const bool small = offset >= -128 && offset < 128;
        byte((small ? 0x40U : 0x80U) | ((reg & 7) << 3) | (base & 7U));
        small ? byte(static_cast<u32>(offset)) : word(static_cast<u32>(offset));
    }
    /// [base + index * 2^scale + offset]
    void indexed(u32 opcode, unsigned reg, Reg base, Reg index, unsigned scale, i32 offset, bool wide = false,
                 u8 prefix = 0, bool byte_register = false) {
        start(opcode, reg, index, base, wide, prefix, byte_register);
        const bool small = offset >= -128 && offset < 128;
        byte((small ? 0x44U : 0x84U) | ((reg & 7) << 3));
        byte((scale << 6) | ((index & 7U) << 3) | (base & 7U));
        small ? byte(static_cast<u32>(offset)) : word(static_cast<u32>(offset));
    }

    void load(Reg to, Place from) {
        if (from == Place::of(to)) return;
        place(0x8B, to, from);
    }
    void store(Place to, Reg from) {
        if (to == Place::of(from)) return;
        place(0x89, from, to);
    }
    void load_immediate(Place to, u32 value) {
        if (to.memory) {
            place(0xC7, 0, to);
            return word(value);
        }
        if (to.reg >= r8) byte(0x41);
        byte(0xB8 | (to.reg & 7U));
        word(value);
    }
    void load_immediate64(Reg to, u64 value) {
        byte(to >= r8 ? 0x49 : 0x48);
        byte(0xB8 | (to & 7U));
        quad(value);
    }
    /// reg OP= place
    void op(Op8 o, Reg to, Place from) { place((static_cast<u32>(o) << 3) | 3, to, from); }
    /// place OP= reg
    void op_to(Op8 o, Place to, Reg from) { place((static_cast<u32>(o) << 3) | 1, from, to); }
    void op_immediate(Op8 o, Place to, u32 value, bool wide = false) {
        const bool small = static_cast<i32>(value) >= -128 && static_cast<i32>(value) < 128;
        place(small ? 0x83 : 0x81, static_cast<unsigned>(o), to, wide);
        small ? byte(value) : word(value);
    }
    void test(Place a, Reg b) { place(0x85, b, a); }
    void test_immediate(Place a, u32 value) {
        place(0xF7, 0, a);
        word(value);
    }
    /// Rotations and shifts by a constant: /4 SHL, /5 SHR, /7 SAR, /1 ROR, /3 RCR.
    void shift(unsigned kind, Reg to, u32 amount, bool wide = false) {
        place(0xC1, kind, Place::of(to), wide);
        byte(amount);
    }
    void shift_by_cl(unsigned kind, Reg to, bool wide = false) { place(0xD3, kind, Place::of(to), wide); }
    void set_byte(Condition c, Place to) { place(0x190U | c, 0, to); }
    void store_byte(Place to, u32 value) {
        place(0xC6, 0, to);
        byte(value);
    }
    /// LEA to, [base + offset]
    void lea(Reg to, Reg base, i32 offset) {
        (base & 7) == rsp ? indexed(0x8D, to, base, rsp, 0, offset) : memory(0x8D, to, base, offset);
    }

    /// A jump with its distance to be bound; returns where the distance stands.
    u32 jump_if(Condition c) {
        byte(0x0F);
        byte(0x80U | c);
        word(0);
        return at_ - 4;
    }
    u32 jump() {
        byte(0xE9);
        word(0);
        return at_ - 4;
    }
    void bind(u32 site, u32 target) {
        const u32 distance = target - (site + 4);
        std::memcpy(&memory_[site], &distance, 4);
    }
    void bind(u32 site) { bind(site, at_); }
    void jump_to(u32 target) { bind(jump(), target); }
    void call_to(u32 target) {
        byte(0xE8);
        word(target - (at_ + 4));
    }

  private:
    void start(u32 opcode, unsigned reg, unsigned index, unsigned base, bool wide, u8 prefix, bool byte_register) {
        if (prefix != 0) byte(prefix);
        const u32 rex = (wide ? 8U : 0U) | (reg >= 8 ? 4U : 0U) | (index >= 8 ? 2U : 0U) | (base >= 8 ? 1U : 0U);
        if (rex != 0 || byte_register) byte(0x40 | rex);
        if (opcode > 0xFF) byte(0x0F);
        byte(opcode);
    }

    std::span<u8> memory_;
    u32 at_ = 0;
};

}  // namespace talpa::board::cpu::x86
