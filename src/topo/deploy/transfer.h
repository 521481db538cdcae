// Images to the target, over the one SSH connection, without a registry (topo spec, section 18.5). Only layers that the
// target lacks are sent, two at a time; a transfer that was cut goes on where it ended; what arrives is verified by its
// digest before the engine sees it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "topo/engine/engine.h"

namespace talpa::topo {

struct ImageToSend {
    std::string host_name;    ///< as the engine of this machine finds it
    std::string target_name;  ///< as it shall be called on the target
    Image image;
};

struct TransferPlan {
    std::vector<ImageToSend> send;      ///< not there yet
    std::vector<ImageToSend> only_tag;  ///< there, under another name
    std::vector<ImageToSend> present;
    /// Layers that go over the wire; an estimate of their bytes is only known for whole images.
    std::vector<std::string> missing_layers;
    std::uint64_t bytes = 0;
    std::vector<std::string> layers_there;               ///< diff IDs of the target
    std::vector<std::vector<std::string>> chains_there;  ///< of the target's images
};

/// Compares by image ID with what the target has.
[[nodiscard]] TransferPlan plan_transfer(const std::vector<ImageToSend>& images, EngineKind target,
                                         const std::vector<Image>& there);

struct TransferProgress {
    std::string layer;  ///< short digest
    std::uint64_t done = 0, total = 0;
    std::uint64_t all_done = 0, all_total = 0;
    double bytes_per_second = 0;
};

/// Sends and names them. Errors say which stage failed; what had arrived stays for the next try.
[[nodiscard]] host::Result<void> send_images(const TransferPlan& plan, const Engine& host, const Engine& target,
                                             const std::function<void(const TransferProgress&)>& progress);

/// Whole images by `save | load`, for targets that lack what the other way needs.
[[nodiscard]] host::Result<void> pipe_images(const TransferPlan& plan, const Engine& host, const Engine& target,
                                             const std::function<void(const TransferProgress&)>& progress);

/// Must this layer be sent? For Docker a layer counts only with all those below it; Podman takes any that it has.
[[nodiscard]] bool layer_is_missing(EngineKind target, const TransferPlan& plan, const std::vector<std::string>& chain,
                                    std::size_t index);

}  // namespace talpa::topo
