#include "link/host/device_tree.h"

#include <algorithm>

#include "base/host/file.h"

namespace talpa::link::host {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kPropertyLimit = 64 << 10;
constexpr std::size_t kMaxNodes = 256;

unsigned cells(const fs::path& path, unsigned usual) {
    const auto bytes = device_tree_property(path);
    if (!bytes || bytes->size() != 4) return usual;
    return (*bytes)[3];
}

}  // namespace

std::string device_tree_of(const BoardPaths& paths) {
    std::error_code ignored;
    for (const char* tree : {"/sys/firmware/devicetree/base", "/proc/device-tree"}) {
        const fs::path base = paths.under(tree);
        if (fs::is_directory(base, ignored) && !fs::is_empty(base, ignored)) return tree;
    }
    return {};
}

std::optional<std::vector<std::uint8_t>> device_tree_property(const fs::path& path) {
    auto bytes = talpa::host::read_file(path, kPropertyLimit);
    if (!bytes) return std::nullopt;
    return *std::move(bytes);
}

std::vector<ReservedNode> reserved_nodes(const fs::path& tree) {
    std::vector<ReservedNode> nodes;
    std::error_code ignored;
    const fs::path reserved = tree / "reserved-memory";
    const unsigned address_cells = cells(reserved / "#address-cells", 2),
                   size_cells = cells(reserved / "#size-cells", 2);
    std::size_t seen = 0;
    for (const auto& entry : fs::directory_iterator(reserved, ignored)) {
        if (!entry.is_directory(ignored) || ++seen > kMaxNodes) continue;
        const auto reg = device_tree_property(entry.path() / "reg");
        if (!reg) continue;
        for (const auto& [at, size] : reg_ranges(*reg, address_cells, size_cells))
            nodes.push_back({.name = entry.path().filename(),
                             .base = at,
                             .size = size,
                             .no_map = fs::exists(entry.path() / "no-map", ignored),
                             .reusable = fs::exists(entry.path() / "reusable", ignored)});
    }
    std::ranges::sort(nodes, {}, &ReservedNode::base);
    return nodes;
}

const ReservedNode* covering_node(const std::vector<ReservedNode>& nodes, const MemoryRange& range) {
    const ReservedNode* best = nullptr;
    for (const ReservedNode& node : nodes) {
        if (node.base > range.base || node.base + node.size < std::uint64_t{range.base} + range.size) continue;
        if (best == nullptr || (node.no_map && !best->no_map)) best = &node;
    }
    return best;
}

std::vector<MemoryRange> unreserved_ranges(const BoardPaths& paths) {
    std::vector<MemoryRange> missing;
    const std::string tree = device_tree_of(paths);
    if (tree.empty()) return missing;
    const auto nodes = reserved_nodes(paths.under(tree));
    for (const MemoryRange& range : {kModelRegion, kEthosuRegion})
        if (covering_node(nodes, range) == nullptr) missing.push_back(range);
    return missing;
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> reg_ranges(Bytes reg, unsigned address_cells,
                                                                unsigned size_cells) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
    if (address_cells < 1 || address_cells > 2 || size_cells < 1 || size_cells > 2) return ranges;
    const std::size_t step = 4 * (address_cells + size_cells);
    if (reg.size() % step != 0) return ranges;
    const auto number = [&](std::size_t at, unsigned n) {
        std::uint64_t value = 0;
        for (unsigned i = 0; i < 4 * n; ++i) value = value << 8 | reg[at + i];
        return value;
    };
    for (std::size_t at = 0; at < reg.size(); at += step)
        ranges.emplace_back(number(at, address_cells), number(at + 4 * address_cells, size_cells));
    return ranges;
}

}  // namespace talpa::link::host
