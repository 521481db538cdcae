#include "board/cpu/block_cache.h"

#include "board/cpu/decoder.h"
#include "board/cpu/exec_branch.h"
#include "board/cpu/exec_system.h"
#include "board/cpu/fusion.h"
#include "board/cpu/machine.h"

namespace talpa::board::cpu {

namespace {

template <unsigned C>
void set_skip(Op& op) {
    op.threaded = &skip_unless<C>;
    op.aux = C;  // for those who read operations
    op.body = nullptr;
}
constexpr void (*kSkip[14])(Op&) = {set_skip<0>,  set_skip<1>,  set_skip<2>,  set_skip<3>, set_skip<4>,
                                    set_skip<5>,  set_skip<6>,  set_skip<7>,  set_skip<8>, set_skip<9>,
                                    set_skip<10>, set_skip<11>, set_skip<12>, set_skip<13>};

/// BKPT is unconditional even inside an IT block.
bool is_unconditional(const Instruction& i) {
    return i.size == 2 && (i.first >> 8) == 0xBE;
}

}  // namespace

Block& BlockCache::find_slow(u64 key, Slot& slot) {
    std::unique_ptr<Block>& block = blocks_[key];
    if (!block) {
        block = std::make_unique<Block>();
        const bool single = (key >> 40) != 0;
        decode(*block, static_cast<u32>(key), static_cast<u8>(key >> 32), single ? 1 : max_instructions);
    }
    slot = {key, block.get()};
    return *block;
}

void BlockCache::flush() {
    slots_.fill({});
    blocks_.clear();
}

void BlockCache::decode(Block& block, u32 pc, u8 it, unsigned limit) {
    Emitter emitter;
    std::vector<u32> instruction_of;  // per operation: which instruction it belongs to
    u32 count = 0;
    u32 address = pc;
    const bool privileged = machine_.core.privileged;
    while (true) {
        Instruction i;
        i.pc = address;
        i.it = it;
        auto fault = machine_.memory.fetch(address, privileged, i.first);
        if (!fault && is_wide(i.first)) {
            i.size = 4;
            fault = machine_.memory.fetch(address + 2, privileged, i.second);
        }
        if (fault && count != 0) break;  // met again, and raised, when the block before it has run
        if (count != 0 && machine_.breakpoints.contains(address)) break;
        emitter.begin(i);
        const std::size_t first_op = emitter.ops.size();
        const unsigned condition = it == 0 || is_unconditional(i) ? kAlways : it >> 4;
        const bool conditional = condition < kAlways;
        if (conditional) kSkip[condition](emitter.add<nop>());
        emitter.next_it = advance_it(it);
        emitter.ended = emitter.barrier = false;
        if (fault) {
            emitter.add<fetch_fault>().aux = static_cast<u8>(*fault);
            emitter.ended = true;
        } else if (i.size == 4) {
            decode32(i, emitter);
        } else {
            decode16(i, emitter);
        }
        if (conditional) emitter.ops[first_op].rd = static_cast<u8>(emitter.ops.size() - first_op - 1);
        for (std::size_t k = first_op; k < emitter.ops.size(); k++) emitter.ops[k].size = static_cast<u8>(i.size);
        instruction_of.resize(emitter.ops.size(), count);
        count++;
        address += i.size;
        it = emitter.next_it;
        if (emitter.ended && !conditional) break;
        if (emitter.ended || emitter.barrier || (count >= limit && (it == 0 || limit == 1))) break;
    }
    // A block may reach its end by falling through, by a skipped last instruction or by a barrier.
    Op& end = emitter.add<block_end>();
    end.imm = address;
    end.aux = it;
    end.pc = address;
    instruction_of.push_back(count);
    for (std::size_t k = 0; k < emitter.ops.size(); k++)
        emitter.ops[k].remaining = static_cast<u8>(count - instruction_of[k]);
    block.pc = pc;
    block.count = count;
    block.bytes = address - pc;
    block.ops = std::move(emitter.ops);
    fuse(block);
}

}  // namespace talpa::board::cpu
