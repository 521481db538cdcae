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
#include "cli/board_command.h"
#include "cli/classify_command.h"
#include "cli/compare_command.h"
#include "cli/compile_command.h"
#include "cli/completion.h"
#include "cli/inspect_command.h"
#include "cli/model_command.h"
#include "cli/run_command.h"

namespace talpa::cli {
namespace {

using host::Error;
using host::Result;

constexpr const char* kExitFooter = "Exit status: 0 success, 1 the work failed, 2 wrong usage, 130 interrupted.";

constexpr const char* kFooter = R"(Examples:
  talpa run mobilenet_v2.pte --image cat.jpg --labels imagenet_labels.txt
  talpa compile mobilenet_v2.float.pt2 --calibration photos/ -o mobilenet_v2.pte
  talpa inspect mobilenet_v2.pte --html report.html
  talpa compare mobilenet_v2.pte --input in0.bin --against expected/

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

constexpr const char* kInspectFooter = R"(Examples:
  talpa inspect model.pte
  talpa inspect model.pte --ops
  talpa inspect model.pte --html report.html)";

constexpr const char* kCompileFooter = R"(Examples:
  talpa compile mobilenet_v2.float.pt2 --calibration photos/ -o mobilenet_v2.pte
  talpa compile model.quantized.pt2 --io int8 -o model.pte
  talpa compile model.tflite --sram unlimited --memory-mode shared-sram -o model.pte --json
  talpa compile model.pt2 --dump-after layout

Reads .pt2 (torch.export.save), float or quantized by PT2E, .tflite, .onnx (float or QDQ), and the weights of built-in networks
as .pth, .pt or .safetensors (talpa model list). A float model is quantized to 8 bits with the inputs
in --calibration: a folder of pictures, .npy or .bin files. The i.MX 93 gives its NPU 384 KiB of SRAM, which is the default.
What cannot be compiled is listed at once, each operator with where it stands.)";

constexpr const char* kCompareFooter = R"(Examples:
  talpa compare model.pte --input in0.bin --against expected/
  talpa compare old.pte --input in0.bin --against new.pte

A folder holds recorded outputs: out0.bin, out1.bin …
Exit status: 0 equal, 1 different, 2 trouble, 130 interrupted.)";

constexpr const char* kCompletionFooter = R"(Examples:
  source <(talpa completion bash)
  talpa completion fish > ~/.config/fish/completions/talpa.fish)";

/// The options of all subcommands.
struct Commands {
    RunOptions run;
    ClassifyOptions classify;
    InspectOptions inspect;
    CompareOptions compare;
    CompileOptions compile;
    ModelOptions model;
    BoardCommandOptions board;
    std::string shell;
};

/// How pictures become inputs.
void add_normalisation(CLI::App& command, PictureOptions& o) {
    command.add_option("--mean", o.mean, "Subtract this from the scaled values: one number or three (red,green,blue)")
        ->type_name("M[,M,M]");
    command.add_option("--std", o.std, "Then divide by this")->type_name("S[,S,S]");
    command
        .add_option("--range", o.range,
                    "Scale bytes 0..255 to this range first (default: -1,1; 0,1 with --mean or --std)")
        ->type_name("LOW,HIGH");
}

/// Integers from `low` to `high`, without CLI11's own text for it in the help.
CLI::Validator between(int low, int high) {
    return CLI::Range(low, high).description("");
}

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
    classify->add_option("--tty", o.tty, "RPMsg tty (default: the first usable /dev/ttyRPMSG*)")->type_name("DEVICE");
    classify->add_option("--remoteproc", o.remoteproc, "Name of the remote processor")
        ->type_name("NAME")
        ->capture_default_str();
    classify->add_option("--output-dir", o.output_dir, "Write the outputs there as out0.bin, out1.bin, …")
        ->type_name("DIR");
    add_normalisation(*classify, o.picture);
    classify->add_flag("--json", o.json, "Print one JSON document");
    classify->footer(std::string(kClassifyFooter) + "\n\n" + kExitFooter);
}

void add_inspect(CLI::App& app, InspectOptions& o) {
    CLI::App* inspect =
        app.add_subcommand("inspect", "Show what is in a program, what memory it needs and where its time goes");
    inspect->add_option("PROGRAM.pte", o.program, "Program")->type_name("FILE.pte")->required();
    inspect->add_flag("--ops", o.ops, "List every operation of the NPU");
    inspect->add_flag("--json", o.json, "Print one JSON document");
    inspect->add_option("--data", o.data, "Data file of the program; may be given again")
        ->type_name("FILE.ptd")
        ->allow_extra_args(false);
    inspect->add_option("--html", o.html, "Write a report that opens in a browser, offline")->type_name("FILE.html");
    inspect->footer(std::string(kInspectFooter) + "\n\n" + kExitFooter);
}

