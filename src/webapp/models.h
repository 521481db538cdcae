// The programs that the server offers: those of the command line, and what was uploaded (in memory, a few at a time).
// A model does not change once it is there; requests that use it keep it while it is removed.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/host/json.h"
#include "classifier/board_program.h"

namespace talpa::webapp {

struct Model {
    std::string id;    ///< CRC-32 of the program, in hex; of an upload with labels of its own, theirs follows
    std::string name;  ///< file name without .pte
    bool uploaded = false;
    classifier::BoardProgram program;
    classifier::Labels labels;
    std::string target;  ///< "ethos-u65-256"; empty: nothing for an NPU in it
    host::Json layers;   ///< of the network, with the cycles that are estimated for each
    std::uint64_t estimated_cycles = 0;

    [[nodiscard]] host::Json json() const;
};
using ModelPtr = std::shared_ptr<const Model>;

/// InvalidProgram and the rest of what is wrong with it. `id_of_labels`: what tells an upload with labels of its own
/// from the same program without.
[[nodiscard]] host::Result<ModelPtr> make_model(classifier::BoardProgram program, classifier::Labels labels,
                                                bool uploaded, const std::string& id_of_labels = {});

class Models {
  public:
    explicit Models(std::size_t uploads) : max_uploads_(uploads) {}
    /// The oldest upload goes when there are too many. An upload that is there already is replaced; the one that counts
    /// now is returned (that of the command line, where it has the same id).
    ModelPtr add(ModelPtr model);
    /// The one of that id, else the first of that name; the first of all when `id` is empty; null when there is none.
    [[nodiscard]] ModelPtr find(const std::string& id) const;
    /// False: there is no such upload (those of the command line stay).
    [[nodiscard]] bool remove(const std::string& id);
    [[nodiscard]] std::vector<ModelPtr> all() const;

  private:
    std::size_t max_uploads_;
    mutable std::mutex mutex_;
    std::vector<ModelPtr> models_;
};

}  // namespace talpa::webapp
