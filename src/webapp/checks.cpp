#include "webapp/checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "link/memory_map.h"
#include "webapp/problem.h"

namespace talpa::webapp {
namespace {

using State = Check::State;
using link::host::BoardFault;

constexpr std::string_view kModelNode = R"(reserved-memory {
    model@c0000000 {
        reg = <0x0 0xc0000000 0x0 0x400000>;
        no-map;
    };
};)";
constexpr std::string_view kEthosuNode = R"(reserved-memory {
    ethosu_region@A8000000 {
        compatible = "shared-dma-pool";
        reg = <0x0 0xa8000000 0x0 0x8000000>;
        no-map;    /* and without reusable */
    };
};)";

// The nodes above say it as a device tree does.
static_assert(link::kModelRegion.base == 0xC0000000 && link::kModelRegion.size == 0x400000 &&
              link::kEthosuRegion.base == 0xA8000000 && link::kEthosuRegion.size == 0x8000000);

/// A reserved range: any node whose `reg` covers it counts, whatever its name.
Check range_check(const BoardLook& look, std::string id, const link::MemoryRange& range, std::string_view use,
                  std::string_view node) {
    Check check{.state = State::Failed,
                .id = std::move(id),
                .title = fmt::format("Reserved memory {}", range.name),
                .looked_at = fmt::format("{}/reserved-memory: a node that covers 0x{:08X}..0x{:08X} ({} MiB)",
                                         look.tree.empty() ? "the device tree" : look.tree, range.base,
                                         std::uint64_t{range.base} + range.size - 1, range.size >> 20),
                .found = {},
                .means = {},
                .fix = {}};
    if (look.tree.empty()) {
        check.state = State::Warning;
        check.found = "no device tree can be read here";
        check.means = "Whether the kernel leaves this memory alone is not known.";
        check.fix = "In a container: bind /sys (-v /sys:/sys).";
        return check;
    }
    const ReservedNode* const best = link::host::covering_node(look.reserved, range);
    if (best == nullptr) {
        std::vector<std::string> there;
        for (const ReservedNode& other : look.reserved) there.push_back(other.name);
        check.found = there.empty() ? "no reserved memory at all" : fmt::format("only {}", fmt::join(there, ", "));
        check.means = fmt::format("The kernel uses this memory for itself, so {} cannot be put there.", use);
        check.fix = fmt::format("Add this node to the board's device tree and reboot:\n{}", node);
        return check;
    }
    check.found = fmt::format("{} (0x{:X}, {} KiB{})", best->name, best->base, best->size >> 10,
                              best->no_map     ? ", no-map"
                              : best->reusable ? ", reusable"
                                               : "");
    if (best->no_map) {
        check.state = State::Ok;
        return check;
    }
    check.means =
        best->reusable
            ? "It is reusable: the kernel lends it to programs as ordinary memory, and /dev/mem may not touch it."
            : "Without no-map the kernel maps it as ordinary memory, and /dev/mem may not touch it.";
    check.fix = fmt::format("Change the node in the board's device tree and reboot:\n{}", node);
    return check;
}

