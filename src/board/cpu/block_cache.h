// Decoded code: straight pieces of at most kMaxInstructions that end at a branch, found by address and ITSTATE.
#pragma once

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "board/cpu/op.h"

namespace talpa::board::cpu {

struct Block {
    u32 pc = 0;
    u32 count = 0;  ///< instructions
    u32 bytes = 0;
    std::vector<Op> ops;
    const void* code = nullptr;  ///< its translation, if any
    u32 runs = 0;
};

class BlockCache {
  public:
    static constexpr unsigned kMaxInstructions = 64;

    explicit BlockCache(Machine& machine) : machine_(machine) {}

    /// The block at `pc`; `single` asks for one instruction only. A fetch that faults becomes a block that raises it.
    [[nodiscard]] Block& find(u32 pc, u8 it, bool single) {
        const u64 key = pc | (u64{it} << 32) | (u64{single ? 1U : 0U} << 40);
        Slot& slot = slots_[(pc >> 1) % kSlots];
        if (slot.key == key) [[likely]]
            return *slot.block;
        return find_slow(key, slot);
    }
    void flush();
    [[nodiscard]] std::size_t size() const { return blocks_.size(); }
    /// Off: every block keeps one instruction (for tests).
    unsigned max_instructions = kMaxInstructions;

  private:
    static constexpr std::size_t kSlots = 8192;
    struct Slot {
        u64 key = ~u64{0};
        Block* block = nullptr;
    };

    Block& find_slow(u64 key, Slot& slot);
    void decode(Block& block, u32 pc, u8 it, unsigned limit);

    Machine& machine_;
    std::array<Slot, kSlots> slots_{};
    std::unordered_map<u64, std::unique_ptr<Block>> blocks_;
};

}  // namespace talpa::board::cpu
