#include "topo/cli/completion.h"

#include <fmt/format.h>

#include "topo/system/text.h"

namespace talpa::topo {
namespace {

std::string words_of(const FlagRow& row) {
    std::string words(row.value_name);
    for (char& c : words)
        if (c == '|') c = ' ';
    return words;
}

std::vector<const FlagRow*> flags_of(const CommandRow& command) {
    std::vector<const FlagRow*> flags;
    for (const FlagRow& row : command.flags) flags.push_back(&row);
    for (const FlagRow& row : global_flags()) flags.push_back(&row);
    return flags;
}

std::string visible_names() {
    std::string names;
    for (const CommandRow& row : command_table())
        if (!row.hidden) names += (names.empty() ? "" : " ") + std::string(row.name);
    return names;
}

// What a shell finds by itself: hosts of the SSH configuration that are no patterns.
constexpr std::string_view kHosts =
    "sed -n 's/^[Hh]ost[ =]*//p' ~/.ssh/config ~/.ssh/topo_config 2>/dev/null | tr ' ' '\\n' | grep -v '[*?!]'";
constexpr std::string_view kServices =
    "sed -n '/^services:/,/^[^ #]/s/^  \\([A-Za-z0-9_.-]*\\):.*/\\1/p' compose.yaml compose.yml 2>/dev/null";
constexpr std::string_view kParameters = "topo configure --show 2>/dev/null | sed -n 's/:.*/=/p'";

std::string replaced(std::string text, const std::vector<std::pair<std::string, std::string>>& values) {
    for (const auto& [name, value] : values)
        for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += value.size())
            text.replace(at, name.size(), value);
    return text;
}

std::string bash() {
    std::string values, flags;
    for (const CommandRow& command : command_table()) {
        std::string names;
        for (const FlagRow* row : flags_of(command)) {
            if (row->hidden) continue;
            names += (names.empty() ? "" : " ") + std::string(row->long_name());
            if (row->value == ValueKind::None) continue;
            std::string reply;
            switch (row->value) {
                case ValueKind::Target:
                    reply = fmt::format("COMPREPLY=($(compgen -W \"$({})\" -- \"$word\"))", kHosts);
                    break;
                case ValueKind::File:
                    reply = "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$word\"))";
                    break;
                case ValueKind::Folder:
                    reply = "compopt -o filenames; COMPREPLY=($(compgen -d -- \"$word\"))";
                    break;
                case ValueKind::Words:
                    reply = fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$word\"))", words_of(*row));
                    break;
                default:
                    reply = "COMPREPLY=()";
            }
            const std::string dash(row->short_name());
            values += fmt::format("        {}:{}{}) {}; return ;;\n", command.name, row->long_name(),
                                  dash.empty() ? "" : fmt::format("|{}:{}", command.name, dash), reply);
        }
        flags += fmt::format("        {}) flags='{} --help --quiet --verbose' ;;\n", command.name, names);
    }
    return replaced(R"BASH(# bash completion for topo. Now:      source <(topo completion bash)
# For good: topo completion bash > ~/.local/share/bash-completion/completions/topo
_topo() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} flags=
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then COMPREPLY=($(compgen -W '@COMMANDS@ --help --version' -- "$word")); return; fi
    case "$command:$before" in
@VALUES@    esac
    case "$command" in
@FLAGS@    esac
    if [[ $word == -* ]]; then COMPREPLY=($(compgen -W "$flags" -- "$word")); return; fi
    case "$command" in
        logs) COMPREPLY=($(compgen -W "$(@SERVICES@)" -- "$word")) ;;
        configure) compopt -o nospace; COMPREPLY=($(compgen -W "$(@PARAMETERS@)" -- "$word")) ;;
        install) COMPREPLY=($(compgen -W remoteproc-runtime -- "$word")) ;;
        completion) COMPREPLY=($(compgen -W 'bash zsh fish powershell' -- "$word")) ;;
        help|man) COMPREPLY=($(compgen -W '@COMMANDS@' -- "$word")) ;;
        clone|new|lint) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")) ;;
    esac
}
complete -F _topo topo
)BASH",
                    {{"@COMMANDS@", visible_names()},
                     {"@VALUES@", values},
                     {"@FLAGS@", flags},
                     {"@SERVICES@", std::string(kServices)},
                     {"@PARAMETERS@", std::string(kParameters)}});
}

