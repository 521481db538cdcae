#include "cli/workstation_commands.h"

#include <CLI/CLI.hpp>

#include "base/host/exit_status.h"
#include "cli/board_command.h"
#include "cli/command_line.h"
#include "cli/compare_command.h"
#include "cli/compile_command.h"
#include "cli/inspect_command.h"
#include "cli/model_command.h"

namespace talpa::cli {
namespace {

constexpr const char* kInspectFooter = R"(Examples:
  talpa inspect model.pte
  talpa inspect model.pte --ops
  talpa inspect model.pte --html report.html
  talpa inspect model.pte --ops --debug-db model.xml
  talpa inspect model.pte --csv summary.csv --config vela.ini --system-config My_System)";

constexpr const char* kCompareFooter = R"(Examples:
  talpa compare model.pte --input in0.bin --against expected/
  talpa compare old.pte --input in0.bin --against new.pte
  talpa compare model.pt2 --calibration photos/ --image cat.jpg
  talpa compare model.pt2 model.pte --calibration photos/ --image cat.jpg --all

With a model, the float network, the quantized network and its program on the NPU are held against each other layer by layer,
and the first that goes wrong is named; give the options that the program was compiled with. A folder holds recorded outputs: out0.bin, out1.bin …
Exit status: 0 equal, 1 different, 2 trouble, 130 interrupted.)";

constexpr const char* kCompileFooter = R"(Examples:
  talpa compile mobilenet_v2.float.pt2 --calibration photos/ -o mobilenet_v2.pte
  talpa compile model.quantized.pt2 --io int8 -o model.pte
  talpa compile model.tflite --sram unlimited --memory-mode shared-sram -o model.pte --json
  talpa compile model.pt2 --dump-after layout
  talpa compile model.pt2 --config vela.ini --system-config My_System --memory-mode My_Mode -o model.pte
  talpa compile model.pt2 --calibration photos/ -o model.pte --csv model.csv --debug-db model.xml
  talpa compile efficientnet_lite0 --calibration photos/ -o efficientnet_lite0.pte

Reads .pt2 (torch.export.save), float or quantized by PT2E, .tflite, .onnx (float or QDQ), and the weights of built-in networks
as .pth, .pt or .safetensors (talpa model list). A float model is quantized to 8 bits with the inputs
in --calibration: a folder of pictures, .npy or .bin files. The i.MX 93 gives its NPU 384 KiB of SRAM, which is the default.
What cannot be compiled is listed at once, each operator with where it stands.)";

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
    inspect->add_option("--csv", o.csv, "Write what the program costs, in columns as Vela names them")
        ->type_name("FILE.csv");
    inspect
        ->add_option("--debug-db", o.debug_db,
                     "Name the model's nodes by this debug database, of talpa compile or of Vela")
        ->type_name("FILE.xml");
    inspect->add_option("--system-config", o.system, "Estimate for these clocks and memories, not the program's own")
        ->type_name("NAME");
    inspect->add_option("--memory-mode", o.memory_mode, "Estimate for this memory mode")->type_name("MODE");
    inspect->add_option("--config", o.configs, "Vela's configuration file; may be given again")
        ->type_name("FILE.ini")
        ->allow_extra_args(false);
    inspect->footer(std::string(kInspectFooter) + "\n\n" + kExitFooter);
}

/// One of a few words.
void add_choice(CLI::App& command, const char* name, std::string& into, const char* help,
                std::vector<std::string> words) {
    std::string list = "{";
    for (const auto& w : words) list += (list.size() > 1 ? "," : "") + w;
    command.add_option(name, into, help)
        ->type_name(list + "}")
        ->check(CLI::IsMember(std::move(words)).description(""))
        ->capture_default_str();
}

/// What says how a model is read, quantized and compiled: of compile, and of compare with a model.
void add_compilation(CLI::App* compile, CompileOptions& o) {
    const auto choice = [&](const char* name, std::string& into, const char* help, std::vector<std::string> words) {
        add_choice(*compile, name, into, help, std::move(words));
    };
    compile->add_option("--calibration", o.calibration, "Typical inputs to quantize with: a folder, or one file")
        ->type_name("DIR|FILE");
    compile->add_option("--calibration-limit", o.calibration_limit, "Use at most so many of them")
        ->type_name("N")
        ->check(between(1, 1'000'000))
        ->capture_default_str();
    choice("--activations", o.activations, "Bits of activations", {"int8", "int16", "mixed"});
    choice("--observer", o.observer, "How value ranges are chosen", {"best", "minmax", "percentile", "mse", "entropy"});
    choice("--target", o.target, "NPU",
           {"ethos-u65-256", "ethos-u65-512", "ethos-u55-32", "ethos-u55-64", "ethos-u55-128", "ethos-u55-256"});
    compile
        ->add_option("--system-config", o.system,
                     "Clock and memories: a published configuration, or one of a --config file")
        ->type_name("NAME");
    compile
        ->add_option(
            "--memory-mode", o.memory_mode,
            "What lies in SRAM: sram-only, shared-sram (the default for a U55), dedicated-sram (for a U65), or a "
            "mode of a --config file")
        ->type_name("MODE");
    compile
        ->add_option("--config", o.configs,
                     "Vela's configuration file; may be given again, later ones add to earlier ones")
        ->type_name("FILE.ini")
        ->allow_extra_args(false);
    compile
        ->add_option("--sram", o.sram,
                     "SRAM that the NPU may use: 384K, 1M, unlimited (default: what the memory mode says, else 384K)")
        ->type_name("SIZE");
    choice("--optimize", o.optimize, "Speed, or the size of the memory that a run takes", {"speed", "size"});
    choice("--io", o.io, "Type of inputs and outputs", {"model", "float", "int8"});
    compile->add_option("--program", o.program, "Which program, if the archive holds several")->type_name("NAME");
    compile->add_option("--architecture", o.architecture, "Network that a file of weights belongs to")
        ->type_name("NAME");
    compile->add_option("--picture-size", o.picture_size, "Height and width of its pictures (default: the usual one)")
        ->type_name("N")
        ->check(between(16, 4096));
    add_normalisation(*compile, o.picture);
    compile->add_option("--threads", o.threads, "Threads (default: one a processor)")
        ->type_name("N")
        ->check(between(1, 256));
}

