// m33_differential: random instruction sequences on our Cortex-M33 and on Unicorn's, compared in all registers, flags
// and memory. Prints a line a group; the first difference ends the run with what is needed to repeat it.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "board/cpu/cpu.h"
#include "board/cpu/machine.h"
#include "generator.h"
#include "oracle.h"

namespace {

using namespace talpa::m33_test;
using talpa::board::cpu::Bus;
using talpa::board::cpu::Cpu;
using talpa::board::cpu::Options;
using talpa::board::cpu::Ram;
using talpa::board::cpu::Registers;
using talpa::board::cpu::Stop;

constexpr unsigned kSequenceLength = 12;
constexpr unsigned kStatesPerSequence = 96;
constexpr unsigned kSequencesPerBatch = 512;
constexpr unsigned kBatchesPerOracle = 4;
constexpr std::uint32_t kFirstCode = kCode + 0x2000;  // room for branches backwards
// Branches land on permanently undefined instructions, where Unicorn stops: pieces lie apart by more than they can
// jump.
constexpr std::uint32_t kBranchSpacing = 0x2800;
constexpr unsigned kBranchesPerBatch = 12;
constexpr std::uint16_t kUndefined = 0xDE00;

struct Placed {
    Sequence sequence;
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    unsigned instructions = 0;  ///< with the prologue
    std::uint32_t r12 = 0;
};

class Ours {
  public:
    Ours(std::span<std::uint8_t> code, std::span<std::uint8_t> data, bool translate)
        : code_(code), data_(data), cpu_(bus_, Options{.translate = translate, .translate_after = 1}) {
        if (!bus_.add_ram("code", kCode, kCodeSize, code_) || !bus_.add_ram("data", kData, kDataSize, data_))
            std::abort();
        cpu_.machine().scs.cpacr = 0x00F00000;
        cpu_.machine().exceptions.apply_mode();
    }

    std::uint32_t run(std::uint32_t begin, unsigned instructions, State& state, std::string& error) {
        Registers registers;
        std::copy(state.r.begin(), state.r.end(), registers.r.begin());
        registers.msp = state.r[13];
        registers.r[15] = begin;
        registers.xpsr = state.apsr & 0xF8000000;
        registers.control = 0xC;  // FP context active
        registers.s = state.s;
        registers.fpscr = state.fpscr;
        cpu_.set_registers(registers);
        const std::uint64_t faults = cpu_.exceptions_taken();
        const Stop stop = cpu_.run(instructions);
        registers = cpu_.registers();
        if (stop != Stop::Limit || cpu_.exceptions_taken() != faults || cpu_.locked_up()) {
            char text[96];
            std::snprintf(text, sizeof text, "stopped: %s, CFSR %08x", talpa::board::cpu::stop_name(stop),
                          cpu_.machine().scs.cfsr);
            error = text;
            cpu_.machine().exceptions.locked_up = false;
        }
        std::copy(registers.r.begin(), registers.r.begin() + 15, state.r.begin());
        state.apsr = registers.xpsr & 0xF80F0000;
        state.s = registers.s;
        state.fpscr = registers.fpscr;
        return registers.r[15];
    }
    void forget_code() { cpu_.code_changed(); }

  private:
    Bus bus_;
    Ram code_;
    Ram data_;
    Cpu cpu_;
};

void put(std::vector<std::uint8_t>& code, std::uint32_t& at, std::uint16_t half) {
    std::memcpy(code.data() + (at - kCode), &half, 2);
    at += 2;
}

/// MSR APSR_nzcvqg from r12, then r12 = constant: all flags and GE start as the state says on both machines.
void put_prologue(std::vector<std::uint8_t>& code, std::uint32_t& at, std::uint32_t constant) {
    put(code, at, 0xF38C);
    put(code, at, 0x8C00);
    for (unsigned part = 0; part < 2; part++) {
        const std::uint32_t imm = (constant >> (16 * part)) & 0xFFFF;
        put(code, at, static_cast<std::uint16_t>(0xF240 | (part << 7) | ((imm >> 1) & 0x400) | (imm >> 12)));
        put(code, at, static_cast<std::uint16_t>(0x0C00 | ((imm << 4) & 0x7000) | (imm & 0xFF)));
    }
}

struct Arguments {
    std::uint64_t count = 1000000;
    std::uint64_t seed = 1;
    std::string group;
    bool list = false;
    bool table = false;
    bool translate = true;
    unsigned part = 0;  ///< only every `parts`th group
    unsigned parts = 1;
};

class Run {
  public:
    explicit Run(const Arguments& arguments)
        : arguments_(arguments),
          code_(kCodeSize),
          our_data_(kDataSize),
          their_data_(kDataSize),
          ours_(code_, our_data_, arguments.translate),
          oracle_(std::make_unique<Oracle>(code_, their_data_)) {}

