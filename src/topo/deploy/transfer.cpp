#include "topo/deploy/transfer.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <thread>

#include "base/host/json.h"
#include "base/host/sha256.h"
#include "topo/deploy/image_archive.h"
#include "topo/deploy/upload.h"
#include "topo/deploy/words.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

using host::Json;

// A folder of our own for the archive; gone with the object.
class WorkFolder {
  public:
    static host::Result<WorkFolder> make() {
        sweep();
        std::string name = (std::filesystem::temp_directory_path() / "topo-images-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr)
            return host::failure(ErrorCode::AccessFailed, "cannot make a folder in {} (TMPDIR chooses another)",
                                 std::filesystem::temp_directory_path().string());
        return WorkFolder(name);
    }
    WorkFolder(WorkFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
    WorkFolder(const WorkFolder&) = delete;
    WorkFolder& operator=(const WorkFolder&) = delete;
    WorkFolder& operator=(WorkFolder&&) = delete;
    ~WorkFolder() {
        std::error_code ignored;
        if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
    }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  private:
    explicit WorkFolder(std::filesystem::path path) : path_(std::move(path)) {}

    // Those of a topo that was killed: of this user, and a day old.
    static void sweep() {
        std::error_code error, ignored;
        const auto now = std::filesystem::file_time_type::clock::now();
        for (std::filesystem::directory_iterator it(std::filesystem::temp_directory_path(), error), end;
             !error && it != end; it.increment(error)) {
            struct stat info{};
            const std::filesystem::path& path = it->path();
            if (!path.filename().string().starts_with("topo-images-") || ::lstat(path.c_str(), &info) != 0) continue;
            if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid()) continue;
            const auto written = std::filesystem::last_write_time(path, ignored);
            if (!ignored && now - written > std::chrono::hours(24)) std::filesystem::remove_all(path, ignored);
        }
    }

    std::filesystem::path path_;
};

std::vector<std::string> save_words(const Engine& host, const TransferPlan& plan, const std::string& file) {
    std::vector<std::string> words = {"save"};
    // Without -m Podman writes the first image under every name, and ends well.
    if (host.kind() == EngineKind::Podman) words.insert(words.end(), {"--format", "docker-archive", "-m", "-q"});
    if (!file.empty()) words.insert(words.end(), {"-o", file});
    for (const ImageToSend& one : plan.send) words.push_back(one.host_name);
    return words;
}

std::string hex(const std::string& digest) {
    return digest.substr(7);
}

Json descriptor(const char* type, const std::string& digest, std::size_t size) {
    return {{"mediaType", type}, {"digest", digest}, {"size", size}};
}

// The folder N/ of an OCI layout for Podman: its blobs are those of the staging folder.
void add_oci(TarWriter& tar, const std::string& folder, const ArchivedImage& image) {
    const std::string config_digest = "sha256:" + host::sha256_hex(image.config);
    Json manifest = {
        {"schemaVersion", 2},
        {"mediaType", "application/vnd.oci.image.manifest.v1+json"},
        {"config", descriptor("application/vnd.oci.image.config.v1+json", config_digest, image.config.size())},
        {"layers", Json::array()}};
    for (const ArchivedLayer& layer : image.layers)
        manifest["layers"].push_back(
            descriptor("application/vnd.oci.image.layer.v1.tar", layer.diff_id, layer.bytes.size()));
    const std::string text = manifest.dump();
    const std::string digest = "sha256:" + host::sha256_hex(text);
    const Json index = {
        {"schemaVersion", 2},
        {"manifests", Json::array({descriptor("application/vnd.oci.image.manifest.v1+json", digest, text.size())})}};
    tar.add("blobs/sha256/" + hex(config_digest), image.config);
    tar.add("blobs/sha256/" + hex(digest), text);
    tar.add(folder + "/index.json", index.dump());
    tar.add(folder + "/oci-layout", R"({"imageLayoutVersion":"1.0.0"})");
}

// What `docker load` reads: layers that are there are left out.
void add_docker(TarWriter& tar, const std::string& folder, const ArchivedImage& image, const std::string& name) {
    const std::string config = host::sha256_hex(image.config) + ".json";
    Json layers = Json::array();
    for (const ArchivedLayer& layer : image.layers) layers.push_back(hex(layer.diff_id) + "/layer.tar");
    const Json manifest = Json::array({{{"Config", config}, {"RepoTags", Json::array({name})}, {"Layers", layers}}});
    tar.add(folder + "/" + config, image.config);
    tar.add(folder + "/manifest.json", manifest.dump());
}

// On the target, in the staging folder: makes images of what has arrived.
std::string load_script(const Engine& target, const TransferPlan& plan,
                        const std::vector<const ArchivedImage*>& images) {
    const std::string engine(name_of(target.kind()));
    std::string script = "set -e\ncd \"$STAGING\"\ntar -xf -\n";
    for (std::size_t i = 0; i < images.size(); ++i) {
        const std::string folder = fmt::format("i{}", i);
        const std::string name = shell_quoted(with_tag(plan.send[i].target_name));
        if (target.kind() == EngineKind::Podman) {
            script += fmt::format(
                "rm -f {0}/blobs; ln -s ../blobs {0}/blobs\nid=$({1} pull -q oci:{0})\n{1} untag \"$id\"\n{1} tag "
                "\"$id\" {2}\n",
                folder, engine, name);
            // The same image under another name may have come before: that name went with the others.
            for (std::size_t k = 0; k < i; ++k)
                if (plan.send[k].image.id == plan.send[i].image.id)
                    script +=
                        fmt::format("{} tag \"$id\" {}\n", engine, shell_quoted(with_tag(plan.send[k].target_name)));
        } else {
            std::set<std::string> done;
            for (std::size_t k = 0; k < images[i]->layers.size(); ++k) {
                const std::string digest = hex(images[i]->layers[k].diff_id);
                if (!done.insert(digest).second) continue;
                script += fmt::format(
                    "if [ -f blobs/sha256/{0} ]; then mkdir -p {1}/{0}; ln -f blobs/sha256/{0} {1}/{0}/layer.tar; fi\n",
                    digest, folder);
            }
            script += fmt::format("tar -cf - -C {} . | {} load -q\n", folder, engine);
        }
        script += fmt::format("rm -rf {}\n", folder);
    }
    return script + "rm -rf blobs\n";
}

}  // namespace

