// Docker and Podman by their command lines, on this machine or on a target (topo spec, sections 15 and 18). One engine
// is a kind and a place; it holds no state, and every call is one process (over ssh: one session of the shared
// connection).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/host/error.h"
#include "topo/target/target.h"

namespace talpa::topo {

enum class EngineKind { Docker, Podman };
[[nodiscard]] std::string_view name_of(EngineKind kind);

// Labels as Compose sets them, so that either tool can take over what the other made.
inline constexpr const char* kLabelProject = "com.docker.compose.project";
inline constexpr const char* kLabelService = "com.docker.compose.service";
inline constexpr const char* kLabelNumber = "com.docker.compose.container-number";
inline constexpr const char* kLabelOneoff = "com.docker.compose.oneoff";
inline constexpr const char* kLabelHash = "com.docker.compose.config-hash";
inline constexpr const char* kLabelImage = "com.docker.compose.image";
inline constexpr const char* kLabelFiles = "com.docker.compose.project.config_files";
inline constexpr const char* kLabelFolder = "com.docker.compose.project.working_dir";
inline constexpr const char* kLabelNetwork = "com.docker.compose.network";
inline constexpr const char* kLabelVolume = "com.docker.compose.volume";
inline constexpr const char* kRemoteprocAnnotation = "remoteproc.name";

struct PublishedPort {
    std::string host_ip;  ///< "0.0.0.0", "::", "127.0.0.1"
    std::uint16_t host_port = 0, container_port = 0;
    std::string protocol;
};

struct Container {
    std::string id, name, image, image_id;  ///< id: whole; image: as asked for
    std::string state;                      ///< created, running, exited, paused, …
    std::string status;                     ///< "Up 2 minutes"
    std::string health;                     ///< healthy, unhealthy, starting, or empty
    std::string service, hash;
    int number = 0, exit_code = 0;
    bool oneoff = false, host_network = false;
    std::string runtime;           ///< Docker: HostConfig.Runtime; Podman: OCIRuntime
    std::string remote_processor;  ///< the annotation remoteproc.name, or empty
    std::string working_folder, config_files;
    std::vector<PublishedPort> ports;
    std::vector<std::string> health_test;

    /// The name of the remote processor, or "Linux Host" (section 8.5).
    [[nodiscard]] std::string processing_domain() const;
};

struct Image {
    std::string id;  ///< without "sha256:"
    std::vector<std::string> names;
    std::string os, architecture, variant;
    std::vector<std::string> layers;  ///< diff IDs, "sha256:…"
    std::uint64_t size_bytes = 0;

    /// "linux/arm64"
    [[nodiscard]] std::string platform() const;
};

struct EngineInfo {
    std::string version;
    std::string os, architecture;  ///< as platforms spell it: linux, arm64, amd64
    std::string root_folder;       ///< where images lie
    std::vector<std::string> runtimes;
    std::string remote_socket;  ///< of Podman
};

class Engine {
  public:
    Engine(EngineKind kind, Target target) : kind_(kind), target_(std::move(target)) {}

    /// The first that works: Docker, then Podman; the error says what was tried. Where Docker is installed but stopped,
    /// and Podman is taken, a warning says so and how to start Docker.
    [[nodiscard]] static host::Result<Engine> find(const Target& target);

    [[nodiscard]] EngineKind kind() const { return kind_; }
    [[nodiscard]] const Target& target() const { return target_; }

    /// Nothing is there of what was looked for: says once that Docker, where it may be, does not answer.
    void nothing_found() const;

    /// The command, to be run with process.h.
    [[nodiscard]] Command command(const std::vector<std::string>& words, bool terminal = false) const;
    /// Runs it. A status other than 0 is an error that quotes the engine, unless `any_status`.
    enum class Check { Status, Nothing };
    [[nodiscard]] host::Result<Outcome> run(const std::vector<std::string>& words,
                                            Milliseconds timeout = Milliseconds(0), Check check = Check::Status) const;

    /// What the engine said, in one line, with the names of containers in the place of their IDs of 64 digits (those
    /// that it no longer knows are cut to 12, as engines show them). Asks the engine only if there is one.
    [[nodiscard]] std::string readable(std::string_view said) const;

    [[nodiscard]] host::Result<EngineInfo> info() const;
    /// Containers of a Compose project, of `docker run` excepted; stopped ones too.
    [[nodiscard]] host::Result<std::vector<Container>> containers(const std::string& project) const;
    /// Those of `names` that are there; names or IDs.
    [[nodiscard]] host::Result<std::vector<Image>> images(const std::vector<std::string>& names) const;
    [[nodiscard]] host::Result<std::vector<Image>> all_images() const;

    [[nodiscard]] host::Result<bool> exists(const char* kind,
                                            const std::string& name) const;  ///< kind: network, volume
    /// Runs `words` unless a network or volume of that name is there; whether it did. One session.
    [[nodiscard]] host::Result<bool> make_unless_there(const char* kind, const std::string& name,
                                                       const std::vector<std::string>& words) const;
    [[nodiscard]] host::Result<void> tag(const std::string& from, const std::string& to) const;

  private:
    [[nodiscard]] host::Result<std::vector<Image>> inspect_images(const std::string& script) const;
    EngineKind kind_;
    Target target_;
    std::string info_json_;       ///< what find() was told
    std::string docker_stopped_;  ///< likewise: that Docker is there and does not answer
};

// What the engines answer, taken apart; apart from asking, so that any answer can be tested.
[[nodiscard]] host::Result<std::vector<Container>> parse_containers(EngineKind kind, const std::string& inspect_json,
                                                                    const std::string& status_lines);
[[nodiscard]] host::Result<std::vector<Image>> parse_images(const std::string& inspect_json);
[[nodiscard]] host::Result<EngineInfo> parse_info(EngineKind kind, const std::string& info_json);
/// The IDs of 64 hexadecimal digits in a text, digests ("sha256:…") excepted; and the text with names instead, or with
/// 12 digits of those that have none.
[[nodiscard]] std::vector<std::string> container_ids(std::string_view text);
[[nodiscard]] std::string with_names(std::string text, const std::map<std::string, std::string>& names);
/// "aarch64" → "arm64", "x86_64" → "amd64".
[[nodiscard]] std::string platform_architecture(std::string_view architecture);
/// With Podman's "localhost/" in front when no registry is named; Docker's "docker.io/library/" off.
[[nodiscard]] std::string short_image_name(std::string_view name);

}  // namespace talpa::topo
