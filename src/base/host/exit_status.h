// How talpa's programs end. Documented in docs/cli.md.
#pragma once

namespace talpa::host {

enum ExitStatus : int {
    kExitSuccess = 0,
    kExitFailed = 1,  ///< the work failed (talpa compare: the programs differ)
    kExitUsage = 2,   ///< wrong usage (talpa compare: trouble of any kind)
    kExitInterrupted = 130,
};

}  // namespace talpa::host
