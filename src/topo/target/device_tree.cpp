#include "topo/target/device_tree.h"

#include <algorithm>

#include "base/host/sha256.h"
#include "link/reserved_memory.h"
#include "topo/system/text.h"
#include "topo/target/device_tree_rpmsg.h"

namespace talpa::topo {
namespace {

constexpr Milliseconds kTool(10'000);
constexpr Milliseconds kQuestion(30'000);

host::Result<Outcome> tool(std::vector<std::string> argv) {
    if (!find_program(argv[0]))
        return std::unexpected(host::Error(ErrorCode::NotFound, fmt::format("\"{}\" not found in $PATH", argv[0]),
                                           "apt-get install device-tree-compiler"));
    return capture({.argv = std::move(argv), .environment = {}, .folder = {}, .input = {}, .timeout = kTool});
}

// The property's text as fdtget prints it; empty if it is not there.
host::Result<std::string> property(const std::filesystem::path& dtb, const std::string& type, const std::string& node,
                                   const std::string& name) {
    TRY_ASSIGN(const Outcome outcome, tool({"fdtget", "-t", type, dtb.string(), node, name}));
    return outcome.ok() ? std::string(trimmed(outcome.out)) : std::string();
}

host::Result<bool> has_node(const std::filesystem::path& dtb, const std::string& node) {
    TRY_ASSIGN(const Outcome outcome, tool({"fdtget", "-p", dtb.string(), node}));
    return outcome.ok();
}

std::vector<std::string> cells(std::uint64_t value, int count) {
    std::vector<std::string> words;
    for (int i = count - 1; i >= 0; --i)
        words.push_back(fmt::format("{:x}", i > 1 ? 0 : (value >> (32 * i)) & 0xFFFFFFFFU));
    return words;
}

}  // namespace

host::Result<std::vector<TreeChange>> missing_in_tree(const std::filesystem::path& dtb) {
    TRY_ASSIGN(const bool tree, has_node(dtb, "/"));
    if (!tree) return host::failure(ErrorCode::InvalidExternalData, "{} is no device tree", dtb.string());
    std::vector<TreeChange> changes;
    TRY_ASSIGN(const bool reserved, has_node(dtb, "/reserved-memory"));
    if (!reserved)
        return host::failure(ErrorCode::NotSupported, "the tree has no /reserved-memory; it is none of an i.MX 93");
    TRY_ASSIGN(const std::string address_cells, property(dtb, "u", "/reserved-memory", "#address-cells"));
    TRY_ASSIGN(const std::string size_cells, property(dtb, "u", "/reserved-memory", "#size-cells"));
    const int address_count = address_cells == "1" ? 1 : 2, size_count = size_cells == "1" ? 1 : 2;
    TRY_ASSIGN(const TreeText source, TreeText::read(dtb));
    for (const link::ReservedMemoryNode& region : {link::kModelNode, link::kEthosuNode}) {
        const std::string node = std::string("/reserved-memory/") + region.name;
        TRY_ASSIGN(const bool there, has_node(dtb, node));
        std::vector<std::string> reg = cells(region.base, address_count);
        for (const std::string& cell : cells(region.size, size_count)) reg.push_back(cell);
        TRY_ASSIGN(const std::string old_reg,
                   there ? property(dtb, "x", node, "reg") : host::Result<std::string>(std::string()));
        TRY_ASSIGN(const std::string properties, [&]() -> host::Result<std::string> {
            if (!there) return std::string();
            TRY_ASSIGN(const Outcome outcome, tool({"fdtget", "-p", dtb.string(), node}));
            return outcome.out;
        }());
        bool no_map = false, reusable = false;
        for (const std::string& line : lines_of(properties)) {
            no_map = no_map || line == "no-map";
            reusable = reusable || line == "reusable";
        }
        if (old_reg == joined(reg, " ") && no_map && !reusable) continue;
        if (const std::string other = overlapping_region(source, node, region.base, region.size); !other.empty())
            return std::unexpected(
                host::Error(ErrorCode::NotSupported, fmt::format("{} of the tree lies where {} must be", other, node),
                            "boot another tree: of an EVK imx93-11x11-evk.dtb, not the one for RPMsg audio"));
        TreeChange change{.what = fmt::format("reserve {} ({} MiB)", region.name, region.size >> 20), .words = {}};
        if (!there) change.words.push_back({"-c", "@", node});
        if (region.shared_pool) change.words.push_back({"-t", "s", "@", node, "compatible", "shared-dma-pool"});
        std::vector<std::string> words = {"-t", "x", "@", node, "reg"};
        words.insert(words.end(), reg.begin(), reg.end());
        change.words.push_back(std::move(words));
        if (reusable) change.words.push_back({"-d", "@", node, "reusable"});
        if (!no_map) change.words.push_back({"@", node, "no-map"});
        changes.push_back(std::move(change));
    }
    TRY_ASSIGN(const std::string arguments, property(dtb, "s", "/chosen", "bootargs"));
    if ((" " + arguments + " ").find(" iomem=relaxed ") == std::string::npos) {
        TreeChange change{.what = "add iomem=relaxed to the boot arguments", .words = {}};
        TRY_ASSIGN(const bool chosen, has_node(dtb, "/chosen"));
        if (!chosen) change.words.push_back({"-c", "@", "/chosen"});
        change.words.push_back(
            {"-t", "s", "@", "/chosen", "bootargs", std::string(trimmed(arguments + " iomem=relaxed"))});
        changes.push_back(std::move(change));
    }
    TRY_ASSIGN(std::vector<TreeChange> core, missing_for_rpmsg(source));
    for (TreeChange& change : core) changes.push_back(std::move(change));
    return changes;
}

host::Result<void> patch_tree(const std::filesystem::path& dtb, const std::vector<TreeChange>& changes) {
    for (const TreeChange& change : changes)
        for (const auto& words : change.words) {
            std::vector<std::string> argv = {"fdtput"};
            for (const std::string& word : words) argv.push_back(word == "@" ? dtb.string() : word);
            TRY_ASSIGN(const Outcome outcome, tool(argv));
            if (!outcome.ok())
                return host::failure(ErrorCode::AccessFailed, "cannot {}: {}", change.what, one_line(outcome.err));
        }
    TRY_ASSIGN(const auto left, missing_in_tree(dtb));
    for (const TreeChange& change : left)
        if (!change.words.empty())
            return host::failure(ErrorCode::Internal, "the patched tree must still {}", change.what);
    return {};
}

host::Result<std::string> tree_difference(const std::filesystem::path& old_dtb, const std::filesystem::path& new_dtb) {
    std::vector<std::filesystem::path> sources;
    for (const auto& dtb : {old_dtb, new_dtb}) {
        const std::filesystem::path source = dtb.string() + ".dts";
        TRY_ASSIGN(const Outcome outcome,
                   tool({"dtc", "-q", "-I", "dtb", "-O", "dts", "-o", source.string(), dtb.string()}));
        if (!outcome.ok())
            return host::failure(ErrorCode::InvalidExternalData, "dtc cannot read {}: {}", dtb.string(),
                                 one_line(outcome.err));
        sources.push_back(source);
    }
    TRY_ASSIGN(const Outcome outcome, tool({"diff", "-u", "--label", "board", "--label", "patched", sources[0].string(),
                                            sources[1].string()}));
    for (const auto& source : sources) {
        std::error_code ignored;
        std::filesystem::remove(source, ignored);
    }
    return outcome.out;
}

host::Result<std::string> find_boot_tree(const Target& target) {
    // A boot partition has the trees of many boards; the board's own name ("fsl,imx93-11x11-evk") is that of its file.
    TRY_ASSIGN(
        const Outcome outcome,
        target.run("n=$(tr '\\0' '\\n' < /sys/firmware/devicetree/base/compatible 2>/dev/null | "
                   "sed -n 's/^fsl,\\(imx93-[a-z0-9-]*\\)$/\\1/p' | head -n 1); "
                   "find /boot /run/media /mnt /media -name \"${n:-imx93-11x11-frdm}.dtb\" -type f 2>/dev/null | "
                   "head -n 1",
                   kQuestion));
    return std::string(trimmed(outcome.out));
}

host::Result<std::string> read_tree(const Target& target, const std::string& path) {
    Command command = target.shell("cat " + shell_quoted(path));
    command.timeout = kQuestion;
    TRY_ASSIGN(Outcome outcome, capture(command));
    if (!outcome.ok())
        return host::failure(ErrorCode::AccessFailed, "cannot read {} of the target: {}", path, one_line(outcome.err));
    return std::move(outcome.out);
}

host::Result<std::string> write_tree(const Target& target, const std::string& path, const std::string& bytes) {
    const std::string script = fmt::format(
        "f={}; b=\"$f.topo-backup-$(date +%Y%m%d-%H%M%S)\"; cp -p \"$f\" \"$b\" && cat > \"$f.topo-new\" && sync && "
        "set -- $(sha256sum \"$f.topo-new\") && [ \"$1\" = {} ] && mv -f \"$f.topo-new\" \"$f\" && sync && echo \"$b\"",
        shell_quoted(path), host::sha256_hex(bytes));
    Command command = target.shell(script);
    command.input = bytes;
    command.timeout = kQuestion;
    TRY_ASSIGN(const Outcome outcome, capture(command));
    if (!outcome.ok())
        return host::failure(ErrorCode::AccessFailed, "{} of the target was not replaced: {}", path,
                             one_line(outcome.err));
    return std::string(trimmed(outcome.out));
}

}  // namespace talpa::topo
