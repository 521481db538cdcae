// From decoded blocks to x86-64 code. Guest r0-r7, SP and LR live in host registers while translated code runs;
// everything else stays in the Core. Operations without a template call their Body, so that translated and interpreted
// code cannot differ in what they know, only in speed. Blocks jump to each other directly once both exist.
#pragma once

#include <memory>
#include <vector>

#include "board/cpu/block_cache.h"
#include "board/cpu/code_buffer.h"
#include "board/cpu/exec_memory.h"
#include "board/cpu/shapes.h"
#include "board/cpu/x86_assembler.h"

namespace talpa::board::cpu {

/// Why translated code came back.
enum class Leave : u32 {
    Look = 0,           ///< core.pc is set, or a signal is
    Indirect = 1,       ///< branch with state change to core.r[15]
    IndirectPlain = 2,  ///< the same for BLX and table branches, which never return from exceptions
    FirstLink = 16,     ///< this and above: a direct exit to core.pc, whose jump may be joined to that block
};

/// Where translated code finds the block behind a computed address: (target with Thumb bit) -> code.
struct JumpEntry {
    u64 key = 0;
    const void* code = nullptr;
};
inline constexpr u32 kJumpEntries = 8192;

class Translator {
  public:
    explicit Translator(Machine& machine);

    [[nodiscard]] bool usable() const { return buffer_.usable(); }
    /// Sets block.code, or leaves it null when the buffer is full (`full`: forget all code and start again).
    void translate(Block& block);
    [[nodiscard]] bool full() const { return full_; }
    void flush();
    /// Runs translated code until it leaves.
    Leave run(const void* code);
    void join(u32 link, const Block& target);
    void note_entry(const Block& block) { jumps_[(block.pc >> 1) % kJumpEntries] = {block.pc | 1U, block.code}; }

  private:
    struct SlowPath {
        u32 site;  ///< the jump that comes here
        const Op* op;
        u32 resume;  ///< 0: the block is left
    };
    struct Exit {
        u32 site;
        u32 target;
    };
    enum class HostFlags : u8 { None, Borrow, Direct, Logic };

    void make_entry();
    void spill();
    void reload();
    bool operation(std::size_t index);
    void call_body(const Op& op);
    void slow(u32 site, const Op& op);
    // translator_data.cpp
    void data(const Op& op, const Shape& shape);
    void shift_by_register(const Op& op, const Shape& shape);
    void bit_field(const Op& op, unsigned kind);
    void extend_register(const Op& op, const Shape& shape);
    void multiply_long(const Op& op, const Shape& shape);
    void divide(const Op& op, bool is_signed);
    void store_nz();
    // translator_memory.cpp
    void transfer(const Op& op, const Shape& shape, bool load);
    void dual(const Op& op, const Shape& shape);
    void multiple(const Op& op, const Shape& shape, bool load);
    void table_branch(const Op& op, bool half);
    void address(const Op& op, Address mode);
    void find_page(const Op& op, unsigned size, bool write);
    void within_page(const Op& op, u32 bytes);
    // translator_branch.cpp
    x86::Condition condition(unsigned guest, bool& from_host);
    void branch_if(const Op& op, unsigned guest);
    void skip_unless(std::size_t index);
    void indirect(Leave leave);
    void exit_to(u32 target);
    // translator_fpu.cpp
    bool floating(const Op& op, const Shape& shape);

    [[nodiscard]] static x86::Place reg(unsigned n);
    [[nodiscard]] static bool in_host(unsigned n) { return !reg(n).memory; }

    Machine& machine_;
    CodeBuffer buffer_;
    x86::Assembler a_;
    std::vector<JumpEntry> jumps_;
    std::vector<Exit> links_;
    bool full_ = false;
    u32 enter_ = 0;
    u32 leave_saving_ = 0;  ///< spill, then return eax
    u32 leave_quiet_ = 0;   ///< registers are in the Core already
    u32 call_thunk_ = 0;
    u32 first_block_ = 0;

    // While a block is translated:
    const Block* block_ = nullptr;
    std::vector<SlowPath> slow_paths_;
    std::vector<Exit> exits_;
    std::vector<std::vector<u32>> labels_;  ///< jumps to the start of each operation
    HostFlags host_flags_ = HostFlags::None;
};

}  // namespace talpa::board::cpu
