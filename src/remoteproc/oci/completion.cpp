#include "remoteproc/oci/completion.h"

#include <algorithm>
#include <vector>

#include "remoteproc/oci/arguments.h"
#include "remoteproc/oci/settings.h"

namespace talpa::remoteproc {
namespace {

/// How one value is completed, in each shell's words: bash sets COMPREPLY, zsh has an action of _arguments, fish
/// options of its `complete`.
struct Reply {
    std::string bash, zsh, fish;
};

Reply words(std::string_view list) {
    return {fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$word\"))", list), fmt::format("({})", list),
            fmt::format(" -x -a '{}'", list)};
}

/// The words that a command prints.
Reply printed(std::string_view command) {
    return {fmt::format("COMPREPLY=($(compgen -W \"$({})\" -- \"$word\"))", command),
            fmt::format("{{compadd -- $({})}}", command), fmt::format(" -x -a '({})'", command)};
}

Reply paths(bool folders) {
    return {
        fmt::format("compopt -o filenames; mapfile -t COMPREPLY < <(compgen -{} -- \"$word\")", folders ? 'd' : 'f'),
        folders ? "_files -/" : "_files", folders ? " -x -a '(__fish_complete_directories)'" : " -r -F"};
}

const Reply& containers() {
    static const Reply reply = printed(fmt::format("{} list -q 2>/dev/null", kProgram));
    return reply;
}

Reply value_of(const FlagInfo& flag) {
    if (flag.value == "DIR") return paths(true);
    if (flag.value == "FILE") return paths(false);
    if (flag.value == "LEVEL") return words("debug info warn error");
    if (flag.value == "FORMAT") return words(flag.name == "log-format" ? "text json" : "table json");
    if (flag.value == "NAME") return printed("sh -c \"cat /sys/class/remoteproc/*/name\" 2>/dev/null");
    return {"COMPREPLY=()", " ", " -x"};
}

std::vector<const CommandInfo*> shown_commands() {
    std::vector<const CommandInfo*> out;
    for (const CommandInfo& command : all_commands())
        if (command.group == CommandGroup::Life || command.group == CommandGroup::Tell) out.push_back(&command);
    return out;
}

std::vector<const FlagInfo*> shown(std::span<const FlagInfo> flags) {
    std::vector<const FlagInfo*> out;
    for (const FlagInfo& flag : flags)
        if (!flag.help.empty()) out.push_back(&flag);
    return out;
}

std::string command_names() {
    std::string out;
    for (const CommandInfo* command : shown_commands()) out += (out.empty() ? "" : " ") + std::string(command->name);
    return out;
}

/// What stands behind a command, word by word; the last goes for all that follow.
std::vector<Reply> arguments_of(const CommandInfo& command) {
    if (command.name == "create" || command.name == "run") return {};  // a name that is not taken yet
    if (command.positional == "ID [SIGNAL]") return {containers(), words("TERM INT KILL")};
    if (command.positional == "ID") return {containers()};
    if (command.positional == "[COMMAND]") return {words(command_names())};
    if (command.positional.find('|') != std::string_view::npos) {
        std::string list(command.positional);
        std::ranges::replace(list, '|', ' ');
        return {words(list)};
    }
    return {};
}

std::vector<std::string> spellings(const FlagInfo& flag) {
    std::vector<std::string> out{"--" + std::string(flag.name)};
    if (flag.letter != 0) out.push_back(std::string("-") + flag.letter);
    return out;
}

std::string flag_words(std::span<const FlagInfo> flags) {
    std::vector<std::string> out;
    for (const FlagInfo* flag : shown(flags))
        for (std::string& spelling : spellings(*flag)) out.push_back(std::move(spelling));
    return fmt::format("{}", fmt::join(out, " "));
}

std::string bash_values(std::span<const FlagInfo> flags) {
    std::string out;
    for (const FlagInfo* flag : shown(flags))
        if (!flag->value.empty())
            out += fmt::format("            {}) {}; return ;;\n", fmt::join(spellings(*flag), " | "),
                               value_of(*flag).bash);
    return out;
}

std::string bash() {
    std::string with_value, cases;
    for (const FlagInfo& flag : global_flags())
        if (!flag.value.empty()) with_value += (with_value.empty() ? "--" : " | --") + std::string(flag.name);
    for (const CommandInfo* command : shown_commands()) {
        std::string arguments;
        const auto replies = arguments_of(*command);
        for (std::size_t i = 0; i < replies.size(); ++i)
            arguments += fmt::format("            {}) {} ;;\n", i + 1 == replies.size() ? "*" : std::to_string(i + 1),
                                     replies[i].bash);
        cases += fmt::format(
            "    {})\n        case \"$before\" in\n{}        esac\n"
            "        if [[ $word == -* ]]; then COMPREPLY=($(compgen -W '{}' -- \"$word\")); return; fi\n"
            "        case $((COMP_CWORD - at)) in\n{}        esac ;;\n",
            command->name, bash_values(command->flags), flag_words(command->flags), arguments);
    }
    return fmt::format(R"(# bash completion for {0}. Load it now:   source <({0} completion bash)
# or for good:   {0} completion bash > ~/.local/share/bash-completion/completions/{0}
_remoteproc_runtime() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command= at
    for ((at = 1; at < COMP_CWORD; ++at)); do
        case ${{COMP_WORDS[at]}} in
        {1}) ((++at)) ;;
        -*) ;;
        *) command=${{COMP_WORDS[at]}}; break ;;
        esac
    done
    COMPREPLY=()
    case "$command" in
    '')
        case "$before" in
{2}        esac
        COMPREPLY=($(compgen -W '{3} {4}' -- "$word")) ;;
{5}    esac
}}
complete -F _remoteproc_runtime {0}
)",
                       kProgram, with_value, bash_values(global_flags()), command_names(), flag_words(global_flags()),
                       cases);
}

