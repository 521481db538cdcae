// The runtime takes a delegate whose output is as its place was before for one that did not run, also when it tries
// again with other bytes (pte-format, V35). A program that copies its input onto itself would always look so: this
// tells, by running it.
#pragma once

#include "compiler/emit/operations.h"

namespace talpa::compiler {

/// Runs the stream on random inputs. True when it leaves an output nearly as it was before, or cannot be run.
[[nodiscard]] bool may_look_untouched(const Plan& plan, const EncodedStream& stream, const Target& target);

}  // namespace talpa::compiler
