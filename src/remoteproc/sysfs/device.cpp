#include "remoteproc/sysfs/device.h"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "remoteproc/sys/path_guard.h"

namespace talpa::remoteproc {
namespace {

constexpr std::size_t kAttributeLimit = 4096;  // a sysfs attribute is at most a page

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kSpace = " \t\r\n";
    const std::size_t first = text.find_first_not_of(kSpace);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::expected<std::string, int> read_whole(const std::string& path) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!fd) return std::unexpected(errno);
    return read_fd(fd.get(), kAttributeLimit);
}

bool is_compatible(const Device& device, std::string_view wanted) {
    const auto text = read_whole(device.folder + "/device/of_node/compatible");  // strings that end with NUL
    std::string_view rest = text ? std::string_view(*text) : std::string_view();
    while (!rest.empty()) {
        const std::size_t end = rest.find('\0');
        if (rest.substr(0, end) == wanted) return true;
        if (end == std::string_view::npos) break;
        rest.remove_prefix(end + 1);
    }
    return false;
}

}  // namespace

std::string SystemPaths::below(std::string_view path) const {
    return root == "/" ? std::string(path) : clean_path(root + "/" + std::string(path));
}

std::string SystemPaths::debug(std::string_view node) const {
    return below("/sys/kernel/debug/remoteproc/" + std::string(node));
}

std::string_view state_word(CoreState state) {
    switch (state) {
#define X(name, word)     \
    case CoreState::name: \
        return word;
        TALPA_CORE_STATES(X)
#undef X
    }
    return "invalid";
}

std::optional<CoreState> parse_state(std::string_view word) {
    word = trimmed(word);
#define X(name, text) \
    if (word == text) return CoreState::name;
    TALPA_CORE_STATES(X)
#undef X
    return std::nullopt;
}

Result<std::vector<Device>> list_devices(const SystemPaths& paths) {
    const std::string folder = paths.device_class();
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder.c_str()), ::closedir);
    if (!dir) {
        host::Error error = os_error("open", folder, errno);
        error.hint = "does this kernel have remoteproc support, and is the driver of the remote processor bound?";
        return std::unexpected(std::move(error).with_context("failed to read remoteproc directory " + folder));
    }
    std::vector<Device> devices;
    while (const dirent* entry = ::readdir(dir.get())) {
        const std::string_view file = entry->d_name;
        if (file.starts_with('.')) continue;
        Device device{folder + "/" + std::string(file), {}};
        const auto name = read_whole(device.attribute("name"));
        if (!name) continue;
        device.name = trimmed(*name);
        devices.push_back(std::move(device));
    }
    std::ranges::sort(devices, {}, &Device::folder);
    return devices;
}

Result<Device> find_device(const SystemPaths& paths, const Selector& selector) {
    TRY_ASSIGN(auto devices, list_devices(paths));
    std::string wanted;
    for (const Device& device : devices) {
        if (selector.name && device.name == *selector.name) return device;
        if (selector.compatible && is_compatible(device, *selector.compatible)) return device;
        if (selector.device) {
            const std::string_view text = *selector.device;
            if (text == device.node() || clean_path(text) == device.folder ||
                clean_path(text) == "/sys/class/remoteproc/" + device.node())
                return device;
        }
    }
    if (selector.only && devices.size() == 1) return devices.front();
    std::string available;
    for (const Device& device : devices) available += (available.empty() ? "" : ", ") + printable(device.name);
    if (selector.only)
        return host::failure(ErrorCode::InvalidArgument,
                             "no remote processor was named and this machine has {}, available remote processors: {}",
                             devices.size(), available);
    if (selector.name) wanted = *selector.name;
    if (selector.compatible) wanted = "compatible with " + *selector.compatible;
    if (selector.device) wanted = *selector.device;
    return host::failure(ErrorCode::NotFound, "remote processor {} does not exist, available remote processors: {}",
                         printable(wanted), available);
}

Result<std::string> read_attribute(const Device& device, std::string_view file) {
    const std::string path = device.attribute(file);
    const auto text = read_whole(path);
    if (!text) return os_failure("read", path, text.error());
    return std::string(trimmed(*text));
}

std::expected<void, int> write_attribute(const Device& device, std::string_view file, std::string_view text) {
    const Fd fd(::open(device.attribute(file).c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd) return std::unexpected(errno);
    ssize_t n;
    do n = ::write(fd.get(), text.data(), text.size());
    while (n < 0 && errno == EINTR);
    if (n < 0) return std::unexpected(errno);
    return {};
}

Result<CoreState> read_state(const Device& device) {
    TRY_ASSIGN(const std::string word, read_attribute(device, "state"));
    if (const auto state = parse_state(word)) return *state;
    return host::failure(ErrorCode::InvalidState, "can't parse state from {}: unknown state {}",
                         device.attribute("state"), printable(word));
}

}  // namespace talpa::remoteproc
