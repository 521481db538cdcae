#include "topo/cli/parse.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "topo/system/text.h"

namespace talpa::topo {
namespace {

struct Bound {
    CLI::Option* option;
    const FlagRow* row;
};

void bind(CLI::App& app, std::span<const FlagRow> rows, std::vector<Bound>& bound) {
    for (const FlagRow& row : rows) {
        CLI::Option* option = row.value == ValueKind::None
                                  ? app.add_flag(std::string(row.names))
                                  : app.add_option(std::string(row.names))->allow_extra_args(false);
        if (row.value != ValueKind::None)
            option->type_size(1)->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
        bound.push_back({option, &row});
    }
}

constexpr FlagRow kHelp{"-h,--help", ValueKind::None, "", "Help"};
const FlagRow kVerbosity[] = {
    {"-q,--quiet", ValueKind::None, "", "Only warnings and errors"},
    {"-v,--verbose", ValueKind::None, "", "Say more"},
};

// Those that read the command line of the original's users: the same sentences (topo spec, section 2.2).
std::string sentence(const CLI::ParseError& error, const CLI::App& app) {
    const std::string what = error.what();
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr)
        return "flag needs an argument: " + what.substr(0, what.find(':'));
    if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
        for (const std::string& word : app.remaining(true))
            if (word.starts_with('-') && word != "-") return "unknown flag: " + word.substr(0, word.find('='));
    }
    return what;
}

std::string flag_line(const FlagRow& row) {
    std::string left = row.names.starts_with("--") ? "      " : fmt::format("  {}, ", row.short_name());
    left += row.long_name();
    if (row.value != ValueKind::None) left += " " + std::string(row.value_name);
    left.resize(std::max<std::size_t>(left.size() + 1, 36), ' ');
    return left + " " + std::string(row.help) + "\n";
}

std::string argument_count(const CommandRow& command, std::size_t count) {
    if (count < static_cast<std::size_t>(command.least) && command.most > command.least)
        return fmt::format("requires at least {} arg(s), only received {}", command.least, count);
    return fmt::format("accepts {} arg(s), received {}", command.most, count);
}

// Does this word, somewhere on the line, take the next one as its value? Flags may stand in front of the command that
// they belong to, when it is not known yet which one that is.
bool takes_next(std::string_view word) {
    if (!word.starts_with('-') || word.find('=') != std::string_view::npos) return false;
    const auto matches = [&](const FlagRow& row) {
        return row.value != ValueKind::None && (word == row.long_name() || word == row.short_name());
    };
    if (std::ranges::any_of(global_flags(), matches)) return true;
    return std::ranges::any_of(command_table(),
                               [&](const CommandRow& row) { return std::ranges::any_of(row.flags, matches); });
}

// The index of the command's word; 0 if there is none.
int command_index(int argc, const char* const* argv) {
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word == "--") return 0;
        if (!word.starts_with('-')) return i;
        if (takes_next(word)) ++i;
    }
    return 0;
}

// How many letters must be taken, given or changed to make one of the other.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t above = row[j];
            row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U)});
            diagonal = above;
        }
    }
    return row.back();
}

bool self_upgrade_disabled() {
    return truthy(environment("TOPO_DISABLE_SELF_UPGRADE"));
}

}  // namespace

std::optional<std::string> Invocation::value(std::string_view flag) const {
    const auto it = flags.find(flag);
    return it == flags.end() || it->second.empty() ? std::nullopt : std::optional(it->second.back());
}

std::string Invocation::text(std::string_view flag, std::string_view otherwise) const {
    return value(flag).value_or(std::string(otherwise));
}

std::vector<std::string> Invocation::all(std::string_view flag) const {
    const auto it = flags.find(flag);
    return it == flags.end() ? std::vector<std::string>() : it->second;
}

bool Invocation::on(std::string_view flag, const char* variable) const {
    return given(flag) ? on(flag) : truthy(environment(variable));
}

std::string version_text() {
    return fmt::format("topo version {} (commit: {})", TALPA_TOPO_VERSION, TALPA_TOPO_COMMIT);
}

bool wants_json(int argc, const char* const* argv) {
    bool json = false;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        std::string_view value;
        if (word == "--") break;
        if (word == "--json") json = true;
        if ((word == "-o" || word == "--output") && i + 1 < argc) value = argv[i + 1];
        if (word.starts_with("--output=")) value = word.substr(9);
        if (word.starts_with("-o") && !word.starts_with("--") && word.size() > 2) value = word.substr(2);
        if (lower(trimmed(value)) == "json") json = true;
    }
    return json;
}

std::string usage_hint(int argc, const char* const* argv) {
    const int at = command_index(argc, argv);
    if (at == 0) return "topo --help";
    const std::string_view word = argv[at];
    if (const CommandRow* row = find_command(word)) return fmt::format("topo {} --help", row->name);
    const CommandRow* nearest = nullptr;
    for (const CommandRow& row : command_table())
        if (!row.hidden && distance(word, row.name) <= 2 &&
            (nearest == nullptr || distance(word, row.name) < distance(word, nearest->name)))
            nearest = &row;
    return nearest == nullptr ? "topo --help" : fmt::format("did you mean topo {}?", nearest->name);
}

