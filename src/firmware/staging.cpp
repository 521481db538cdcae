#include "firmware/staging.h"

#include "base/core/checked_math.h"
#include "link/memory_map.h"

namespace talpa::firmware {

using link::RunnerError;

std::optional<std::uint32_t> staged_address(std::uint32_t offset, std::uint32_t length) {
    const std::uint64_t address = offset < 0x80000000 ? std::uint64_t{link::kModelRegion.base} + offset : offset;
    const bool legal = (link::kModelRegion.contains(address, length) &&
                        !ranges_overlap(address, length, link::kControlBlock.base, link::kControlBlock.size)) ||
                       link::kBigPrograms.contains(address, length);
    if (!legal) return std::nullopt;
    return static_cast<std::uint32_t>(address);
}

namespace {

bool take(StagedInput& to, const NamedRange& range) {
    const auto address = staged_address(range.offset, range.length);
    if (!address || range.length == 0) return false;
    to = {*address, range.length, range.crc32, range.check_crc};
    return true;
}

NamedRange named(const volatile link::StagedRange& entry) {
    const std::uint32_t offset = entry.offset, length = entry.length, crc = entry.crc32;
    return {offset, length, crc, length != 0, crc != 0};
}

}  // namespace

std::expected<Staging, RunnerError> resolve_staging(const Request& request, const volatile link::ControlBlock& control,
                                                    std::uint32_t& last_request) {
    NamedRange program = request.program;
    std::array<NamedRange, link::kMaxInputs> inputs = request.inputs;
    std::uint32_t input_count = request.input_count;

    // The block speaks only when Linux wrote it since the last run that used it.
    const std::uint32_t sequence = control.request_sequence;
    if (control.magic == link::kControlMagic && control.version == link::kControlVersion && sequence != last_request) {
        last_request = sequence;
        if (!program.given) program = named(control.program);
        if (input_count == 0) {
            const std::uint32_t count = control.input_count;
            if (count > link::kMaxInputs) return std::unexpected(RunnerError::BadArgument);
            for (std::uint32_t i = 0; i < count; ++i) {
                inputs[i] = named(control.inputs[i]);
                if (!inputs[i].given) return std::unexpected(RunnerError::BadArgument);
            }
            input_count = count;
        }
    }

    Staging staging;
    if (program.given) {
        if (!take(staging.program, program)) return std::unexpected(RunnerError::BadAddress);
    } else {
        staging.program = {link::kProgram.base, link::kProgram.size, 0, false};
    }
    staging.input_count = input_count;
    for (std::uint32_t i = 0; i < input_count; ++i) {
        if (!take(staging.inputs[i], inputs[i])) return std::unexpected(RunnerError::BadAddress);
        StagedInput& p = staging.program;
        const StagedInput& in = staging.inputs[i];
        if (!ranges_overlap(p.address, p.length, in.address, in.length)) continue;
        if (program.given || in.address <= p.address) return std::unexpected(RunnerError::BadAddress);
        p.length = in.address - p.address;  // whoever stages an input behind a small program says where that must end
    }
    if (input_count == 0) staging.inputs[0] = {link::kInputTensor.base, 0, 0, false};
    return staging;
}

}  // namespace talpa::firmware
