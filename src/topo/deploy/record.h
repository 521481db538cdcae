// What was deployed, remembered on the target: the containers' images and words, of the deployment that runs and of the
// good one before it. `topo rollback` brings that back; `topo prune` keeps its images.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topo/deploy/desired.h"

namespace talpa::topo {

struct Record {
    std::string time;  ///< "2026-11-30 11:00:00 UTC"
    std::vector<Desired> containers;
    /// A marker lay beside it while it was made (Begun); older topos had none.
    bool marked = true;
    bool knows_order = true;  ///< who depends on whom; older topos did not write it down
};

/// What the containers are, if not those of the current record. A file beside the records says so, written before the
/// first change and removed with the record, or when all is as it was.
enum class Begun {
    No,
    Deploy,      ///< a deployment is at work, or did not come to its end
    Rollback,    ///< likewise
    Unrecorded,  ///< a good deployment with keys that only the Compose plugin honours
};

struct Records {
    std::optional<Record> current, previous;
    Begun begun = Begun::No;
};

[[nodiscard]] std::string record_json(const Record& record);
/// Errors: not a record. Everything in it came from the target.
[[nodiscard]] host::Result<Record> parse_record(const std::string& text);

[[nodiscard]] host::Result<Records> read_records(const Target& target, const std::string& project);
[[nodiscard]] host::Result<void> mark_begun(const Target& target, const std::string& project, Begun what);
/// `record` becomes the current one, and nothing is begun any more; the one that was current becomes the previous,
/// unless both say the same. `old`: what read_records() said, and what was marked since.
[[nodiscard]] host::Result<void> write_record(const Target& target, const std::string& project, const Record& record,
                                              const host::Result<Records>& old);
[[nodiscard]] host::Result<void> remove_records(const Target& target, const std::string& project);

}  // namespace talpa::topo
