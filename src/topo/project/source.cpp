#include "topo/project/source.h"

#include <algorithm>

#include "base/host/file.h"
#include "topo/system/log.h"
#include "topo/system/process.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

namespace fs = std::filesystem;

bool is_commit(std::string_view ref) {
    return (ref.size() == 40 || ref.size() == 64) &&
           ref.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

// A stranger's repository decides nothing here: no submodules, whatever the user's own settings say, no transport that
// runs a program, no hooks (of a template folder), no helper that a checkout would start.
const std::vector<std::string>& git_words() {
    static const std::vector<std::string> kWords = {"git",
                                                    "-c",
                                                    "protocol.ext.allow=never",
                                                    "-c",
                                                    "core.hooksPath=/dev/null",
                                                    "-c",
                                                    "submodule.recurse=false",
                                                    "-c",
                                                    "fetch.recurseSubmodules=false",
                                                    "-c",
                                                    "core.fsmonitor=false",
                                                    "-c",
                                                    "core.protectHFS=true",
                                                    "-c",
                                                    "core.protectNTFS=true"};
    return kWords;
}

host::Result<void> git(const std::vector<std::string>& words) {
    std::vector<std::string> argv = git_words();
    argv.insert(argv.end(), words.begin(), words.end());
    TRY_ASSIGN(const Outcome outcome, pass_through({.argv = argv}));
    if (outcome.status != 0)
        return host::failure(ErrorCode::AccessFailed, "failed to clone git repository: exit status {}", outcome.status);
    return {};
}

host::Result<void> clone_git(const Source& source, const fs::path& to) {
    const std::string folder = to.string();
    // A URL or ref that starts with '-' must not become an option; "ext::" and the like would run a program.
    if (source.url.starts_with('-') || source.ref.starts_with('-') || source.url.find("::") != std::string::npos)
        return host::failure(ErrorCode::InvalidArgument,
                             "invalid source format: {} (check --help for expected formats)", printable(source.url));
    if (!is_commit(source.ref)) {
        std::vector<std::string> words = {"clone", "--depth", "1", "--no-recurse-submodules"};
        if (!source.ref.empty()) words.insert(words.end(), {"--branch", source.ref});
        words.insert(words.end(), {"--", source.url, folder});
        return git(words);
    }
    TRY(git({"init", "--quiet", "--", folder}));
    TRY(git({"-C", folder, "remote", "add", "origin", source.url}));
    TRY(git({"-C", folder, "fetch", "--depth", "1", "--no-recurse-submodules", "origin", source.ref}));
    return git({"-C", folder, "checkout", "--quiet", "--no-recurse-submodules", "--detach", "FETCH_HEAD"});
}

bool is_inside(const fs::path& inner, const fs::path& outer) {
    const fs::path relative = inner.lexically_relative(outer);
    return !relative.empty() && *relative.begin() != "..";
}

host::Result<void> copy_tree(const fs::path& from, const fs::path& to) {
    std::error_code error;
    const auto trouble = [&](const fs::path& path) {
        return host::failure(ErrorCode::AccessFailed, "cannot copy {}: {}", path.string(), error.message());
    };
    fs::create_directories(to, error);
    if (error) return trouble(to);
    fs::permissions(to, fs::perms(0750), error);
    for (fs::recursive_directory_iterator it(from, fs::directory_options::none, error), end; !error && it != end;
         it.increment(error)) {
        const fs::path target = to / it->path().lexically_relative(from);
        const fs::file_status status = it->symlink_status(error);
        if (error) return trouble(it->path());
        if (fs::is_directory(status)) {
            fs::create_directory(target, error);
            if (!error) fs::permissions(target, fs::perms(0750), error);
        } else if (fs::is_symlink(status)) {
            fs::copy_symlink(it->path(), target, error);
        } else if (fs::is_regular_file(status)) {
            fs::copy_file(it->path(), target, error);
            if (!error) fs::permissions(target, status.permissions(), error);
        } else {
            warn(fmt::format("{} is no file or folder and was not copied",
                             printable(it->path().string(), LineEnds::Replace)));
        }
        if (error) return trouble(it->path());
        if (interrupted()) return std::unexpected(interruption());
    }
    if (error) return trouble(from);
    return {};
}

host::Result<void> copy_folder(const Source& source, const fs::path& to) {
    std::error_code error;
    const fs::path from = fs::canonical(source.url, error);
    if (error)
        return host::failure(ErrorCode::NotFound, "failed to access source directory: {}: {}", source.url,
                             error.message());
    if (!fs::is_directory(from))
        return host::failure(ErrorCode::InvalidArgument, "source path is not a directory: {}", source.url);
    // Absolute first: of "k", which is not there yet, weakly_canonical makes nothing more than "k".
    const fs::path target = fs::weakly_canonical(fs::absolute(to, error), error);
    if (error || is_inside(target, from))
        return host::failure(ErrorCode::InvalidArgument, "destination directory {} is inside source directory {}",
                             to.string(), source.url);
    return copy_tree(from, to);
}

}  // namespace

