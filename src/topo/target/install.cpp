#include "topo/target/install.h"

#include <cstdlib>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <span>

#include "base/host/file.h"
#include "base/host/sha256.h"
#include "topo/system/download.h"
#include "topo/system/log.h"
#include "topo/system/text.h"
#include "topo/target/probe.h"

namespace talpa::topo {
namespace {

namespace fs = std::filesystem;

constexpr const char* kServer = "https://artifacts.tools.arm.com/remoteproc-runtime/";
constexpr std::array<const char*, 2> kBinaries = {"remoteproc-runtime", "containerd-shim-remoteproc-v1"};
constexpr Milliseconds kDownload(120'000);
constexpr const char* kLocal = "/usr/local/bin";  // the administrator's, where no package puts files
constexpr int kOwned = 77;                        // of put()'s script: the file there is a package's
constexpr int kDoesNotRun = 78;                   // likewise: the new program cannot be run

std::optional<std::array<int, 3>> version_numbers(std::string_view text) {
    std::array<int, 3> n{};
    for (std::size_t i = 0; i < 3; ++i) {
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n[i]);
        if (error != std::errc()) return std::nullopt;
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
        if (i < 2) {
            if (!text.starts_with('.')) return std::nullopt;
            text.remove_prefix(1);
        }
    }
    return text.empty() ? std::optional(n) : std::nullopt;
}

std::string architecture_of(std::string_view machine) {
    if (machine == "aarch64" || machine == "arm64") return "arm64";
    if (machine == "x86_64") return "amd64";
    if (machine.starts_with("armv7") || machine == "armhf") return "arm";
    return std::string(machine);
}

struct Facts {
    std::string architecture, home, path;
    std::map<std::string, std::string> present;  // binary -> folder
    std::map<std::string, std::string> package;  // binary -> the package that put it there
};

// The package that owns a file, by the system's own tool; nothing if none does. A path through a linked folder
// (/bin of a merged /usr) is known to dpkg by its real name only.
std::string owner_script(const std::string& path) {
    return fmt::format(
        "p={}; [ -n \"$p\" ] || exit 1; r=$(readlink -f \"$p\" 2>/dev/null || echo \"$p\"); for f in \"$p\" \"$r\"; do "
        "if command -v dpkg-query >/dev/null 2>&1; then o=$(dpkg-query -S \"$f\" 2>/dev/null | head -n 1 | cut -d: "
        "-f1) && "
        "[ -n \"$o\" ] && {{ echo \"$o\"; exit 0; }}; fi; "
        "if command -v rpm >/dev/null 2>&1; then rpm -qf --qf '%{{NAME}}\\n' \"$f\" 2>/dev/null && exit 0; fi; done; "
        "exit 1",
        path);
}

host::Result<Facts> ask(const Target& target) {
    std::vector<ProbeCheck> checks = {{"machine", "uname -m"}, {"home", "echo \"$HOME\""}, {"path", "echo \"$PATH\""}};
    for (const char* name : kBinaries) {
        checks.push_back({name, fmt::format("command -v {}", name)});
        checks.push_back({std::string(name) + "-package", owner_script(fmt::format("$(command -v {})", name))});
    }
    TRY_ASSIGN(const ProbeAnswers answers, probe(target, checks, Milliseconds(40'000)));
    const auto text = [&](const char* name) {
        const auto it = answers.find(name);
        return it == answers.end() || !it->second.ok() ? std::string() : std::string(trimmed(it->second.out));
    };
    Facts facts;
    facts.architecture = architecture_of(text("machine"));
    facts.home = text("home");
    facts.path = text("path");
    if (facts.architecture.empty())
        return host::failure(ErrorCode::AccessFailed, "the target does not say what machine it is (uname -m)");
    for (const char* name : kBinaries)
        if (const std::string path = text(name); path.starts_with('/')) {
            facts.present[name] = fs::path(path).parent_path().string();
            const std::string owner = text((std::string(name) + "-package").c_str());
            if (!owner.empty()) facts.package[name] = lines_of(owner).front();
        }
    return facts;
}

host::Result<fs::path> fetch(const std::string& architecture, const fs::path& folder) {
    TRY_ASSIGN(const std::string index, download(kServer, kDownload));
    const std::string version = newest_version(index);
    if (version.empty()) return host::failure(ErrorCode::NotFound, "no release is listed at {}", kServer);
    const std::string name = fmt::format("remoteproc-runtime_{}_linux_{}.tar.gz", version, architecture);
    TRY_ASSIGN(const std::string bytes, download(kServer + version + "/" + name, kDownload, 256 << 20));
    info(fmt::format("fetched {} (sha256 {})", name, host::sha256_hex(bytes)));
    TRY(host::write_text(folder / name, bytes));
    return folder / name;
}

// The section table is what linkers write last: a file that ends before it is not whole.
bool elf_is_cut(std::string_view bytes) {
    const bool wide = bytes.size() > 4 && bytes[4] == 2, big = bytes.size() > 5 && bytes[5] == 2;
    const std::size_t header = wide ? 64 : 52;
    if (bytes.size() < header) return true;
    const auto number = [&](std::size_t at, std::size_t n) {
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < n; ++i)
            value = value << 8 | static_cast<unsigned char>(bytes[big ? at + i : at + n - 1 - i]);
        return value;
    };
    const std::uint64_t offset = wide ? number(40, 8) : number(32, 4);
    const std::uint64_t table = number(wide ? 58 : 46, 2) * number(wide ? 60 : 48, 2);
    return offset > bytes.size() || table > bytes.size() - offset;
}

enum class Put { Done, Refused };

// A file of a package is not ours to replace: its next update would put the old one back, or stop at ours. A folder
// before it on PATH serves as well.
host::Result<void> check_owned(const Facts& facts, const std::string& binary, const std::vector<std::string>& path) {
    const std::string& folder = facts.present.at(binary);
    const std::string& package = facts.package.at(binary);
    const auto ours = std::find(path.begin(), path.end(), kLocal), theirs = std::find(path.begin(), path.end(), folder);
    if (ours != path.end() && ours < theirs) {
        warn(fmt::format("{}/{} belongs to the package {} and stays as it is; {} comes before it on PATH", folder,
                         binary, printable(package, LineEnds::Replace), kLocal));
        return {};
    }
    return std::unexpected(
        host::Error(ErrorCode::AccessFailed,
                    fmt::format("{}/{} belongs to the package {}, and {} does not come before it on PATH", folder,
                                binary, printable(package, LineEnds::Replace), kLocal),
                    fmt::format("remove the package on the target (apt-get remove {})", shell_quoted(package))));
}

host::Result<Put> put(const Target& target, const std::string& folder, const Binary& binary) {
    // A temporary name and a rename: a binary that runs can be replaced, and nobody sees half of one.
    const std::string script = fmt::format(
        "d={}; n={}; if [ -e \"$d/$n\" ] && ({}) >/dev/null; then exit {}; fi; mkdir -p \"$d\" && "
        "t=\"$d/.$n.topo-new\" && cat > \"$t\" && chmod 0755 \"$t\" && runs && mv -f \"$t\" "
        "\"$d/$n\" || {{ s=$?; rm -f \"$t\"; exit $s; }}",
        shell_quoted(folder), shell_quoted(binary.name), owner_script("$d/$n"), kOwned);
    // A shell's own statuses (cannot be run, a signal, too late) say that it does not run; what it thinks of the flag
    // is its affair: the shim knows -v.
    const std::string runs = fmt::format(
        "runs() {{ l=; command -v timeout >/dev/null 2>&1 && l='timeout 20'; f=--version; case $n in *shim*) f=-v;; "
        "esac; "
        "m=$($l \"$t\" $f 2>&1 </dev/null); s=$?; [ $s -lt 124 ] || {{ echo \"$f: exit status $s: $m\" >&2; return {}; "
        "}}; }}; ",
        kDoesNotRun);
    Command command = target.shell(runs + script);
    command.input = binary.bytes;
    TRY_ASSIGN(const Outcome outcome, capture(command));
    if (outcome.ok()) return Put::Done;
    if (outcome.status == kDoesNotRun)
        return host::failure(ErrorCode::InvalidExternalData,
                             "the new {} does not run on the target, and what was there stays: {}", binary.name,
                             one_line(outcome.err));
    if (outcome.status == kOwned) return Put::Refused;
    const std::string said = lower(outcome.err);
    // Only what the target's own shell says counts here; ssh's failures have status 255.
    const bool refused = outcome.status != 255 && (said.find("permission denied") != std::string::npos ||
                                                   said.find("cannot create") != std::string::npos ||
                                                   said.find("read-only") != std::string::npos);
    if (refused) return Put::Refused;
    return host::failure(ErrorCode::AccessFailed, "installing {} into {} failed (exit status {}): {}", binary.name,
                         folder, outcome.status, one_line(outcome.err));
}

}  // namespace

std::optional<fs::path> bundled_archive(const std::string& architecture) {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
    const std::string ending = fmt::format("_linux_{}.tar.gz", architecture);
    for (const fs::path& folder : {program, program / ".." / "share" / "topo"})
        for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
            const std::string name = it->path().filename().string();
            if (name.starts_with("remoteproc-runtime") && name.ends_with(ending)) return it->path();
        }
    return std::nullopt;
}

std::string newest_version(const std::string& page) {
    std::string newest;
    std::array<int, 3> best{-1, 0, 0};
    for (std::size_t at = 0; (at = page.find("href=\"", at)) != std::string::npos;) {
        at += 6;
        const std::size_t end = page.find('"', at);
        if (end == std::string::npos) break;
        std::string_view link = std::string_view(page).substr(at, end - at);
        if (link.starts_with('v')) link.remove_prefix(1);
        if (!link.ends_with('/')) continue;
        link.remove_suffix(1);
        const auto numbers = version_numbers(link);
        if (!numbers || *numbers < best) continue;
        best = *numbers;
        newest = link;
    }
    return newest;
}

host::Result<std::vector<Binary>> read_runtime_archive(const fs::path& archive) {
    std::error_code ignored;
    if (!fs::exists(archive, ignored))
        return host::failure(ErrorCode::NotFound, "there is no file {}", archive.string());
    TRY_ASSIGN(const Outcome list,
               capture({.argv = {"tar", "-tf", archive.string()}, .timeout = Milliseconds(60'000)}));
    if (!list.ok())
        return host::failure(ErrorCode::InvalidExternalData, "{} cannot be read as an archive: {}", archive.string(),
                             one_line(list.err));
    std::vector<Binary> binaries;
    for (const char* name : kBinaries) {
        std::string member;
        for (const std::string& line : lines_of(list.out))
            if (line == name || line.ends_with(std::string("/") + name)) member = line;
        if (member.empty()) return host::failure(ErrorCode::NotFound, "\"{}\" not found in archive", name);
        TRY_ASSIGN(Outcome bytes,
                   capture({.argv = {"tar", "-xOf", archive.string(), "--", member}, .timeout = Milliseconds(60'000)},
                           256 << 20));
        if (!bytes.ok())
            return host::failure(ErrorCode::InvalidExternalData, "{} of {} cannot be read: {}", member,
                                 archive.string(), one_line(bytes.err));
        binaries.push_back({name, std::move(bytes.out)});
    }
    return binaries;
}

std::string elf_architecture(std::string_view bytes) {
    if (bytes.size() < 20 || !bytes.starts_with("\x7f"
                                                "ELF"))
        return {};
    const bool big = bytes[5] == 2;
    const auto low = static_cast<unsigned char>(bytes[18]), high = static_cast<unsigned char>(bytes[19]);
    const unsigned machine = big ? low * 256U + high : high * 256U + low;
    switch (machine) {  // e_machine, System V ABI
        case 183:
            return "arm64";
        case 62:
            return "amd64";
        case 40:
            return "arm";
        case 3:
            return "386";
        case 243:
            return "riscv64";
        default:
            return fmt::format("machine {}", machine);
    }
}

namespace {

/// A folder of ours that goes with the object.
struct Scratch {
    std::string path;
    Scratch() = default;
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() {
        std::error_code ignored;
        if (!path.empty()) fs::remove_all(path, ignored);
    }
};

/// The file that is named, else the one that came with topo, else one that is fetched into `scratch`.
host::Result<fs::path> find_archive(const std::optional<std::string>& from, const std::string& architecture,
                                    Scratch& scratch) {
    if (from) return fs::path(*from);
    if (const auto bundled = bundled_archive(architecture)) return fs::path(*bundled);
    std::string folder = (fs::temp_directory_path() / "topo-install-XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr)
        return host::failure(ErrorCode::AccessFailed, "cannot make a temporary folder");
    scratch.path = folder;
    auto fetched = fetch(architecture, folder);
    if (!fetched)
        return std::unexpected(
            std::move(fetched.error()).with_hint("without a network: topo install remoteproc-runtime --from FILE"));
    return fs::path(*fetched);
}

/// What replaces a good runtime must be a program for the target, and a whole one.
host::Result<void> check_binary(const Binary& binary, const fs::path& archive, const std::string& wanted) {
    const std::string architecture = elf_architecture(binary.bytes);
    if (architecture.empty() || elf_is_cut(binary.bytes))
        return host::failure(ErrorCode::InvalidExternalData, "{} of {} is {} ({} bytes)", binary.name, archive.string(),
                             architecture.empty() ? "no ELF program" : "cut off", binary.bytes.size());
    if (architecture != wanted)
        return host::failure(ErrorCode::NotSupported, "{} of {} is for {}, the target is {}", binary.name,
                             archive.string(), architecture, wanted);
    return {};
}

/// Puts it where it is, else into the first of `candidates` that takes it; those that refuse are dropped. The folder.
host::Result<std::string> place(const Target& target, const Facts& facts, const Binary& binary,
                                std::span<const std::string>& candidates) {
    if (facts.package.contains(binary.name)) {
        TRY_ASSIGN(const Put result, put(target, kLocal, binary));
        if (result == Put::Done) return kLocal;
        return std::unexpected(
            host::Error(ErrorCode::AccessFailed,
                        fmt::format("{} in {} belongs to the package {}, and {} cannot be written", binary.name,
                                    facts.present.at(binary.name), printable(facts.package.at(binary.name)), kLocal),
                        "install as root"));
    }
    if (const auto there = facts.present.find(binary.name); there != facts.present.end()) {
        TRY_ASSIGN(const Put result, put(target, there->second, binary));
        if (result == Put::Done) return there->second;
        return std::unexpected(
            host::Error(ErrorCode::AccessFailed,
                        fmt::format("{} is installed in {}, which cannot be written", binary.name, there->second),
                        "deploy as root, or remove it there"));
    }
    for (; !candidates.empty(); candidates = candidates.subspan(1)) {
        TRY_ASSIGN(const Put result, put(target, candidates.front(), binary));
        if (result == Put::Done) return candidates.front();
    }
    return std::string();
}

}  // namespace

host::Result<std::vector<Installed>> install_runtime(const Target& target, const std::optional<std::string>& from) {
    TRY(target.connect());
    TRY_ASSIGN(const Facts facts, ask(target));
    Scratch scratch;
    TRY_ASSIGN(const fs::path archive, find_archive(from, facts.architecture, scratch));
    TRY_ASSIGN(const std::vector<Binary> binaries, read_runtime_archive(archive));
    const std::vector<std::string> path = split(facts.path, ":");
    for (const Binary& binary : binaries) TRY(check_binary(binary, archive, facts.architecture));
    for (const Binary& binary : binaries)  // all of them before the first is written
        if (facts.package.contains(binary.name)) TRY(check_owned(facts, binary.name, path));
    const std::vector<std::string> candidates = {kLocal, "/usr/bin", facts.home + "/bin"};
    std::span<const std::string> left(candidates);
    std::vector<Installed> installed;
    for (const Binary& binary : binaries) {
        TRY_ASSIGN(const std::string folder, place(target, facts, binary, left));
        if (folder.empty())
            return host::failure(ErrorCode::AccessFailed, "permission denied for all candidate directories: [{}]",
                                 joined(candidates, " "));
        installed.push_back({binary.name, folder, std::find(path.begin(), path.end(), folder) != path.end()});
    }
    // A profile may add a folder to PATH as soon as it is there.
    if (std::any_of(installed.begin(), installed.end(), [](const Installed& one) { return !one.on_path; })) {
        TRY_ASSIGN(const Facts now, ask(target));
        const std::vector<std::string> folders = split(now.path, ":");
        for (Installed& one : installed)
            one.on_path = std::find(folders.begin(), folders.end(), one.folder) != folders.end();
    }
    return installed;
}

std::string installed_plain(const std::vector<Installed>& installed) {
    std::string out;
    std::map<std::string, std::vector<std::string>> off_path;
    for (const Installed& one : installed) {
        out += fmt::format("✓ Installed {} to {}\n", one.binary, printable(one.folder, LineEnds::Replace));
        if (!one.on_path) off_path[one.folder].push_back(one.binary);
    }
    for (const auto& [folder, binaries] : off_path)
        out += fmt::format(
            "\n{0} is not on your PATH. To use {1}:\n• Add to PATH: export PATH=\"$PATH:{0}\"\n• Or move binaries to a "
            "directory already on PATH\n",
            printable(folder, LineEnds::Replace), joined(binaries, ", "));
    return out;
}

std::string installed_json(const std::vector<Installed>& installed) {
    std::string out;
    for (const Installed& one : installed)
        out += fmt::format("{}{{\"path\":{},\"on_path\":{},\"binary\":{}}}", out.empty() ? "" : ",",
                           json_text(one.folder), one.on_path, json_text(one.binary));
    return "[" + out + "]";
}

}  // namespace talpa::topo
