// What is wrong with a project file, and where: one entry of topo lint, and the error of everything that reads one.
#pragma once

#include <expected>
#include <string>
#include <utility>
#include <vector>

#include "base/host/error.h"

namespace talpa::topo {

/// A place in a file; lines and columns count from 1 (columns in characters), 0 = unknown.
struct Mark {
    int line = 0;
    int column = 0;
};

enum class Severity { Error, Warning, Note };

struct Finding {
    std::string code;  ///< dotted kind, stable: "service.platform.missing"
    Severity severity = Severity::Error;
    std::string file;
    Mark mark;
    std::string message;
    std::string fix;  ///< what to write instead; may be empty

    /// "compose.yaml:4:1: message"
    [[nodiscard]] std::string describe() const;
    /// For TRY in code that deals in host errors.
    operator host::Error() const;  // NOLINT(google-explicit-constructor)
};

template <typename T>
using Checked = std::expected<T, Finding>;

/// Where findings go: with a list all of them, and the reading goes on; without one the first ends it.
class Findings {
  public:
    explicit Findings(std::vector<Finding>* all = nullptr) : all_(all) {}
    /// Passes an error on, or keeps it and makes it good.
    [[nodiscard]] Checked<void> take(Checked<void> result) const {
        if (result || all_ == nullptr) return result;
        all_->push_back(std::move(result.error()));
        return {};
    }
    [[nodiscard]] std::size_t count() const { return all_ == nullptr ? 0 : all_->size(); }

  private:
    std::vector<Finding>* all_;
};

[[nodiscard]] std::unexpected<Finding> finding(std::string code, std::string file, Mark mark, std::string message,
                                               std::string fix = {});

}  // namespace talpa::topo
