#include "topo/deploy/build.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include <algorithm>
#include <future>
#include <set>
#include <utility>

#include "base/host/file.h"
#include "base/host/terminal.h"
#include "topo/deploy/desired.h"
#include "topo/deploy/words.h"
#include "topo/system/log.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

constexpr int kFirstDockerWithContexts = 23;
constexpr std::size_t kBuildsAtOnce = 4;

// Names of images that other services copy from, as this engine finds them.
std::string image_reference(const Project& project, const Service& service, EngineKind kind) {
    return startable_name(kind, project.image_of(service));
}

struct TemporaryFile {
    std::filesystem::path path;
    ~TemporaryFile() {
        std::error_code ignored;
        if (!path.empty()) std::filesystem::remove(path, ignored);
    }
};

// How what a build says is shown: as it comes, or, beside that of others, with the service's name before each line.
enum class Shown { AsItComes, ByLine };

host::Result<Outcome> run_build(const Command& command, const std::string& service, Shown shown) {
    const bool json = logging().format == Format::Json;
    // Even a quiet build prints the image's ID; what it says counts only when it fails.
    if (logging().least > Level::Info) {
        auto ran = capture(command);
        if (ran && !ran->ok()) host::say(printable(ran->err));
        return ran;
    }
    if (shown == Shown::AsItComes) return pass_through(command, json ? Output::ErrorsOnly : Output::ErrorsToOutput);
    return stream_lines(command, [&](std::string_view line) {
        const std::string text = fmt::format("{}  | {}\n", service, printable(line, LineEnds::Replace));
        std::FILE* out = json ? stderr : stdout;
        std::fwrite(text.data(), 1, text.size(), out);
        std::fflush(out);
    });
}

