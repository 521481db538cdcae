#include "compiler/import/import.h"

#include <fmt/format.h>

#include <cstring>

#include "base/host/file.h"
#include "compiler/import/architectures/architectures.h"
#include "compiler/import/onnx/onnx.h"
#include "compiler/import/pt2/pt2.h"
#include "compiler/import/tflite/tflite.h"
#include "compiler/import/weights_file/weights.h"
#include "compiler/passes/passes.h"

namespace talpa::compiler::import {
namespace {

using host::Result;

bool starts_with(talpa::Bytes file, std::string_view magic, std::size_t offset = 0) {
    return file.size() >= offset + magic.size() && std::memcmp(file.data() + offset, magic.data(), magic.size()) == 0;
}

Result<Graph> from_weights(Result<WeightsFile> weights, const Options& options) {
    if (!weights) return std::unexpected(std::move(weights.error()));
    return build_architecture(options.architecture, *weights, options.picture_size);
}

// What has a graph of its own is no built-in network: nothing that was asked for is passed over.
Result<void> no_weights_options(const Options& options) {
    if (options.architecture.empty() && options.picture_size == 0) return {};
    return std::unexpected(host::Error(ErrorCode::InvalidArgument,
                                       fmt::format("{} is for files of weights alone, this one has its network in it",
                                                   options.architecture.empty() ? "--picture-size" : "--architecture"),
                                       "Files of weights are .pth and .pt of a state dict, and .safetensors."));
}

bool is_safetensors(talpa::Bytes file) {
    return file.size() > 9 && load_le<std::uint64_t>(file.data()) <= file.size() - 8 && file[8] == '{';
}

Result<Graph> read(talpa::Bytes file, const std::filesystem::path& folder, const Options& options) {
    if (starts_with(file, "PK")) {
        TRY_ASSIGN(const Zip zip, Zip::open(file));
        if (is_saved_by_torch(zip)) return from_weights(read_state_dict(file), options);
        TRY(no_weights_options(options));
        return pt2::read(file, options);
    }
    if (file.size() > 1 && file[0] == 0x80 && file[1] >= 2 && file[1] <= 5)
        return from_weights(read_state_dict(file), options);
    const bool is_tflite = starts_with(file, "TFL3", 4);
    if (!is_tflite && is_safetensors(file)) return from_weights(read_safetensors(file), options);
    if (is_tflite || onnx::looks_like(file)) {
        TRY(no_weights_options(options));
        return is_tflite ? tflite::read(file, options) : onnx::read(file, folder, options);
    }
    if (starts_with(file, "ustar", 257))
        return std::unexpected(host::Error(ErrorCode::NotSupported, "a file of PyTorch before 0.1.10",
                                           "Load and save it again with a current PyTorch."));
    return std::unexpected(host::Error(ErrorCode::NotSupported, "not a model file of a known kind",
                                       "talpa reads .pt2 (torch.export.save), .tflite, .onnx, and weights of built-in "
                                       "networks as .pth, .pt or .safetensors."));
}

}  // namespace

Result<Graph> import_bytes(talpa::Bytes file, const std::filesystem::path& folder, const Options& options) {
    TRY_ASSIGN(Graph graph, read(file, folder, options));
    TRY(canonicalize(graph, options.after_stage));
    return graph;
}

Result<Graph> import_model(const std::filesystem::path& path, const Options& options) {
    TRY_ASSIGN(const auto file, host::MappedFile::open(path));
    TRY_ASSIGN(Graph graph, host::with_context(import_bytes(file.bytes(), path.parent_path(), options), path.string()));
    graph.name = path.stem().string();
    return graph;
}

}  // namespace talpa::compiler::import
