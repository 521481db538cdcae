// A command line turned into what the runner acts on: numbers read, ranges checked for form. (imx93-remoteproc, section
// 11)
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <string_view>

#include "link/control_block.h"
#include "link/runner_protocol.h"

namespace talpa::firmware {

/// Who asked: our endpoint's address, and theirs.
struct Peer {
    std::uint32_t endpoint = 0;
    std::uint32_t address = 0;
};

/// A range that a command names: physical, or an offset from the model region (below 80000000).
struct NamedRange {
    std::uint32_t offset = 0;
    std::uint32_t length = 0;
    std::uint32_t crc32 = 0;
    bool given = false;
    bool check_crc = false;
};

inline constexpr std::uint32_t kMaxTop = 20;  ///< TOP lines at most

struct Request {
    Peer peer;
    std::array<char, link::kMaxTag> tag{};
    std::uint8_t tag_size = 0;
    link::RunnerCommand command = link::RunnerCommand::Ping;

    NamedRange program;                                 // RUN, LOAD: pte=off,len; CRC: off len
    std::array<NamedRange, link::kMaxInputs> inputs{};  // RUN: in=off,len[,off,len…]
    std::uint32_t input_count = 0;
    std::uint32_t output_offset = 0;  // RUN: out=off
    bool output_given = false;
    std::uint32_t timeout_ms = 10'000;
    std::uint32_t top = 5;                         // RUN: 0..kMaxTop
    std::uint32_t index = 0, from = 0, count = 8;  // OUT
    bool hex = false;

    [[nodiscard]] std::string_view tag_view() const { return {tag.data(), tag_size}; }
};

/// Errors: UnknownCommand, BadArgument. Unknown keys are ignored, as the protocol says.
[[nodiscard]] std::expected<Request, link::RunnerError> parse_request(std::string_view line, Peer peer);

}  // namespace talpa::firmware
