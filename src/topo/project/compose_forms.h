// What the single values of Compose keys may be, where an engine would refuse others, which is late: after the build
// and the transfer. One row a key; what has more than one part (ports, mounts, …) is read by compose_values.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace talpa::topo {

/// Of a key of a service: what the value should have been ("a size such as 64m"), or nothing if it is right or the key
/// has no rule.
[[nodiscard]] std::optional<std::string> wrong_form(std::string_view key, std::string_view value);

/// "[HOST[:PORT]/]NAME[:TAG][@ALGORITHM:DIGEST]", the name in lower case.
[[nodiscard]] bool is_image_reference(std::string_view text);
/// An address, in numbers, or "host-gateway".
[[nodiscard]] bool is_host_address(std::string_view text);
/// Of the third part of a mount: a comma list of what engines know.
[[nodiscard]] bool are_mount_options(std::string_view text);
/// "rwm" or a part of it.
[[nodiscard]] bool are_device_permissions(std::string_view text);
/// Decimal digits, not too many; with `minus_one` also -1.
[[nodiscard]] bool is_count(std::string_view text, bool minus_one);

}  // namespace talpa::topo
