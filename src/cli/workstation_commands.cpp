#include "cli/workstation_commands.h"

#include <CLI/CLI.hpp>

#include "base/host/exit_status.h"
#include "cli/board_command.h"
#include "cli/command_line.h"
#include "cli/compile_command.h"
#include "cli/model_command.h"

namespace talpa::cli {
namespace {

constexpr const char* kCompileFooter = R"(Examples:
  talpa compile mobilenet_v2.float.pt2 --calibration photos/ -o mobilenet_v2.pte
  talpa compile model.quantized.pt2 --io int8 -o model.pte
  talpa compile model.tflite --sram unlimited --memory-mode shared-sram -o model.pte --json
  talpa compile model.pt2 --dump-after layout

Reads .pt2 (torch.export.save), float or quantized by PT2E, .tflite, .onnx (float or QDQ), and the weights of built-in networks
as .pth, .pt or .safetensors (talpa model list). A float model is quantized to 8 bits with the inputs
in --calibration: a folder of pictures, .npy or .bin files. The i.MX 93 gives its NPU 384 KiB of SRAM, which is the default.
What cannot be compiled is listed at once, each operator with where it stands.)";

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

class WorkstationCommands final : public MoreCommands {
  public:
    void add(CLI::App& app) override {
        add_compile(app, compile_);
        add_model(app, model_);
        add_board(app, board_);
    }
    const char* example() const override {
        return "  talpa compile mobilenet_v2.float.pt2 --calibration photos/ -o mobilenet_v2.pte\n";
    }
    std::optional<int> run(const CLI::App& app) override {
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
