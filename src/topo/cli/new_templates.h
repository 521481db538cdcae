// The files of `topo new`'s templates.
#pragma once

#include <span>
#include <string_view>

namespace talpa::topo {

struct TemplateFile {
    std::string_view kinds;  ///< names of the templates that have it, with blanks between
    std::string_view path, text;
    bool executable = false;
};
struct TemplateKind {
    std::string_view name, about;
};

/// The first is what `topo new` takes without --template.
[[nodiscard]] std::span<const TemplateKind> template_kinds();
/// "@NAME@" in a text stands for the project's name.
[[nodiscard]] std::span<const TemplateFile> template_files();
[[nodiscard]] bool belongs_to(const TemplateFile& file, std::string_view kind);

}  // namespace talpa::topo
