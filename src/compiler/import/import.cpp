#include "compiler/import/import.h"

#include <cstring>

#include "base/host/file.h"
#include "compiler/import/pt2/pt2.h"
#include "compiler/import/tflite/tflite.h"
#include "compiler/passes/passes.h"

namespace talpa::compiler::import {
namespace {

using host::Result;

bool starts_with(talpa::Bytes file, std::string_view magic, std::size_t offset = 0) {
    return file.size() >= offset + magic.size() && std::memcmp(file.data() + offset, magic.data(), magic.size()) == 0;
}

Result<Graph> read(talpa::Bytes file, const Options& options) {
    if (starts_with(file, "PK")) return pt2::read(file, options);
    if (starts_with(file, "TFL3", 4)) return tflite::read(file, options);
    return std::unexpected(host::Error(ErrorCode::NotSupported, "not a model file of a known kind",
                                       "talpa reads .pt2 (torch.export.save) and .tflite."));
}

}  // namespace

Result<Graph> import_model(const std::filesystem::path& path, const Options& options) {
    TRY_ASSIGN(const auto file, host::MappedFile::open(path));
    TRY_ASSIGN(Graph graph, host::with_context(read(file.bytes(), options), path.string()));
    graph.name = path.stem().string();
    TRY(host::with_context(canonicalize(graph, options.after_stage), path.string()));
    return graph;
}

}  // namespace talpa::compiler::import