std::string zsh_quoted(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '\'')
            out += "'\\''";
        else if (c == '[' || c == ']' || c == ':')
            out += fmt::format("\\{}", c);
        else
            out += c;
    }
    return out;
}

std::string zsh(bool descriptions) {
    std::string commands, cases;
    for (const CommandRow& command : command_table()) {
        if (!command.hidden)
            commands +=
                fmt::format("        '{}{}'\n", command.name, descriptions ? ":" + zsh_quoted(command.help) : "");
        std::string arguments;
        for (const FlagRow* row : flags_of(command)) {
            std::string action;
            if (row->value == ValueKind::Target) action = ":target:_topo_hosts";
            if (row->value == ValueKind::File) action = ":file:_files";
            if (row->value == ValueKind::Folder) action = ":folder:_files -/";
            if (row->value == ValueKind::Words) action = ":value:(" + words_of(*row) + ")";
            if (row->value == ValueKind::Text || row->value == ValueKind::Duration) action = ":value: ";
            arguments += fmt::format(" '{}{}[{}]{}'", row->repeatable ? "*" : "", row->long_name(),
                                     descriptions ? zsh_quoted(row->help) : "", action);
        }
        cases += fmt::format("        {}) _arguments{} '*:file:_files' ;;\n", command.name, arguments);
    }
    return fmt::format(
        "#compdef topo\n# zsh completion for topo: topo completion zsh > \"${{fpath[1]}}/_topo\"\n_topo_hosts() {{ "
        "compadd -- ${{(f)\"$({})\"}} }}\n_topo() {{\n    local -a commands=(\n{}    )\n"
        "    if (( CURRENT == 2 )); then _describe command commands; return; fi\n    local command=$words[2]\n    "
        "shift words; (( CURRENT-- ))\n    case $command in\n{}    esac\n}}\n_topo \"$@\"\n",
        kHosts, commands, cases);
}

std::string fish_quoted(std::string_view text) {
    std::string out = "'";
    for (const char c : text) {
        if (c == '\'' || c == '\\') out += '\\';
        out += c;
    }
    return out + "'";
}

std::string fish(bool descriptions) {
    std::string out =
        "# fish completion for topo: topo completion fish > ~/.config/fish/completions/topo.fish\ncomplete -c topo "
        "-f\n";
    for (const CommandRow& command : command_table()) {
        if (command.hidden) continue;
        out += fmt::format("complete -c topo -n __fish_use_subcommand -a {}{}\n", command.name,
                           descriptions ? " -d " + fish_quoted(command.help) : "");
        for (const FlagRow* row : flags_of(command)) {
            out += fmt::format("complete -c topo -n '__fish_seen_subcommand_from {}' -l {}", command.name,
                               row->long_name().substr(2));
            if (const std::string dash(row->short_name()); !dash.empty()) out += " -s " + dash.substr(1);
            if (row->value == ValueKind::File || row->value == ValueKind::Folder) out += " -r -F";
            if (row->value == ValueKind::Words) out += " -x -a " + fish_quoted(words_of(*row));
            if (row->value == ValueKind::Target)
                out += fmt::format(" -x -a {}", fish_quoted(fmt::format("({})", kHosts)));
            if (row->value == ValueKind::Text || row->value == ValueKind::Duration) out += " -x";
            if (descriptions) out += " -d " + fish_quoted(row->help);
            out += "\n";
        }
    }
    return out;
}

std::string powershell() {
    std::string cases;
    for (const CommandRow& command : command_table()) {
        std::string names;
        for (const FlagRow* row : flags_of(command))
            names += (names.empty() ? "'" : ", '") + std::string(row->long_name()) + "'";
        cases += fmt::format("        '{}' {{ $words = @({}) }}\n", command.name, names);
    }
    std::string all;
    for (const std::string& name : split(visible_names(), " ")) all += (all.empty() ? "'" : ", '") + name + "'";
    return fmt::format(
        "# PowerShell completion for topo: topo completion powershell | Out-String | "
        "Invoke-Expression\nRegister-ArgumentCompleter -Native -CommandName topo -ScriptBlock {{\n"
        "    param($word, $ast, $cursor)\n    $elements = @($ast.CommandElements | ForEach-Object {{ $_.ToString() "
        "}})\n    $words = @({})\n    if ($elements.Count -gt 2 -or ($elements.Count -eq 2 -and $word -eq '')) {{\n"
        "        switch ($elements[1]) {{\n{}        }}\n    }}\n    $words | Where-Object {{ $_ -like \"$word*\" }} | "
        "ForEach-Object {{ [System.Management.Automation.CompletionResult]::new($_) }}\n}}\n",
        all, cases);
}

