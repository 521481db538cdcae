#include "firmware/request.h"

#include <algorithm>

namespace talpa::firmware {
namespace {

using link::CommandLine;
using link::RunnerCommand;
using link::RunnerError;

/// Reads `key` as numbers into `out`; true when it is absent or well-formed.
bool numbers(const CommandLine& line, const char* key, std::span<std::uint32_t> out, std::size_t& count) {
    count = 0;
    const auto text = line.find(key);
    if (!text) return true;
    const auto read = link::parse_numbers(*text, out);
    if (!read) return false;
    count = *read;
    return true;
}

bool number(const CommandLine& line, const char* key, std::uint32_t& out, bool* given = nullptr) {
    std::uint32_t value = 0;
    std::size_t count = 0;
    if (!numbers(line, key, {&value, 1}, count)) return false;
    if (count == 1) out = value;
    if (given != nullptr) *given = count == 1;
    return true;
}

/// The i-th argument without a key.
std::optional<std::uint32_t> positional(const CommandLine& line, std::size_t i) {
    for (std::size_t a = 0; a < line.argument_count; ++a)
        if (line.arguments[a].key.empty() && i-- == 0) return link::parse_number(line.arguments[a].value);
    return std::nullopt;
}

bool read_run(const CommandLine& line, Request& r) {
    std::array<std::uint32_t, 2 * link::kMaxInputs> in{};
    std::array<std::uint32_t, 1 + link::kMaxInputs> crc{};
    std::array<std::uint32_t, 2> pte{};
    std::size_t in_count = 0, crc_count = 0, pte_count = 0;
    std::uint32_t verbose = 0;  // of the protocol, without effect here; so is the number of LEVEL
    if (!numbers(line, "pte", pte, pte_count) || pte_count == 1) return false;
    if (!numbers(line, "in", in, in_count) || in_count % 2 != 0) return false;
    if (!numbers(line, "crc", crc, crc_count)) return false;
    if (!number(line, "timeout", r.timeout_ms) || !number(line, "top", r.top) || !number(line, "verbose", verbose))
        return false;
    if (!number(line, "out", r.output_offset, &r.output_given)) return false;
    if (pte_count == 2) r.program = {pte[0], pte[1], 0, true, false};
    r.input_count = static_cast<std::uint32_t>(in_count / 2);
    for (std::uint32_t i = 0; i < r.input_count; ++i) r.inputs[i] = {in[2 * i], in[2 * i + 1], 0, true, false};
    // A CRC wants the length that it covers.
    if (crc_count > 0 && !r.program.given) return false;
    if (crc_count > 1 + r.input_count) return false;
    for (std::size_t i = 0; i < crc_count; ++i) {
        NamedRange& range = i == 0 ? r.program : r.inputs[i - 1];
        range.crc32 = crc[i];
        range.check_crc = true;
    }
    return r.top <= kMaxTop && r.timeout_ms > 0 && r.timeout_ms <= INT32_MAX;  // deadlines are compared by difference
}

}  // namespace

std::expected<Request, RunnerError> parse_request(std::string_view text, Peer peer) {
    Request r;
    r.peer = peer;
    const auto line = link::parse_command(text);
    if (!line) return std::unexpected(line.error());
    r.command = line->command;
    r.tag_size = static_cast<std::uint8_t>(line->tag.size());
    std::copy(line->tag.begin(), line->tag.end(), r.tag.begin());
    bool good = true;
    switch (r.command) {
        case RunnerCommand::Run:
        case RunnerCommand::Load:
            good = read_run(*line, r);
            break;
        case RunnerCommand::Crc: {
            const auto offset = positional(*line, 0), length = positional(*line, 1);
            good = offset && length;
            if (good) r.program = {*offset, *length, 0, true, false};
            break;
        }
        case RunnerCommand::Out: {
            r.hex = line->find("fmt") == "hex";
            good = number(*line, "i", r.index) && number(*line, "from", r.from) && number(*line, "count", r.count);
            break;
        }
        case RunnerCommand::Level:
            good = positional(*line, 0).has_value();
            break;
        case RunnerCommand::Ping:
        case RunnerCommand::Info:
        case RunnerCommand::Status:
        case RunnerCommand::Abort:
            break;
    }
    if (!good) return std::unexpected(RunnerError::BadArgument);
    return r;
}

}  // namespace talpa::firmware