/// For a text in single quotes; `more` are characters that the shell's own function takes for something else.
std::string quoted(std::string_view text, std::string_view more) {
    std::string out;
    for (const char c : text) {
        if (c == '\'') {
            out += "'\\''";
            continue;
        }
        if (more.find(c) != std::string_view::npos) out += '\\';
        out += c;
    }
    return out;
}

std::string zsh_flags(std::span<const FlagInfo> flags) {
    std::string out;
    for (const FlagInfo* flag : shown(flags))
        for (const std::string& spelling : spellings(*flag))
            out += fmt::format(" \\\n            '{}[{}]{}'", spelling, quoted(flag->help, "[]:\\"),
                               flag->value.empty() ? "" : ":value:" + quoted(value_of(*flag).zsh, ""));
    return out;
}

std::string zsh() {
    std::string list, cases;
    for (const CommandInfo* command : shown_commands()) {
        list += fmt::format("\n        '{}:{}'", command->name, quoted(command->help, ":\\"));
        std::string arguments;
        const auto replies = arguments_of(*command);
        for (std::size_t i = 0; i < replies.size(); ++i)
            arguments += fmt::format(" \\\n            '{}:argument:{}'", i + 1, quoted(replies[i].zsh, ""));
        cases +=
            fmt::format("    {})\n        _arguments{}{} ;;\n", command->name, zsh_flags(command->flags), arguments);
    }
    return fmt::format(R"(#compdef {0}
# zsh completion for {0}. Save it as _{0} in a folder of $fpath, or load it now:   source <({0} completion zsh)
_remoteproc_runtime() {{
    local -a commands=({1})
    local state line
    _arguments -C{2} \
            '1:command:->command' '*::argument:->argument'
    case $state in
    command) _describe 'command' commands; return ;;
    esac
    case $line[1] in
{3}    esac
}}
if [[ $funcstack[1] == _{0} ]]; then _remoteproc_runtime "$@"; else compdef _remoteproc_runtime {0}; fi
)",
                       kProgram, list, zsh_flags(global_flags()), cases);
}

std::string fish_flags(std::span<const FlagInfo> flags, const std::string& condition) {
    std::string out;
    for (const FlagInfo* flag : shown(flags))
        out += fmt::format("complete -c {} {} -l {}{}{} -d '{}'\n", kProgram, condition, flag->name,
                           flag->letter != 0 ? fmt::format(" -s {}", flag->letter) : "",
                           flag->value.empty() ? "" : value_of(*flag).fish, quoted(flag->help, "\\"));
    return out;
}

std::string fish() {
    const std::string none = "-n __fish_use_subcommand";
    std::string out = fmt::format(
                          "# fish completion for {0}:   {0} completion fish > ~/.config/fish/completions/{0}.fish\n"
                          "complete -c {0} -f\n",
                          kProgram) +
                      fish_flags(global_flags(), none);
    for (const CommandInfo* command : shown_commands()) {
        out += fmt::format("complete -c {} {} -a {} -d '{}'\n", kProgram, none, command->name,
                           quoted(command->help, "\\"));
        const std::string seen = fmt::format("-n '__fish_seen_subcommand_from {}'", command->name);
        out += fish_flags(command->flags, seen);
        for (const Reply& reply : arguments_of(*command))
            out += fmt::format("complete -c {} {}{}\n", kProgram, seen, reply.fish);
    }
    return out;
}

}  // namespace

Result<std::string> completion_script(std::string_view shell) {
    if (shell == "bash") return bash();
    if (shell == "zsh") return zsh();
    if (shell == "fish") return fish();
    return host::failure(ErrorCode::InvalidArgument, "no completion for the shell \"{}\", must be bash, zsh or fish",
                         printable(shell));
}

}  // namespace talpa::remoteproc
