#include "link/host/runner_reply.h"

#include <charconv>
#include <cmath>

#include "link/runner_protocol.h"

namespace talpa::link::host {
namespace {

using Kind = Reply::Kind;

template <typename T>
std::optional<T> number(std::optional<std::string_view> text) {
    if (!text) return std::nullopt;
    T value{};
    const char* const end = text->data() + text->size();
    const auto [at, error] = std::from_chars(text->data(), end, value);
    if (error != std::errc() || at != end) return std::nullopt;
    return value;
}

std::optional<double> finite(std::optional<std::string_view> text) {
    const auto value = number<double>(text);
    return value && std::isfinite(*value) ? value : std::nullopt;
}

/// Cuts the first word off `rest`.
std::string_view next_word(std::string_view& rest) {
    const std::size_t start = rest.find_first_not_of(' ');
    if (start == std::string_view::npos) {
        rest = {};
        return {};
    }
    rest.remove_prefix(start);
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(end);
    if (!rest.empty()) rest.remove_prefix(1);
    return word;
}

bool read_top(Reply& reply) {
    std::string_view rest = reply.text;
    const auto rank = number<unsigned>(next_word(rest));
    const auto index = number<std::uint32_t>(word_value(rest, "class"));
    const auto score = finite(word_value(rest, "score"));
    if (!rank || *rank == 0 || !index || !score) return false;
    reply.top = {*rank, *index, *score, finite(word_value(rest, "logit")).value_or(0)};
    return true;
}

bool read_output(Reply& reply) {
    constexpr std::size_t kMaxRank = 8;
    ReplyOutput& out = reply.output;
    const auto shape = word_value(reply.text, "shape"), dtype = word_value(reply.text, "dtype");
    const auto bytes = number<std::uint32_t>(word_value(reply.text, "bytes"));
    const auto address = word_value(reply.text, "addr");
    const auto at = address ? parse_number(*address) : std::nullopt;
    if (!shape || !dtype || !bytes || !at) return false;
    // A scalar has an empty shape.
    for (std::string_view rest = *shape; !rest.empty();) {
        const std::size_t x = std::min(rest.find('x'), rest.size());
        const auto side = number<std::int32_t>(rest.substr(0, x));
        if (!side || *side < 0 || out.shape.size() == kMaxRank) return false;
        out.shape.push_back(*side);
        rest.remove_prefix(std::min(x + 1, rest.size()));
    }
    out.dtype = *dtype;
    out.bytes = *bytes;
    out.address = *at;
    out.argmax = number<std::uint32_t>(word_value(reply.text, "argmax"));
    return true;
}

bool read_times(Reply& reply) {
    static constexpr std::pair<std::string_view, std::uint64_t ReplyTimes::*> kKeys[] = {
        {"crc_us", &ReplyTimes::crc_us},         {"load_us", &ReplyTimes::load_us},
        {"input_us", &ReplyTimes::input_us},     {"quantize_us", &ReplyTimes::quantize_us},
        {"npu_us", &ReplyTimes::npu_us},         {"dequantize_us", &ReplyTimes::dequantize_us},
        {"run_us", &ReplyTimes::run_us},         {"npu_cycles", &ReplyTimes::npu_cycles},
        {"cpu_cycles", &ReplyTimes::cpu_cycles},
    };
    for (const auto& [key, member] : kKeys) {
        const auto text = word_value(reply.text, key);
        const auto value = number<std::uint64_t>(text);
        if (text && !value) return false;
        reply.times.*member = value.value_or(0);
    }
    return true;
}

}  // namespace

std::optional<std::string_view> word_value(std::string_view words, std::string_view key) {
    while (!words.empty()) {
        const std::string_view word = next_word(words);
        if (word.size() > key.size() && word[key.size()] == '=' && word.starts_with(key))
            return word.substr(key.size() + 1);
    }
    return std::nullopt;
}

Reply parse_reply(std::string_view line) {
    Reply reply;
    reply.tag = line_tag(line);
    if (!reply.tag.empty()) line.remove_prefix(reply.tag.size() + 2);
    std::string_view rest = line;
    const std::string_view word = next_word(rest);
    reply.text = rest;
    bool good = true;
    if (word == "OK") {
        reply.kind = Kind::Ok;
    } else if (word == "ERR") {
        reply.kind = Kind::Error;
        const auto code = number<std::uint32_t>(next_word(rest));
        good = code.has_value();
        reply.number = code.value_or(0);
        reply.text = rest;
    } else if (word == "STATUS") {
        reply.kind = Kind::Status;
    } else if (word == "TOP") {
        reply.kind = Kind::Top;
        good = read_top(reply);
    } else if (word == "OUT") {
        const bool values = rest.starts_with("i=");
        reply.kind = values ? Kind::Values : Kind::Output;
        good = values || read_output(reply);
    } else if (word == "TIME") {
        reply.kind = Kind::Time;
        good = read_times(reply);
    } else if (word == "INFO") {
        reply.kind = Kind::Info;
    } else if (word == "PONG") {
        reply.kind = Kind::Pong;
    } else if (word == "CRC") {
        reply.kind = Kind::Crc;
        const auto crc = parse_number(rest);
        good = crc.has_value();
        reply.number = crc.value_or(0);
    }
    if (!good) reply.kind = Kind::Other;
    return reply;
}

}  // namespace talpa::link::host
