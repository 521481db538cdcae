// topo new: a project to start from.
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/host/file.h"
#include "topo/cli/commands.h"
#include "topo/cli/new_templates.h"
#include "topo/project/compose_model.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

namespace fs = std::filesystem;

std::string filled(std::string_view text, const std::string& name) {
    std::string out(text);
    for (std::size_t at = 0; (at = out.find("@NAME@", at)) != std::string::npos; at += name.size())
        out.replace(at, 6, name);
    return out;
}

host::Result<void> write_files(const fs::path& folder, const std::string& name, std::string_view kind) {
    for (const TemplateFile& file : template_files()) {
        if (!belongs_to(file, kind)) continue;
        const fs::path path = folder / file.path;
        std::error_code error;
        fs::create_directories(path.parent_path(), error);
        if (error)
            return host::failure(ErrorCode::AccessFailed, "cannot make {}: {}", path.parent_path().string(),
                                 error.message());
        TRY(host::write_text(path, filled(file.text, name)));
        if (file.executable) fs::permissions(path, fs::perms(0755), error);
    }
    return {};
}

}  // namespace

Done run_new(const Invocation& invocation) {
    const std::string kind = invocation.text("--template", template_kinds().front().name);
    if (!std::ranges::any_of(template_kinds(), [&](const TemplateKind& k) { return k.name == kind; })) {
        std::vector<std::string_view> there;
        for (const TemplateKind& k : template_kinds()) there.push_back(k.name);
        return wrong_usage(fmt::format("unknown template \"{}\"; there are: {}", kind, fmt::join(there, ", ")));
    }
    if (trimmed(invocation.arguments[0]).empty()) return wrong_usage("a path for the project is needed");
    const fs::path folder = invocation.arguments[0];
    const std::string name = normalised_project_name(fs::absolute(folder).lexically_normal().filename().string());
    if (name.empty())
        return wrong_usage(fmt::format("\"{}\" gives the project no name: it has no letter from a to z and no digit",
                                       invocation.arguments[0]));
    std::error_code ignored;
    if (fs::symlink_status(folder, ignored).type() != fs::file_type::not_found)
        return std::unexpected(Failure(
            host::Error(ErrorCode::InvalidArgument, fmt::format("directory {} already exists", folder.string()))));
    if (auto written = write_files(folder, name, kind); !written) {
        fs::remove_all(folder, ignored);
        return std::unexpected(Failure(written.error()));
    }
    if (invocation.json())
        print(fmt::format("{{\"directory\":{},\"template\":{}}}", json_text(folder.string()), json_text(kind)));
    else
        print(fmt::format("Created in '{}'\n\nNow run:\n  cd {}\n  topo deploy --target USER@BOARD\n",
                          printable(folder.string(), LineEnds::Replace),
                          shell_quoted(folder.string().starts_with('-') ? "./" + folder.string() : folder.string())));
    return 0;
}

}  // namespace talpa::topo
