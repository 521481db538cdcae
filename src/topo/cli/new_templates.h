// The files of `topo new`'s templates.
#pragma once

#include <span>
#include <string_view>

namespace talpa::topo {

struct TemplateFile {
    std::string_view path, text;
    bool firmware = false;  ///< only of web-firmware
    bool executable = false;
};

/// "@NAME@" in a text stands for the project's name.
[[nodiscard]] std::span<const TemplateFile> template_files();
/// compose.yaml of the template without firmware.
[[nodiscard]] std::string_view web_compose();

}  // namespace talpa::topo
