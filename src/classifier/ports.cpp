#include "classifier/ports.h"

#include <fmt/format.h>

#include "base/host/file.h"

namespace talpa::classifier {

host::Result<std::uint32_t> picture_port(const runtime::host::Session& session) {
    std::optional<std::uint32_t> found;
    for (std::uint32_t i = 0; i < session.input_count(); ++i) {
        if (session.input(i).kind != runtime::Value::Kind::Tensor) continue;
        if (found)
            return std::unexpected(host::Error(ErrorCode::InvalidArgument,
                                               "the program has more than one input, so a picture is not enough",
                                               "give all of them as raw data: talpa run --input FILE.bin"));
        found = i;
    }
    if (!found) return host::failure(ErrorCode::InvalidArgument, "the program has no input that could take a picture");
    return *found;
}

host::Result<void> add_output(RunResult& result, const runtime::host::PortInfo& port, Bytes bytes, std::size_t top,
                              const Labels& labels, const std::optional<std::filesystem::path>& folder) {
    OutputFile file{.shape = port.sizes, .dtype = std::string(runtime::scalar_name(port.type)), .file = {}};
    if (folder) {
        const std::filesystem::path path = *folder / fmt::format("out{}.bin", result.outputs.size());
        TRY(host::write_file(path, bytes));
        file.file = path.string();
    }
    const std::size_t index = result.outputs.size();
    result.outputs.push_back(std::move(file));
    if (result.classification) return {};
    Output output{.type = port.type, .shape = port.sizes, .bytes = bytes, .quantization = {}};
    if (port.quantization && port.quantization->scale > 0)
        output.quantization =
            Quantization{port.quantization->scale, static_cast<std::int32_t>(port.quantization->zero_point)};
    if (!is_classification(output)) return {};
    TRY_ASSIGN(result.classification, host::with_context(classify(output, top), fmt::format("output {}", index)));
    if (!labels.empty()) TRY(labels.check_enough_for(result.classification->classes));
    return {};
}

}  // namespace talpa::classifier