Check memory_check(const BoardLook& look) {
    Check check{
        .state = State::Failed,
        .id = "memory",
        .title = "Memory device /dev/mem",
        .looked_at = fmt::format("/dev/mem: open for reading and writing, map 0x{:08X} ({} MiB) and 0x{:08X} ({} MiB)",
                                 link::kModelRegion.base, link::kModelRegion.size >> 20, link::kEthosuRegion.base,
                                 link::kEthosuRegion.size >> 20),
        .found = {},
        .means = "Program and picture cannot be handed to the Cortex-M33.",
        .fix = {}};
    const bool relaxed = look.bootargs.find("iomem=relaxed") != std::string::npos;
    const std::string relax =
        "Add iomem=relaxed to the kernel's command line (U-Boot: setenv bootargs \"${bootargs} iomem=relaxed\"; "
        "saveenv) and reboot. It has now: " +
        look.bootargs;
    if (look.memory_missing) {
        check.found = "there is none";
        check.fix = "In a container: bind /dev (-v /dev:/dev). On the board: a kernel with CONFIG_DEVMEM=y.";
    } else if (!look.memory_open.empty()) {
        check.found = fmt::format("cannot be opened: {}", look.memory_open);
        check.fix = "Run as root with CAP_SYS_RAWIO; in a container: --privileged.";
        if (!look.tree.empty() && !relaxed) check.fix += " If it is so already: " + relax;
    } else if (!look.memory_map_model.empty() || !look.memory_map_upper.empty()) {
        std::string found;
        if (!look.memory_map_model.empty())
            found = fmt::format("{}: {}", link::kModelRegion.name, look.memory_map_model);
        if (!look.memory_map_upper.empty())
            found +=
                fmt::format("{}{}: {}", found.empty() ? "" : "; ", link::kEthosuRegion.name, look.memory_map_upper);
        check.found = fmt::format("cannot be mapped: {}", found);
        check.fix = relaxed || look.tree.empty()
                        ? "Reserve both ranges with no-map in the device tree (see the checks above)."
                        : relax;
    } else {
        check.state = State::Ok;
        check.found = "can be read, written and mapped";
        check.means.clear();
        if (!look.tree.empty() && !relaxed) {
            check.state = State::Warning;
            check.means =
                "It works now; but the kernel's command line lacks iomem=relaxed, and a kernel with "
                "CONFIG_IO_STRICT_DEVMEM refuses the ranges as soon as a driver claims them.";
            check.fix = relax;
        }
    }
    return check;
}

Check ethosu_check(const BoardLook& look) {
    Check check{.state = State::Ok,
                .id = "ethosu-device",
                .title = "NPU device /dev/ethosu0",
                .looked_at = "/dev/ethosu0",
                .found = "there",
                .means = {},
                .fix = {}};
    if (!look.ethosu_exists) {
        check.state = State::Failed;
        check.found = "there is none";
        check.means =
            "Linux's driver of the NPU is not bound, so nobody powers the NPU: the Cortex-M33's first access to it "
            "would hang or fault.";
        check.fix = "modprobe ethosu; the device tree must have the ethosu node enabled (status = \"okay\").";
    } else if (!look.ethosu_open.empty()) {
        check.found = fmt::format("there (opening it here: {})", look.ethosu_open);
    }
    return check;
}

Check remoteproc_check(const CheckInput& input) {
    const auto& rp = input.look.remoteproc;
    Check check{.state = State::Ok,
                .id = "remoteproc",
                .title = fmt::format("Remote processor {}", input.remoteproc_name),
                .looked_at = "/sys/class/remoteproc/*/name",
                .found = fmt::format("{} is {}", rp.folder, input.remoteproc_name),
                .means = {},
                .fix = {}};
    if (rp.folder.empty()) {
        check.state = State::Failed;
        check.found = rp.other_names.empty() ? "no remote processor at all" : fmt::format("only {}", rp.other_names);
        check.means = "Linux cannot load firmware into the Cortex-M33.";
        check.fix =
            "A kernel with CONFIG_IMX_REMOTEPROC, and the node remoteproc-cm33 with its power-domains in the device "
            "tree; in a container: bind /sys (-v /sys:/sys).";
    } else if (!input.look.tree.empty() && !input.look.power_domains) {
        check.state = State::Warning;
        check.found += ", without power-domains";
        check.means =
            "Linux does not power the Cortex-M33's memory before it loads the firmware: a start may stop the whole "
            "board.";
        check.fix = "Add power-domains to the node remoteproc-cm33 in the device tree.";
    }
    return check;
}

