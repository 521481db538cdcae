#include "remoteproc/sysfs/owner.h"

#include <dirent.h>

#include <charconv>
#include <memory>
#include <vector>

#include "remoteproc/sys/files.h"

namespace talpa::remoteproc {
namespace {

constexpr std::string_view kFormat = "remoteproc-owner 1";

template <typename T>
bool number(const std::string& text, T& out) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

bool Owner::alive() const {
    return boot == boot_id() && PinnedProcess::pin(pid, start_time).has_value();
}

Result<FileLock> CoreOwners::lock(const Device& device, int timeout_ms) const {
    TRY(make_folders(folder_));
    return FileLock::take(folder_ + "/" + device.node() + ".lock", timeout_ms);
}

// One value a line; none of them can hold a newline (ids, paths that were checked, digits).
std::optional<Owner> CoreOwners::read(const Device& device) const {
    const auto text = read_small_file(folder_ + "/" + device.node() + ".owner", 65536);
    if (!text) return std::nullopt;
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text->size();) {
        const std::size_t end = text->find('\n', at);
        lines.push_back(text->substr(at, end == std::string::npos ? end : end - at));
        if (end == std::string::npos) break;
        at = end + 1;
    }
    Owner owner;
    if (lines.size() != 8 || lines[0] != kFormat || !number(lines[6], owner.pid) || !number(lines[7], owner.start_time))
        return std::nullopt;
    owner.id = lines[1];
    owner.state_folder = lines[2];
    owner.firmware = lines[3];
    owner.sha256 = lines[4];
    owner.boot = lines[5];
    if (owner.boot != boot_id()) return std::nullopt;
    return owner;
}

std::optional<CoreOwners::Record> CoreOwners::find(const std::string& state_folder) const {
    constexpr std::string_view kEnding = ".owner";
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder_.c_str()), ::closedir);
    if (!dir) return std::nullopt;
    while (const dirent* entry = ::readdir(dir.get())) {
        std::string node = entry->d_name;
        if (!node.ends_with(kEnding)) continue;
        node.resize(node.size() - kEnding.size());
        if (auto owner = read(Device{"/" + node, {}}); owner && owner->state_folder == state_folder)
            return Record{std::move(node), std::move(*owner)};
    }
    return std::nullopt;
}

Result<void> CoreOwners::write(const Device& device, const Owner& owner) const {
    return replace_file(folder_ + "/" + device.node() + ".owner",
                        fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n", kFormat, owner.id, owner.state_folder,
                                    owner.firmware, owner.sha256, owner.boot, owner.pid, owner.start_time),
                        0644);
}

void CoreOwners::clear(const Device& device, const Owner& of) const {
    const auto now = read(device);
    if (now && now->state_folder == of.state_folder) ::unlink((folder_ + "/" + device.node() + ".owner").c_str());
}

}  // namespace talpa::remoteproc
