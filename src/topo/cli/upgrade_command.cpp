// topo upgrade (topo spec, section 9.4). Releases come from TOPO_RELEASES, an index page with links "vX.Y.Z/"; an
// archive there must have its SHA-256 beside it, which the original never looked at.
#include <sys/stat.h>
#include <unistd.h>

#include "base/host/file.h"
#include "base/host/sha256.h"
#include "topo/cli/commands.h"
#include "topo/system/download.h"
#include "topo/system/text.h"
#include "topo/target/install.h"

namespace talpa::topo {
namespace {

namespace fs = std::filesystem;

#if defined(__aarch64__)
constexpr const char* kArchitecture = "arm64";
#else
constexpr const char* kArchitecture = "amd64";
#endif

void step(std::string_view text) {
    fmt::print(stderr, "\r• {}\033[K\n", text);
}

host::Result<void> replace_program(const std::string& archive_bytes, const fs::path& program) {
    std::string scratch = (fs::temp_directory_path() / "topo-upgrade-XXXXXX").string();
    if (::mkdtemp(scratch.data()) == nullptr)
        return host::failure(ErrorCode::AccessFailed, "cannot make a temporary folder");
    const fs::path archive = fs::path(scratch) / "topo.tar.gz";
    auto result = [&]() -> host::Result<void> {
        TRY(host::write_text(archive, archive_bytes));
        TRY_ASSIGN(const Outcome list, capture({.argv = {"tar", "-tf", archive.string()}}));
        std::string member;
        for (const std::string& line : lines_of(list.out))
            if (line == "topo" || line.ends_with("/topo")) member = line;
        if (!list.ok() || member.empty())
            return host::failure(ErrorCode::InvalidExternalData, "the release archive holds no topo");
        TRY_ASSIGN(const Outcome bytes, capture({.argv = {"tar", "-xOf", archive.string(), "--", member}}, 256 << 20));
        if (!bytes.ok() || elf_architecture(bytes.out) != kArchitecture)
            return host::failure(ErrorCode::InvalidExternalData, "the release archive holds no topo for this machine");
        // The old program's mode is kept; the rename replaces it while it runs.
        return host::write_text(program, bytes.out);
    }();
    std::error_code ignored;
    fs::remove_all(scratch, ignored);
    return result;
}

}  // namespace

Done run_upgrade(const Invocation& invocation) {
    TRY_ASSIGN(const Milliseconds timeout, timeout_of(invocation, "--timeout", "0"));
    const std::string current = TALPA_TOPO_VERSION;
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    const auto newest_already = [&](const std::string& version) {
        if (invocation.json())
            print(fmt::format("{{\"version\":{},\"upgraded\":false}}", json_text(version)));
        else
            print(fmt::format("Already running the latest version of topo ({})", version));
        return 0;
    };
    if (current == "dev") return newest_already(current);
    std::string index = environment("TOPO_RELEASES");
    if (index.empty())
        return std::unexpected(
            Failure(host::Error(ErrorCode::NotSupported, "this topo does not know where its releases are",
                                "set TOPO_RELEASES to the URL of their index page")));
    if (!index.ends_with('/')) index += '/';
    step("Checking for latest version...");
    TRY_ASSIGN(const std::string page, download(index, timeout));
    const std::string newest = newest_version(page);
    if (newest.empty())
        return std::unexpected(Failure(host::Error(ErrorCode::NotFound, "no release is listed at " + index)));
    if (newest == current || newest_version(fmt::format("href=\"{}/\" href=\"{}/\"", newest, current)) == current)
        return newest_already(current);
    step(fmt::format("Installing topo version {}...", newest));
    const std::string url = fmt::format("{}v{}/linux/topo_linux_{}.tar.gz", index, newest, kArchitecture);
    TRY_ASSIGN(const std::string bytes, download(url, timeout, 256 << 20));
    TRY_ASSIGN(const std::string sum, download(url + ".sha256", timeout, 4096));
    if (sum.substr(0, 64) != host::sha256_hex(bytes))
        return std::unexpected(Failure(host::Error(
            ErrorCode::InvalidExternalData,
            fmt::format("{} does not have the checksum that is published beside it; nothing was changed", url))));
    TRY(replace_program(bytes, program));
    if (invocation.json())
        print(fmt::format("{{\"version\":{},\"upgraded\":true}}", json_text(newest)));
    else
        print("Upgraded topo to " + newest);
    return 0;
}

}  // namespace talpa::topo
