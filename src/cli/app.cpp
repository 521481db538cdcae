#include "cli/app.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <new>
#include <system_error>

#include "base/host/error.h"
#include "base/host/exit_status.h"
#include "base/host/interrupt.h"
#include "base/host/terminal.h"
#include "cli/classify_command.h"
#include "cli/command_line.h"
#include "cli/completion.h"
#include "cli/run_command.h"

namespace talpa::cli {
namespace {

using host::Error;
using host::Result;

constexpr const char* kFooter = R"(Examples:
  talpa run mobilenet_v2.pte --image cat.jpg --labels imagenet_labels.txt{}

Help on a command: talpa COMMAND --help)";

constexpr const char* kRunFooter = R"(Examples:
  talpa run mobilenet_v2.pte --image cat.jpg --labels imagenet_labels.txt
  talpa run mobilenet_v2.pte --image *.jpg --labels imagenet_labels.txt --top 1 --json
  talpa run model.pte --input in0.bin --output-dir out --repeat 100

Pictures (JPEG, PNG, WebP, GIF, BMP) are turned upright, scaled (shorter side), cropped and normalised to -1..1 unless the program
or --mean, --std and --range say otherwise. Raw inputs and outputs are little-endian data in the program's own types, in C
order of the logical shape.)";

constexpr const char* kClassifyFooter = R"(Examples:
  talpa classify cat.jpg --program mobilenet_v2.pte --labels imagenet_labels.txt
  talpa classify *.jpg --program mobilenet_v2.pte --top 1 --json

Runs on the Cortex-M33 and the NPU of the board that this machine is (an i.MX 93, real or virtual), by /dev/mem and
/dev/ttyRPMSG* only; the firmware must run. The result is that of `talpa run` with the same program, bit for bit.)";

constexpr const char* kCompletionFooter = R"(Examples:
  source <(talpa completion bash)
  talpa completion fish > ~/.config/fish/completions/talpa.fish)";

/// The options of the subcommands that every talpa has.
struct Commands {
    RunOptions run;
    ClassifyOptions classify;
    std::string shell;
};

/// "--image a.jpg b.jpg model.pte" takes the program for a picture; a name that ends in .pte is none.
void give_back_program(RunOptions& o) {
    if (!o.program.empty() || o.images.empty() || !o.images.back().ends_with(".pte")) return;
    o.program = std::move(o.images.back());
    o.images.pop_back();
}

void add_run(CLI::App& app, RunOptions& o) {
    CLI::App* run = app.add_subcommand("run", "Run a program on raw inputs or on pictures");
    run->add_option("PROGRAM.pte", o.program, "Program made by ExecuTorch for an Ethos-U65")->type_name("FILE.pte");
    run->add_option("--input", o.inputs, "Raw input; once for each input of the program, in order")
        ->type_name("FILE.bin")
        ->allow_extra_args(false);
    run->add_option("--image", o.images, "Pictures to run on, one after the other")
        ->type_name("FILE")
        ->expected(1, 1 << 20);
    run->add_option("--labels", o.labels, "Names of the classes, one a line")->type_name("FILE");
    run->add_option("--label-offset", o.label_offset, "The label of class 0 stands in this line, counted from 0")
        ->type_name("N")
        ->check(between(-1'000'000, 1'000'000));
    run->add_option("--top", o.top, "How many classes to show")
        ->type_name("N")
        ->check(between(1, 1'000'000))
        ->capture_default_str();
    run->add_option("--output-dir", o.output_dir, "Write the outputs there as out0.bin, out1.bin, …")->type_name("DIR");
    run->add_option("--method", o.method, "Method to run")->type_name("NAME")->capture_default_str();
    run->add_option("--data", o.data, "Data file of the program; may be given again")
        ->type_name("FILE.ptd")
        ->allow_extra_args(false);
    run->add_option("--repeat", o.repeat, "Run so often, and show how the times are distributed")
        ->type_name("N")
        ->check(between(1, 10'000'000));
    run->add_option("--threads", o.threads, "Threads of the NPU model (default: one a processor, at most 8)")
        ->type_name("N")
        ->check(between(1, 256));
    add_normalisation(*run, o.picture);
    run->add_flag("--strict", o.strict,
                  "Check every operation of the NPU: hazards, overflow, memory never written; slow");
    run->add_flag("--json", o.json, "Print one JSON document");
    run->footer(std::string(kRunFooter) + "\n\n" + kExitFooter);
}

void add_classify(CLI::App& app, ClassifyOptions& o) {
    CLI::App* classify = app.add_subcommand("classify", "Classify pictures on the board's Cortex-M33 and NPU");
    classify->add_option("PICTURE", o.images, "Pictures, one after the other")->type_name("FILE")->expected(1, 1 << 20);
    classify->add_option("--program", o.program, "Program made by ExecuTorch for an Ethos-U65")->type_name("FILE.pte");
    classify->add_option("--labels", o.labels, "Names of the classes, one a line")->type_name("FILE");
    classify->add_option("--label-offset", o.label_offset, "The label of class 0 stands in this line, counted from 0")
        ->type_name("N")
        ->check(between(-1'000'000, 1'000'000));
    classify->add_option("--top", o.top, "How many classes to show")
        ->type_name("N")
        ->check(between(1, 1'000'000))
        ->capture_default_str();
    classify->add_option("--timeout", o.timeout_s, "How long a run may take, in seconds")
        ->type_name("S")
        ->check(CLI::Range(0.01, 3600.0).description(""))
        ->capture_default_str();
    classify->add_option("--root", o.root, "Board's files (/dev, /sys) are under this folder")->type_name("DIR");
    classify->add_option("--remoteproc", o.remoteproc, "Name of the remote processor; of several, its number")
        ->type_name("NAME|K")
        ->capture_default_str();
    classify->add_option("--memory", o.memory, "Its memory (default: /dev/mem; /dev/memK where that exists)")
        ->type_name("DEVICE");
    classify->add_option("--tty", o.tty, "Its RPMsg tty (default: the first usable one that is its own)")
        ->type_name("DEVICE");
    classify->add_option("--output-dir", o.output_dir, "Write the outputs there as out0.bin, out1.bin, …")
        ->type_name("DIR");
    add_normalisation(*classify, o.picture);
    classify->add_flag("--json", o.json, "Print one JSON document");
    classify->footer(std::string(kClassifyFooter) + "\n\n" + kExitFooter);
}