void add_compare(CLI::App& app, CompareOptions& o) {
    CLI::App* compare = app.add_subcommand("compare", "Compare two programs, or one with recorded outputs");
    compare->add_option("PROGRAM.pte", o.program, "Program")->type_name("FILE.pte")->required();
    compare->add_option("--input", o.inputs, "Raw input; once for each input of the program, in order")
        ->type_name("FILE.bin")
        ->allow_extra_args(false);
    compare
        ->add_option("--against", o.against,
                     "Folder of recorded outputs, or another program (default: the program's folder)")
        ->type_name("DIR|PROGRAM2.pte");
    compare->add_option("--method", o.method, "Method to run")->type_name("NAME")->capture_default_str();
    compare->add_option("--data", o.data, "Data file of the programs; may be given again")
        ->type_name("FILE.ptd")
        ->allow_extra_args(false);
    compare->footer(kCompareFooter);
}

void add_compile(CLI::App& app, CompileOptions& o) {
    CLI::App* compile = app.add_subcommand("compile", "Compile a model to a program for the Ethos-U NPU");
    const auto choice = [&](const char* name, std::string& into, const char* help, std::vector<std::string> words) {
        std::string list = "{";
        for (const auto& w : words) list += (list.size() > 1 ? "," : "") + w;
        compile->add_option(name, into, help)
            ->type_name(list + "}")
            ->check(CLI::IsMember(std::move(words)).description(""))
            ->capture_default_str();
    };
    compile->add_option("MODEL", o.model, "Model file")->type_name("FILE")->required();
    compile->add_option("-o,--output", o.output, "Program to write")->type_name("FILE.pte");
    compile->add_option("--calibration", o.calibration, "Typical inputs to quantize with: a folder, or one file")
        ->type_name("DIR|FILE");
    compile->add_option("--calibration-limit", o.calibration_limit, "Use at most so many of them")
        ->type_name("N")
        ->check(between(1, 1'000'000))
        ->capture_default_str();
    choice("--activations", o.activations, "Bits of activations", {"int8", "int16", "mixed"});
    choice("--observer", o.observer, "How value ranges are chosen", {"best", "minmax", "percentile", "mse", "entropy"});
    compile->add_option("--evaluate", o.evaluate, "Inputs on which to compare the quantized model with the float one")
        ->type_name("DIR|FILE");
    compile->add_flag("--report", o.report, "Show the noise that quantization adds to each layer");
    choice("--target", o.target, "NPU",
           {"ethos-u65-256", "ethos-u65-512", "ethos-u55-32", "ethos-u55-64", "ethos-u55-128", "ethos-u55-256"});
    compile->add_option("--system-config", o.system, "Clock and memories, by the name of a published configuration")
        ->type_name("NAME");
    choice("--memory-mode", o.memory_mode, "What lies in SRAM", {"sram-only", "shared-sram", "dedicated-sram"});
    compile->add_option("--sram", o.sram, "SRAM that the NPU may use: 384K, 1M, unlimited")
        ->type_name("SIZE")
        ->capture_default_str();
    choice("--optimize", o.optimize, "What to optimize for", {"speed", "size"});
    choice("--io", o.io, "Type of inputs and outputs", {"model", "float", "int8"});
    compile->add_option("--program", o.program, "Which program, if the archive holds several")->type_name("NAME");
    compile->add_option("--architecture", o.architecture, "Network that a file of weights belongs to")
        ->type_name("NAME");
    compile->add_option("--picture-size", o.picture_size, "Height and width of its pictures (default: the usual one)")
        ->type_name("N")
        ->check(between(16, 4096));
    compile->add_option("--labels", o.labels, "Names of the classes, one a line, to put into the program")
        ->type_name("FILE");
    add_normalisation(*compile, o.picture);
    choice("--dump-after", o.dump_after, "Print the network after a stage",
           {"import", "layout", "batch-norm", "fuse", "canonical", "quantize", "lower", "schedule", "emit"});
    compile->add_option("--threads", o.threads, "Threads (default: one a processor)")
        ->type_name("N")
        ->check(between(1, 256));
    compile->add_flag("--json", o.json, "Print one JSON document");
    compile->footer(std::string(kCompileFooter) + "\n\n" + kExitFooter);
}

void add_model(CLI::App& app, ModelOptions& o) {
    CLI::App* model = app.add_subcommand("model", "List and fetch trained networks");
    model->require_subcommand(1);
    model->footer("Examples:\n  talpa model list\n  talpa model get efficientnet_lite0");
    CLI::App* list =
        model->add_subcommand("list", "Show what there is, where it comes from and how pictures are prepared");
    list->add_flag("--json", o.json, "Print one JSON document");
    CLI::App* get = model->add_subcommand("get", "Fetch a network's weights, verify them and print where they are");
    get->add_option("NAME", o.name, "Network")->type_name("NAME")->required();
    get->add_option("-o,--output", o.output, "Copy the weights there")->type_name("FILE.pth");
    get->add_flag("--json", o.json, "Print one JSON document");
    get->footer(
        "Examples:\n  talpa model get mobilenet_v2\n  talpa compile $(talpa model get efficientnet_lite0) "
        "--calibration "
        "photos/ -o model.pte");
}

