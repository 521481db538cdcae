#include "classifier/ports.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/host/file.h"
#include "runtime/host/c_order.h"

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

host::Result<void> add_output(RunResult& result, const runtime::host::PortInfo& port, Bytes stored, std::size_t top,
                              const Labels& labels) {
    const std::size_t index = result.outputs.size();
    std::uint64_t bytes = scalar_size(port.type);
    for (const std::int32_t side : port.sizes)  // whatever is beyond 4 GiB stays there
        bytes = std::min<std::uint64_t>(bytes, std::uint64_t{1} << 32) * static_cast<std::uint64_t>(std::max(side, 0));
    if (port.dim_order.size() != port.sizes.size() || bytes != stored.size())  // of the board the shape is hearsay
        return host::failure(ErrorCode::InvalidArgument, "output {} is {}, and has {} bytes", index, port.describe(),
                             stored.size());
    const OutputFile& file = result.outputs.emplace_back(
        port.sizes, port.dim_order, std::string(runtime::scalar_name(port.type)),
        runtime::host::to_c_order(stored, scalar_size(port.type), port.dim_order, port.sizes), std::string());
    if (result.classification || result.not_ranked) return {};
    Output output{.type = port.type, .shape = port.sizes, .bytes = file.bytes, .quantization = {}};
    if (port.quantization && port.quantization->scale > 0)
        output.quantization =
            Quantization{port.quantization->scale, static_cast<std::int32_t>(port.quantization->zero_point)};
    if (!is_classification(output)) return {};
    auto ranked = host::with_context(classify(output, top), fmt::format("output {}", index));
    if (!ranked) {
        result.not_ranked = std::move(ranked.error());
        return {};
    }
    result.classification = std::move(*ranked);
    if (!labels.empty()) TRY(labels.check_enough_for(result.classification->classes));
    return {};
}

host::Result<void> finish_outputs(RunResult& result, const std::optional<std::filesystem::path>& folder) {
    for (std::size_t i = 0; folder && i < result.outputs.size(); ++i) {
        const std::filesystem::path path = *folder / fmt::format("out{}.bin", i);
        TRY(host::write_file(path, result.outputs[i].bytes));
        result.outputs[i].file = path.string();
    }
    for (OutputFile& output : result.outputs) output.bytes = {};
    if (result.not_ranked) return std::unexpected(*result.not_ranked);
    return {};
}

}  // namespace talpa::classifier
