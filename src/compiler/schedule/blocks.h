// Which block an operation is computed in: the one that the cycle model likes best among all that the shared RAM can
// hold. (ethos-u65, sections 8 and 9.4)
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "compiler/schedule/target.h"
#include "npu/operation.h"
#include "npu_model/cycles/operation_cost.h"

namespace talpa::compiler {

struct Block {
    std::uint32_t height = 0, width = 0, depth = 0;
    bool part_kernel_first = false;
    std::uint64_t cycles = 0;        ///< estimate, with fill and drain
    std::uint64_t inner_cycles = 0;  ///< estimate between neighbours that overlap
    std::array<std::uint64_t, npu_model::kMemoryAreas> memory_cycles{};
};

/// Puts block and shared-RAM layout into an operation.
void set_block(npu::Operation& op, const Block& block, const npu::Hardware& hardware);

class BlockChooser {
  public:
    explicit BlockChooser(const Target& target) : target_(target) {}

    /// `op` complete but for the block and addresses; its weights' sizes may be estimates. `fixed_depth`: the block
    /// depth and weight order that the weights are already encoded for, 0 if open. A block always exists for legal
    /// operations; if none does, `height` is 0.
    [[nodiscard]] Block choose(const npu::Operation& op, std::uint32_t fixed_depth = 0);

  private:
    [[nodiscard]] Block search(const npu::Operation& op, std::uint32_t fixed_depth) const;

    const Target& target_;
    std::unordered_map<std::string, Block> known_;
};

}  // namespace talpa::compiler
