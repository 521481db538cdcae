// The registers of the core and what the instruction bodies need beside them, in one flat structure: the interpreter's
// bodies and the translated code both address it directly. Nothing here decides anything; see exec_*.h for what
// instructions do and exceptions.h for what happens between them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "board/cpu/types.h"

namespace talpa::board::cpu {

class Machine;

/// Why a block ended other than by falling or branching into the next one.
enum class Signal : u8 {
    None,
    Fault,            ///< `fault` and `fault_address` say which; pc is the faulting instruction
    SupervisorCall,   ///< pc is behind the SVC
    Breakpoint,       ///< BKPT; pc is the BKPT, fault_address its immediate
    ExceptionReturn,  ///< pc holds the EXC_RETURN value
    InvalidState,     ///< branched to an even address: EPSR.T is clear, pc is the target
    WaitInterrupt,    ///< WFI
    WaitEvent,        ///< WFE with the event register clear
    Reschedule,       ///< priorities or memory rules may have changed: look again before the next block
};

enum class Fault : u8 {
    Undefined,
    InvalidState,
    InvalidPc,
    NoCoprocessor,
    StackOverflow,
    Unaligned,
    DivideByZero,
    DataAccess,         ///< MPU or default map
    InstructionAccess,  ///< MPU or execute-never
    DataBus,
    InstructionBus,
    LazyAccess,  ///< lazy stacking of FP state failed
    LazyBus,
    Secure,  ///< a change of security state that this model does not have
};

/// Bits of Core::nz, where x86's LAHF puts sign and zero; other bits of the byte are noise. C and V are bytes of their
/// own: translated code stores what it needs in one instruction each.
inline constexpr u8 kN = 0x80;
inline constexpr u8 kZ = 0x40;

inline constexpr unsigned kSp = 13;
inline constexpr unsigned kLr = 14;
inline constexpr unsigned kPc = 15;

struct Core {
    std::array<u32, 16>
        r{};  ///< r[13] is the stack pointer in use; r[15] only between micro-operations of one instruction
    u8 nz = 0;
    u8 carry = 0;     ///< 0 or 1
    u8 overflow = 0;  ///< 0 or 1
    u8 q = 0;
    u8 ge = 0;       ///< four bits
    u32 pc = 0;      ///< next instruction, valid between blocks
    i64 budget = 0;  ///< instructions until the run loop must look around; blocks subtract their length when they start
    std::atomic<u32> attention{0};  ///< set by any thread: look around at the next block border
    u8 it = 0;                      ///< ITSTATE, valid between blocks
    Signal signal = Signal::None;
    Fault fault = Fault::Undefined;
    bool fp_ready = false;  ///< FP enabled, context active and nothing left to be stacked lazily
    bool handler_mode = false;
    bool privileged = true;
    bool exclusive = false;  ///< the local monitor
    bool event = false;      ///< the event register of WFE
    u32 exclusive_address = 0;
    u32 fault_address = 0;
    u32 stack_limit = 0;  ///< of the stack in use
    /// Host address minus guest address per 4 KiB page for loads without further checks; 0 sends them to the slow path.
    /// The table for stores lies kPageTableWords behind. See page_index.
    const std::uintptr_t* pages = nullptr;
    const void* jump_table = nullptr;  ///< of the translator
    Machine* machine = nullptr;
    std::array<u32, 32> f{};  ///< S0-S31; D(n) is f[2n], f[2n+1]
    u32 fpscr = 0;

    [[nodiscard]] bool n() const { return (nz & kN) != 0; }
    [[nodiscard]] bool z() const { return (nz & kZ) != 0; }
    [[nodiscard]] bool c() const { return carry != 0; }
    [[nodiscard]] bool v() const { return overflow != 0; }
    /// APSR.NZCV in bits 31:28.
    [[nodiscard]] u32 nzcv() const {
        return (n() ? 1U << 31 : 0) | (z() ? 1U << 30 : 0) | (c() ? 1U << 29 : 0) | (v() ? 1U << 28 : 0);
    }
    void set_nzcv(u32 word) {
        nz = static_cast<u8>((bit(word, 31) ? kN : 0) | (bit(word, 30) ? kZ : 0));
        carry = bit(word, 29) ? 1 : 0;
        overflow = bit(word, 28) ? 1 : 0;
    }
};

inline constexpr unsigned kPageBits = 12;
inline constexpr u32 kPageSize = 1U << kPageBits;
/// Entries of one table: a page number of 20 bits, and above it the misalignment, whose entries are never filled.
inline constexpr std::size_t kPageTableWords = std::size_t{1} << 22;

/// Where an access of `size` bytes finds its page: unaligned addresses find an empty entry, so that one test serves
/// both.
[[nodiscard]] constexpr u32 page_index(u32 address, unsigned size) {
    const unsigned turn = size == 4 ? 2 : size == 2 ? 1 : 0;
    return ((address >> turn) | (turn == 0 ? 0 : address << (32 - turn))) >> (kPageBits - turn);
}

[[nodiscard]] inline u8 nz_flags(u32 result) {
    return static_cast<u8>(((result >> 31) << 7) | (result == 0 ? kZ : 0));
}

/// The 15 conditions of the architecture; 14 is always.
[[nodiscard]] inline bool condition_holds(const Core& core, unsigned condition) {
    bool result = false;
    switch (condition >> 1) {
        case 0:
            result = core.z();
            break;
        case 1:
            result = core.c();
            break;
        case 2:
            result = core.n();
            break;
        case 3:
            result = core.v();
            break;
        case 4:
            result = core.c() && !core.z();
            break;
        case 5:
            result = core.n() == core.v();
            break;
        case 6:
            result = core.n() == core.v() && !core.z();
            break;
        default:
            return true;
    }
    return (condition & 1) != 0 ? !result : result;
}

inline constexpr unsigned kAlways = 14;

/// ITSTATE after one more instruction (bits 7:5 base condition, 4:0 the rest and its end).
[[nodiscard]] constexpr u8 advance_it(u8 it) {
    return (it & 7) == 0 ? u8{0} : static_cast<u8>((it & 0xE0) | ((it << 1) & 0x1F));
}

}  // namespace talpa::board::cpu
