// Everything that is asked of a target, in one login shell: a script made of named checks, each with a time limit of
// its own, and its answer taken apart again. The answer is a stranger's: what does not fit is an error, never a crash.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "topo/target/hardware.h"
#include "topo/target/target.h"

namespace talpa::topo {

struct ProbeCheck {
    std::string name;    ///< letters, digits, '-'
    std::string script;  ///< POSIX shell
    int limit_s = 5;     ///< 0: none
};

struct ProbeAnswer {
    int status = -1;
    std::string out;  ///< both streams
    [[nodiscard]] bool ok() const { return status == 0; }
    [[nodiscard]] bool timed_out() const { return status == 124; }
};

using ProbeAnswers = std::map<std::string, ProbeAnswer>;

/// The script that runs the checks one after the other; `nonce` keeps their output from being taken for a boundary.
[[nodiscard]] std::string probe_script(const std::vector<ProbeCheck>& checks, const std::string& nonce);
/// Checks without an answer are left out (a probe that was cut short).
[[nodiscard]] ProbeAnswers parse_probe(std::string_view text, const std::string& nonce);

/// Runs them. `timeout` is for all together; what had been answered by then is returned, the rest is missing.
[[nodiscard]] host::Result<ProbeAnswers> probe(const Target& target, const std::vector<ProbeCheck>& checks,
                                               Milliseconds timeout);

/// The checks that hardware_from() needs.
[[nodiscard]] std::vector<ProbeCheck> hardware_checks();
/// Errors as `topo describe` says them.
[[nodiscard]] host::Result<Hardware> hardware_from(const ProbeAnswers& answers, bool local);

}  // namespace talpa::topo
