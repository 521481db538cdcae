#include "topo/target/ssh_keys.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/host/file.h"
#include "topo/system/log.h"
#include "topo/system/text.h"
#include "topo/target/ssh_arguments.h"
#include "topo/target/ssh_error.h"

namespace talpa::topo {
namespace {

namespace fs = std::filesystem;

std::string first_word(const std::string& line) {
    const std::string_view text = trimmed(line);
    return lower(text.substr(0, text.find_first_of(" \t=")));
}

std::string rest_of(const std::string& line) {
    std::string_view text = trimmed(line);
    const std::size_t at = text.find_first_of(" \t=");
    if (at == std::string_view::npos) return {};
    text.remove_prefix(at);
    while (!text.empty() && (text[0] == ' ' || text[0] == '\t' || text[0] == '=')) text.remove_prefix(1);
    return std::string(text);
}

std::string quoted_path(const std::string& path) {
    return path.find(' ') == std::string::npos ? path : "\"" + path + "\"";
}

host::Result<std::string> read_or_empty(const fs::path& path) {
    auto text = host::read_text(path, 1 << 20);
    if (!text && text.error().code == ErrorCode::NotFound) return std::string();
    return text;
}

host::Result<void> write_private(const fs::path& path, const std::string& text) {
    const bool fresh = !fs::exists(path);
    if (fresh) {
        const mode_t old = ::umask(0077);
        auto written = host::write_text(path, text);
        ::umask(old);
        return written;
    }
    return host::write_text(path, text);
}

host::Result<void> make_ssh_folder(const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) return host::failure(ErrorCode::AccessFailed, "cannot make {}: {}", folder.string(), error.message());
    ::chmod(folder.c_str(), 0700);
    return {};
}

host::Result<void> generate(const Destination& destination, const std::string& user, const KeyOptions& options,
                            const fs::path& path) {
    std::string comment =
        "ssh://" + user + "@" + destination.host + (destination.port.empty() ? "" : ":" + destination.port);
    Command command{.argv = {"ssh-keygen", "-t", options.type, "-f", path.string(), "-C", comment}};
    // Where nobody reads what it says nobody is asked for a passphrase either.
    const bool json = logging().format == Format::Json;
    if (json) command.argv.insert(command.argv.end(), {"-q", "-N", ""});
    TRY_ASSIGN(const Outcome outcome, json ? capture(command) : pass_through(command));
    if (outcome.status != 0)
        return host::failure(ErrorCode::AccessFailed, "ssh-keygen failed with exit status {}{}", outcome.status,
                             json ? ": " + one_line(outcome.err) : "");
    return {};
}

// One ssh, which may ask for a password; a key that is there already is not added again.
host::Result<void> transfer(const Destination& destination, const std::string& public_key) {
    const std::string script =
        "umask 077; mkdir -p \"$HOME/.ssh\" && chmod 700 \"$HOME/.ssh\" && f=\"$HOME/.ssh/authorized_keys\" && touch "
        "\"$f\" && chmod 600 \"$f\" && IFS= read -r key && "
        "{ grep -qxF -- \"$key\" \"$f\" || { [ ! -s \"$f\" ] || [ -z \"$(tail -c 1 \"$f\")\" ] || echo >> \"$f\"; "
        "printf \"%s\\n\" \"$key\" >> \"$f\"; }; }";
    Command command{.argv = {"ssh", "-o", "ControlPath=none", "-o",
                             "PreferredAuthentications=publickey,password,keyboard-interactive"},
                    .input = std::string(trimmed(public_key)) + "\n"};
    const bool alone = logging().format == Format::Json && ::isatty(STDIN_FILENO) == 0;  // nobody types a password
    if (alone) command.argv.insert(command.argv.end(), {"-o", "BatchMode=yes"});
    for (const std::string& word : ssh_arguments(destination)) command.argv.push_back(word);
    command.argv.push_back("/bin/sh -c " + shell_quoted(script));
    TRY_ASSIGN(const Outcome outcome, alone ? capture(command) : pass_through(command, Output::ErrorsOnly));
    if (outcome.status == 255 && alone) return std::unexpected(ssh_error(destination, outcome.err, 255, false));
    if (outcome.status == 255)
        return std::unexpected(host::Error(ErrorCode::AccessFailed, fmt::format("ssh to {} failed", destination.uri()),
                                           "what ssh said stands above"));
    if (outcome.status != 0)
        return host::failure(ErrorCode::AccessFailed,
                             "the key could not be added to the target's authorized_keys (exit status {})",
                             outcome.status);
    return {};
}

}  // namespace

