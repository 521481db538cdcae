// The names that a state dict's pickle may hold, as inert tokens: "module name". Everything else is refused.
#pragma once

#include <optional>
#include <string_view>

#include "compiler/import/stored_tensor.h"

namespace talpa::compiler::import::pickle {

[[nodiscard]] bool known_global(std::string_view name);
/// The element type of a storage class; nothing when it is none, or one of complex or quantized elements.
[[nodiscard]] std::optional<RawType> storage_type(std::string_view name);
/// A storage that is counted in bytes: whoever uses it names the type.
[[nodiscard]] bool is_untyped_storage(std::string_view name);
/// Of a torch.dtype.
[[nodiscard]] std::optional<RawType> dtype(std::string_view name);

}  // namespace talpa::compiler::import::pickle
