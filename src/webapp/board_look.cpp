#include "webapp/board_look.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/host/file.h"
#include "link/memory_map.h"

namespace talpa::webapp {
namespace {

namespace fs = std::filesystem;
using talpa::host::Fd;

using link::host::device_tree_property;

std::vector<std::string> strings(const std::optional<std::vector<std::uint8_t>>& bytes) {
    std::vector<std::string> out;
    if (!bytes) return out;
    std::string_view rest(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    while (!rest.empty()) {
        const std::size_t end = std::min(rest.find('\0'), rest.size());
        out.emplace_back(rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return out;
}

std::string first_string(const fs::path& path) {
    const auto all = strings(device_tree_property(path));
    return all.empty() ? std::string() : all.front();
}

void look_at_tree(const fs::path& base, BoardLook& look) {
    look.model = first_string(base / "model");
    look.compatible = strings(device_tree_property(base / "compatible"));
    look.bootargs = first_string(base / "chosen/bootargs");
    std::error_code ignored;
    look.power_domains = fs::exists(base / "remoteproc-cm33/power-domains", ignored);
    look.reserved = link::host::reserved_nodes(base);
}

/// Why the range cannot be mapped for reading and writing; empty: it can.
std::string try_map(const Fd& fd, const link::MemoryRange& range) {
    void* const at =
        ::mmap(nullptr, range.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), static_cast<off_t>(range.base));
    if (at == MAP_FAILED) return std::strerror(errno);
    ::munmap(at, range.size);
    return {};
}

}  // namespace

BoardLook look_at_board(const LookPaths& paths) {
    BoardLook look;
    std::error_code ignored;
    look.tree = paths.device_tree.empty() ? link::host::device_tree_of(paths.board) : paths.device_tree;
    const fs::path base = paths.board.under(look.tree);
    if (look.tree.empty() || !fs::is_directory(base, ignored) || fs::is_empty(base, ignored))
        look.tree.clear();
    else
        look_at_tree(base, look);

    const auto access = link::host::direct_access(paths.board);
    look.remoteproc = access->look();
    const std::string device =
        paths.board.memory.empty() ? paths.board.memory_of(look.remoteproc.folder) : paths.board.memory;
    const Fd memory(::open(paths.board.under(device).c_str(), O_RDWR | O_SYNC | O_CLOEXEC));
    if (!memory) {
        look.memory_missing = errno == ENOENT;
        look.memory_open = std::strerror(errno);
    } else {
        look.memory_map_model = try_map(memory, link::kModelRegion);
        look.memory_map_upper = try_map(memory, link::kEthosuRegion);
    }

    const fs::path ethosu = paths.board.under(paths.ethosu);
    look.ethosu_exists = fs::exists(ethosu, ignored);
    if (look.ethosu_exists) {
        const Fd fd(::open(ethosu.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
        if (!fd) look.ethosu_open = std::strerror(errno);
    }

    look.ttys = link::host::rpmsg_tty_numbers(paths.board.under("/dev"));
    if (!look.ttys.empty() || !paths.board.tty.empty()) {
        // Opened without changing its settings or dropping what waits in it: somebody may be using it.
        for (const unsigned number : look.ttys) {
            const auto path = paths.board.under(fmt::format("/dev/ttyRPMSG{}", number));
            const Fd fd(::open(path.c_str(), O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
            if (fd && ::isatty(fd.get()) == 1) {
                look.tty_open.clear();
                break;
            }
            look.tty_open +=
                fmt::format("{}/dev/ttyRPMSG{}: {}", look.tty_open.empty() ? "" : "; ", number, std::strerror(errno));
        }
    }
    return look;
}

host::Json to_json(const BoardLook& look) {
    host::Json reserved = host::Json::array();
    for (const ReservedNode& node : look.reserved)
        reserved.push_back({{"name", node.name},
                            {"base", node.base},
                            {"size", node.size},
                            {"no_map", node.no_map},
                            {"reusable", node.reusable}});
    const auto& rp = look.remoteproc;
    return {{"tree", look.tree},
            {"model", look.model},
            {"bootargs", look.bootargs},
            {"compatible", look.compatible},
            {"reserved", std::move(reserved)},
            {"power_domains", look.power_domains},
            {"memory_open", look.memory_open},
            {"memory_missing", look.memory_missing},
            {"memory_map_model", look.memory_map_model},
            {"memory_map_upper", look.memory_map_upper},
            {"ethosu_exists", look.ethosu_exists},
            {"ethosu_open", look.ethosu_open},
            {"remoteproc", remoteproc_json(rp)},
            {"ttys", look.ttys},
            {"tty_open", look.tty_open}};
}

host::Json remoteproc_json(const link::host::RemoteprocLook& rp) {
    return {{"folder", rp.folder},           {"name", rp.name},        {"state", rp.state}, {"firmware", rp.firmware},
            {"other_names", rp.other_names}, {"trace", rp.trace_lines}};
}

link::host::RemoteprocLook remoteproc_of(const host::Json& json) {
    link::host::RemoteprocLook rp;
    json.at("folder").get_to(rp.folder);
    json.at("name").get_to(rp.name);
    json.at("state").get_to(rp.state);
    json.at("firmware").get_to(rp.firmware);
    json.at("other_names").get_to(rp.other_names);
    json.at("trace").get_to(rp.trace_lines);
    return rp;
}

BoardLook board_look_of(const host::Json& json) {
    BoardLook look;
    json.at("tree").get_to(look.tree);
    json.at("model").get_to(look.model);
    json.at("bootargs").get_to(look.bootargs);
    json.at("compatible").get_to(look.compatible);
    for (const auto& node : json.at("reserved"))
        look.reserved.push_back({.name = node.at("name"),
                                 .base = node.at("base"),
                                 .size = node.at("size"),
                                 .no_map = node.at("no_map"),
                                 .reusable = node.at("reusable")});
    json.at("power_domains").get_to(look.power_domains);
    json.at("memory_open").get_to(look.memory_open);
    json.at("memory_missing").get_to(look.memory_missing);
    json.at("memory_map_model").get_to(look.memory_map_model);
    json.at("memory_map_upper").get_to(look.memory_map_upper);
    json.at("ethosu_exists").get_to(look.ethosu_exists);
    json.at("ethosu_open").get_to(look.ethosu_open);
    look.remoteproc = remoteproc_of(json.at("remoteproc"));
    json.at("ttys").get_to(look.ttys);
    json.at("tty_open").get_to(look.tty_open);
    return look;
}

}  // namespace talpa::webapp