std::string help_text(const CommandRow* command) {
    std::string out;
    if (command == nullptr) {
        out =
            "Deploys Topo Projects: containers and firmware, from this machine to a board, over SSH.\n\nUsage:\n  topo "
            "[command] [flags]\n\nCommands:\n";
        for (const CommandRow& row : command_table()) {
            if (row.hidden || (row.name == "upgrade" && self_upgrade_disabled())) continue;
            out += fmt::format("  {:<12} {}\n", row.name, row.help);
        }
        out += "\nFlags:\n" + flag_line(kHelp) + flag_line({"-v,--version", ValueKind::None, "", "Version"});
    } else {
        out = fmt::format("{}.\n\nUsage:\n  topo {}{}{} [flags]\n", command->help, command->name,
                          command->arguments.empty() ? "" : " ", command->arguments);
        if (!command->alias.empty()) out += fmt::format("\nAlias:\n  topo {}\n", command->alias);
        if (!command->examples.empty()) {
            out += "\nExamples:\n";
            for (const std::string& line : lines_of(command->examples)) out += "  " + line + "\n";
        }
        out += "\nFlags:\n";
        for (const FlagRow& row : command->flags)
            if (!row.hidden) out += flag_line(row);
        for (const FlagRow& row : kVerbosity) out += flag_line(row);
        out += flag_line(kHelp);
    }
    for (const FlagRow& row : global_flags()) out += flag_line(row);
    if (command == nullptr) out += "\nHelp on a command: topo help COMMAND\n";
    return out + "Exit status: 0 success, 1 the work failed, 2 wrong usage, 130 interrupted.\n";
}

std::expected<Invocation, std::string> parse_command_line(int argc, const char* const* argv) {
    Invocation invocation;
    CLI::App app("", "topo");
    app.set_help_flag("");
    std::vector<Bound> bound;
    bind(app, global_flags(), bound);
    CLI::Option* root_help = app.add_flag("-h,--help");
    CLI::Option* root_version = app.add_flag("-v,--version");
    // Only the subcommand that is meant is built: the table has many.
    const CommandRow* command = nullptr;
    CLI::App* sub = &app;
    CLI::Option *sub_help = nullptr, *quiet = nullptr, *verbose = nullptr;
    std::vector<std::string> words;
    // The command in front, whatever stands before it; what comes behind "--" is no flag.
    const int at = command_index(argc, argv);
    std::vector<std::string> rest;
    std::vector<const char*> line = {argc > 0 ? argv[0] : "topo"};
    if (at > 0) line.push_back(argv[at]);
    for (int i = 1; i < argc; ++i) {
        if (std::string_view(argv[i]) == "--") {
            rest.assign(argv + i + 1, argv + argc);
            break;
        }
        if (i != at) line.push_back(argv[i]);
    }
    if (at == 0 && !rest.empty())
        return std::unexpected(fmt::format("unknown command \"{}\" for \"topo\"", rest.front()));
    if (at > 0) {
        const std::string_view word = argv[at];
        command = find_command(word);
        if (command == nullptr || (command->name == "upgrade" && self_upgrade_disabled()))
            return std::unexpected(fmt::format("unknown command \"{}\" for \"topo\"", word));
        sub = app.add_subcommand(std::string(word));
        sub->set_help_flag("");
        sub->fallthrough();
        bind(*sub, command->flags, bound);
        sub_help = sub->add_flag("-h,--help");
        quiet = sub->add_flag("-q,--quiet");
        verbose = sub->add_flag("-v,--verbose");
        sub->add_option("arguments", words)->expected(0, 1 << 20);
    }
    try {
        app.parse(static_cast<int>(line.size()), line.data());
    } catch (const CLI::ParseError& error) {
        return std::unexpected(sentence(error, app));
    }
    invocation.command = command;
    invocation.arguments = std::move(words);
    invocation.arguments.insert(invocation.arguments.end(), rest.begin(), rest.end());
    for (const Bound& b : bound)
        if (b.option->count() > 0) {
            std::vector<std::string> values = b.option->results();
            if (b.row->value == ValueKind::None)
                for (std::string& v : values) v = v == "true" || truthy(v) ? "true" : "false";
            invocation.flags[std::string(b.row->long_name())] = std::move(values);
        }
    if (const auto output = invocation.value("--output")) {
        const std::string form = lower(trimmed(*output));
        if (form != "json" && form != "plain")
            return std::unexpected(fmt::format("invalid output format \"{}\": must be plain or json", *output));
        if (form == "json") invocation.logging.format = Format::Json;
    }
    if (invocation.on("--json")) invocation.logging.format = Format::Json;
    if (root_version->count() > 0) {
        invocation.answer = version_text() + "\n";
        invocation.version = true;
        return invocation;
    }
    if (command == nullptr || root_help->count() > 0 || (sub_help != nullptr && sub_help->count() > 0)) {
        invocation.answer = help_text(command);
        return invocation;
    }
    const std::size_t count = invocation.arguments.size();
    if (count < static_cast<std::size_t>(command->least) || count > static_cast<std::size_t>(command->most))
        return std::unexpected(argument_count(*command, count));
    if (quiet->count() > 0) invocation.logging.least = Level::Warn;
    if (verbose->count() > 0) invocation.logging.least = Level::Debug;
    if (command->name == "help") {
        const CommandRow* about = count == 0 ? nullptr : find_command(invocation.arguments[0]);
        if (count > 0 && about == nullptr)
            return std::unexpected(fmt::format("unknown command \"{}\" for \"topo\"", invocation.arguments[0]));
        invocation.answer = help_text(about);
    }
    return invocation;
}

}  // namespace talpa::topo
