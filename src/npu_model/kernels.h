// The seam between the model, its reference kernels and its fast ones: one block operation with everything it needs,
// resolved and checked. The model asks fast::try_run first (unless told to use the reference only) and run_reference if
// that declines.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "npu/device.h"
#include "npu/operation.h"
#include "npu_model/filter.h"
#include "npu_model/findings.h"
#include "npu_model/thread_pool.h"

namespace talpa::npu_model {

namespace fast {
class PlanCache;
struct PlanSlot;
}  // namespace fast

/// One block operation about to run. What holds: the operation is legal (check_legal), every byte of its feature maps
/// lies inside its region (extent), the regions' data are 16-byte aligned, `filter` has the operation's shape. A kernel
/// writes exactly the OFM elements [height][width][depth]; the padding channels of NHCWB16 keep what they held. IFM and
/// OFM may overlap as the stream says: a kernel reads an element's inputs before it writes that element; for windows
/// the result on overlap is unspecified.
struct Context {
    const npu::Operation& op;
    std::array<npu::Region, npu::kRegionCount> regions{};
    const Filter* filter = nullptr;  ///< convolution and depthwise, else null
    std::span<const std::uint8_t>
        lut;             ///< the table's bytes, of exactly the size that npu::lut_bytes says; empty without LUT
    ThreadPool& pool;    ///< may be used for parallel loops inside the operation
    Findings& findings;  ///< where the reference reports overflow (fast kernels need not)
    fast::PlanCache* plans =
        nullptr;  ///< where the fast kernels keep what they worked out about an operation, if anywhere
    fast::PlanSlot* plan = nullptr;  ///< the same for this very operation and filter; goes first

    [[nodiscard]] std::uint8_t* memory(const npu::FeatureMap& fm) const { return regions[fm.region].data; }
};

/// Runs any block operation with the plain kernels. Errors: OutOfResources when a feature map has more than 2^28
/// elements.
[[nodiscard]] Result<void> run_reference(const Context& context);

namespace fast {
/// Runs the operation bit for bit as run_reference would and returns true, or returns false having touched nothing.
[[nodiscard]] bool try_run(const Context& context);
}  // namespace fast

}  // namespace talpa::npu_model
