// A folder on the target into which blobs are put, each under its digest: resumed where an earlier try ended, verified
// by the target's own sha256sum before it counts as there.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "topo/target/target.h"

namespace talpa::topo {

struct TransferProgress;

struct Blob {
    std::string digest;  ///< 64 hex digits
    std::string_view bytes;
};

class Staging {
  public:
    /// ${XDG_CACHE_HOME:-$HOME/.cache}/topo/staging of the target, made if need be. What the target must have
    /// (sha256sum, tar, room) is asked here. How much of each blob an earlier try has left there is asked with it: one
    /// session.
    [[nodiscard]] static host::Result<Staging> open(const Target& target, const std::vector<Blob>& blobs);

    /// Two at a time over the shared connection, one session each. Errors name the blob and say how much has arrived.
    [[nodiscard]] host::Result<void> upload(const std::vector<Blob>& blobs,
                                            const std::function<void(const TransferProgress&)>& progress) const;

    /// A script of /bin/sh with $STAGING set and `input` on its standard input.
    [[nodiscard]] host::Result<void> run(const std::string& script, std::string input) const;

  private:
    Staging(Target target, std::string folder) : target_(std::move(target)), folder_(std::move(folder)) {}
    [[nodiscard]] host::Result<void> upload_one(const Blob& blob, const std::function<void(std::uint64_t)>& sent) const;
    Target target_;
    std::string folder_;
    std::map<std::string, std::uint64_t> there_;  ///< bytes by digest
};

}  // namespace talpa::topo