Check firmware_check(const CheckInput& input) {
    const auto& rp = input.look.remoteproc;
    Check check{.state = State::Failed,
                .id = "firmware",
                .title = "Firmware runs",
                .looked_at = fmt::format("/sys/class/remoteproc/{}/state", rp.folder.empty() ? "*" : rp.folder),
                .found = rp.state.empty() ? "no state" : rp.state,
                .means = {},
                .fix = {}};
    if (rp.folder.empty()) {
        check.means = "There is no remote processor that could run it.";
        check.fix = "See the check of the remote processor.";
    } else if (rp.runs()) {
        check.state = State::Ok;
        check.found = fmt::format("{}: {}", rp.state, rp.firmware);
    } else {
        check.means = "The Cortex-M33 does nothing, so nobody answers.";
        check.fix = fmt::format(
            "Start the container of the firmware, or by hand:\ncp executorch_runner_cm33.elf /lib/firmware/\necho "
            "executorch_runner_cm33.elf > /sys/class/remoteproc/{0}/firmware\necho start > "
            "/sys/class/remoteproc/{0}/state",
            rp.folder);
        if (input.look.bootargs.find("mcore_booted") == std::string::npos && !input.look.tree.empty())
            check.fix +=
                "\nBefore that: the kernel's command line lacks clk-imx93.mcore_booted, without which a start may "
                "freeze the board.";
    }
    return check;
}

Check tty_check(const CheckInput& input) {
    const BoardLook& look = input.look;
    std::vector<std::string> names;
    for (const unsigned n : look.ttys) names.push_back(fmt::format("/dev/ttyRPMSG{}", n));
    Check check{.state = State::Failed,
                .id = "tty",
                .title = "RPMsg tty",
                .looked_at = "/dev/ttyRPMSG*",
                .found = names.empty() ? "there is none" : fmt::format("{}", fmt::join(names, ", ")),
                .means = {},
                .fix = {}};
    if (names.empty()) {
        check.means = look.remoteproc.runs()
                          ? "The firmware runs, but announced no channel that a driver of this kernel takes."
                          : "It appears when the firmware starts.";
        check.fix = look.remoteproc.runs() ? fmt::format(
                                                 "modprobe rpmsg_tty (or imx_rpmsg_tty); what the firmware says: cat "
                                                 "/sys/kernel/debug/remoteproc/{}/trace0",
                                                 look.remoteproc.folder)
                                           : "See the check of the firmware.";
    } else if (!look.tty_open.empty()) {
        check.found += fmt::format(" ({})", look.tty_open);
        check.means = "It cannot be opened here.";
        check.fix = "Run as root; in a container: --privileged, and /dev bound with its devpts (-v /dev:/dev).";
    } else {
        check.state = State::Ok;
    }
    return check;
}

Check runner_check(const CheckInput& input) {
    Check check{.state = State::Failed,
                .id = "runner",
                .title = "Firmware answers",
                .looked_at = "INFO on the RPMsg tty",
                .found = {},
                .means = {},
                .fix = {}};
    if (input.info) {
        check.found = fmt::format("version {}, protocol {}", input.info->version, input.info->protocol);
        check.state = State::Ok;
        if (input.info->protocol != link::kProtocolName) {
            check.state = State::Failed;
            check.means = fmt::format("This application speaks {}.", link::kProtocolName);
            check.fix = "Deploy firmware and application of the same version.";
        }
        return check;
    }
    const auto& error = input.info.error();
    check.found = error.error.message;
    check.means = std::string(link::host::board_fault_text(error.fault)) + ".";
    check.fix = advice(error);
    if (error.fault == BoardFault::Busy) check.state = State::Warning;
    for (const std::string& line : error.known) check.fix += "\n" + line;
    return check;
}