void add_compare(CLI::App& app, CompareOptions& o) {
    CLI::App* compare =
        app.add_subcommand("compare", "Compare two programs, one with recorded outputs, or a model with its program");
    compare->add_option("PROGRAM.pte", o.program, "Program, or a model")->type_name("FILE.pte|MODEL")->required();
    compare
        ->add_option("COMPILED.pte", o.compiled,
                     "With a model: the program that was made of it (default: compiled now, in memory)")
        ->type_name("FILE.pte");
    compare->add_option("--input", o.inputs, "Raw input; once for each input of the program or model, in order")
        ->type_name("FILE.bin")
        ->allow_extra_args(false);
    compare->add_option("--image", o.image, "With a model: a picture as its input")->type_name("FILE");
    compare
        ->add_option("--least", o.least_db,
                     "With a model: a layer with less signal to noise than so many decibels goes wrong")
        ->type_name("DB")
        ->check(CLI::Range(-200.0, 200.0).description(""))
        ->capture_default_str();
    compare->add_flag("--all", o.all, "With a model: show every layer");
    compare
        ->add_option("--against", o.against,
                     "Folder of recorded outputs, or another program (default: the program's folder)")
        ->type_name("DIR|PROGRAM2.pte");
    compare->add_option("--method", o.method, "Method to run")->type_name("NAME")->capture_default_str();
    compare->add_option("--data", o.data, "Data file of the programs; may be given again")
        ->type_name("FILE.ptd")
        ->allow_extra_args(false);
    add_compilation(compare, o.compile);
    compare->footer(kCompareFooter);
}

void add_compile(CLI::App& app, CompileOptions& o) {
    CLI::App* compile = app.add_subcommand("compile", "Compile a model to a program for the Ethos-U NPU");
    compile->add_option("MODEL", o.model, "Model file, or a name that talpa model list shows")
        ->type_name("FILE|NAME")
        ->required();
    compile->add_option("-o,--output", o.output, "Program to write")->type_name("FILE.pte");
    add_compilation(compile, o);
    compile->add_option("--evaluate", o.evaluate, "Inputs on which to compare the quantized model with the float one")
        ->type_name("DIR|FILE");
    compile->add_flag("--report", o.report, "Show the noise that quantization adds to each layer");
    compile->add_option("--csv", o.csv, "Write what the program costs, in columns as Vela names them")
        ->type_name("FILE.csv");
    compile
        ->add_option("--debug-db", o.debug_db,
                     "Write which node of the model each NPU operation computes, as Vela's debug database")
        ->type_name("FILE.xml");
    compile->add_option("--labels", o.labels, "Names of the classes, one a line, to put into the program")
        ->type_name("FILE");
    add_choice(*compile, "--dump-after", o.dump_after, "Print the network after a stage",
               {"import", "layout", "batch-norm", "fuse", "canonical", "quantize", "lower", "schedule", "emit"});
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

class WorkstationCommands final : public MoreCommands {
  public:
    void add(CLI::App& app) override {
        add_inspect(app, inspect_);
        add_compare(app, compare_);
        add_compile(app, compile_);
        add_model(app, model_);
        add_board(app, board_);
    }
    const char* example() const override {
        return "\n  talpa compile mobilenet_v2.float.pt2 --calibration photos/ -o mobilenet_v2.pte"
               "\n  talpa inspect mobilenet_v2.pte --html report.html"
               "\n  talpa compare mobilenet_v2.pte --input in0.bin --against expected/"
               "\n  talpa compare mobilenet_v2.float.pt2 --calibration photos/ --image cat.jpg";
    }
    std::optional<int> run(const CLI::App& app) override {
        if (app.got_subcommand("inspect")) {
            const auto valid = check(inspect_);
            if (!valid) return usage_error(valid.error(), "inspect");
            return finish(inspect_program(inspect_), host::kExitFailed);
        }
        if (app.got_subcommand("compare")) {
            const auto valid = check(compare_);
            if (!valid) return usage_error(valid.error(), "compare");
            return finish(compare_programs(compare_), host::kExitUsage);
        }
        if (app.got_subcommand("compile")) {
            const auto valid = check(compile_);
            if (!valid) return usage_error(valid.error(), "compile");
            return finish(succeed(compile_model(compile_)), host::kExitFailed);
        }
        if (app.got_subcommand("model")) {
            const bool list = app.get_subcommand("model")->got_subcommand("list");
            return finish(succeed(list ? list_models(model_) : get_model(model_)), host::kExitFailed);
        }
        if (app.got_subcommand("board")) {
            const auto valid = check(board_);
            if (!valid) return usage_error(valid.error(), "board up");
            return finish(board_command(app.get_subcommand("board")->get_subcommands()[0]->get_name(), board_),
                          host::kExitFailed);
        }
        return std::nullopt;
    }

  private:
    InspectOptions inspect_;
    CompareOptions compare_;
    CompileOptions compile_;
    ModelOptions model_;
    BoardCommandOptions board_;
};

}  // namespace

MoreCommands& workstation_commands() {
    static WorkstationCommands commands;
    return commands;
}

}  // namespace talpa::cli
