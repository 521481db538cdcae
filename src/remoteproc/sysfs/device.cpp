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

// One read(2): sysfs hands over a whole attribute at once, and each further call would ask its server again.
std::expected<std::string, int> read_whole(const std::string& path) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!fd) return std::unexpected(errno);
    char text[kAttributeLimit];
    ssize_t n;
    do n = ::read(fd.get(), text, sizeof text);
    while (n < 0 && errno == EINTR);
    if (n < 0) return std::unexpected(errno);
    return std::string(text, static_cast<std::size_t>(n));
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

// The class's entries, sorted.
Result<std::vector<std::string>> device_folders(const std::string& device_class) {
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(device_class.c_str()), ::closedir);
    if (!dir) {
        host::Error error = os_error("open", device_class, errno);
        error.hint = "does this kernel have remoteproc support, and is the driver of the remote processor bound?";
        return std::unexpected(std::move(error).with_context("failed to read remoteproc directory " + device_class));
    }
    std::vector<std::string> folders;
    while (const dirent* entry = ::readdir(dir.get()))
        if (entry->d_name[0] != '.') folders.push_back(device_class + "/" + entry->d_name);
    std::ranges::sort(folders);
    return folders;
}

std::optional<Device> named_device(const std::string& folder) {
    Device device{folder, {}};
    const auto name = read_whole(device.attribute("name"));
    if (!name) return std::nullopt;
    device.name = trimmed(*name);
    return device;
}

bool is_meant(const Device& device, const Selector& selector) {
    if (!selector.name && !selector.compatible && !selector.device) return false;
    if (selector.name && device.name != *selector.name) return false;
    if (selector.compatible && !is_compatible(device, *selector.compatible)) return false;
    if (!selector.device) return true;
    const std::string path = clean_path(*selector.device);
    return *selector.device == device.node() || path == device.folder ||
           path == "/sys/class/remoteproc/" + device.node();
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
    TRY_ASSIGN(const auto folders, device_folders(paths.device_class()));
    std::vector<Device> devices;
    for (const std::string& folder : folders)
        if (auto device = named_device(folder)) devices.push_back(std::move(*device));
    return devices;
}

Result<Device> find_device(const SystemPaths& paths, const Selector& selector) {
    TRY_ASSIGN(const auto folders, device_folders(paths.device_class()));
    std::vector<Device> devices;
    std::string wanted;
    for (const std::string& folder : folders) {  // the first that fits: those behind it are not asked
        auto device = named_device(folder);
        if (!device) continue;
        if (is_meant(*device, selector)) return std::move(*device);
        devices.push_back(std::move(*device));
    }
    if (selector.only && devices.size() == 1) return devices.front();
    std::string available;
    for (const Device& device : devices) available += (available.empty() ? "" : ", ") + printable(device.name);
    if (selector.only)
        return host::failure(ErrorCode::InvalidArgument,
                             "no remote processor was named and this machine has {}, available remote processors: {}",
                             devices.size(), available);
    if (selector.name) wanted = *selector.name;
    if (selector.compatible)
        wanted += (wanted.empty() ? "compatible with " : ", compatible with ") + *selector.compatible;
    if (selector.device) wanted += (wanted.empty() ? "" : ", at ") + *selector.device;
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
