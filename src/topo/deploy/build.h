// Builds a project's images on this machine through the engine's command line, with or without buildx, offline if need
// be.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "topo/engine/engine.h"
#include "topo/project/compose_model.h"

namespace talpa::topo {

struct Builder {
    EngineKind kind = EngineKind::Docker;
    bool buildkit = true;   ///< DOCKER_BUILDKIT=1 works (buildx is there, or the client is old enough not to need it)
    bool contexts = false;  ///< --build-context is there
};

/// What the engine of this machine can do.
[[nodiscard]] host::Result<Builder> find_builder(const Engine& host);

/// The platform to build for: the service's own, unless the target has another architecture.
[[nodiscard]] std::string build_platform(const Service& service, const EngineInfo& target);

/// The words behind the engine's name. `dockerfile_inline` is where an inline Dockerfile was written to, or empty.
[[nodiscard]] std::vector<std::string> build_words(const Project& project, const Service& service,
                                                   const Builder& builder, const std::string& platform,
                                                   const std::string& dockerfile_inline);

/// Of those services, the ones that would be built in the very same way, but for the image's name: with the first of
/// them all of its kind, in the order given.
[[nodiscard]] std::vector<std::vector<const Service*>> same_builds(const Project& project,
                                                                   const std::vector<const Service*>& services,
                                                                   const Builder& builder,
                                                                   const std::map<std::string, std::string>& platforms);

/// Services with `build`, those first whose images others copy from. A cycle of service: contexts is an error.
[[nodiscard]] host::Result<std::vector<const Service*>> in_build_order(const Project& project);

/// The image of every service, as it is on this machine now.
/// Errors: one is not there, or has another architecture than the target.
[[nodiscard]] host::Result<std::map<std::string, Image>> find_images(const Project& project, const Engine& host,
                                                                     const EngineInfo& target);

/// Builds or finds every image; by service. Services that are built in the same way are built once. Engine output
/// passes through on standard output. `builder` is what find_builder() said.
/// Errors: a build failed, an image is neither here nor to be had, an image has another architecture than asked for.
[[nodiscard]] host::Result<std::map<std::string, Image>> make_images(const Project& project, const Engine& host,
                                                                     const host::Result<Builder>& builder,
                                                                     const EngineInfo& target);

}  // namespace talpa::topo