bool names_host(const std::string& config, const std::string& host) {
    for (const std::string& line : lines_of(config))
        if (first_word(line) == "host")
            for (const std::string& name : split(rest_of(line), " "))
                if (name == host) return true;
    return false;
}

std::string with_include(const std::string& config, const std::string& path) {
    const std::vector<std::string> lines = lines_of(config);
    const std::string include = "Include " + quoted_path(path);
    std::string out;
    bool done = false;
    for (const std::string& line : lines) {
        const std::string word = first_word(line);
        if (word == "include" && (rest_of(line) == path || rest_of(line) == quoted_path(path))) return config;
        if (word == "host" || word == "match") break;
    }
    for (const std::string& line : lines) {
        const std::string word = first_word(line);
        if (!done && (word == "host" || word == "match")) {
            out += include + "\n\n";
            done = true;
        }
        out += line + "\n";
    }
    return done ? out : out + include + "\n";
}

std::string with_host_block(const std::string& config, const Destination& destination, const std::string& user,
                            const std::string& key_path) {
    // Two boards behind one host name differ by their port; the original's block ignores it.
    const std::vector<std::pair<std::string, std::string>> wanted = {
        {"IdentityFile", quoted_path(key_path)}, {"IdentitiesOnly", "yes"}, {"User", user}};
    std::vector<std::string> lines = lines_of(config), out;
    const std::string match = destination.port.empty() ? "Host " + destination.host
                                                       : fmt::format("Match originalhost {} exec \"test %p = {}\"",
                                                                     destination.host, destination.port);
    bool found = false;
    for (std::size_t i = 0; i < lines.size();) {
        const std::string word = first_word(lines[i]);
        if (std::string(trimmed(lines[i])) != match || found) {
            out.push_back(lines[i++]);
            continue;
        }
        found = true;
        out.push_back(lines[i++]);
        for (const auto& [key, value] : wanted) out.push_back(fmt::format("  {} {}", key, value));
        for (; i < lines.size(); ++i) {
            const std::string key = first_word(lines[i]);
            if (key == "host" || key == "match") break;
            const bool ours =
                std::any_of(wanted.begin(), wanted.end(), [&](const auto& w) { return lower(w.first) == key; });
            if (!ours) out.push_back(lines[i]);
        }
    }
    if (!found) {
        if (!out.empty() && !out.back().empty()) out.emplace_back();
        out.push_back(match);
        for (const auto& [key, value] : wanted) out.push_back(fmt::format("  {} {}", key, value));
    }
    return joined(out, "\n") + "\n";
}

