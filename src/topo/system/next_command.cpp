#include "topo/system/next_command.h"

#include <utility>

#include "topo/system/text.h"

namespace talpa::topo {
namespace {

Given g_given;

}  // namespace

void remember_given(Given given) {
    g_given = std::move(given);
}

std::string next_command_on_target(std::string_view words, std::string_view target) {
    std::string command = "topo " + std::string(words);
    const std::string where = g_given.target.empty() ? std::string(target) : g_given.target;
    if (!where.empty()) command += " --target " + shell_quoted(where);
    return command;
}

std::string next_command(std::string_view words, std::string_view target, std::string_view file) {
    std::string command = next_command_on_target(words, target);
    const std::string project = g_given.file.empty() ? std::string(file) : g_given.file;
    if (!project.empty()) command += " -f " + shell_quoted(project);
    if (!g_given.engine.empty()) command += " --engine " + shell_quoted(g_given.engine);
    return command;
}

}  // namespace talpa::topo
