// The order of work: steps alone and whole, or several together in stripes, so that what passes between them needs a
// few rows of SRAM instead of whole feature maps. Found by dynamic programming over the sequence of steps, with the
// cycle model as the judge and SRAM as the limit. Residual blocks are no barrier: a tensor that several steps of a
// group read keeps as many rows as the slowest of them needs. No row is computed twice. Where that does not fit, the
// tensors that wait between two groups may lie in DRAM: which, the same search decides. (ethos-u65, sections 9.5
// and 10.2)
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/schedule/plan.h"

namespace talpa::compiler {

/// Rows [first, end) of a step's output.
struct Stripe {
    std::uint32_t step = 0, first = 0, end = 0;
};

/// Steps [begin, end) and how they run.
struct Group {
    std::uint32_t begin = 0, end = 0;
    std::uint32_t rows = 0;  ///< of the last step a time; 0: one step, whole
    std::vector<Stripe> stripes;
    std::vector<std::pair<TensorId, std::uint32_t>> rings;  ///< tensors that keep only so many rows
    std::vector<std::uint32_t> buffered;                    ///< steps whose weights are copied to SRAM first
};

struct Order {
    std::vector<Group> groups;
    std::vector<bool> spilled;  ///< by tensor: does not fit, lies in the arena
};

/// What a search that failed has found out.
struct Shortage {
    std::uint64_t required = 0;
    std::uint32_t step = 0;
};

class Planner {
  public:
    /// `placements`: regions are looked at, addresses not. Filters are not encoded yet.
    Planner(const Network& network, const Target& target, BlockChooser& chooser, std::vector<Placement> placements);

    /// The best order within `limit` bytes of SRAM; nothing if there is none, `shortage` then says why. What it finds
    /// out about groups is kept for the next search.
    [[nodiscard]] std::optional<Order> search(std::uint64_t limit, Shortage& shortage);

    /// The block of a stripe of so many rows between neighbours, with its cycles. `away`: which of its maps lie in the
    /// arena instead of SRAM, as `Away` says.
    [[nodiscard]] const Block& stripe_block(std::uint32_t step, std::uint32_t rows, bool buffered, unsigned away);
    [[nodiscard]] unsigned away(std::uint32_t step, const std::vector<bool>& spilled) const;

  private:
    enum Away : unsigned { kIfmAway = 1, kIfm2Away = 2, kOfmAway = 4 };
    struct Access {
        TensorId tensor = kNoTensor;
        const View* view = nullptr;
        std::uint32_t first_row = 0;  ///< of the view in its tensor
        bool moves = true;            ///< false: the same rows for every output row
    };
    struct StepFacts {
        bool stripes = false;
        std::vector<Access> reads;
        Access write;
        std::uint64_t weight_bytes = 0;
        TensorId giver = kNoTensor;     ///< the operand whose place the result may take, for nobody needs it any more
        std::uint32_t giver_alone = 0;  ///< no other step touches it from this one on
    };
    struct TensorFacts {
        std::uint32_t first = UINT32_MAX, last = 0;  ///< steps that touch it
        bool counted = false;                        ///< takes SRAM
        bool movable = false;                        ///< may lie in the arena instead
        std::vector<std::uint32_t> writers, readers;
    };
    /// What a group is, whatever memory there is: which stripes how often, which rings.
    struct Shape {
        struct Run {
            std::uint32_t step = 0, rows = 0, count = 0;
        };
        std::vector<Run> runs;
        std::vector<std::pair<TensorId, std::uint32_t>> rings;  ///< all that is made and used up in the group
        std::vector<std::uint32_t> buffered;
        std::uint64_t weight_bytes = 0;
        std::uint32_t stripes = 0;  ///< 0: it cannot be, or takes far too many
    };
    /// Where the tensors that wait between two groups are.
    enum Waiting : unsigned { kInSram = 0, kInArena = 1 };
    struct Cost {
        std::uint64_t cycles = 0;
        std::uint32_t stripes = 0;
    };
    class Simulation;

    void collect();
    void find_givers();
    [[nodiscard]] const Shape& shape(std::uint32_t begin, std::uint32_t end, std::uint32_t rows);
    /// Bytes of all that waits before step `begin` and behind the step before `end`.
    [[nodiscard]] std::uint64_t waiting_bytes(std::uint32_t begin, std::uint32_t end, unsigned before,
                                              unsigned behind) const;
    /// How much less it is, for results that lie where operands were.
    [[nodiscard]] std::uint64_t taken_over_bytes(std::uint32_t begin, std::uint32_t end, std::uint32_t rows,
                                                 unsigned before, unsigned behind) const;
    /// Is there a movable tensor that waits at both places?
    [[nodiscard]] bool linked(std::uint32_t begin, std::uint32_t end) const;
    [[nodiscard]] std::optional<Cost> evaluate(std::uint32_t begin, std::uint32_t end, std::uint32_t rows,
                                               unsigned before, unsigned behind, std::uint64_t limit,
                                               Shortage* shortage);
    [[nodiscard]] unsigned away(std::uint32_t step, std::uint32_t begin, std::uint32_t end, unsigned before,
                                unsigned behind) const;
    [[nodiscard]] std::optional<Order> attempt(std::uint64_t limit, unsigned states, Shortage& shortage);
    [[nodiscard]] bool spill_one(std::uint32_t step);

    const Network& n_;
    const Target& target_;
    BlockChooser& chooser_;
    std::vector<Placement> placements_;
    std::vector<StepFacts> steps_;
    std::vector<TensorFacts> tensors_;
    std::vector<std::vector<TensorId>> waiting_;  ///< by step: tensors that exist before it and are needed from it on
    std::vector<std::vector<TensorId>> alone_;    ///< by step: tensors that only it touches
    std::vector<bool> spilled_;
    std::unordered_map<std::uint64_t, Block> blocks_;
    std::unordered_map<std::uint64_t, Shape> shapes_;
};

}  // namespace talpa::compiler