host::Result<Source> parse_source(const std::string& text) {
    Source source;
    std::string_view rest = text;
    bool is_git = false;
    if (rest.starts_with("dir:")) {
        source.kind = Source::Kind::Folder;
        source.url = rest.substr(4);
        if (source.url.empty()) return host::failure(ErrorCode::InvalidArgument, "source value cannot be empty");
        return source;
    }
    if (rest.starts_with("git:") && !rest.starts_with("git://")) {
        rest.remove_prefix(4);
        is_git = true;
    }
    for (const std::string_view start : {"git@", "ssh://", "https://", "http://", "git://"})
        is_git = is_git || rest.starts_with(start);
    if (is_git && trimmed(rest).empty())
        return host::failure(ErrorCode::InvalidArgument, "source value cannot be empty");
    const std::string shown = printable(text, LineEnds::Replace);
    if (!is_git) {
        const std::size_t colon = text.find(':');
        if (colon != std::string::npos)
            return host::failure(ErrorCode::InvalidArgument,
                                 "unsupported source type: {} (check --help for expected format)",
                                 shown.substr(0, shown.find(':')));
        return host::failure(ErrorCode::InvalidArgument,
                             "invalid source format: {} (check --help for expected formats)", shown);
    }
    const std::size_t hash = rest.rfind('#');
    source.url = rest.substr(0, hash);
    if (hash != std::string_view::npos) source.ref = rest.substr(hash + 1);
    return source;
}

std::string default_folder(const Source& source) {
    std::string path = source.url;
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    if (source.kind == Source::Kind::Folder) {
        std::error_code ignored;
        path = fs::weakly_canonical(path, ignored).string();
    }
    const std::size_t cut = path.find_last_of(source.kind == Source::Kind::Git ? "/:" : "/");
    if (cut != std::string::npos) path.erase(0, cut + 1);
    if (path.ends_with(".git")) path.resize(path.size() - 4);
    return path;
}

host::Result<void> copy_source(const Source& source, const fs::path& destination) {
    std::error_code ignored;
    if (fs::symlink_status(destination, ignored).type() != fs::file_type::not_found)
        return host::failure(
            ErrorCode::InvalidArgument,
            "directory {} already exists: please choose a different project directory or remove the existing directory",
            destination.string());
    auto result = source.kind == Source::Kind::Git ? clone_git(source, destination) : copy_folder(source, destination);
    if (!result) fs::remove_all(destination, ignored);
    return host::with_context(std::move(result), "failed to copy project");
}

namespace {

// "gitdir: PATH" in place of the folder .git.
std::string leaves_by_git_file(const fs::path& root) {
    const auto text = host::read_text(root / ".git", 4096);
    if (!text || !text->starts_with("gitdir:")) return {};
    return std::string(trimmed(std::string_view(*text).substr(7)));
}

// Submodules that would run a program, read this machine's files, or be written outside of the project.
std::vector<std::string> hostile_submodules(const fs::path& root) {
    std::vector<std::string> found;
    std::error_code ignored;
    if (fs::is_symlink(fs::symlink_status(root / ".gitmodules", ignored))) {
        found.emplace_back(".gitmodules is a link; do not fetch submodules of this project");
        return found;
    }
    const auto text = host::read_text(root / ".gitmodules", 1 << 20);
    if (!text) return found;
    std::string section;
    for (const std::string& raw : lines_of(*text)) {
        const std::string_view line = trimmed(raw);
        if (line.starts_with('[')) section = line;
        const std::size_t equals = line.find('=');
        if (equals == std::string_view::npos || found.size() >= 20) continue;
        const std::string key = lower(trimmed(line.substr(0, equals)));
        std::string value(trimmed(line.substr(equals + 1)));
        std::erase(value, '"');
        const auto steps = split(value, "/");
        const bool out = std::find(steps.begin(), steps.end(), "..") != steps.end();
        const bool bad_url = key == "url" && (value.find("::") != std::string::npos || value.starts_with('-') ||
                                              value.starts_with('/') || lower(value).starts_with("file:"));
        const bool bad_path = key == "path" && (value.starts_with('/') || value.starts_with('-') || out ||
                                                lower(value) == ".git" || lower(value).starts_with(".git/"));
        const bool bad_update = key == "update" && value.starts_with('!');
        if (bad_url || bad_path || bad_update || section.find("..") != std::string::npos)
            found.push_back(fmt::format("{} has the {} {}; do not fetch it", section, key, value));
    }
    return found;
}

}  // namespace

std::vector<std::string> suspicious_parts(const fs::path& folder) {
    std::vector<std::string> found;
    std::error_code error;
    const fs::path root = fs::canonical(folder, error);
    for (fs::recursive_directory_iterator it(root, error), end; !error && it != end && found.size() < 20;
         it.increment(error)) {
        if (it->path().filename() == ".git" && it.depth() == 0) it.disable_recursion_pending();
        std::error_code ignored;
        if (!fs::is_symlink(it->symlink_status(ignored))) continue;
        const fs::path to = fs::weakly_canonical(it->path(), ignored);
        if (!is_inside(to, root) && to != root)
            found.push_back(fmt::format("{} is a link that leaves the project: {}",
                                        it->path().lexically_relative(root).string(),
                                        fs::read_symlink(it->path(), ignored).string()));
    }
    if (const std::string where = leaves_by_git_file(root); !where.empty())
        found.push_back(".git is a file that names another repository: " + where);
    const std::vector<std::string> hostile = hostile_submodules(root);
    found.insert(found.end(), hostile.begin(), hostile.end());
    if (hostile.empty() && fs::symlink_status(root / ".gitmodules", error).type() != fs::file_type::not_found)
        found.emplace_back(
            "the project has submodules; they were not fetched (git submodule update --init, if you trust them)");
    return found;
}

}  // namespace talpa::topo
