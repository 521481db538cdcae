#include "classifier/picture_input.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "pte/metadata.h"

namespace talpa::classifier {
namespace {

using runtime::ScalarType;
using runtime::host::PortInfo;

std::optional<image::Element> element_of(ScalarType type) {
    switch (type) {
        case ScalarType::Float32:
            return image::Element::Float32;
        case ScalarType::Int8:
        case ScalarType::QInt8:
            return image::Element::Int8;
        case ScalarType::UInt8:
        case ScalarType::QUInt8:
            return image::Element::UInt8;
        case ScalarType::Int16:
            return image::Element::Int16;
        default:
            return std::nullopt;
    }
}

/// Size, channels and layout in memory. A logical [1, C, H, W] may be stored channels-last.
bool take_shape(const PortInfo& port, image::PreprocessSpec& spec) {
    const auto& s = port.sizes;
    if (s.size() != 4 || s[0] != 1) return false;
    const auto is_channels = [](std::int32_t n) { return n == 3 || n == 1; };
    const bool contiguous = port.dim_order == std::vector<std::uint8_t>{0, 1, 2, 3};
    const bool channels_last = port.dim_order == std::vector<std::uint8_t>{0, 2, 3, 1};
    if (std::any_of(s.begin(), s.end(), [](std::int32_t n) { return n <= 0; })) return false;
    if (is_channels(s[1]) && (contiguous || channels_last)) {
        spec.channels = static_cast<std::uint32_t>(s[1]);
        spec.height = static_cast<std::uint32_t>(s[2]), spec.width = static_cast<std::uint32_t>(s[3]);
        spec.layout = contiguous ? image::Layout::Nchw : image::Layout::Nhwc;
        return true;
    }
    if (is_channels(s[3]) && contiguous) {
        spec.height = static_cast<std::uint32_t>(s[1]), spec.width = static_cast<std::uint32_t>(s[2]);
        spec.channels = static_cast<std::uint32_t>(s[3]);
        spec.layout = image::Layout::Nhwc;
        return true;
    }
    return false;
}

std::array<float, 3> per_channel(const std::vector<float>& numbers) {
    if (numbers.size() == 1) return {numbers[0], numbers[0], numbers[0]};
    return {numbers[0], numbers[1], numbers[2]};
}

/// What a constant method returns, where that is numbers; empty where not. The one with the method's name in front goes
/// first.
std::vector<float> constant_numbers(const pte::Program& program, std::string_view method, const std::string& name) {
    auto found = pte::find_constant_method(program, std::string(method) + "_", name);
    if (!found) found = pte::find_constant_method(program, "", name);
    if (!found) return {};
    std::vector<float> numbers;
    for (std::uint32_t o = 0; o < found->outputs().size(); ++o) {
        const pte::ValueView value = found->value(static_cast<std::uint32_t>(found->outputs()[o]));
        switch (value.type()) {
            case pte::ValueType::Int:
                numbers.push_back(static_cast<float>(value.as_int()));
                break;
            case pte::ValueType::Double:
                numbers.push_back(static_cast<float>(value.as_double()));
                break;
            case pte::ValueType::DoubleList:
                for (std::uint32_t i = 0; i < value.double_list().size(); ++i)
                    numbers.push_back(static_cast<float>(value.double_list()[i]));
                break;
            default:
                return {};
        }
    }
    return numbers;
}

/// The flag's numbers, else the program's constant of that name when it has as many as it should.
std::vector<float> numbers_for(const std::vector<float>& flag, const pte::Program& program, std::string_view method,
                               const std::string& name, std::initializer_list<std::size_t> allowed) {
    if (!flag.empty()) return flag;
    auto constant = constant_numbers(program, method, name);
    return std::ranges::find(allowed, constant.size()) != allowed.end() ? constant : std::vector<float>{};
}

struct Limits {
    std::int32_t low, high;
};
Limits limits_of(image::Element element) {
    switch (element) {
        case image::Element::UInt8:
            return {0, 255};
        case image::Element::Int16:
            return {-32768, 32767};
        default:
            return {-128, 127};
    }
}

/// Of a normalised value: far beyond what any network takes, and far from where float32 overflows.
constexpr double kLargest = 1e30;

/// Scale and zero point for an integer type that spans the normalised range of all channels.
void assume_scale(image::PreprocessSpec& spec) {
    double low = 0, high = 0;
    for (unsigned c = 0; c < 3; ++c) {
        const double a = (double{spec.low} - spec.mean[c]) / spec.std[c];
        const double b = (double{spec.high} - spec.mean[c]) / spec.std[c];
        low = std::min({low, a, b}), high = std::max({high, a, b});
    }
    const Limits limits = limits_of(spec.element);
    const double scale = (high - low) / (limits.high - limits.low);
    spec.scale = static_cast<float>(scale);
    if (!std::isfinite(scale) || scale <= 0) return;  // a std of 0, which to_tensor refuses
    spec.zero_point = limits.low - static_cast<std::int32_t>(std::nearbyint(low / scale));
}

}  // namespace

host::Result<std::vector<float>> parse_numbers(std::string_view flag, std::string_view text,
                                               std::span<const std::size_t> allowed) {
    std::vector<float> numbers;
    const auto bad = [&] {
        return host::failure(ErrorCode::InvalidArgument, "{} takes {} numbers with commas between, not '{}'", flag,
                             fmt::join(allowed, " or "), text);
    };
    for (std::string_view rest = text;;) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        std::string_view word = rest.substr(0, comma);
        if (word.starts_with('+')) word.remove_prefix(1);
        float number = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
        if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(number)) return bad();
        numbers.push_back(number);
        if (comma == rest.size()) break;
        rest.remove_prefix(comma + 1);
    }
    if (std::ranges::find(allowed, numbers.size()) == allowed.end()) return bad();
    return numbers;
}

