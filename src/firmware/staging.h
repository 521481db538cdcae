// Which memory a run takes its program and inputs from: what the command names, what the control block says, or the
// defaults. Everything that Linux can change meanwhile is read once. (imx93-remoteproc, section 10)
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <optional>

#include "firmware/request.h"
#include "link/control_block.h"
#include "link/runner_protocol.h"

namespace talpa::firmware {

/// Physical address of a range that may hold a program or a tensor: inside the model region but not on the control
/// block, or in the region for large programs. Offsets below 80000000 count from the model region.
[[nodiscard]] std::optional<std::uint32_t> staged_address(std::uint32_t offset, std::uint32_t length);

struct StagedInput {
    std::uint32_t address = 0;
    std::uint32_t length = 0;  ///< 0: as long as the program's input
    std::uint32_t crc32 = 0;
    bool check_crc = false;
};

struct Staging {
    StagedInput program;
    std::array<StagedInput, link::kMaxInputs> inputs{};
    std::uint32_t input_count = 0;  ///< 0: one input at the default address, further ones behind it
};

/// Refuses (BadAddress) ranges outside the memory for staging and inputs that overlap a program of given length; one
/// without ends where an input begins. `last_request` is the control block's request sequence that was consumed last,
/// and is brought up to date.
[[nodiscard]] std::expected<Staging, link::RunnerError> resolve_staging(const Request& request,
                                                                        const volatile link::ControlBlock& control,
                                                                        std::uint32_t& last_request);

}  // namespace talpa::firmware
