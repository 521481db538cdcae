// multipart/form-data (RFC 7578) of a body that has been read whole: parts as views into it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/host/error.h"

namespace talpa::webapp::http {

struct Part {
    std::string name;      ///< of the form's field
    std::string filename;  ///< as the client says, without folders; empty when it says none
    std::string content_type;
    std::string_view bytes;  ///< a view into the body
};

/// InvalidArgument says what is wrong and at which byte: no boundary, no closing boundary, a part without a name, more
/// than `max_parts`.
[[nodiscard]] host::Result<std::vector<Part>> parse_multipart(std::string_view content_type, std::string_view body,
                                                              std::size_t max_parts = 256);

/// `name` of a header value's parameters ("form-data; name=\"a\""): unquoted, or nothing.
[[nodiscard]] std::string header_parameter(std::string_view value, std::string_view name);

}  // namespace talpa::webapp::http
