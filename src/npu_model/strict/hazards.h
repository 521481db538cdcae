// Finds in a command stream what a model that runs one operation after the other cannot see: operations that may
// overlap in time and touch the same bytes. The waits and BLOCKDEP of a stream must rule all of that out. Also what is
// read that nobody wrote, registers used before they are written, and operations that the hardware does not define.
// (ethos-u65, sections 2.5, 3.2, 3.3, 3.5, 5.10)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/host/error.h"
#include "npu/decoder.h"
#include "npu/extent.h"
#include "npu/hardware.h"
#include "npu_model/model.h"
#include "npu_model/strict/footprint.h"

namespace talpa::npu_model {

struct Hazard {
    enum class Kind : std::uint8_t {
        MissingKernelWait,  ///< a DMA may meet a block operation that is still running
        MissingDmaWait,     ///< a block operation or DMA may meet a DMA that is still running
        BlockDependency,    ///< BLOCKDEP lets an operation read blocks that the previous one has not written
        ReadBeforeWrite,    ///< bytes that neither the host nor an earlier operation wrote
        UnsetRegister,      ///< an operation uses a register that the stream has not written
        IllegalOperation,   ///< see npu/validate.h
        OverlapsItself,     ///< an operation writes over what it reads, otherwise than element on element
    };
    Kind kind = Kind::IllegalOperation;
    std::uint32_t offset_bytes = 0;  ///< of the operation that goes wrong
    std::string text;                ///< a sentence: the operations, their offsets, some of the bytes in dispute
};
struct HazardOptions {
    const npu::Hardware* hardware = &npu::kU65_256;
    /// What holds data before the stream starts, besides region 0: the inputs. Nothing: reads are not checked against
    /// writes.
    std::optional<std::vector<InitialisedRange>> initialised;
    std::size_t at_most = 100;  ///< stop after so many
    /// Runs of bytes to compare exactly; what a stream made to be expensive asks for beyond it is compared by hulls: a
    /// conflict may then be reported where none is, and a read before a write go unseen.
    Effort effort = kDefaultEffort;
    Effort* spent = nullptr;  ///< if set: receives how much of the effort was used
};

/// The hazards of a stream, in the order of the operations that go wrong; none: it is safe on that hardware. Errors: a
/// stream that does not decode.
[[nodiscard]] host::Result<std::vector<Hazard>> find_hazards(npu::Words stream, const HazardOptions& options = {});

}  // namespace talpa::npu_model
