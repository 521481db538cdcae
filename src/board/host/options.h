// What a user may ask of a virtual board: the words of --without, --quirk and --kernel, as tables for the command
// line, its help and the docs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/host/error.h"
#include "board/host/forward.h"
#include "board/linux/remoteproc.h"

namespace talpa::board {

/// X(enumerator, word, what the board then lacks)
#define TALPA_BOARD_WITHOUT(X)                                                                                     \
    X(ReservedMemory, "reserved-memory", "no node model@c0000000: /dev/mem has no memory set aside for a program") \
    X(EthosuRegion, "ethosu-region", "ethosu_region@A8000000 is the vendor's `reusable`, not `no-map`")            \
    X(EthosuDevice, "ethosu-device", "no /dev/ethosu0: the NPU's driver is not bound, and the NPU has no power")   \
    X(Devmem, "devmem", "no /dev/mem")                                                                             \
    X(IomemRelaxed, "iomem-relaxed", "no iomem=relaxed in bootargs: /dev/mem answers EPERM")                       \
    X(PowerDomain, "power-domain", "no power-domains in remoteproc-cm33: a start is an SError panic")              \
    X(McoreBooted, "mcore-booted", "no clk-imx93.mcore_booted in bootargs: a start freezes the board")             \
    X(NpuClock, "npu-clock", "the NPU has neither power nor clock: the M33's first access faults")                 \
    X(Rpmsg, "rpmsg", "no driver for the announced channels: no /dev/ttyRPMSG appears")

/// X(enumerator, word, what the board then does)
#define TALPA_BOARD_QUIRKS(X)                                                                                          \
    X(MuSurvivesStop, "mu-survives-stop", "a stop leaves the Messaging Unit's words behind, as silicon does")          \
    X(TableCopyOnly, "table-copy-only", "Linux updates only its own copy of the resource table")                       \
    X(NxpTty, "nxp-tty", "the vendor's tty driver: other channel names, echo, \"hello world!\", /dev/ttyRPMSG30")      \
    X(Attached, "attached", "U-Boot started the M33 (with --boot FILE.elf): the state is `attached`")                  \
    X(FaultCrashes, "fault-crashes", "a fault of the M33 is reported to Linux (other chips do; the i.MX 93 does not)") \
    X(EccPoison, "ecc-poison", "reading TCM that nobody has written is an ECC error")                                  \
    X(TrdcDeny, "trdc-deny", "the bus firewall keeps the NPU out of DDR: a bus error")

#define X(name, word, text) name,
enum class Without : std::uint8_t { TALPA_BOARD_WITHOUT(X) };
enum class Quirk : std::uint8_t { TALPA_BOARD_QUIRKS(X) };
#undef X

struct OptionWord {
    std::string_view word, text;
};
[[nodiscard]] std::span<const OptionWord> without_words();
[[nodiscard]] std::span<const OptionWord> quirk_words();
[[nodiscard]] std::span<const OptionWord> kernel_words();

struct BoardOptions {
    std::string name;            ///< how other commands call the board
    std::filesystem::path root;  ///< serve below this folder, without namespaces; empty: in namespaces
    unsigned remoteprocs = 1;
    KernelProfile kernel = KernelProfile::Bsp66;
    unsigned startup_delay_ms = 500;
    unsigned npu_threads = 2;
    std::set<Without> without;
    std::set<Quirk> quirks;
    std::optional<std::uint16_t> ssh_port;  ///< sshd's on the user's machine; 0: any
    std::vector<PublishedPort> published;
    std::vector<std::filesystem::path> shared;  ///< folders that programs on the board may change; absolute
    std::string address = "127.0.0.1";          ///< where those listen
    std::vector<std::uint8_t> boot_image;       ///< with Quirk::Attached: the ELF that U-Boot loaded

    [[nodiscard]] bool lacks(Without w) const { return without.contains(w); }
    [[nodiscard]] bool has(Quirk q) const { return quirks.contains(q); }
};

/// InvalidArgument naming the word and those there are.
[[nodiscard]] host::Result<std::set<Without>> parse_without(const std::vector<std::string>& words);
[[nodiscard]] host::Result<std::set<Quirk>> parse_quirks(const std::vector<std::string>& words);
[[nodiscard]] host::Result<KernelProfile> parse_kernel(const std::string& word);
/// Letters, digits, dot, dash and underscore; at most 32.
[[nodiscard]] host::Result<void> check_board_name(std::string_view name);

}  // namespace talpa::board
