#include "generator.h"

#include <algorithm>
#include <bit>

namespace talpa::m33_test {

namespace {

// Registers by role in groups that use memory: bases and the index keep their values (but for write-back), so that
// addresses stay inside the data.
constexpr std::uint32_t kTransferLow = 0x001F;
constexpr std::uint32_t kTransferHigh = 0x0C00;
constexpr std::uint32_t kAnyLow = 0x00FF;
constexpr std::uint32_t kAnyHigh = 0x5F00;  // r8-r12, lr

std::uint32_t pick_register(std::uint32_t mask, Random& random) {
    auto n = random() % static_cast<unsigned>(std::popcount(mask));
    for (; n != 0; n--) mask &= mask - 1;
    return static_cast<std::uint32_t>(std::countr_zero(mask));
}

std::uint32_t field_value(char letter, unsigned width, const std::string_view group, Random& random) {
    const bool wide = width >= 4;
    switch (letter) {
        case 'd':
        case 'n':
        case 'm':
        case 'a':
        case 'e': {
            // fp-move must not lose the registers either; branches compare and nothing else.
            return pick_register(wide ? kAnyLow | kAnyHigh : kAnyLow, random);
        }
        case 't':
            return pick_register(wide && group.starts_with("exclusive") ? kTransferLow
                                 : wide                                 ? kTransferLow | kTransferHigh
                                                                        : kTransferLow,
                                 random);
        case 'u':
            return pick_register(kTransferLow | kTransferHigh, random);
        case 'v':
            return pick_register(kTransferHigh, random);
        case 'b':
            return pick_register(wide ? 0x03C0 : 0x00C0, random);
        case 'x':
            return 5;
        case 'p':
            return pick_register(0x1C00, random);
        case 'l':
            return static_cast<std::uint32_t>(random()) & (width == 16 ? kTransferLow | kTransferHigh : kTransferLow);
        default:
            return static_cast<std::uint32_t>(random()) & ((1ULL << width) - 1);
    }
}

std::string compact(std::string_view pattern) {
    std::string out;
    for (char c : pattern)
        if (c != ' ') out += c;
    return out;
}

std::uint32_t fill(const std::string& pattern, std::string_view group, Random& random) {
    std::uint32_t word = 0;
    std::array<unsigned, 128> width{};
    for (char c : pattern) width[static_cast<unsigned char>(c)]++;
    std::array<std::uint32_t, 128> value{};
    for (unsigned c = 'a'; c <= 'z'; c++)
        if (width[c] != 0) value[c] = field_value(static_cast<char>(c), width[c], group, random);
    for (char c : pattern) {
        unsigned bit = 0;
        if (c == '1')
            bit = 1;
        else if (c != '0')
            bit = (value[static_cast<unsigned char>(c)] >> --width[static_cast<unsigned char>(c)]) & 1;
        word = (word << 1) | bit;
    }
    return word;
}

std::uint32_t field(std::uint32_t word, unsigned low, unsigned count) {
    return (word >> low) & ((1U << count) - 1);
}

bool allowed(const Encoding& e, std::uint32_t w) {
    const std::uint32_t lsb = (field(w, 12, 3) << 2) | field(w, 6, 2);
    switch (e.rule) {
        case Rule::ModifiedImm:
            return field(w, 26, 1) != 0 || field(w, 14, 1) != 0 || field(w, 12, 2) == 0 || (w & 0xFF) != 0;
        case Rule::Field:
            return lsb + field(w, 0, 5) <= 31;
        case Rule::Insert:
            return field(w, 0, 5) >= lsb;
        case Rule::ShiftedZero:
            return lsb != 0;
        case Rule::DistinctPair: {
            const bool vmov = (w >> 24) == 0xEC;
            return vmov ? field(w, 16, 4) != field(w, 12, 4) : field(w, 12, 4) != field(w, 8, 4);
        }
        case Rule::FpCorePair:
            return field(w, 16, 4) != field(w, 12, 4) && (field(w, 0, 4) * 2 + field(w, 5, 1)) < 31;
        case Rule::FpList: {
            const bool d = field(w, 8, 1) != 0;
            const std::uint32_t first = d ? field(w, 12, 4) * 2 : field(w, 12, 4) * 2 + field(w, 22, 1);
            return (w & 0xFF) != 0 && first + (w & 0xFF) <= 32;
        }
        case Rule::FixedWidth:
            return field(w, 0, 4) * 2 + field(w, 5, 1) <= (field(w, 7, 1) != 0 ? 32U : 16U);
        case Rule::SameRegister:
            return field(w, 16, 4) == field(w, 0, 4);
        case Rule::FlagsOfApsr:
            return field(w, 10, 2) != 0;
        default:
            break;
    }
    const std::string pattern = compact(e.pattern);
    if (pattern.find('l') != std::string::npos) {
        const std::uint32_t list = pattern.size() == 16 ? w & 0xFF : w & 0xFFFF;
        return std::popcount(list) >= (pattern.size() == 16 ? 1 : 2);
    }
    return true;
}

std::uint32_t interesting(Random& random) {
    static constexpr std::uint32_t kValues[] = {0,          1,          2,      0xFFFFFFFF, 0x7FFFFFFF, 0x80000000,
                                                0x80000001, 0x7FFF,     0x8000, 0xFFFF,     0x10000,    0x80008000,
                                                0x7FFF7FFF, 0x80007FFF, 0x7F,   0x80,       0xFF,       0x100,
                                                31,         32,         33,     0x80808080, 0x7F7F7F7F};
    switch (random() % 4) {
        case 0:
            return kValues[random() % std::size(kValues)];
        case 1:
            return static_cast<std::uint32_t>(random()) >> (random() % 32);
        default:
            return static_cast<std::uint32_t>(random());
    }
}

std::uint32_t interesting_float(Random& random) {
    static constexpr std::uint32_t kValues[] = {
        0,          0x80000000, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFC12345,
        0xFFA00000, 1,          0x80000001, 0x007FFFFF, 0x00800000, 0x00800001, 0x7F7FFFFF, 0xFF7FFFFF, 0x4F000000,
        0xCF000000, 0x4EFFFFFF, 0x4F800000, 0x3F000000, 0x3F7FFFFF, 0x47000000, 0x38800000, 0x33800000};
    const auto bits = static_cast<std::uint32_t>(random());
    switch (random() % 6) {
        case 0:
            return kValues[random() % std::size(kValues)];
        case 1:
            return bits;  // any exponent
        case 2:
            return (bits & 0x807FFFFF) | (static_cast<std::uint32_t>(118 + random() % 20) << 23);  // near one
        case 3:
            return (bits & 0x807FFFFF) | (static_cast<std::uint32_t>(random() % 4) << 23);  // tiny
        case 4:
            return (bits & 0x80000000) | (static_cast<std::uint32_t>(126 + random() % 34) << 23) |
                   ((bits & 0x7FF) << 12);  // halves of integers
        default:
            return (bits & 0x807FF000) | (static_cast<std::uint32_t>(100 + random() % 60) << 23);
    }
}

}  // namespace

bool uses_memory(std::string_view group) {
    return group.starts_with("load-store") || group == "fp-load-store" || group.starts_with("exclusive") ||
           group == "ordered" || group == "branch";
}

std::uint32_t branch_target(Random& random) {
    return kCode + kCodeSize / 2 + (static_cast<std::uint32_t>(random() % (kCodeSize / 2)) | 1);
}

std::uint32_t comparable_flags(std::string_view group) {
    return group == "multiply-add-dual" ? 0xF00F0000 : 0xF80F0000;
}

std::vector<std::string_view> group_names() {
    std::vector<std::string_view> names;
    for (const Encoding& e : encodings())
        if (std::find(names.begin(), names.end(), e.group) == names.end()) names.push_back(e.group);
    return names;
}

Sequence make_sequence(std::string_view group, unsigned length, Random& random) {
    std::vector<const Encoding*> choices;
    for (const Encoding& e : encodings())
        if (e.group == group) choices.push_back(&e);
    Sequence out;
    out.branches = group == "branch";
    unsigned in_it = 0;
    const auto add = [&](std::uint32_t word, bool wide) {
        if (wide) out.code.push_back(static_cast<std::uint16_t>(word >> 16));
        out.code.push_back(static_cast<std::uint16_t>(word));
        out.instructions++;
    };
    while (out.instructions < length || in_it != 0) {
        if (in_it == 0 && !out.branches && random() % 6 == 0) {
            const auto condition = static_cast<std::uint32_t>(random() % 14);
            const auto mask = static_cast<std::uint32_t>(1 + random() % 15);
            add(0xBF00 | (condition << 4) | mask, false);
            in_it = 4 - static_cast<unsigned>(std::countr_zero(mask));
            out.text += "IT; ";
        }
        const Encoding& e = *choices[random() % choices.size()];
        if (in_it != 0 && e.rule == Rule::NotInIt) continue;
        const std::string pattern = compact(e.pattern);
        const std::uint32_t word = fill(pattern, group, random);
        if (!allowed(e, word)) continue;
        add(word, pattern.size() == 32);
        out.text += std::string(e.name) + "; ";
        if (in_it != 0) in_it--;
    }
    return out;
}

State make_state(std::string_view group, Random& random) {
    State state;
    for (auto& r : state.r) r = interesting(random);
    for (auto& value : state.s)
        value = group.starts_with("fp") ? interesting_float(random) : static_cast<std::uint32_t>(random());
    state.r[13] = kData + kDataSize / 2 + 4 * static_cast<std::uint32_t>(random() % 64);
    if (uses_memory(group)) {
        const bool aligned = group != "load-store";
        for (unsigned base : {6U, 7U, 8U, 9U})
            state.r[base] = kData + kDataSize / 2 + static_cast<std::uint32_t>(random() % 256) * (aligned ? 4 : 1);
        if (group.starts_with("exclusive"))
            for (unsigned base : {7U, 8U, 9U}) state.r[base] = random() % 2 == 0 ? state.r[6] : state.r[base];
        state.r[5] = static_cast<std::uint32_t>(random() % 256);
        if (group == "branch") {
            state.r[5] &= 0x3F;
            for (unsigned pointer : {10U, 11U, 12U}) state.r[pointer] = branch_target(random);
        }
    }
    state.apsr = static_cast<std::uint32_t>(random()) & 0xF80F0000;
    state.fpscr = static_cast<std::uint32_t>(random()) & 0xF7C0009F;
    if (random() % 2 == 0)
        state.fpscr = (state.fpscr & 0xF0C00000 & ~0x00C00000U) | 0x10;  // the common case: nearest, inexact seen
    if (group == "fp-from-fixed") state.fpscr &= ~0x00C00000U;
    return state;
}

}  // namespace talpa::m33_test
