// What a bundle may ask for by annotations. One table: the parser, `remoteproc-runtime features` and the docs use it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "remoteproc/oci/settings.h"
#include "remoteproc/oci/spec.h"

namespace talpa::remoteproc {

struct AnnotationInfo {
    std::string_view key;
    std::string_view values;  ///< what may stand there; the first is the default where there is one
    std::string_view text;
};
[[nodiscard]] std::span<const AnnotationInfo> known_annotations();

/// Keys of the state that are the runtime's own; a bundle that sets them does not win.
inline constexpr std::string_view kDriverPathKey = "remoteproc.driver-path";
inline constexpr std::string_view kFirmwarePathKey = "remoteproc.firmware-path";
inline constexpr std::string_view kStoredPathKey = "remoteproc.stored-firmware-path";

enum class Ownerless : std::uint8_t { Stop, Adopt, Refuse };
enum class Recovery : std::uint8_t { Keep, Enabled, Disabled };

struct Wishes {
    Selector selector;
    std::string sha256;  ///< empty: any
    ElfWishes elf;
    std::uint64_t max_size = kDefaultFirmwareLimit;
    int start_timeout_ms = 60000;
    int start_retries = 0;
    Recovery recovery = Recovery::Keep;
    int recovery_timeout_ms = 10000;
    Ownerless ownerless = Ownerless::Stop;
    bool replace_attached = false;
    std::string log = "auto";  ///< "auto", "none" or "traceN"
    std::string console;       ///< a tty, or empty
    int heartbeat_ms = 10000;  ///< 0: not watched
};

/// The annotations' meaning. `spec` nullptr: a container that exists already (its selector is not needed then). The
/// text about the missing name is what engines match (section 8, E2).
[[nodiscard]] Result<Wishes> read_wishes(const Annotations& annotations, const Spec* spec, bool runc_style);

/// Whether the selection came from a fallback that deserves a warning, and its text.
[[nodiscard]] std::optional<std::string> selection_warning(const Annotations& annotations, const Wishes& wishes);

}  // namespace talpa::remoteproc
