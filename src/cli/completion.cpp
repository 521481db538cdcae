#include "cli/completion.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <vector>

namespace talpa::cli {
namespace {

enum class Value { None, Text, File, Folder, Words };

struct Flag {
    std::vector<std::string> names;  // with their dashes
    std::string help;
    Value value = Value::None;
    std::string words;  // separated by spaces
};

struct Command {
    std::string name, help;
    std::vector<Flag> flags;
    Value positional = Value::None;
    std::string positional_words;
};

Value value_of(const std::string& type, std::string& words) {
    if (type.starts_with('{')) {
        words = type.substr(1, type.size() - 2);
        std::replace(words.begin(), words.end(), ',', ' ');
        return Value::Words;
    }
    if (type.starts_with("DIR|") || type.starts_with("FILE") || type.find('.') != std::string::npos) return Value::File;
    if (type == "DIR") return Value::Folder;
    return Value::Text;
}

Command describe(const CLI::App& app);

/// A command with commands of its own: their names are the words it takes, their flags are its flags.
void describe_subcommands(const CLI::App& app, Command& command) {
    if (app.get_parent() == nullptr) return;
    for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
        if (sub->get_name().empty()) continue;
        const Command described = describe(*sub);
        command.positional = Value::Words;
        command.positional_words += (command.positional_words.empty() ? "" : " ") + described.name;
        for (const Flag& flag : described.flags) {
            const auto same = [&](const Flag& f) { return f.names == flag.names; };
            if (std::none_of(command.flags.begin(), command.flags.end(), same)) command.flags.push_back(flag);
        }
    }
}

Command describe(const CLI::App& app) {
    Command command;
    command.name = app.get_name();
    command.help = app.get_description();
    for (const CLI::Option* option : app.get_options()) {
        std::string words;
        const Value value =
            option->get_items_expected_max() == 0 ? Value::None : value_of(option->get_type_name(), words);
        if (option->get_positional()) {
            command.positional = value;
            command.positional_words = words;
            continue;
        }
        Flag flag{.names = {}, .help = option->get_description(), .value = value, .words = words};
        flag.help = flag.help.substr(0, flag.help.find('\n'));
        for (const std::string& name : option->get_snames()) flag.names.push_back("-" + name);
        for (const std::string& name : option->get_lnames()) flag.names.push_back("--" + name);
        command.flags.push_back(std::move(flag));
    }
    describe_subcommands(app, command);
    return command;
}

struct Program {
    Command top;
    std::vector<Command> commands;
};

Program describe_program(const CLI::App& app) {
    Program program{.top = describe(app), .commands = {}};
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
        if (!command->get_name().empty()) program.commands.push_back(describe(*command));
    return program;
}

std::string joined(const std::vector<std::string>& parts, const char* between) {
    return fmt::format("{}", fmt::join(parts, between));
}

std::vector<std::string> names_of(const std::vector<Flag>& flags) {
    std::vector<std::string> names;
    for (const Flag& flag : flags) names.insert(names.end(), flag.names.begin(), flag.names.end());
    return names;
}

std::vector<std::string> names_of(const std::vector<Command>& commands) {
    std::vector<std::string> names;
    for (const Command& command : commands) names.push_back(command.name);
    return names;
}

// --- bash ---

std::string bash_reply(Value value, const std::string& words) {
    switch (value) {
        case Value::File:
            return "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$word\")";
        case Value::Folder:
            return "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- \"$word\")";
        case Value::Words:
            return fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$word\"))", words);
        case Value::Text:
        case Value::None:
            return "COMPREPLY=()";
    }
    return {};
}

std::string bash(const Program& p, const std::string& name) {
    std::string cases;
    for (const Command& command : p.commands) {
        std::string values;
        for (const Flag& flag : command.flags)
            if (flag.value != Value::None)
                values += fmt::format("                {}) {}; return ;;\n", joined(flag.names, " | "),
                                      bash_reply(flag.value, flag.words));
        cases += fmt::format(
            "        {})\n            case \"$before\" in\n{}            esac\n"
            "            if [[ $word == -* ]]; then COMPREPLY=($(compgen -W '{}' -- \"$word\")); return; fi\n          "
            "  {} ;;\n",
            command.name, values, joined(names_of(command.flags), " "),
            bash_reply(command.positional, command.positional_words));
    }
    return fmt::format(R"(# bash completion for {0}. Load it now:   source <({0} completion bash)
# or for good:   {0} completion bash > ~/.local/share/bash-completion/completions/{0}
_{0}() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}}
    if ((COMP_CWORD == 1)); then COMPREPLY=($(compgen -W '{1} {2}' -- "$word")); return; fi
    case "$command" in
{3}    esac
}}
complete -F _{0} {0}
)",
                       name, joined(names_of(p.commands), " "), joined(names_of(p.top.flags), " "), cases);
}

