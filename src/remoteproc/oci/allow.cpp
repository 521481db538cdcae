#include "remoteproc/oci/allow.h"

#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>

#include "remoteproc/sys/files.h"

namespace talpa::remoteproc {
namespace {

constexpr std::string_view kFile = "/etc/remoteproc-runtime/allow";
constexpr std::size_t kLimit = 256 << 10;

std::string_view next_word(std::string_view& line) {
    constexpr std::string_view kSpace = " \t\r";
    const std::size_t begin = line.find_first_not_of(kSpace);
    if (begin == std::string_view::npos) return {};
    const std::size_t end = std::min(line.find_first_of(kSpace, begin), line.size());
    const std::string_view word = line.substr(begin, end - begin);
    line.remove_prefix(end);
    return word;
}

enum class Fit : std::uint8_t { No, Yes, Malformed };

Fit fits(std::string_view who, const Caller& caller) {
    constexpr std::string_view kUid = "uid:", kNamespace = "namespace:";
    if (who == "*") return Fit::Yes;
    if (who.starts_with(kUid)) {
        const std::string_view text = who.substr(kUid.size());
        unsigned uid = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), uid);
        if (error != std::errc{} || end != text.data() + text.size()) return Fit::Malformed;
        return uid == caller.uid ? Fit::Yes : Fit::No;
    }
    if (who.starts_with(kNamespace) && who.size() > kNamespace.size())
        return caller.uid == 0 && who.substr(kNamespace.size()) == caller.namespace_name ? Fit::Yes : Fit::No;
    return Fit::Malformed;
}

std::string description(const Caller& caller) {
    return fmt::format("uid:{}{}", caller.uid,
                       caller.namespace_name.empty() ? "" : " namespace:" + printable(caller.namespace_name));
}

}  // namespace

Result<bool> is_allowed(std::string_view rules, std::string_view processor, const Caller& caller) {
    bool allowed = false;
    for (int number = 1; !rules.empty(); ++number) {
        const std::size_t end = rules.find('\n');
        std::string_view line = rules.substr(0, end);
        rules.remove_prefix(end == std::string_view::npos ? rules.size() : end + 1);
        line = line.substr(0, line.find('#'));
        const std::string_view name = next_word(line);
        if (name.empty()) continue;
        std::string_view who = next_word(line);
        if (who.empty()) return host::failure(ErrorCode::InvalidProgram, "line {}: PROCESSOR WHO… is wanted", number);
        for (; !who.empty(); who = next_word(line)) {
            const Fit fit = fits(who, caller);
            if (fit == Fit::Malformed)
                return host::failure(ErrorCode::InvalidProgram, "line {}: {} is none of *, uid:N, namespace:NAME",
                                     number, printable(who));
            allowed = allowed || (fit == Fit::Yes && (name == "*" || name == processor));
        }
    }
    return allowed;
}

Result<void> check_allowed(const SystemPaths& paths, const Device& device) {
    const std::string file = paths.below(kFile);
    struct stat info;
    if (::lstat(file.c_str(), &info) != 0) {
        if (errno == ENOENT || errno == ENOTDIR) return {};
        return os_failure("stat", file, errno);  // one that cannot be read allows nothing
    }
    if (info.st_uid != 0 || (info.st_mode & 0022) != 0)
        return host::failure(ErrorCode::InvalidState,
                             "{} is not trusted: it must be root's and writable by nobody else", file);
    TRY_ASSIGN(const std::string rules, read_small_file(file, kLimit));
    const char* ns = std::getenv("REMOTEPROC_NAMESPACE");
    const Caller caller{::geteuid(), ns == nullptr ? "" : ns};
    TRY_ASSIGN(const bool allowed, host::with_context(is_allowed(rules, device.name, caller), file));
    if (allowed) return {};
    host::Error error(ErrorCode::InvalidState, fmt::format("remote processor {} is not allowed for {} by {}",
                                                           device.label(), description(caller), file));
    error.hint = fmt::format("a line that would: {} {}", device.label(), description(caller));
    return std::unexpected(std::move(error));
}

}  // namespace talpa::remoteproc