host::Result<void> setup_keys(const Destination& destination, const KeyOptions& options) {
    if (options.type != "ed25519" && options.type != "rsa")
        return host::failure(ErrorCode::InvalidArgument, "unsupported key type \"{}\", supported types: ed25519, rsa",
                             options.type);
    const std::string home = environment("HOME");
    if (home.empty()) return host::failure(ErrorCode::NotFound, "HOME is not set");
    if (const passwd* entry = ::getpwuid(::geteuid()); entry != nullptr && home != entry->pw_dir)
        warn(
            fmt::format("ssh takes your home from the user database ({}), not from HOME ({}); the configuration "
                        "written here may not be read",
                        entry->pw_dir, home));
    const fs::path folder = fs::path(home) / ".ssh", ours = folder / "topo_config", config = folder / "config";
    if (fs::is_directory(ours))
        return host::failure(
            ErrorCode::InvalidState,
            "legacy topo ssh config entries found; run 'topo migrate-ssh' to migrate to the new single-file format");
    const Target target(destination);
    TRY_ASSIGN(const auto settings, target.ssh_configuration());
    std::string configured;
    for (const auto& [key, value] : settings)
        if (key == "user") configured = value;
    TRY_ASSIGN(const std::string user_config, read_or_empty(config));
    TRY_ASSIGN(const std::string topo_config, read_or_empty(ours));
    const bool literal = names_host(user_config, destination.host) || names_host(topo_config, destination.host);
    // ssh -G answers with the destination's user when it has one; the alias's own user is asked for without it.
    if (literal && !destination.user.empty()) {
        Destination bare = destination;
        bare.user.clear();
        TRY_ASSIGN(const auto bare_settings, Target(bare).ssh_configuration());
        for (const auto& [key, value] : bare_settings)
            if (key == "user" && value != destination.user)
                return host::failure(ErrorCode::InvalidArgument,
                                     "ssh host/alias \"{}\" is already associated with user \"{}\"; note: a per user "
                                     "ssh config entry should be created when setting up keys",
                                     destination.host, value);
    }
    const std::string user = destination.user.empty() ? configured : destination.user;
    const fs::path key = options.path ? fs::path(*options.path) : folder / ("id_ed25519_topo_" + destination.slug());
    TRY(make_ssh_folder(folder));

    header("Generate SSH key pair for target");
    const bool fresh = !fs::exists(key);
    if (fresh)
        TRY(generate(destination, user, options, key));
    else
        info(fmt::format("using the key that is there: {}", key.string()));
    header("Transfer public key to target and set it as an authorized key");
    TRY_ASSIGN(const std::string public_key, host::read_text(key.string() + ".pub", 1 << 16));
    if (auto sent = transfer(destination, public_key); !sent) {
        if (fresh) {
            std::error_code ignored;
            fs::remove(key, ignored);
            fs::remove(key.string() + ".pub", ignored);
        }
        return sent;
    }
    TRY(write_private(ours, with_host_block(topo_config, destination, user, fs::absolute(key).string())));
    // Nobody types its passphrase while topo runs: without the agent the target would go on refusing the login.
    TRY_ASSIGN(const Outcome open, capture({.argv = {"ssh-keygen", "-y", "-P", "", "-f", key.string()}}));
    if (!open.ok())
        warn(fmt::format("the key {0} has a passphrase; give it to the agent before topo uses it: ssh-add {1}",
                         key.string(), shell_quoted(key.string())));
    const std::string included = with_include(user_config, ours.string());
    if (included != user_config) TRY(write_private(config, included));
    return {};
}

host::Result<void> migrate_ssh(const fs::path& ssh_folder) {
    const fs::path old = ssh_folder / "topo_config", config = ssh_folder / "config";
    if (!fs::is_directory(old))
        return host::failure(ErrorCode::NotFound,
                             "legacy topo ssh config directory not found at {}; nothing to migrate", old.string());
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(old))
        if (entry.path().extension() == ".conf") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    std::string all;
    for (const fs::path& file : files) {
        TRY_ASSIGN(const std::string text, host::read_text(file, 1 << 20));
        all += text;
        if (!text.ends_with('\n')) all += "\n";
    }
    const fs::path fresh = ssh_folder / "topo_config.new", kept = ssh_folder / "topo_config.old";
    std::error_code error;
    fs::remove(fresh, error);
    TRY(write_private(fresh, all));
    fs::rename(old, kept, error);
    if (error) return host::failure(ErrorCode::AccessFailed, "cannot rename {}: {}", old.string(), error.message());
    fs::rename(fresh, old, error);
    if (error) return host::failure(ErrorCode::AccessFailed, "cannot rename {}: {}", fresh.string(), error.message());
    TRY_ASSIGN(const std::string text, read_or_empty(config));
    std::string without;
    for (const std::string& line : lines_of(text)) {
        const bool legacy = first_word(line) == "include" && (rest_of(line) == (old / "*.conf").string() ||
                                                              rest_of(line) == "~/.ssh/topo_config/*.conf");
        if (!legacy) without += line + "\n";
    }
    TRY(write_private(config, with_include(without, old.string())));
    fs::remove_all(kept, error);
    return {};
}

}  // namespace talpa::topo