void add_completion(CLI::App& app, std::string& shell) {
    CLI::App* completion = app.add_subcommand("completion", "Print a script that completes talpa's options in a shell");
    completion->add_option("shell", shell, "Shell: bash, zsh or fish")->type_name("{bash,zsh,fish}")->required();
    completion->footer(kCompletionFooter);
}

/// An empty name is most often a script's variable that was never set; taken for "not given" it would lose results.
void refuse_empty_values(CLI::App& app) {
    const CLI::Validator given(
        [](std::string& value) { return value.empty() ? "needs a value that is not empty" : ""; }, "", "");
    for (CLI::App* command : app.get_subcommands({})) {
        if (command->get_name() == "board") continue;  // arguments of other programs may be empty
        for (CLI::Option* option : command->get_options())
            if (option->get_expected_max() > 0) option->check(given);
    }
}

int dispatch_commands(const CLI::App& app, Commands& c, MoreCommands* more) {
    if (const auto status = more == nullptr ? std::nullopt : more->run(app)) return *status;
    if (app.got_subcommand("run")) {
        give_back_program(c.run);
        const auto valid = check(c.run);
        if (!valid) return usage_error(valid.error(), "run");
        return finish(succeed(run(c.run)), host::kExitFailed);
    }
    if (app.got_subcommand("classify")) {
        const auto valid = check(c.classify);
        if (!valid) return usage_error(valid.error(), "classify");
        return finish(succeed(classify_on_board(c.classify)), host::kExitFailed);
    }
    const auto script = completion_script(app, c.shell);
    if (!script) return usage_error(script.error(), "completion");
    fmt::print("{}", *script);
    return finish(host::kExitSuccess, host::kExitFailed);
}

/// Of compare, 1 means that something differs.
int trouble_status(const CLI::App& app) {
    for (const CLI::App* given : app.get_subcommands())
        if (given->get_name() == "compare") return host::kExitUsage;
    return host::kExitFailed;
}

/// fmt throws when a large text does not fit into the stream's buffer and cannot be written.
int dispatch(const CLI::App& app, Commands& c, MoreCommands* more) {
    try {
        return dispatch_commands(app, c, more);
    } catch (const std::system_error&) {
        if (std::ferror(stdout) == 0) throw;
        return finish(host::failure(ErrorCode::AccessFailed, "cannot write to standard output"), trouble_status(app));
    }
}

}  // namespace

int run_app(int argc, const char* const* argv, MoreCommands* more) {
    host::clean_up_on_interrupt();
    CLI::App app(
        "Runs, inspects and compares ExecuTorch programs for the Ethos-U65 NPU, on a model of it that is exact to the "
        "bit.",
        "talpa");
    app.set_version_flag("--version", std::string("talpa ") + TALPA_VERSION);
    app.require_subcommand(1);
    app.footer(fmt::format(kFooter, more == nullptr ? "" : more->example()) + "\n\n" + kExitFooter);
    app.get_formatter()->column_width(32);
    Commands commands;
    add_run(app, commands.run);
    add_classify(app, commands.classify);
    if (more != nullptr) more->add(app);
    add_completion(app, commands.shell);
    refuse_empty_values(app);
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& help_or_version) {
        const int status = app.exit(help_or_version);
        if (!std::cout.flush())
            return finish(host::failure(ErrorCode::AccessFailed, "cannot write to standard output"), host::kExitFailed);
        return finish(status, host::kExitFailed);
    } catch (const CLI::ParseError& e) {
        std::string command = "talpa";
        for (const CLI::App* sub : app.get_subcommands()) command += " " + sub->get_name();
        std::string what = e.what();
        // CLI11 does not say which word it was that is no command.
        if (command == "talpa" && argc > 1 && argv[1][0] != '-')
            what = fmt::format("there is no command '{}'", argv[1]);
        host::say(fmt::format("{} {}\n  {} --help\n", host::Style(stderr).red(command + ":"), what, command));
        return host::kExitUsage;
    }
    const int trouble = trouble_status(app);
    try {
        return dispatch(app, commands, more);
    } catch (const std::bad_alloc&) {
        host::say(fmt::format("talpa: out of memory ({})\n", error_name(ErrorCode::OutOfResources)));
        return trouble;
    } catch (const std::exception& e) {
        host::say(fmt::format("talpa: {} ({})\n", e.what(), error_name(ErrorCode::Internal)));
        return trouble;
    }
}

}  // namespace talpa::cli