host::Result<void> check(const NormalisationFlags& flags) {
    if (std::ranges::find(flags.std, 0.0F) != flags.std.end())
        return host::failure(ErrorCode::InvalidArgument, "--std: nothing can be divided by a standard deviation of 0");
    if (!flags.range.empty() && !(flags.range[0] < flags.range[1]))
        return host::failure(ErrorCode::InvalidArgument, "--range: {} to {} holds nothing", flags.range[0],
                             flags.range[1]);
    return {};
}

host::Result<PictureInput> picture_input(const pte::Program& program, std::string_view method, std::uint32_t index,
                                         const PortInfo& port, const NormalisationFlags& flags) {
    PictureInput input;
    image::PreprocessSpec& spec = input.spec;
    const auto element = element_of(port.type);
    if (port.kind != runtime::Value::Kind::Tensor || !element || !take_shape(port, spec))
        return std::unexpected(host::Error(ErrorCode::InvalidType,
                                           fmt::format("input {} is no picture: it is {}", index, port.describe()),
                                           "give its bytes with --input FILE.bin"));
    spec.element = *element;

    const std::string prefix = fmt::format("input{}_", index);
    const auto range = numbers_for(flags.range, program, method, prefix + "range", {2});
    const auto mean = numbers_for(flags.mean, program, method, prefix + "mean", {1, 3});
    const auto std = numbers_for(flags.std, program, method, prefix + "std", {1, 3});
    if (!range.empty())
        spec.low = range[0], spec.high = range[1];
    else if (!mean.empty() || !std.empty())
        spec.low = 0, spec.high = 1;
    if (!mean.empty()) spec.mean = per_channel(mean);
    if (!std.empty()) spec.std = per_channel(std);
    if (!(spec.low < spec.high))
        return host::failure(ErrorCode::InvalidArgument, "a range of {} to {} holds nothing", spec.low, spec.high);
    for (unsigned c = 0; c < 3; ++c)
        for (const float end : {spec.low, spec.high})
            if (spec.std[c] != 0 && !(std::abs((double{end} - spec.mean[c]) / spec.std[c]) <= kLargest))
                return host::failure(ErrorCode::InvalidArgument,
                                     "a range of {} to {} with mean {} and std {} gives values beyond {}", spec.low,
                                     spec.high, spec.mean[c], spec.std[c], kLargest);

    const std::uint32_t crop = std::max(spec.width, spec.height);
    spec.shorter_side = image::usual_shorter_side(crop);
    const auto resize = numbers_for({}, program, method, prefix + "resize", {1});
    if (!resize.empty() && resize[0] >= static_cast<float>(crop) && resize[0] <= 65535.0f)
        spec.shorter_side = static_cast<std::uint32_t>(resize[0]);

    if (spec.element == image::Element::Float32) return input;
    if (port.quantization && port.quantization->scale > 0) {
        spec.scale = static_cast<float>(port.quantization->scale);
        spec.zero_point =
            static_cast<std::int32_t>(std::clamp<std::int64_t>(port.quantization->zero_point, -32768, 65535));
    } else {
        assume_scale(spec);
        input.note = fmt::format(
            "the program does not say what its {} input means; it is taken to span the range of the picture (scale {}, "
            "zero point {})",
            runtime::scalar_name(port.type), spec.scale, spec.zero_point);
    }
    return input;
}

}  // namespace talpa::classifier