bool layer_is_missing(EngineKind target, const TransferPlan& plan, const std::vector<std::string>& chain,
                      std::size_t index) {
    if (target == EngineKind::Podman)
        return std::find(plan.layers_there.begin(), plan.layers_there.end(), chain[index]) == plan.layers_there.end();
    return std::none_of(plan.chains_there.begin(), plan.chains_there.end(), [&](const std::vector<std::string>& there) {
        return there.size() > index &&
               std::equal(chain.begin(), chain.begin() + static_cast<std::ptrdiff_t>(index) + 1, there.begin());
    });
}

TransferPlan plan_transfer(const std::vector<ImageToSend>& images, EngineKind target, const std::vector<Image>& there) {
    TransferPlan plan;
    for (const Image& image : there) {
        plan.layers_there.insert(plan.layers_there.end(), image.layers.begin(), image.layers.end());
        plan.chains_there.push_back(image.layers);
    }
    std::set<std::string> names, missing;
    for (const ImageToSend& one : images) {
        if (!names.insert(one.target_name).second) continue;
        const auto found =
            std::find_if(there.begin(), there.end(), [&](const Image& image) { return image.id == one.image.id; });
        if (found == there.end()) {
            plan.send.push_back(one);
            bool all = true;
            for (std::size_t i = 0; i < one.image.layers.size(); ++i) {
                const bool is_missing = layer_is_missing(target, plan, one.image.layers, i);
                if (is_missing) missing.insert(one.image.layers[i]);
                all = all && is_missing;
            }
            if (all) plan.bytes += one.image.size_bytes;
            continue;
        }
        const bool named = std::any_of(found->names.begin(), found->names.end(),
                                       [&](const std::string& name) { return name == with_tag(one.target_name); });
        (named ? plan.present : plan.only_tag).push_back(one);
    }
    plan.missing_layers.assign(missing.begin(), missing.end());
    return plan;
}