// A hyphen in roff text is a minus that can be pasted.
std::string roff(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '-')
            out += "\\-";
        else if (c == '\\')
            out += "\\e";
        else
            out += c;
    }
    return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string roff_flags(std::span<const FlagRow> rows) {
    std::string out;
    for (const FlagRow& row : rows) {
        if (row.hidden) continue;
        std::string names;
        for (const std::string& name : split(row.names, ","))
            names += (names.empty() ? "\\fB" : ", \\fB") + roff(name) + "\\fR";
        if (row.value != ValueKind::None) names += " \\fI" + roff(row.value_name) + "\\fR";
        out += ".TP\n" + names + "\n" + roff(row.help) + ".\n";
    }
    return out;
}

}  // namespace

std::optional<std::string> completion_script(std::string_view shell, bool descriptions) {
    if (shell == "bash") return bash();
    if (shell == "zsh") return zsh(descriptions);
    if (shell == "fish") return fish(descriptions);
    if (shell == "powershell") return powershell();
    return std::nullopt;
}

std::string manual_page(const CommandRow* command) {
    const std::string name = command == nullptr ? "topo" : "topo-" + std::string(command->name);
    std::string out = fmt::format(
        ".TH {} 1\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n",
        [&] {
            std::string upper = name;
            for (char& c : upper)
                if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
            return roff(upper);
        }(),
        roff(name), command == nullptr ? "deploys projects to a board over SSH" : roff(command->help));
    if (command == nullptr) {
        out += "\\fBtopo\\fR \\fICOMMAND\\fR [\\fIFLAGS\\fR]\n.SH COMMANDS\n";
        for (const CommandRow& row : command_table())
            if (!row.hidden) out += fmt::format(".TP\n\\fB{}\\fR\n{}.\n", roff(row.name), roff(row.help));
        out += ".SH OPTIONS\n" + roff_flags(global_flags());
    } else {
        out += fmt::format("\\fBtopo {}\\fR {} [\\fIFLAGS\\fR]\n.SH OPTIONS\n", roff(command->name),
                           roff(command->arguments)) +
               roff_flags(command->flags) + roff_flags(global_flags());
        if (!command->examples.empty()) {
            out += ".SH EXAMPLES\n.nf\n";
            for (const std::string& line : lines_of(command->examples)) out += roff(line) + "\n";
            out += ".fi\n";
        }
    }
    return out + ".SH EXIT STATUS\n0 success, 1 the work failed, 2 wrong usage, 130 interrupted.\n";
}

std::string reference_page() {
    std::string out =
        "# topo: commands and flags\n\nMade from the command table by `topo man --markdown`; a test compares.\n\nEvery "
        "command has `-o, --output plain|json` (or `--json`), `-q, --quiet`, `-v, --verbose` and `-h, --help`.\n";
    for (const CommandRow& command : command_table()) {
        if (command.hidden && command.name != "describe" && command.name != "migrate-ssh") continue;
        out += fmt::format("\n## topo {}{}{}\n\n{}.\n", command.name, command.arguments.empty() ? "" : " ",
                           command.arguments, command.help);
        if (!command.alias.empty()) out += fmt::format("\nAlias: `topo {}`.\n", command.alias);
        if (!command.flags.empty()) out += "\n| Flag | Meaning |\n| --- | --- |\n";
        for (const FlagRow& row : command.flags) {
            if (row.hidden) continue;
            std::string names;
            for (const std::string& one : split(row.names, ",")) names += (names.empty() ? "`" : ", `") + one + "`";
            std::string value;
            for (const char c : row.value_name) value += c == '|' ? "\\|" : std::string(1, c);
            out += fmt::format("| {}{} | {} |\n", names, value.empty() ? "" : " " + value, row.help);
        }
    }
    return out;
}

}  // namespace talpa::topo
