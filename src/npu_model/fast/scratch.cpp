#include "npu_model/fast/scratch.h"

#include <array>

namespace talpa::npu_model::fast {

std::uint8_t* scratch(ScratchSlot slot, std::size_t bytes) {
    thread_local std::array<Scratch, static_cast<std::size_t>(ScratchSlot::Count)> buffers;
    return buffers[static_cast<std::size_t>(slot)].get(bytes);
}

}  // namespace talpa::npu_model::fast
