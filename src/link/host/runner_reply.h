// One reply line of the runner, parsed. What a stranger's firmware may send: unknown keys are skipped, numbers are
// checked, and a line that is none of the protocol's is Other. (imx93-remoteproc, section 11)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace talpa::link::host {

struct ReplyTop {
    unsigned rank = 0;  ///< from 1
    std::uint32_t class_index = 0;
    double score = 0;  ///< probability
    double logit = 0;
};

struct ReplyOutput {
    std::vector<std::int32_t> shape;
    std::string dtype;
    std::uint32_t bytes = 0;
    std::uint32_t address = 0;
    std::optional<std::uint32_t> argmax;
};

/// Of the M33, by its cycle counter. Keys that were not sent are 0.
struct ReplyTimes {
    std::uint64_t crc_us = 0, load_us = 0, input_us = 0, quantize_us = 0, npu_us = 0, dequantize_us = 0, run_us = 0;
    std::uint64_t npu_cycles = 0, cpu_cycles = 0;
};

struct Reply {
    enum class Kind : std::uint8_t {
        Other,
        Status,  ///< text: "loading", "running", "state=idle …"
        Top,
        Output,
        Time,
        Info,  ///< text: the key=value words
        Pong,
        Crc,     ///< number
        Values,  ///< "OUT i=…"
        Ok,      ///< text: "RUN seq=1"
        Error,   ///< number: the runner's code; text: what follows it
    } kind = Kind::Other;
    std::string_view tag;   ///< without the @; empty when there is none
    std::string_view text;  ///< behind the keyword
    std::uint32_t number = 0;
    ReplyTop top;
    ReplyOutput output;
    ReplyTimes times;

    /// OK, ERR, PONG, CRC: nothing follows for this command.
    [[nodiscard]] bool ends() const {
        return kind == Kind::Ok || kind == Kind::Error || kind == Kind::Pong || kind == Kind::Crc;
    }
};

/// `line` without its end; the views point into it.
[[nodiscard]] Reply parse_reply(std::string_view line);

/// The value of `key=` among words; nothing when it is not there.
[[nodiscard]] std::optional<std::string_view> word_value(std::string_view words, std::string_view key);

}  // namespace talpa::link::host
