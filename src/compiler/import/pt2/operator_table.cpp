#include "compiler/import/pt2/operator_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "compiler/import/pt2/pt2.h"
#include "compiler/import/refusal.h"

namespace talpa::compiler::import::pt2 {
namespace {

constexpr std::string_view kPrefix = "torch.ops.";

using Table = std::unordered_map<std::string_view, const Operator*>;

const Table& table() {
    static const Table all = [] {
        Table t;
        for (const auto part :
             {matrix_operators(), pool_operators(), elementwise_operators(), shape_operators(), slice_operators(),
              resize_operators(), norm_operators(), quantize_operators(), constant_operators()})
            for (const Operator& op : part) t.emplace(op.target, &op);
        return t;
    }();
    return all;
}

constexpr Refusal kNoSignalProcessing{"signal processing is not supported",
                                      "Move feature extraction out of the model."};
constexpr Refusal kDependsOnData{"a result that depends on data",
                                 "Only networks without data-dependent control flow can be compiled."};
constexpr RefusedOperators kRefused[] = {
    {"aten.lstm", kNoRecurrentLayers},
    {"aten.gru", kNoRecurrentLayers},
    {"aten.rnn", kNoRecurrentLayers},
    {"aten.stft", kNoSignalProcessing},
    {"aten.hann_window", kNoSignalProcessing},
    {"aten.sym_size", {"a size that depends on the input", "Sizes must be fixed: export without dynamic_shapes."}},
    {"aten.item", kDependsOnData},
    {"aten.nonzero", kDependsOnData},
    {"aten.conv3d", {"convolutions over three dimensions are not supported", ""}},
    {"aten.embedding", {"table look-ups are not supported", "Move embeddings out of the model."}},
    {"torchvision.nms",
     {"non-maximum suppression is not supported", "Export backbone and heads only; select boxes on the host."}},
    {"torchvision.roi_align", {"region pooling is not supported", "Export backbone and heads only."}},
    {"higher_order.", kNoControlFlow},
    {"quantized_decomposed.choose_qparams", kNoDynamicQuantization},
    {"quantized_decomposed.",
     {"this form of quantization is not supported", "Quantize per tensor, weights per channel."}},
};

constexpr std::string_view kChecks[] = {"aten._assert_tensor_metadata.default", "aten._assert_scalar.default",
                                        "aten.sym_constrain_range.default",
                                        "aten.sym_constrain_range_for_size.default"};

}  // namespace

std::string_view short_target(std::string_view target) {
    return target.starts_with(kPrefix) ? target.substr(kPrefix.size()) : target;
}

host::Result<FoundOperator> find_operator(std::string_view target) {
    if (const auto found = table().find(target); found != table().end()) return FoundOperator{found->second, false};
    // aten.relu_.default is aten.relu.default in place.
    if (const auto dot = target.rfind('.'); dot != target.npos && dot > 0 && target[dot - 1] == '_') {
        const std::string plain = fmt::format("{}{}", target.substr(0, dot - 1), target.substr(dot));
        if (const auto found = table().find(plain); found != table().end()) return FoundOperator{found->second, true};
    }
    return std::unexpected(refused(kRefused, target));
}

bool only_checks(std::string_view target) {
    return std::ranges::find(kChecks, target) != std::end(kChecks);
}

std::vector<std::string> known_operators() {
    std::vector<std::string> names;
    for (const auto& [target, op] : table()) names.emplace_back(target);
    std::ranges::sort(names);
    return names;
}

}  // namespace talpa::compiler::import::pt2