void add_completion(CLI::App& app, std::string& shell) {
    CLI::App* completion = app.add_subcommand("completion", "Print a script that completes talpa's options in a shell");
    completion->add_option("shell", shell, "Shell: bash, zsh or fish")->type_name("{bash,zsh,fish}")->required();
    completion->footer(kCompletionFooter);
}

void report(const Error& error) {
    host::say(fmt::format("{} {}\n", host::Style(stderr).red("talpa:"), error.describe()));
}

int usage_error(const Error& error, const char* command) {
    report(error.hint.empty() ? Error(error).with_hint(fmt::format("talpa {} --help", command)) : error);
    return host::kExitUsage;
}

/// A run of a subcommand, its output flushed and known to have arrived.
int finish(Result<int> status, int trouble) {
    if (status && (std::fflush(stdout) != 0 || std::ferror(stdout) != 0))
        status = host::failure(ErrorCode::AccessFailed, "cannot write to standard output");
    if (status) return *status;
    report(status.error());
    return trouble;
}

Result<int> succeed(Result<void> result) {
    TRY(std::move(result));
    return host::kExitSuccess;
}

int dispatch_commands(const CLI::App& app, Commands& c) {
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
    if (app.got_subcommand("inspect")) return finish(succeed(inspect_program(c.inspect)), host::kExitFailed);
    if (app.got_subcommand("compare")) {
        const auto valid = check(c.compare);
        if (!valid) return usage_error(valid.error(), "compare");
        return finish(compare_programs(c.compare), host::kExitUsage);
    }
    if (app.got_subcommand("compile")) {
        const auto valid = check(c.compile);
        if (!valid) return usage_error(valid.error(), "compile");
        return finish(succeed(compile_model(c.compile)), host::kExitFailed);
    }
    if (app.got_subcommand("model")) {
        const bool list = app.get_subcommand("model")->got_subcommand("list");
        return finish(succeed(list ? list_models(c.model) : get_model(c.model)), host::kExitFailed);
    }
    if (app.got_subcommand("board")) {
        const auto valid = check(c.board);
        if (!valid) return usage_error(valid.error(), "board up");
        return finish(board_command(app.get_subcommand("board")->get_subcommands()[0]->get_name(), c.board),
                      host::kExitFailed);
    }
    const auto script = completion_script(app, c.shell);
    if (!script) return usage_error(script.error(), "completion");
    fmt::print("{}", *script);
    return finish(host::kExitSuccess, host::kExitFailed);
}

/// fmt throws when a large text does not fit into the stream's buffer and cannot be written.
int dispatch(const CLI::App& app, Commands& c) {
    try {
        return dispatch_commands(app, c);
    } catch (const std::system_error&) {
        if (std::ferror(stdout) == 0) throw;
        return finish(host::failure(ErrorCode::AccessFailed, "cannot write to standard output"),
                      app.got_subcommand("compare") ? host::kExitUsage : host::kExitFailed);
    }
}

}  // namespace

int run_app(int argc, const char* const* argv) {
    host::clean_up_on_interrupt();
    CLI::App app(
        "Runs, inspects and compares ExecuTorch programs for the Ethos-U65 NPU, on a model of it that is exact to the "
        "bit.",
        "talpa");
    app.set_version_flag("--version", std::string("talpa ") + TALPA_VERSION);
    app.require_subcommand(1);
    app.footer(std::string(kFooter) + "\n\n" + kExitFooter);
    app.get_formatter()->column_width(32);
    Commands commands;
    add_run(app, commands.run);
    add_classify(app, commands.classify);
    add_inspect(app, commands.inspect);
    add_compare(app, commands.compare);
    add_compile(app, commands.compile);
    add_model(app, commands.model);
    add_board(app, commands.board);
    add_completion(app, commands.shell);
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
    // Of compare, 1 means that something differs.
    const int trouble = app.got_subcommand("compare") ? host::kExitUsage : host::kExitFailed;
    try {
        return dispatch(app, commands);
    } catch (const std::bad_alloc&) {
        host::say(fmt::format("talpa: out of memory ({})\n", error_name(ErrorCode::OutOfResources)));
        return trouble;
    } catch (const std::exception& e) {
        host::say(fmt::format("talpa: {} ({})\n", e.what(), error_name(ErrorCode::Internal)));
        return trouble;
    }
}

}  // namespace talpa::cli
