// One topo at a time changes a project on a target: a file lock there, held by a session of ours that does nothing
// else, so that it is free again as soon as this program or the connection has gone, however that came.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "topo/target/target.h"

namespace talpa::topo {

class ProjectLock {
  public:
    /// Takes it for `purpose` ("deploy"). While another topo has it, says who and since when, and waits, for ten
    /// minutes at most, or until `stop` is asked for. A target that cannot lock (no flock, no place for the file) is
    /// warned about, and then nothing is locked. Errors: it stayed taken; ssh's; interrupted.
    [[nodiscard]] static host::Result<ProjectLock> take(const Target& target, const std::string& project,
                                                        const std::string& purpose, const std::stop_token& stop = {});
    ProjectLock(ProjectLock&&) noexcept;
    ProjectLock& operator=(ProjectLock&&) = delete;
    ~ProjectLock();

    /// An error if it has been lost since (the connection broke off and another may have it).
    [[nodiscard]] host::Result<void> still_held() const;

    /// Did another topo have it first? Then what was asked of the target before may have changed.
    [[nodiscard]] bool waited() const { return waited_; }

  private:
    struct Holding;
    explicit ProjectLock(std::unique_ptr<Holding> holding);
    std::unique_ptr<Holding> holding_;
    bool waited_ = false;
};

}  // namespace talpa::topo
