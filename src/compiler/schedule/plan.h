// A network with everything decided: which rows of which step run when, what is copied by DMA, and where every byte
// lies. What emit/ turns into a command stream.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/host/error.h"
#include "compiler/lower/network.h"
#include "compiler/schedule/blocks.h"
#include "compiler/schedule/target.h"

namespace talpa::compiler {

/// Where a tensor lies. `ring_rows` other than 0: only so many rows are kept, row y at y modulo ring_rows.
struct Placement {
    std::uint8_t region = 0;
    std::uint64_t address = 0;
    std::uint32_t ring_rows = 0;
};

/// Encoded weights and scale records of a step, for the block depth that was chosen: records first, then the stream of
/// each core.
struct EncodedFilter {
    std::vector<std::uint8_t> bytes;
    std::array<npu::Range, npu::kMaxCores> weights{}, scales{};  ///< offsets in `bytes`
    std::uint64_t constant_offset = 0;                           ///< of `bytes` in region 0
    std::uint8_t region = 0;                                     ///< where it is read: 0, or the fast region
    std::uint64_t address = 0;                                   ///< in that region
};

struct Action {
    enum class Kind : std::uint8_t { Run, LoadWeights, LoadTable } kind = Kind::Run;
    std::uint32_t step = 0;
    std::uint32_t first_row = 0, end_row = 0;                   ///< Run: of the OFM view
    Block block;                                                ///< Run
    std::uint8_t lut_slot = 0;                                  ///< Run with a table, LoadTable
    std::uint64_t constant_offset = 0, address = 0, bytes = 0;  ///< LoadWeights: from region 0 to the fast region
};

struct Plan {
    Network network;
    std::vector<Placement> tensors;      ///< as network.tensors
    std::vector<EncodedFilter> filters;  ///< as network.steps; empty where a step has none
    std::vector<std::uint64_t> tables;   ///< as network.steps: offset in region 0 of the step's table
    std::vector<Action> actions;
    std::vector<std::uint8_t> constants;  ///< region 0
    std::uint64_t arena_bytes = 0;        ///< region 1
    std::uint64_t fast_bytes = 0;         ///< region 2
    std::string peak_step;                ///< where SRAM is fullest
    bool copy_on_input = false;           ///< an output that may be an input's copy lies on an input
};

/// What a finished plan costs, in cycles: scheduling tries several ways and keeps the best.
using Judge = std::function<std::uint64_t(const Plan&)>;

/// May an output that could be a copy of an input lie where an input was? A run that changes nothing there looks like
/// one that did not happen (V35).
enum class OutputPlaces : std::uint8_t { Anywhere, NotOnInputs };

/// The SRAM that a network needs where the target's does not suffice.
struct SramNeed {
    std::uint64_t bytes = 0;  ///< 0: SRAM is not what is lacking
    bool found = false;       ///< a plan was found in that much; else it is what the search lacked first
    std::string peak_step;    ///< where most is needed
};

/// Decides everything. Errors: OutOfResources when SRAM does not suffice: `need` then says what would, if it is asked.
[[nodiscard]] host::Result<Plan> schedule(Network network, const Target& target, const Judge& judge,
                                          OutputPlaces output_places = OutputPlaces::Anywhere,
                                          SramNeed* need = nullptr);

}  // namespace talpa::compiler