// The first, under the names of all.
host::Result<void> build_one(const Project& project, const std::vector<const Service*>& same, const Engine& host,
                             const Builder& builder, const std::string& platform, Shown shown) {
    const Service& service = *same.front();
    const Build& build = *service.build;
    TemporaryFile inline_file;
    if (!build.dockerfile_inline.empty()) {
        std::string name = (std::filesystem::temp_directory_path() / "topo-dockerfile-XXXXXX").string();
        const int fd = ::mkstemp(name.data());
        if (fd < 0)
            return host::failure(ErrorCode::AccessFailed, "cannot make a temporary file in {}",
                                 std::filesystem::temp_directory_path().string());
        ::close(fd);
        inline_file.path = name;
        TRY(host::write_text(inline_file.path, build.dockerfile_inline));
    }
    // A builder without --build-context finds the image of a context by its name: COPY --from=NAME.
    Words lent;
    if (!builder.contexts)
        for (const auto& [context, source] : build.additional_contexts) {
            if (!source.starts_with("service:"))
                return host::failure(ErrorCode::NotSupported,
                                     "service \"{}\": the build context \"{}\" needs buildx and Docker 23 or newer",
                                     service.name, context);
            TRY(host.tag(image_reference(project, *project.find(source.substr(8)), builder.kind), context));
            lent.push_back(context);
        }
    Words words = build_words(project, service, builder, platform, inline_file.path.string());
    for (const Service* other : same)
        if (project.image_of(*other) != project.image_of(service))
            words.insert(words.end() - 1, {"--tag", project.image_of(*other)});
    Command command = host.command(words);
    if (builder.kind == EngineKind::Docker)
        command.environment.emplace_back("DOCKER_BUILDKIT", builder.buildkit ? "1" : "0");
    command.folder = project.folder;
    const auto ran = run_build(command, service.name, shown);
    for (const std::string& name : lent)
        (void)host.run({"rmi", "--no-prune", name}, Milliseconds(30'000), Engine::Check::Nothing);
    if (!ran) return std::unexpected(ran.error());
    if (ran->status != 0)
        return host::failure(ErrorCode::AccessFailed, "building the image of service \"{}\" failed (exit status {})",
                             service.name, ran->status);
    for (const Service* one : same)
        for (const std::string& tag : one->build->tags)
            TRY(host.tag(image_reference(project, *one, builder.kind), tag));
    return {};
}

std::optional<std::string> dockerfile_text(const Project& project, const Build& build) {
    if (!build.dockerfile_inline.empty()) return build.dockerfile_inline;
    auto text = host::read_text(std::filesystem::path(project.folder) / build.context / build.dockerfile, 1 << 20);
    if (!text) return std::nullopt;
    return *std::move(text);
}

// Does its Dockerfile name the other's image, or are both the same image? That the name occurs in it for another reason
// costs no more than time.
bool may_need(const Project& project, const Service& service, const Service& other) {
    const std::string image = project.image_of(other);
    if (project.image_of(service) == image) return true;
    return dockerfile_text(project, *service.build).value_or("").find(image) != std::string::npos;
}

// How each stage of a Dockerfile begins: its FROM, without the stage's name, and the instruction behind it.
std::set<std::string> beginnings(const std::string& dockerfile) {
    std::set<std::string> all;
    std::string pending, from;
    bool has_from = false;
    const auto next = [&](const std::string& instruction) {
        if (has_from) all.insert(from + "\n" + instruction);
        has_from = false;
    };
    for (const std::string& line : lines_of(dockerfile)) {
        std::string text(trimmed(line));
        if (text.empty() || text.starts_with('#')) continue;
        const bool goes_on = text.ends_with('\\');
        if (goes_on) text.pop_back();
        pending += std::string(trimmed(text)) + " ";
        if (goes_on) continue;
        const std::string instruction(trimmed(std::exchange(pending, {})));
        next(instruction);
        if (!lower(instruction).starts_with("from ")) continue;
        from = instruction.substr(0, lower(instruction).find(" as "));
        has_from = true;
    }
    next({});
    return all;
}

// Podman finds the layers of an earlier build by what made them. Two builds that begin alike and run at the same time
// make those layers twice, and the next time both find the same one of the two: one image would be another, and its
// container replaced, though nothing has changed.
bool begin_alike(const Project& project, const Service& service, const Service& other) {
    const auto one = dockerfile_text(project, *service.build), two = dockerfile_text(project, *other.build);
    if (!one || !two) return true;
    const std::set<std::string> there = beginnings(*two);
    const std::set<std::string> here = beginnings(*one);
    return std::any_of(here.begin(), here.end(), [&](const std::string& text) { return there.contains(text); });
}

using Same = std::vector<const Service*>;

// Builds that need none of each other, behind those that they need. A builder to which contexts are lent under
// temporary names has one at a time.
std::vector<std::vector<Same>> in_levels(const Project& project, const std::vector<Same>& order,
                                         const Builder& builder) {
    std::vector<std::vector<Same>> levels;
    std::map<std::string, std::size_t> level_of;
    for (const Same& same : order) {
        const Service& service = *same.front();
        std::size_t level = builder.contexts ? 0 : levels.size();
        for (const auto& [context, source] : service.build->additional_contexts)
            if (source.starts_with("service:"))
                if (const auto other = level_of.find(source.substr(8)); other != level_of.end())
                    level = std::max(level, other->second + 1);
        for (const Same& before : order) {
            if (before.front() == &service) break;
            const bool alike = builder.kind == EngineKind::Podman && begin_alike(project, service, *before.front());
            for (const Service* one : before)
                if (alike || may_need(project, service, *one)) level = std::max(level, level_of[one->name] + 1);
        }
        for (const Service* one : same) level_of[one->name] = level;
        if (levels.size() <= level) levels.resize(level + 1);
        levels[level].push_back(same);
    }
    std::vector<std::vector<Same>> parts;
    for (const std::vector<Same>& level : levels)
        for (std::size_t i = 0; i < level.size(); i += kBuildsAtOnce)
            parts.emplace_back(level.begin() + static_cast<std::ptrdiff_t>(i),
                               level.begin() + static_cast<std::ptrdiff_t>(std::min(level.size(), i + kBuildsAtOnce)));
    return parts;
}

host::Result<void> build_level(const Project& project, const std::vector<Same>& level, const Engine& host,
                               const Builder& builder, const std::map<std::string, std::string>& platforms) {
    const auto build = [&](const Same& same) {
        return build_one(project, same, host, builder, platforms.at(same.front()->name),
                         level.size() > 1 ? Shown::ByLine : Shown::AsItComes);
    };
    if (level.size() == 1) return build(level[0]);
    std::vector<std::future<host::Result<void>>> running;
    for (const Same& same : level) running.push_back(std::async(std::launch::async, build, same));
    host::Result<void> first;
    for (auto& one : running)
        if (auto done = one.get(); !done && first) first = std::move(done);
    return first;
}

// An image without a build: here, or else to be pulled.
host::Result<void> pull_one(const Project& project, const Service& service, const Engine& host,
                            const std::string& platform) {
    TRY_ASSIGN(const std::vector<Image> here, host.images({project.image_of(service)}));
    if (!here.empty() && service.pull_policy != "always") return {};
    if (service.pull_policy == "never")
        return host::failure(ErrorCode::NotFound,
                             "the image {} of service \"{}\" is not on this machine, and its pull_policy is never",
                             service.image, service.name);
    Words words = {"pull"};
    if (!platform.empty()) add_option(words, "--platform", platform);
    words.push_back(service.image);
    TRY_ASSIGN(const Outcome ran,
               pass_through(host.command(words),
                            logging().format == Format::Json ? Output::ErrorsOnly : Output::ErrorsToOutput));
    if (ran.status == 0) return {};
    host.nothing_found();
    return std::unexpected(
        host::Error(ErrorCode::AccessFailed,
                    fmt::format("the image {} of service \"{}\" is not on this machine and could not be pulled",
                                service.image, service.name),
                    "without a network, load it from a file: " + std::string(name_of(host.kind())) + " load -i FILE"));
}

}  // namespace

host::Result<Builder> find_builder(const Engine& host) {
    Builder builder;
    builder.kind = host.kind();
    if (host.kind() == EngineKind::Podman) {
        builder.contexts = true;
        return builder;
    }
    TRY_ASSIGN(const Outcome buildx, host.run({"buildx", "version"}, Milliseconds(10'000), Engine::Check::Nothing));
    if (buildx.ok()) {
        // The BuildKit inside of engines before 23 has no frontend that takes contexts ("unsupported frontend
        // capability moby.buildkit.frontend.contexts").
        TRY_ASSIGN(const Outcome server, host.run({"version", "--format", "{{.Server.Version}}"}, Milliseconds(10'000),
                                                  Engine::Check::Nothing));
        builder.contexts = server.ok() && std::atoi(server.out.c_str()) >= kFirstDockerWithContexts;
        return builder;
    }
    // "Docker version 20.10.24+dfsg1, build …"; `docker version` would ask the engine as well.
    TRY_ASSIGN(const Outcome client, host.run({"--version"}, Milliseconds(10'000), Engine::Check::Nothing));
    constexpr std::string_view kStart = "Docker version ";
    builder.buildkit =
        client.ok() && client.out.starts_with(kStart) && std::atoi(client.out.c_str() + kStart.size()) < 23;
    return builder;
}

std::string build_platform(const Service& service, const EngineInfo& target) {
    const std::string wanted = service.platform;
    if (target.architecture.empty()) return wanted;
    const std::vector<std::string> parts = split(wanted, "/");
    if (parts.size() >= 2 && parts[1] == target.architecture) return wanted;
    return (target.os.empty() ? "linux" : target.os) + "/" + target.architecture;
}

std::vector<std::string> build_words(const Project& project, const Service& service, const Builder& builder,
                                     const std::string& platform, const std::string& dockerfile_inline) {
    const Build& build = *service.build;
    Words words = {"build"};
    if (!platform.empty()) add_option(words, "--platform", platform);
    if (!build.target.empty()) add_option(words, "--target", build.target);
    const bool url = build.context.find("://") != std::string::npos;
    if (!dockerfile_inline.empty())
        add_option(words, "--file", dockerfile_inline);
    else
        add_option(
            words, "--file",
            url || build.dockerfile.starts_with('/') ? build.dockerfile : build.context + "/" + build.dockerfile);
    for (const auto& [name, value] : build.args) add_option(words, "--build-arg", name + "=" + value);
    for (const auto& [name, value] : build.labels) add_option(words, "--label", name + "=" + value);
    for (const auto& [name, value] : build.extra_hosts) add_option(words, "--add-host", name + ":" + value);
    if (!build.network.empty()) add_option(words, "--network", build.network);
    if (build.no_cache) words.emplace_back("--no-cache");
    // Podman takes --cache-from for names of repositories only, and would refuse the tags that Compose files have.
    if (builder.kind == EngineKind::Docker)
        for (const std::string& source : build.cache_from)
            if (builder.contexts || source.find('=') == std::string::npos) add_option(words, "--cache-from", source);
    if (builder.contexts)
        for (const auto& [name, source] : build.additional_contexts) {
            std::string place = source;
            if (source.starts_with("service:"))
                place = (builder.kind == EngineKind::Podman ? "container-image://" : "docker-image://") +
                        image_reference(project, *project.find(source.substr(8)), builder.kind);
            add_option(words, "--build-context", name + "=" + place);
        }
    add_option(words, "--tag", project.image_of(service));
    if (logging().least > Level::Info) words.emplace_back("--quiet");
    words.push_back(build.context);
    return words;
}

std::vector<std::vector<const Service*>> same_builds(const Project& project,
                                                     const std::vector<const Service*>& services,
                                                     const Builder& builder,
                                                     const std::map<std::string, std::string>& platforms) {
    std::vector<std::vector<const Service*>> all;
    std::vector<Words> known;
    for (const Service* service : services) {
        // All that a build is told, but for the name of its image; where contexts are lent, these too.
        Words words = build_words(project, *service, builder, platforms.at(service->name), {});
        const auto tag = std::find(words.begin(), words.end(), project.image_of(*service));
        if (tag != words.end()) words.erase(tag);
        words.push_back(service->build->dockerfile_inline);
        for (const auto& [name, source] : service->build->additional_contexts) words.push_back(name + "=" + source);
        const auto at = std::find(known.begin(), known.end(), words);
        if (at != known.end()) {
            all[static_cast<std::size_t>(at - known.begin())].push_back(service);
        } else {
            known.push_back(std::move(words));
            all.push_back({service});
        }
    }
    return all;
}

host::Result<std::vector<const Service*>> in_build_order(const Project& project) {
    std::vector<const Service*> order;
    std::set<std::string> done;
    for (bool moved = true; moved;) {
        moved = false;
        for (const Service& service : project.services) {
            if (!service.build || done.contains(service.name)) continue;
            const bool ready = std::all_of(service.build->additional_contexts.begin(),
                                           service.build->additional_contexts.end(), [&](const auto& context) {
                                               const Service* other = context.second.starts_with("service:")
                                                                          ? project.find(context.second.substr(8))
                                                                          : nullptr;
                                               return other == nullptr || !other->build || done.contains(other->name);
                                           });
            if (!ready) continue;
            done.insert(service.name);
            order.push_back(&service);
            moved = true;
        }
    }
    for (const Service& service : project.services)
        if (service.build && !done.contains(service.name))
            return host::failure(ErrorCode::InvalidArgument, "the build contexts of service \"{}\" lead back to itself",
                                 service.name);
    return order;
}

host::Result<std::map<std::string, Image>> find_images(const Project& project, const Engine& host,
                                                       const EngineInfo& target) {
    std::map<std::string, Image> made;
    // All in one question; the engine answers in this order. Where one is missing, one by one tells which.
    std::vector<std::string> names;
    for (const Service& service : project.services)
        if (std::find(names.begin(), names.end(), project.image_of(service)) == names.end())
            names.push_back(project.image_of(service));
    TRY_ASSIGN(const std::vector<Image> all, host.images(names));
    for (std::size_t i = 0; i < names.size() && all.size() != names.size(); ++i) {
        TRY_ASSIGN(const std::vector<Image> found, host.images({names[i]}));
        if (!found.empty()) continue;
        const auto user = std::find_if(project.services.begin(), project.services.end(),
                                       [&](const Service& service) { return project.image_of(service) == names[i]; });
        return host::failure(ErrorCode::NotFound, "the image {} of service \"{}\" is not there after the build",
                             names[i], user->name);
    }
    if (all.size() != names.size())
        return host::failure(ErrorCode::InvalidExternalData, "{} answered for {} of {} images", name_of(host.kind()),
                             all.size(), names.size());
    for (const Service& service : project.services) {
        const std::string name = project.image_of(service);
        const Image& image = all[static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin())];
        // Engines start an image of the wrong architecture with a mere warning, or not at all and say so too late.
        if (!service.is_firmware() && service.scale > 0 && !target.architecture.empty() &&
            image.architecture != target.architecture)
            return std::unexpected(host::Error(
                ErrorCode::NotSupported,
                fmt::format("the image {} of service \"{}\" is {}, the target is {}/{}", short_image_name(name),
                            service.name, image.platform(), target.os, target.architecture),
                "build it for the target's platform, or deploy to another target"));
        made[service.name] = image;
    }
    return made;
}

host::Result<std::map<std::string, Image>> make_images(const Project& project, const Engine& host,
                                                       const host::Result<Builder>& builder, const EngineInfo& target) {
    TRY_ASSIGN(const auto order, in_build_order(project));
    std::map<std::string, std::string> platforms;
    for (const Service& service : project.services) {
        platforms[service.name] = build_platform(service, target);
        if (platforms[service.name] != service.platform && !service.platform.empty())
            info(fmt::format("service \"{}\" is {}, the target is {}: built for the target", service.name,
                             service.platform, platforms[service.name]));
    }
    if (!order.empty()) {
        if (logging().format == Format::Plain) header("Build images");
        if (!builder) return std::unexpected(builder.error());
        for (const std::vector<Same>& level :
             in_levels(project, same_builds(project, order, *builder, platforms), *builder))
            TRY(build_level(project, level, host, *builder, platforms));
    }
    bool pulled = false;
    for (const Service& service : project.services) {
        if (service.build) continue;
        if (!pulled && logging().format == Format::Plain) header("Pull images");
        pulled = true;
        TRY(pull_one(project, service, host, platforms[service.name]));
    }
    return find_images(project, host, target);
}

}  // namespace talpa::topo
