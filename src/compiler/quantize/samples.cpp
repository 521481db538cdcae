#include "compiler/quantize/samples.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/host/file.h"
#include "base/host/npy.h"
#include "compiler/graph/infer.h"
#include "image/decode.h"

namespace talpa::compiler {

namespace fs = std::filesystem;

namespace {

/// Size and layout from the model's input, if it is shaped like a picture.
std::optional<image::PreprocessSpec> picture_spec(const Graph& graph, image::PreprocessSpec spec) {
    if (graph.inputs.size() != 1) return std::nullopt;
    const Shape& shape = graph[graph.inputs[0]].shape;
    if (shape.size() != 4 || shape[0] != 1) return std::nullopt;
    const auto is_channels = [](std::int64_t n) { return n == 3 || n == 1; };
    const bool first = is_channels(shape[1]) && !(is_channels(shape[3]) && shape[1] > 3);
    if (!first && !is_channels(shape[3])) return std::nullopt;
    spec.layout = first ? image::Layout::Nchw : image::Layout::Nhwc;
    spec.channels = static_cast<std::uint32_t>(first ? shape[1] : shape[3]);
    spec.height = static_cast<std::uint32_t>(first ? shape[2] : shape[1]);
    spec.width = static_cast<std::uint32_t>(first ? shape[3] : shape[2]);
    spec.shorter_side = std::max(spec.shorter_side, std::max(spec.width, spec.height));
    spec.element = image::Element::Float32;
    return spec;
}

std::vector<float> floats(std::span<const std::uint8_t> bytes) {
    std::vector<float> numbers(bytes.size() / 4);
    std::memcpy(numbers.data(), bytes.data(), numbers.size() * 4);
    return numbers;
}

host::Result<void> add_raw(const std::string& name, std::span<const std::uint8_t> bytes, const Graph& graph,
                           LoadedSamples& into) {
    NamedSample sample{.name = name, .inputs = {}};
    std::size_t at = 0;
    for (const auto id : graph.inputs) {
        const auto size = static_cast<std::size_t>(element_count(graph[id].shape)) * 4;
        if (bytes.size() - at < size) {
            at = bytes.size() + 1;
            break;
        }
        sample.inputs.push_back(floats(bytes.subspan(at, size)));
        at += size;
    }
    if (at != bytes.size()) {
        std::size_t wanted = 0;
        for (const auto id : graph.inputs) wanted += static_cast<std::size_t>(element_count(graph[id].shape)) * 4;
        return host::failure(ErrorCode::InvalidArgument, "{} has {} bytes; the model's inputs are {} bytes of float32",
                             name, bytes.size(), wanted);
    }
    into.samples.push_back(std::move(sample));
    return {};
}

/// Is an array of this shape one sample of the input, or several? Dimensions of size 1 say nothing of the layout; of
/// the others the last are the input's, or it has a larger batch. A row of numbers claims no layout.
bool is_shaped_like(const Shape& array, const Shape& input) {
    const auto without_ones = [](Shape shape) {
        std::erase(shape, 1);
        return shape;
    };
    const Shape has = without_ones(array), wanted = without_ones(input);
    if (array.size() <= 1) return true;
    if (has.size() >= wanted.size() &&
        std::equal(wanted.begin(), wanted.end(), has.end() - static_cast<std::ptrdiff_t>(wanted.size())))
        return true;
    return array.size() == input.size() && array[0] % input[0] == 0 &&
           std::equal(array.begin() + 1, array.end(), input.begin() + 1);
}

host::Result<void> add_npy(const std::string& name, std::span<const std::uint8_t> bytes, const Graph& graph,
                           LoadedSamples& into) {
    TRY_ASSIGN(const auto array, host::read_npy(bytes));
    if (graph.inputs.size() != 1)
        return std::unexpected(host::Error(
            ErrorCode::InvalidArgument,
            fmt::format("a .npy holds one array, but the model has {} inputs", graph.inputs.size()),
            "give .bin files: the float32 numbers of all inputs, in the model's order, one behind the other"));
    const auto numbers = host::to_float32(array);
    const auto& input = graph[graph.inputs[0]];
    const auto each = static_cast<std::size_t>(element_count(input.shape));
    if (each == 0 || numbers.empty() || numbers.size() % each != 0)
        return host::failure(ErrorCode::InvalidArgument,
                             "it holds {} numbers, which is no multiple of the {} of input '{}'", numbers.size(), each,
                             input.name);
    if (!is_shaped_like(array.shape, input.shape))
        return std::unexpected(
            host::Error(ErrorCode::InvalidArgument,
                        fmt::format("its shape is {}, that of input '{}' is {}", shape_text(array.shape), input.name,
                                    shape_text(input.shape)),
                        "transpose it to the input's layout (channels first or last, as the model has them)"));
    for (std::size_t i = 0; i < numbers.size(); i += each)
        into.samples.push_back({.name = numbers.size() == each ? name : fmt::format("{}[{}]", name, i / each),
                                .inputs = {{numbers.begin() + static_cast<std::ptrdiff_t>(i),
                                            numbers.begin() + static_cast<std::ptrdiff_t>(i + each)}}});
    return {};
}

host::Result<void> add_picture(const std::string& name, std::span<const std::uint8_t> bytes,
                               const std::optional<image::PreprocessSpec>& spec, LoadedSamples& into) {
    TRY_ASSIGN(const auto picture, image::decode(bytes));
    if (!spec)
        return host::failure(ErrorCode::InvalidArgument,
                             "{} is a picture, but the model has no single input of the shape 1 x 3 x H x W or "
                             "1 x H x W x 3; give .npy or .bin samples",
                             name);
    // One that has the input's size already was cut for this network: scaling and cropping it again would show the
    // network less than it will see.
    const bool fits = picture.width == spec->width && picture.height == spec->height;
    TRY_ASSIGN(const auto tensor, fits ? image::tensor_of_fitted(picture, *spec) : image::to_tensor(picture, *spec));
    into.samples.push_back({.name = name, .inputs = {floats(tensor)}});
    return {};
}

}  // namespace

host::Result<LoadedSamples> load_samples(const fs::path& path, const Graph& graph, image::PreprocessSpec preprocess,
                                         std::size_t limit) {
    std::error_code error;
    std::vector<fs::path> files;
    if (fs::is_directory(path, error)) {
        for (const auto& entry : fs::directory_iterator(path, error))
            if (entry.is_regular_file(error)) files.push_back(entry.path());
        std::ranges::sort(files);
    } else {
        files.push_back(path);
    }
    const auto spec = picture_spec(graph, preprocess);
    LoadedSamples loaded;
    for (const auto& file : files) {
        if (loaded.samples.size() >= limit) break;
        const auto name = file.filename().string();
        TRY_ASSIGN(const auto mapped, host::MappedFile::open(file));
        const auto extension = file.extension();
        if (extension == ".bin") {
            TRY(add_raw(name, mapped.bytes(), graph, loaded));
        } else if (extension == ".npy") {
            TRY(host::with_context(add_npy(name, mapped.bytes(), graph, loaded), name));
        } else if (auto added = add_picture(name, mapped.bytes(), spec, loaded); !added) {
            if (added.error().code == ErrorCode::InvalidArgument) return std::unexpected(std::move(added.error()));
            loaded.skipped.push_back(fmt::format("{}: {}", name, added.error().message));
        }
    }
    if (loaded.samples.size() > limit) loaded.samples.resize(limit);
    if (!loaded.samples.empty()) return loaded;
    auto none =
        host::Error(ErrorCode::InvalidArgument, fmt::format("{}: no picture, .npy or .bin in it", path.string()),
                    "give a folder with some dozens of typical pictures");
    if (!loaded.skipped.empty()) none.message += fmt::format("; {}", loaded.skipped.front());
    return std::unexpected(std::move(none));
}

}  // namespace talpa::compiler