    bool group(std::string_view name) {
        random_.seed(arguments_.seed * 1000003 + std::hash<std::string_view>{}(name) % 1000003);
        const auto start = std::chrono::steady_clock::now();
        std::uint64_t done = 0;
        while (done < arguments_.count) {
            if (!batch(name, done)) return false;
        }
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        std::printf("%-20.*s %10llu instructions, 0 differences  (%.1f s)\n", static_cast<int>(name.size()),
                    name.data(), static_cast<unsigned long long>(done), took.count());
        std::fflush(stdout);
        return true;
    }

  private:
    bool batch(std::string_view name, std::uint64_t& done) {
        for (auto& byte : our_data_) byte = static_cast<std::uint8_t>(random_());
        const bool branches = name == "branch";
        if (branches) {
            // Words that LDR PC may load, whose halves are offsets for TBH out of the part that holds sequences.
            for (std::size_t i = 0; i < our_data_.size(); i += 4) {
                const std::uint32_t word = 0x0003F001U | static_cast<std::uint32_t>(random_() & 0xFFE);
                std::memcpy(our_data_.data() + i, &word, 4);
            }
            for (std::size_t i = 0; i < code_.size(); i += 2) std::memcpy(code_.data() + i, &kUndefined, 2);
        }
        their_data_ = our_data_;
        std::uint32_t at = kFirstCode;
        std::vector<Placed> placed;
        for (unsigned i = 0; i < (branches ? kBranchesPerBatch : kSequencesPerBatch); i++) {
            Placed p;
            p.sequence = make_sequence(name, branches ? 1 : kSequenceLength, random_);
            p.begin = at;
            p.r12 = branches ? branch_target(random_) : static_cast<std::uint32_t>(random_());
            put_prologue(code_, at, p.r12);
            for (std::uint16_t half : p.sequence.code) put(code_, at, half);
            p.end = at;
            p.instructions = 3 + p.sequence.instructions;
            if (branches) {
                at = p.begin + kBranchSpacing;
                placed.push_back(std::move(p));
                continue;
            }
            // A branch to itself: our block ends here, and executing it leaves PC where Unicorn stops.
            put(code_, at, 0xE7FE);
            for (unsigned pad = 0; pad < 3; pad++) put(code_, at, 0xBF00);
            at = (at + 3) & ~3U;
            placed.push_back(std::move(p));
        }
        ours_.forget_code();
        // Unicorn 2.0.1 loses memory whenever its code changes, and after some ten million instructions it faults in
        // its own bookkeeping (page_collection_lock): it is made anew before that.
        if (++batches_ % kBatchesPerOracle == 0) oracle_ = std::make_unique<Oracle>(code_, their_data_);
        oracle_->forget_code();
        for (unsigned n = 0; n < kStatesPerSequence; n++)
            for (const Placed& p : placed) {
                if (!compare(name, p)) return false;
                done += p.sequence.instructions;
            }
        return true;
    }

    bool compare(std::string_view name, const Placed& p) {
        State before = make_state(name, random_);
        before.r[12] = before.apsr;
        State a = before;
        State b = before;
        std::string our_error;
        std::string their_error;
        const std::uint32_t our_pc = ours_.run(p.begin, p.instructions + (p.sequence.branches ? 0 : 1), a, our_error);
        // A short branch back into its own sequence would go on there on the other machine.
        if (p.sequence.branches && our_pc >= p.begin && our_pc < p.end) return true;
        const std::uint32_t their_pc = oracle_->run(p.begin, p.sequence.branches ? 0 : p.end, b, their_error);
        if (p.sequence.branches && Oracle::stopped_at_undefined(their_error)) their_error.clear();
        a.apsr &= comparable_flags(name);
        b.apsr &= comparable_flags(name);
        const bool memory = uses_memory(name);
        if (a == b && our_pc == their_pc && our_error == their_error && (!memory || our_data_ == their_data_))
            return true;
        report(name, p, before, a, b, our_pc, their_pc, our_error, their_error);
        return false;
    }