// --- zsh ---

std::string zsh_quoted(std::string text) {
    std::string out;
    for (const char c : text) {
        if (c == '\'') {
            out += "'\\''";
            continue;
        }
        if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
        out += c;
    }
    return out;
}

std::string zsh_action(Value value, const std::string& words) {
    switch (value) {
        case Value::File:
            return "_files";
        case Value::Folder:
            return "_files -/";
        case Value::Words:
            return fmt::format("({})", words);
        case Value::Text:
        case Value::None:
            return " ";
    }
    return {};
}

std::string zsh(const Program& p, const std::string& name) {
    std::string list, cases;
    for (const Command& command : p.commands) {
        list += fmt::format(" '{}:{}'", command.name, zsh_quoted(command.help));
        cases += fmt::format("        {})\n            _arguments", command.name);
        for (const Flag& flag : command.flags)
            for (const std::string& option : flag.names)
                cases += fmt::format(" \\\n                '*{}[{}]{}'", option, zsh_quoted(flag.help),
                                     flag.value == Value::None ? "" : ":value:" + zsh_action(flag.value, flag.words));
        if (command.positional != Value::None)
            cases += fmt::format(" \\\n                '*:argument:{}'",
                                 zsh_action(command.positional, command.positional_words));
        cases += " ;;\n";
    }
    return fmt::format(R"(#compdef {0}
# zsh completion for {0}. Save it as _{0} in a folder of $fpath, or load it now:   source <({0} completion zsh)
_{0}() {{
    local -a commands=({1})
    if ((CURRENT == 2)); then _describe 'command' commands; return; fi
    local command=$words[2]
    shift words; ((CURRENT--))
    case "$command" in
{2}    esac
}}
if [[ $funcstack[1] == _{0} ]]; then _{0} "$@"; else compdef _{0} {0}; fi
)",
                       name, list, cases);
}

// --- fish ---

std::string fish_quoted(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '\'' || c == '\\') out += '\\';
        out += c;
    }
    return "'" + out + "'";
}

std::string fish_value(Value value, const std::string& words) {
    switch (value) {
        case Value::File:
            return " -r -F";
        case Value::Folder:
            return " -x -a '(__fish_complete_directories)'";
        case Value::Words:
            return fmt::format(" -x -a {}", fish_quoted(words));
        case Value::Text:
            return " -x";
        case Value::None:
            return "";
    }
    return {};
}

std::string fish(const Program& p, const std::string& name) {
    std::string out = fmt::format(
        "# fish completion for {0}:   {0} completion fish > ~/.config/fish/completions/{0}.fish\ncomplete -c {0} -f\n",
        name);
    for (const Command& command : p.commands) {
        out += fmt::format("complete -c {} -n __fish_use_subcommand -a {} -d {}\n", name, command.name,
                           fish_quoted(command.help));
        const std::string seen = fmt::format("-n '__fish_seen_subcommand_from {}'", command.name);
        for (const Flag& flag : command.flags) {
            std::string names;
            for (const std::string& option : flag.names)
                names += option.starts_with("--") ? " -l " + option.substr(2) : " -s " + option.substr(1);
            out += fmt::format("complete -c {} {}{}{} -d {}\n", name, seen, names, fish_value(flag.value, flag.words),
                               fish_quoted(flag.help));
        }
        if (command.positional == Value::File) out += fmt::format("complete -c {} {} -F\n", name, seen);
        if (command.positional == Value::Words)
            out += fmt::format("complete -c {} {} -a {}\n", name, seen, fish_quoted(command.positional_words));
    }
    return out;
}

}  // namespace

host::Result<std::string> completion_script(const CLI::App& app, std::string_view shell) {
    const Program program = describe_program(app);
    if (shell == "bash") return bash(program, app.get_name());
    if (shell == "zsh") return zsh(program, app.get_name());
    if (shell == "fish") return fish(program, app.get_name());
    return host::failure(ErrorCode::InvalidArgument, "no completion for the shell '{}': bash, zsh and fish have one",
                         shell);
}

}  // namespace talpa::cli
