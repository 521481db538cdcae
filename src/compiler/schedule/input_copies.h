// Which tensors may be copies of a network's inputs, for an output among them must not lie on its input: a run that
// changes nothing there looks like one that did not happen. (pte-format, V35)
#pragma once

#include <vector>

#include "compiler/lower/network.h"

namespace talpa::compiler {

/// By tensor: may it hold an input's very bytes, whatever those are? It may have been made of it by steps of which none
/// is sure to change something. A copy, a maximum with the least number, min(x, x), twice the negative.
[[nodiscard]] std::vector<bool> possible_input_copies(const Network& network);

}  // namespace talpa::compiler
