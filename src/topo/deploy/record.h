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
    bool knows_order = true;  ///< who depends on whom; older topos did not write it down
};

struct Records {
    std::optional<Record> current, previous;
};

[[nodiscard]] std::string record_json(const Record& record);
/// Errors: not a record. Everything in it came from the target.
[[nodiscard]] host::Result<Record> parse_record(const std::string& text);

[[nodiscard]] host::Result<Records> read_records(const Target& target, const std::string& project);
/// `record` becomes the current one; the one that was current becomes the previous, unless both say the same.
/// `old`: what read_records() said.
[[nodiscard]] host::Result<void> write_record(const Target& target, const std::string& project, const Record& record,
                                              const host::Result<Records>& old);
[[nodiscard]] host::Result<void> remove_records(const Target& target, const std::string& project);

}  // namespace talpa::topo