Check program_check(const CheckInput& input) {
    Check check{.state = State::Failed,
                .id = "program",
                .title = "Program (.pte)",
                .looked_at = input.program_path.empty() ? "--program" : input.program_path,
                .found = {},
                .means = {},
                .fix = {}};
    if (input.program == nullptr) {
        check.found = input.program_error.empty() ? "none was given" : input.program_error;
        check.means = "There is nothing to run.";
        check.fix = "Start with --program FILE.pte, or upload one on this page.";
        if (!input.program_error.empty())
            check.fix =
                "See what is wrong with the file: talpa inspect FILE.pte. Then compile and deploy it again (talpa "
                "compile "
                "MODEL -o FILE.pte; topo deploy), or upload another on this page.";
        return check;
    }
    const bool upper = input.program_bytes > link::kProgram.size;
    check.found = fmt::format("{} bytes for {}, goes to 0x{:08X}", input.program_bytes,
                              input.target.empty() ? "the Cortex-M33 alone" : input.target,
                              upper ? link::kBigPrograms.base : link::kProgram.base);
    check.state = State::Ok;
    if (input.target.empty()) {
        check.state = State::Warning;
        check.means = "Nothing in it runs on the NPU, and the firmware carries few CPU operators.";
        check.fix = "Compile it for ethos-u65-256.";
    } else if (input.target != kTarget) {
        check.state = State::Failed;
        check.means = "The NPU of the i.MX 93 is an Ethos-U65 with 256 MACs; it refuses programs for others.";
        check.fix = "Compile it for ethos-u65-256.";
    } else if (!input.program->firmware_lacks.empty()) {
        check.state = State::Warning;
        check.found += "; " + input.program->firmware_lacks;
        check.means = "The firmware as it is built carries quantize and dequantize alone, and refuses such a program.";
        check.fix = "Compile the model so that these run on the NPU: talpa compile names each and the reason.";
    }
    return check;
}

Check labels_check(const CheckInput& input) {
    Check check{.state = State::Ok,
                .id = "labels",
                .title = "Labels",
                .looked_at = input.labels_path.empty() ? "--labels" : input.labels_path,
                .found = {},
                .means = {},
                .fix = {}};
    if (input.labels == nullptr || input.labels->empty()) {
        check.state = State::Warning;
        check.found = input.labels_error.empty() ? "none were given" : input.labels_error;
        check.means = "Classes are shown by their numbers only.";
        check.fix = "Start with --labels FILE: one name a line, line 1 for class 0.";
        return check;
    }
    check.found = fmt::format("{} labels", input.labels->size());
    if (input.program != nullptr && input.program->classes != 0) {
        check.found += fmt::format(" for {} classes", input.program->classes);
        if (const auto enough = input.labels->check_enough_for(input.program->classes); !enough) {
            check.state = State::Failed;
            check.means = enough.error().message;
            check.fix = enough.error().hint;
        } else if (input.labels->size() > input.program->classes + 1) {
            check.state = State::Warning;
            check.means = "There are more labels than classes: names may be shifted.";
            check.fix = "Is it the label file of this network? See --label-offset.";
        }
    }
    return check;
}

}  // namespace

std::vector<Check> board_checks(const CheckInput& input) {
    return {range_check(input.look, "reserved-model", link::kModelRegion, "a program", kModelNode),
            range_check(input.look, "reserved-ethosu", link::kEthosuRegion, "the NPU's working memory", kEthosuNode),
            memory_check(input.look),
            ethosu_check(input.look),
            remoteproc_check(input),
            firmware_check(input),
            tty_check(input),
            runner_check(input),
            program_check(input),
            labels_check(input)};
}

std::string_view check_state_name(Check::State state) {
    return state == State::Ok ? "ok" : state == State::Warning ? "warning" : "failed";
}

host::Json to_json(const std::vector<Check>& checks) {
    host::Json list = host::Json::array();
    std::size_t failed = 0, warnings = 0;
    for (const Check& check : checks) {
        failed += check.state == State::Failed;
        warnings += check.state == State::Warning;
        list.push_back({{"id", check.id},
                        {"title", check.title},
                        {"state", check_state_name(check.state)},
                        {"looked_at", check.looked_at},
                        {"found", check.found},
                        {"means", check.means},
                        {"fix", check.fix}});
    }
    return {{"failed", failed}, {"warnings", warnings}, {"checks", std::move(list)}};
}

}  // namespace talpa::webapp
