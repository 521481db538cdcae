#include "pte/metadata.h"

#include <array>

namespace talpa::pte {
namespace {

/// A short name put together without a heap; what does not fit makes it match nothing.
class ShortName {
  public:
    void add(std::string_view text) {
        for (const char c : text) {
            overflow_ = overflow_ || size_ == text_.size();
            if (!overflow_) text_[size_++] = c;
        }
    }
    void add_number(std::uint32_t v) {
        char digits[10];
        std::size_t n = 0;
        for (; n == 0 || v != 0; v /= 10) digits[n++] = static_cast<char>('0' + v % 10);
        while (n > 0) add({&digits[--n], 1});
    }
    [[nodiscard]] std::string_view text() const {
        return overflow_ ? std::string_view() : std::string_view(text_.data(), size_);
    }

  private:
    std::array<char, 128> text_{};
    std::size_t size_ = 0;
    bool overflow_ = false;
};

std::optional<ValueView> parameter(const Program& program, const MethodView& method, IoSide side, std::uint32_t index,
                                   std::string_view what) {
    for (const bool prefixed : {true, false}) {
        ShortName name;
        if (prefixed) {
            name.add(method.name());
            name.add("_");
        }
        name.add(side == IoSide::Input ? "input" : "output");
        name.add_number(index);
        name.add(what);
        if (const auto value = constant_method(program, name.text(), "")) return value;
    }
    return std::nullopt;
}

std::optional<std::int64_t> integer(const std::optional<ValueView>& value) {
    return value && value->type() == ValueType::Int ? std::optional(value->as_int()) : std::nullopt;
}

}  // namespace

bool is_constant_method(const MethodView& method) {
    if (!method.inputs().empty() || method.outputs().empty()) return false;
    for (std::uint32_t o = 0; o < method.outputs().size(); ++o) {
        const std::int32_t output = method.outputs()[o];
        if (output < 0 || static_cast<std::uint32_t>(output) >= method.values().size()) return false;
    }
    for (std::uint32_t c = 0; c < method.chain_count(); ++c)
        if (!method.instructions(c).empty()) return false;
    return true;
}

std::optional<MethodView> find_constant_method(const Program& program, std::string_view prefix, std::string_view name) {
    for (std::uint32_t i = 0; i < program.method_count(); ++i) {
        const MethodView method = program.method(i);
        const std::string_view found = method.name();
        if (found.empty() || !found.starts_with(prefix) || found.substr(prefix.size()) != name ||
            !is_constant_method(method))
            continue;
        return method;
    }
    return std::nullopt;
}

std::optional<ValueView> constant_method(const Program& program, std::string_view prefix, std::string_view name) {
    const std::optional<MethodView> method = find_constant_method(program, prefix, name);
    if (!method || method->outputs().size() != 1) return std::nullopt;
    return method->value(static_cast<std::uint32_t>(method->outputs()[0]));
}

std::optional<IoQuantization> io_quantization(const Program& program, const MethodView& method, IoSide side,
                                              std::uint32_t index) {
    const auto scale = parameter(program, method, side, index, "_scale");
    const auto zero_point = integer(parameter(program, method, side, index, "_zp"));
    if (!scale || scale->type() != ValueType::Double || !zero_point) return std::nullopt;
    IoQuantization q;
    q.scale = scale->as_double();
    q.zero_point = *zero_point;
    q.quant_min = integer(parameter(program, method, side, index, "_quant_min")).value_or(0);
    q.quant_max = integer(parameter(program, method, side, index, "_quant_max")).value_or(0);
    q.dtype = integer(parameter(program, method, side, index, "_dtype")).value_or(0);
    return q;
}

}  // namespace talpa::pte
