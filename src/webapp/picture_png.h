// A small picture as a PNG file, for the page to show what the network saw.
#pragma once

#include <string>

#include "image/picture.h"

namespace talpa::webapp {

/// Empty when libpng fails.
[[nodiscard]] std::string png_of(const image::Picture& picture);
[[nodiscard]] std::string base64(std::string_view bytes);

}  // namespace talpa::webapp
