#include "board/gdb/session.h"

#include <fmt/format.h>

#include "board/gdb/packet.h"
#include "board/gdb/registers.h"

namespace talpa::board::gdb {
namespace {

constexpr std::string_view kOk = "OK", kBadArguments = "E16", kNoMemory = "E0e";
constexpr std::uint32_t kMostMemory = 0x1000;  // of one packet

/// "a,b" as two hex numbers.
std::optional<std::pair<std::uint32_t, std::uint32_t>> two_numbers(std::string_view text) {
    const std::size_t comma = text.find(',');
    if (comma == std::string_view::npos) return std::nullopt;
    const auto a = hex_number(text.substr(0, comma)), b = hex_number(text.substr(comma + 1));
    if (!a || !b) return std::nullopt;
    return std::pair{*a, *b};
}

}  // namespace

Session::Session(Machine& machine) : machine_(machine) {
    machine_.debug_halt();
}

Session::~Session() {
    machine_.debug_halt();
    for (const std::uint32_t address : breakpoints_) machine_.debug_core().remove_breakpoint(address);
    machine_.debug_detach();
}

void Session::interrupt() {
    if (!running_) return;
    interrupted_ = true;
    machine_.debug_halt();
}

std::optional<std::string> Session::stopped(std::chrono::milliseconds at_most) {
    if (!running_) return std::nullopt;
    const auto why = machine_.debug_wait(at_most);
    if (!why) return std::nullopt;
    running_ = false;
    return stop_reply(*why);
}

std::string Session::stop_reply(Halt why) const {
    switch (why) {
        case Halt::Breakpoint:
            return "T05swbreak:;thread:1;";
        case Halt::Lockup:
            return "T0bthread:1;";  // SIGSEGV
        case Halt::Stepped:
            return "T05thread:1;";
        case Halt::Requested:
        case Halt::HeldByLinux:
            break;
    }
    return interrupted_ ? "T02thread:1;" : "T05thread:1;";
}

Session::Answer Session::handle(std::string_view packet) {
    Answer answer;
    const char command = packet.empty() ? '\0' : packet[0];
    const std::string_view rest = packet.substr(packet.empty() ? 0 : 1);
    switch (command) {
        case '?':
            answer.payload = stop_reply(Halt::Requested);
            return answer;
        case 'g': {
            std::string all;
            const cpu::Registers registers = machine_.debug_core().registers();
            for (unsigned i = 0; i < register_count(); ++i) all += *read_register(registers, i);
            answer.payload = to_hex(all);
            return answer;
        }
        case 'G':
            answer.payload = write_registers(rest);
            return answer;
        case 'p': {
            const auto number = hex_number(rest);
            const auto bytes = number ? read_register(machine_.debug_core().registers(), *number) : std::nullopt;
            answer.payload = bytes ? to_hex(*bytes) : std::string(kBadArguments);
            return answer;
        }
        case 'P':
            answer.payload = write_one(rest);
            return answer;
        case 'm':
            answer.payload = read_memory(rest);
            return answer;
        case 'M':
            answer.payload = write_memory(rest, false);
            return answer;
        case 'X':
            answer.payload = write_memory(rest, true);
            return answer;
        case 'Z':
        case 'z':
            answer.payload = breakpoint(packet);
            return answer;
        case 'c':
        case 's':
            resume(rest, command == 's');
            return answer;
        case 'C':
        case 'S':  // with a signal, which this core cannot be sent
            resume({}, command == 'S');
            return answer;
        case 'H':
        case 'T':
            answer.payload = kOk;
            return answer;
        case 'D':
            answer.payload = kOk;
            answer.detached = true;
            return answer;
        case 'k':  // "kill": the core belongs to Linux, so this only ends the conversation
            answer.detached = true;
            return answer;
        case 'q':
        case 'Q':
            answer.payload = query(packet, answer);
            return answer;
        case 'v':
            if (packet == "vCont?") {
                answer.payload = "vCont;c;C;s;S";
            } else if (packet.starts_with("vCont;")) {
                resume({}, packet[6] == 's' || packet[6] == 'S');
            } else if (packet.starts_with("vKill")) {
                answer.payload = kOk;
                answer.detached = true;
            } else {
                answer.payload = "";
            }
            return answer;
        default:
            answer.payload = "";  // not known
            return answer;
    }
}

std::string Session::query(std::string_view packet, Answer& answer) const {
    if (packet.starts_with("qSupported"))
        return "PacketSize=2000;qXfer:features:read+;QStartNoAckMode+;swbreak+;hwbreak+;vContSupported+";
    if (packet == "QStartNoAckMode") {
        answer.leave_acknowledging = true;
        return std::string(kOk);
    }
    if (packet.starts_with("qAttached")) return "1";
    if (packet == "qC") return "QC1";
    if (packet == "qfThreadInfo") return "m1";
    if (packet == "qsThreadInfo") return "l";
    if (packet.starts_with("qSymbol")) return std::string(kOk);
    constexpr std::string_view kFeatures = "qXfer:features:read:target.xml:";
    if (packet.starts_with(kFeatures)) {
        const auto range = two_numbers(packet.substr(kFeatures.size()));
        const std::string& xml = target_description();
        if (!range || range->first > xml.size()) return std::string(kBadArguments);
        const std::string part = xml.substr(range->first, std::min(range->second, kMostMemory));
        return (range->first + part.size() < xml.size() ? "m" : "l") + part;
    }
    return "";
}

std::string Session::read_memory(std::string_view arguments) {
    const auto range = two_numbers(arguments);
    if (!range || range->second > kMostMemory) return std::string(kBadArguments);
    std::string bytes;
    auto [address, left] = *range;
    while (left > 0) {
        // Registers of devices want whole words; a word is also what RAM gives fastest.
        const unsigned size = address % 4 == 0 && left >= 4 ? 4 : 1;
        std::uint32_t value = 0;
        if (!machine_.debug_core().read_memory(address, size, value)) break;
        for (unsigned i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
        address += size;
        left -= size;
    }
    if (bytes.empty() && range->second > 0) return std::string(kNoMemory);
    return to_hex(bytes);
}

std::string Session::write_memory(std::string_view arguments, bool binary) {
    const std::size_t colon = arguments.find(':');
    const auto range = two_numbers(arguments.substr(0, colon));
    if (colon == std::string_view::npos || !range) return std::string(kBadArguments);
    const std::string_view text = arguments.substr(colon + 1);
    const auto bytes = binary ? std::optional<std::string>(text) : from_hex(text);
    if (!bytes || bytes->size() != range->second) return std::string(kBadArguments);
    for (std::size_t at = 0; at < bytes->size();) {
        const auto address = static_cast<std::uint32_t>(range->first + at);
        const unsigned size = address % 4 == 0 && bytes->size() - at >= 4 ? 4 : 1;
        std::uint32_t value = 0;
        for (unsigned i = size; i-- > 0;) value = value << 8 | static_cast<std::uint8_t>((*bytes)[at + i]);
        if (!machine_.debug_core().write_memory(address, size, value)) return std::string(kNoMemory);
        at += size;
    }
    machine_.debug_core().code_changed();
    return std::string(kOk);
}

std::string Session::breakpoint(std::string_view packet) {
    // Z0 and Z1, software and hardware ones, are the same here; there are no watchpoints (Z2 to Z4).
    if (packet.size() < 4 || (packet[1] != '0' && packet[1] != '1') || packet[2] != ',') return "";
    const auto place = two_numbers(packet.substr(3, packet.find(';') - 3));
    if (!place) return std::string(kBadArguments);
    const std::uint32_t address = place->first & ~1u;
    if (packet[0] == 'Z') {
        breakpoints_.insert(address);
        machine_.debug_core().add_breakpoint(address);
    } else if (breakpoints_.erase(address) != 0) {
        machine_.debug_core().remove_breakpoint(address);
    }
    return std::string(kOk);
}

std::string Session::write_registers(std::string_view hex) {
    const auto bytes = from_hex(hex);
    if (!bytes) return std::string(kBadArguments);
    cpu::Registers registers = machine_.debug_core().registers();
    std::size_t at = 0;
    for (unsigned i = 0; i < register_count(); ++i) {
        const std::size_t size = read_register(registers, i)->size();
        if (at + size > bytes->size()) return std::string(kBadArguments);
        if (!write_register(registers, i, std::string_view(*bytes).substr(at, size))) return std::string(kBadArguments);
        at += size;
    }
    if (at != bytes->size()) return std::string(kBadArguments);
    machine_.debug_core().set_registers(registers);
    return std::string(kOk);
}

std::string Session::write_one(std::string_view arguments) {
    const std::size_t equals = arguments.find('=');
    if (equals == std::string_view::npos) return std::string(kBadArguments);
    const auto number = hex_number(arguments.substr(0, equals));
    const auto bytes = from_hex(arguments.substr(equals + 1));
    cpu::Registers registers = machine_.debug_core().registers();
    if (!number || !bytes || !write_register(registers, *number, *bytes)) return std::string(kBadArguments);
    machine_.debug_core().set_registers(registers);
    return std::string(kOk);
}

void Session::resume(std::string_view address, bool step) {
    if (const auto pc = hex_number(address)) machine_.debug_core().set_pc(*pc);
    interrupted_ = false;
    running_ = true;
    machine_.debug_resume(step);
}

}  // namespace talpa::board::gdb