host::Result<void> send_images(const TransferPlan& plan, const Engine& host, const Engine& target,
                               const std::function<void(const TransferProgress&)>& progress) {
    for (const ImageToSend& one : plan.only_tag) TRY(target.tag(one.image.id, with_tag(one.target_name)));
    if (plan.send.empty()) return {};
    TRY_ASSIGN(const WorkFolder folder, WorkFolder::make());
    const std::filesystem::path file = folder.path() / "images.tar";
    TRY(host::with_context(host.run(save_words(host, plan, file.string())), "saving the images"));
    TRY_ASSIGN(const host::MappedFile mapped, host::MappedFile::open(file));
    const std::string_view bytes(reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size());
    TRY_ASSIGN(const std::vector<ArchivedImage> archived, read_image_archive(bytes));

    // The archive may hold them in another order.
    std::vector<const ArchivedImage*> images;
    for (const ImageToSend& one : plan.send) {
        const auto found = std::find_if(archived.begin(), archived.end(), [&](const ArchivedImage& image) {
            return host::sha256_hex(image.config) == one.image.id;
        });
        if (found == archived.end())
            return host::failure(ErrorCode::InvalidExternalData, "{} save did not write the image {}",
                                 name_of(host.kind()), one.host_name);
        images.push_back(&*found);
    }
    std::vector<Blob> blobs;
    std::set<std::string> chosen;
    for (const ArchivedImage* image : images) {
        std::vector<std::string> chain;
        for (const ArchivedLayer& layer : image->layers) chain.push_back(layer.diff_id);
        for (std::size_t i = 0; i < chain.size(); ++i)
            if (layer_is_missing(target.kind(), plan, chain, i) && chosen.insert(chain[i]).second)
                blobs.push_back({.digest = hex(chain[i]), .bytes = image->layers[i].bytes});
    }
    std::stable_sort(blobs.begin(), blobs.end(),
                     [](const Blob& a, const Blob& b) { return a.bytes.size() > b.bytes.size(); });
    TRY_ASSIGN(const Staging staging, Staging::open(target.target(), blobs));
    TRY(host::with_context(staging.upload(blobs, progress), "sending layers"));

    TarWriter tar;
    for (std::size_t i = 0; i < images.size(); ++i) {
        const std::string name = fmt::format("i{}", i);
        if (target.kind() == EngineKind::Podman)
            add_oci(tar, name, *images[i]);
        else
            add_docker(tar, name, *images[i], with_tag(plan.send[i].target_name));
    }
    return host::with_context(staging.run(load_script(target, plan, images), tar.finish()),
                              "loading the images on the target");
}

host::Result<void> pipe_images(const TransferPlan& plan, const Engine& host, const Engine& target,
                               const std::function<void(const TransferProgress&)>& progress) {
    for (const ImageToSend& one : plan.only_tag) TRY(target.tag(one.image.id, with_tag(one.target_name)));
    if (plan.send.empty()) return {};
    TransferProgress now;
    for (const ImageToSend& one : plan.send) now.all_total += one.image.size_bytes;
    now.layer = "images";
    const auto started = std::chrono::steady_clock::now();
    TRY_ASSIGN(const Piped piped,
               pipe(host.command(save_words(host, plan, "")), target.command({"load", "-q"}), [&](std::uint64_t bytes) {
                   now.done = now.all_done = bytes;
                   const double seconds =
                       std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
                   now.bytes_per_second = seconds > 0 ? static_cast<double>(bytes) / seconds : 0;
                   if (progress) progress(now);
               }));
    if (piped.consumer.status != 0)
        return host::failure(ErrorCode::AccessFailed, "loading the images on the target failed (exit status {}): {}",
                             piped.consumer.status, printable(trimmed(piped.consumer.err), LineEnds::Replace));
    if (piped.producer.status != 0)
        return host::failure(ErrorCode::AccessFailed, "saving the images failed (exit status {}): {}",
                             piped.producer.status, printable(trimmed(piped.producer.err), LineEnds::Replace));
    for (const ImageToSend& one : plan.send)
        if (one.host_name != one.target_name) TRY(target.tag(one.image.id, with_tag(one.target_name)));
    return {};
}

}  // namespace talpa::topo