    void report(std::string_view name, const Placed& p, const State& before, const State& a, const State& b,
                std::uint32_t our_pc, std::uint32_t their_pc, const std::string& our_error,
                const std::string& their_error) {
        std::printf("%.*s: DIFFERENCE at %08x (seed %llu): %s\n  code:", static_cast<int>(name.size()), name.data(),
                    p.begin, static_cast<unsigned long long>(arguments_.seed), p.sequence.text.c_str());
        for (std::uint16_t half : p.sequence.code) std::printf(" %04x", half);
        std::printf("\n  ours: %s pc %08x   unicorn: %s pc %08x\n", our_error.c_str(), our_pc, their_error.c_str(),
                    their_pc);
        const auto row = [](const char* what, unsigned n, std::uint32_t in, std::uint32_t x, std::uint32_t y) {
            std::printf("  %s%-2u before %08x  ours %08x  unicorn %08x%s\n", what, n, in, x, y, x != y ? "  <--" : "");
        };
        for (unsigned i = 0; i < 15; i++) row("r", i, i == 12 ? p.r12 : before.r[i], a.r[i], b.r[i]);
        row("apsr", 0, before.apsr, a.apsr, b.apsr);
        row("fpscr", 0, before.fpscr, a.fpscr, b.fpscr);
        for (unsigned i = 0; i < 32; i++)
            if (a.s[i] != b.s[i] || name.starts_with("fp")) row("s", i, before.s[i], a.s[i], b.s[i]);
        for (std::size_t i = 0; i < our_data_.size(); i++)
            if (our_data_[i] != their_data_[i])
                std::printf("  [%08zx] ours %02x unicorn %02x\n", kData + i, our_data_[i], their_data_[i]);
    }

    Arguments arguments_;
    Random random_;
    std::vector<std::uint8_t> code_;
    std::vector<std::uint8_t> our_data_;
    std::vector<std::uint8_t> their_data_;
    Ours ours_;
    std::unique_ptr<Oracle> oracle_;
    std::uint64_t batches_ = 0;
};

/// The evidence table of docs/board-cpu.md.
int print_table() {
    std::printf("| group | encodings drawn |\n| --- | --- |\n");
    for (std::string_view name : group_names()) {
        std::string row;
        for (const Encoding& e : encodings()) {
            if (e.group != name) continue;
            if (!row.empty()) row += ", ";
            row += e.name;
        }
        std::printf("| %.*s | %s |\n", static_cast<int>(name.size()), name.data(), row.c_str());
    }
    return 0;
}

int usage() {
    std::fprintf(stderr,
                 "usage: m33_differential [--group NAME] [--count INSTRUCTIONS-A-GROUP] [--seed N] [--part K/N] "
                 "[--interpret] "
                 "[--list] [--table]\n");
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    Arguments arguments;
    for (int i = 1; i < argc; i++) {
        const std::string option = argv[i];
        const bool has_value = i + 1 < argc;
        if (option == "--list")
            arguments.list = true;
        else if (option == "--table")
            arguments.table = true;
        else if (option == "--interpret")
            arguments.translate = false;
        else if (option == "--group" && has_value)
            arguments.group = argv[++i];
        else if (option == "--count" && has_value)
            arguments.count = std::strtoull(argv[++i], nullptr, 10);
        else if (option == "--seed" && has_value)
            arguments.seed = std::strtoull(argv[++i], nullptr, 10);
        else if (option == "--part" && has_value &&
                 std::sscanf(argv[i + 1], "%u/%u", &arguments.part, &arguments.parts) == 2 && arguments.parts != 0)
            i++;
        else
            return usage();
    }
    if (arguments.list) {
        for (std::string_view name : group_names()) std::printf("%.*s\n", static_cast<int>(name.size()), name.data());
        return 0;
    }
    if (arguments.table) return print_table();
    Run run(arguments);
    bool good = true;
    unsigned matched = 0;
    for (std::string_view name : group_names()) {
        if (!arguments.group.empty() && name != arguments.group) continue;
        if (matched++ % arguments.parts != arguments.part) continue;
        good = run.group(name) && good;
    }
    if (matched == 0) {
        std::fprintf(stderr, "m33_differential: no group '%s'; --list shows them\n", arguments.group.c_str());
        return 2;
    }
    return good ? 0 : 1;
}
