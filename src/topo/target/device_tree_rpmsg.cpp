#include "topo/target/device_tree_rpmsg.h"

#include <fmt/format.h>

#include "link/reserved_memory.h"

namespace talpa::topo {
namespace {

constexpr const char* kMailbox = "mailbox@44230000";     // MU1
constexpr const char* kMlmix = "power-domain@44461800";  // SRC slice of MLMIX
constexpr const char* kStartupDelayMs = "500";

std::string hex(std::uint32_t value) {
    return fmt::format("{:x}", value);
}

// Of the regions below /reserved-memory: 2 where it does not say 1.
std::size_t cell_count(const TreeText& tree, const char* name) {
    const TreeText::Properties* parent = tree.node("/reserved-memory");
    if (parent == nullptr || !parent->contains(name)) return 2;
    const auto cells = TreeText::cells(parent->at(name));
    return cells.size() == 1 && cells[0] == 1 ? 1 : 2;
}

class Missing {
  public:
    explicit Missing(const TreeText& tree) : tree_(tree), next_(tree.highest_phandle() + 1) {}

    host::Result<std::vector<TreeChange>> run() {
        core_ = tree_.find_compatible("fsl,imx93-cm33");
        if (core_.empty()) {
            by_hand("has no node of the Cortex-M33 (fsl,imx93-cm33): it needs the tree of a kernel that drives it");
            return std::move(changes_);
        }
        power();
        TRY(rpmsg());
        return std::move(changes_);
    }

  private:
    void by_hand(std::string what) { changes_.push_back({.what = std::move(what), .words = {}}); }

    [[nodiscard]] bool has(const std::string& path, const char* property) const {
        const TreeText::Properties* node = tree_.node(path);
        return node != nullptr && node->contains(property);
    }

    // The phandle of a node; one that has none gets one.
    std::uint32_t handle_of(const std::string& path, TreeChange& change) {
        if (const auto there = tree_.phandle(path)) return *there;
        const std::uint32_t fresh = next_++;
        change.words.push_back({"-t", "x", "@", path, "phandle", hex(fresh)});
        return fresh;
    }

    // The NPU's domain, by its node or as the NPU's own node names it.
    void power() {
        if (has(core_, "power-domains")) return;
        TreeChange change{.what = fmt::format("give {} a power domain (MLMIX)", core_), .words = {}};
        const std::string domain = tree_.find_named(kMlmix), npu = tree_.find_compatible("arm,ethosu");
        std::uint32_t handle = 0;
        if (!domain.empty()) {
            handle = handle_of(domain, change);
        } else if (!npu.empty() && has(npu, "power-domains")) {
            const auto cells = TreeText::cells(tree_.node(npu)->at("power-domains"));
            if (cells.size() == 1) handle = cells[0];
        }
        if (handle == 0)
            return by_hand(
                fmt::format("names no power domain for {}, and none of the NPU is found (node {})", core_, kMlmix));
        change.words.push_back({"-t", "x", "@", core_, "power-domains", hex(handle)});
        changes_.push_back(std::move(change));
    }

    // Other boards keep their vrings elsewhere; a node that has them stays as it is.
    host::Result<void> rpmsg() {
        const bool regions = has(core_, "memory-region"), boxes = has(core_, "mboxes");
        const auto status = [&](const std::string& path) {
            const TreeText::Properties& node = *tree_.node(path);
            return node.contains("status") ? node.at("status") : std::string("\"okay\"");
        };
        if (!regions) TRY(reserve());
        const std::string box = tree_.find_named(kMailbox);
        TreeChange change{.what = fmt::format("connect {} to its mailbox and turn it on", core_), .words = {}};
        if (!boxes) {
            if (box.empty()) {
                by_hand(fmt::format("has no {}, which {} needs", kMailbox, core_));
                return {};
            }
            const std::string mu = hex(handle_of(box, change));
            change.words.push_back({"-t", "s", "@", core_, "mbox-names", "tx", "rx", "rxdb"});
            change.words.push_back({"-t", "x", "@", core_, "mboxes", mu, "0", "1", mu, "1", "1", mu, "3", "1"});
            if (!has(core_, "fsl,startup-delay-ms"))
                change.words.push_back({"-t", "u", "@", core_, "fsl,startup-delay-ms", kStartupDelayMs});
        }
        if (!box.empty() && status(box) != "\"okay\"") change.words.push_back({"-t", "s", "@", box, "status", "okay"});
        if (status(core_) != "\"okay\"") change.words.push_back({"-t", "s", "@", core_, "status", "okay"});
        if (!change.words.empty()) changes_.push_back(std::move(change));
        return {};
    }

    host::Result<void> reserve() {
        const std::size_t address_cells = cell_count(tree_, "#address-cells");
        const std::size_t size_cells = cell_count(tree_, "#size-cells");
        TreeChange change{
            .what = fmt::format("reserve the memory of RPMsg (vrings, buffers, resource table) for {}", core_),
            .words = {}};
        std::vector<std::string> list = {"-t", "x", "@", core_, "memory-region"};
        for (const link::ReservedMemoryNode& region : link::kRemoteprocNodes) {
            const std::string path = std::string("/reserved-memory/") + region.name;
            if (tree_.node(path) != nullptr) {
                list.push_back(hex(handle_of(path, change)));
                continue;
            }
            if (const std::string other = overlapping_region(tree_, path, region.base, region.size); !other.empty())
                return host::failure(ErrorCode::NotSupported, "{} of the tree lies where {} must be", other, path);
            change.words.push_back({"-c", "@", path});
            if (region.shared_pool) change.words.push_back({"-t", "s", "@", path, "compatible", "shared-dma-pool"});
            std::vector<std::string> reg = {"-t", "x", "@", path, "reg"};
            if (address_cells == 2) reg.emplace_back("0");
            reg.push_back(hex(region.base));
            if (size_cells == 2) reg.emplace_back("0");
            reg.push_back(hex(region.size));
            change.words.push_back(std::move(reg));
            change.words.push_back({"@", path, "no-map"});
            list.push_back(hex(handle_of(path, change)));
        }
        change.words.push_back(std::move(list));
        changes_.push_back(std::move(change));
        return {};
    }

    const TreeText& tree_;
    std::uint32_t next_;
    std::string core_;
    std::vector<TreeChange> changes_;
};

}  // namespace

std::string overlapping_region(const TreeText& tree, const std::string& own_path, std::uint64_t address,
                               std::uint64_t size) {
    const std::size_t address_cells = cell_count(tree, "#address-cells");
    const std::size_t size_cells = cell_count(tree, "#size-cells");
    for (const std::string& path : tree.children("/reserved-memory")) {
        const TreeText::Properties& node = *tree.node(path);
        if (path == own_path || !node.contains("reg")) continue;
        const auto cells = TreeText::cells(node.at("reg"));
        const auto number = [&](std::size_t at, std::size_t n) {
            std::uint64_t value = 0;
            for (std::size_t i = 0; i < n; ++i) value = value << 32 | cells[at + i];
            return value;
        };
        for (std::size_t at = 0; at + address_cells + size_cells <= cells.size(); at += address_cells + size_cells) {
            const std::uint64_t base = number(at, address_cells), length = number(at + address_cells, size_cells);
            if (base < address + size && address - base < length && address >= base) return path;
            if (base >= address && base < address + size && length > 0) return path;
        }
    }
    return {};
}

host::Result<std::vector<TreeChange>> missing_for_rpmsg(const TreeText& tree) {
    return Missing(tree).run();
}

}  // namespace talpa::topo
