#include "compiler/weights/encoder.h"

#include <algorithm>
#include <array>
#include <bit>

#include "compiler/weights/slice_writer.h"

namespace talpa::compiler {
namespace {

constexpr std::size_t kCodes = 512, kModes = 13, kLanes = 16;
constexpr std::size_t kGroup = 32;           // symbols between which the code may change
constexpr std::size_t kMaxSlice = 32768;     // SLICELEN
constexpr std::uint32_t kSwitchCost = 40;    // bits: a slice header, and chunks that drain
constexpr std::uint32_t kImpossible = 1000;  // bits of a symbol that a code cannot express
constexpr unsigned kZeroCodes = 4;           // ZDIV 0..3

WeightCode mode_code(std::size_t mode, unsigned fixed_bits) {
    if (mode == kModes - 1) return {true, static_cast<std::uint8_t>(fixed_bits), false};
    return {false, static_cast<std::uint8_t>(mode % 6), mode >= 6};
}

std::uint32_t symbol_cost(std::uint32_t index, std::size_t mode, unsigned fixed_bits, bool fixed_possible) {
    const WeightCode code = mode_code(mode, fixed_bits);
    if (code.uncompressed) return fixed_possible ? fixed_bits : kImpossible;
    const std::uint32_t q = index >> code.divisor;
    if (code.truncated) return q > 2 ? kImpossible : std::min(q + 1, 2u) + code.divisor;
    return q > 31 ? kImpossible : q + 1 + code.divisor;
}

using Histogram = std::array<std::uint32_t, kCodes>;

// How the values of a section become indices.
struct Coding {
    Palette palette;
    bool zero_runs = false;
    bool fixed_possible = false;
    unsigned fixed_bits = 0;
    std::array<std::uint16_t, kCodes> index{};  // of each value code that occurs

    [[nodiscard]] bool valid(const Histogram& codes) const {
        for (std::size_t c = 0; c < kCodes; ++c)
            if (codes[c] != 0 && index[c] >= kCodes) return false;
        return true;
    }
};

Coding make_coding(const Histogram& codes, std::size_t most_entries, bool zero_runs) {
    Coding coding;
    coding.zero_runs = zero_runs;
    std::vector<std::uint16_t> by_count;
    std::size_t largest = 0;
    for (std::size_t c = 0; c < kCodes; ++c)
        if (codes[c] != 0) {
            by_count.push_back(static_cast<std::uint16_t>(c));
            largest = c;
        }
    std::stable_sort(by_count.begin(), by_count.end(), [&](auto a, auto b) { return codes[a] > codes[b]; });
    if (by_count.size() > most_entries && largest + most_entries > kCodes - 1) most_entries = kCodes - 1 - largest;
    if (most_entries == 1) most_entries = 0;
    const bool all = by_count.size() <= most_entries;
    Palette& p = coding.palette;
    p.entries.assign(by_count.begin(),
                     by_count.begin() + static_cast<std::ptrdiff_t>(std::min(by_count.size(), most_entries)));
    if (p.entries.size() == 1) p.entries.push_back(p.entries[0]);  // a palette of one cannot be written
    std::size_t widest = p.entries.empty() ? largest : *std::max_element(p.entries.begin(), p.entries.end());
    p.bits = static_cast<std::uint8_t>(std::max<int>(2, std::bit_width(widest)));
    // Values outside the palette count from the first that occurs.
    std::vector<bool> in_palette(kCodes);
    for (const std::uint16_t c : p.entries) in_palette[c] = true;
    std::size_t offset = 0;
    while (offset < 31 && offset < kCodes && (codes[offset] == 0 || in_palette[offset]) && !all) ++offset;
    p.direct_offset = static_cast<std::uint8_t>(offset);
    coding.index.fill(kCodes);
    for (std::size_t c = offset; c < kCodes; ++c)
        coding.index[c] = static_cast<std::uint16_t>(std::min(c - offset + p.entries.size(), kCodes));
    for (std::size_t i = p.entries.size(); i-- > 0;) coding.index[p.entries[i]] = static_cast<std::uint16_t>(i);
    if (p.entries.empty()) {
        // Without a palette an uncompressed symbol has as many bits as PALBITS says.
        const std::size_t last = largest - std::min(offset, largest);
        p.bits = static_cast<std::uint8_t>(std::max<int>(2, std::bit_width(last)));
        coding.fixed_bits = p.bits;
        coding.fixed_possible = true;
    } else {
        coding.fixed_bits = static_cast<unsigned>(std::bit_width(p.entries.size() - 1));
        coding.fixed_possible = all;
    }
    return coding;
}

using CostTable = std::vector<std::array<std::uint16_t, kLanes>>;  // per index, bits in each mode

CostTable cost_table(const Coding& coding) {
    CostTable table(kCodes);
    for (std::uint32_t index = 0; index < kCodes; ++index)
        for (std::size_t m = 0; m < kLanes; ++m)
            table[index][m] = static_cast<std::uint16_t>(
                m < kModes ? symbol_cost(index, m, coding.fixed_bits, coding.fixed_possible) : kImpossible);
    return table;
}

// Bits of a whole section with the one best code: what candidates are compared by.
std::uint64_t static_cost(const Histogram& codes, const Coding& coding) {
    std::uint64_t best = UINT64_MAX;
    for (std::size_t m = 0; m < kModes; ++m) {
        std::uint64_t bits = 23 + 13 + coding.palette.entries.size() * coding.palette.bits;
        for (std::size_t c = 0; c < kCodes; ++c)
            if (codes[c] != 0)
                bits +=
                    std::uint64_t{codes[c]} * symbol_cost(coding.index[c], m, coding.fixed_bits, coding.fixed_possible);
        best = std::min(best, bits);
    }
    return best;
}

// Weight symbols and the zero runs around them: runs[i] zeros come before weights[i], the last ones after it.
struct Symbols {
    std::vector<std::uint16_t> weights;
    std::vector<std::uint32_t> runs;
};

Symbols split(std::span<const std::int16_t> values, bool zero_runs) {
    Symbols s;
    s.weights.reserve(values.size());
    if (!zero_runs) {
        for (const std::int16_t v : values) s.weights.push_back(value_code(v));
        return s;
    }
    std::uint32_t run = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        // A slice has at least one weight: if all are zero, the last is written as one.
        const bool last_chance = s.weights.empty() && i + 1 == values.size();
        if (values[i] == 0 && !last_chance) {
            ++run;
            continue;
        }
        s.weights.push_back(value_code(values[i]));
        s.runs.push_back(run);
        run = 0;
    }
    s.runs.push_back(run);
    return s;
}

Histogram count_codes(const std::vector<std::uint16_t>& weights) {
    Histogram codes{};
    for (const std::uint16_t w : weights) ++codes[w];
    return codes;
}

struct RunCost {
    std::uint64_t bits = UINT64_MAX;
    std::uint8_t divisor = 0;
};
RunCost run_cost(std::span<const std::uint32_t> runs) {
    RunCost best;
    for (unsigned divisor = 0; divisor < kZeroCodes; ++divisor) {
        std::uint64_t bits = 0;
        for (const std::uint32_t r : runs) bits += (r >> divisor) + 1 + divisor;
        if (bits < best.bits) best = {bits, static_cast<std::uint8_t>(divisor)};
    }
    return best;
}

struct Slice {
    std::size_t begin, end;
    std::size_t mode;
};

// Where the code changes: dynamic programming over groups of symbols.
std::vector<Slice> choose_slices(const std::vector<std::uint16_t>& indices, const CostTable& table) {
    const std::size_t groups = (indices.size() + kGroup - 1) / kGroup;
    std::array<std::uint64_t, kModes> best{};
    std::vector<std::array<std::uint8_t, kModes>> from(groups);
    for (std::size_t g = 0; g < groups; ++g) {
        std::array<std::uint16_t, kLanes> cost{};
        const std::size_t end = std::min(indices.size(), (g + 1) * kGroup);
        for (std::size_t i = g * kGroup; i < end; ++i) {
            const auto& row = table[indices[i]];
            for (std::size_t m = 0; m < kLanes; ++m) cost[m] = static_cast<std::uint16_t>(cost[m] + row[m]);
        }
        const auto lowest = static_cast<std::size_t>(std::min_element(best.begin(), best.end()) - best.begin());
        const std::uint64_t switched = best[lowest] + kSwitchCost;
        for (std::size_t m = 0; m < kModes; ++m) {
            const bool change = g > 0 && switched < best[m];
            from[g][m] = static_cast<std::uint8_t>(change ? lowest : m);
            best[m] = (change ? switched : best[m]) + cost[m];
        }
    }
    std::vector<Slice> slices;
    auto mode = static_cast<std::size_t>(std::min_element(best.begin(), best.end()) - best.begin());
    std::size_t end = indices.size();
    for (std::size_t g = groups; g-- > 0;) {
        const std::size_t before = from[g][mode];
        const bool cut = g == 0 || before != mode || end - g * kGroup + kGroup > kMaxSlice;
        if (cut) {
            slices.push_back({g * kGroup, end, mode});
            end = g * kGroup;
        }
        mode = before;
    }
    std::reverse(slices.begin(), slices.end());
    return slices;
}

struct Candidate {
    Coding coding;
    std::uint64_t bits = UINT64_MAX;
};

void consider(Candidate& best, const Histogram& codes, bool zero_runs, std::uint64_t run_bits) {
    for (const std::size_t entries : {std::size_t{0}, std::size_t{2}, std::size_t{4}, std::size_t{8}, std::size_t{12},
                                      std::size_t{16}, std::size_t{24}, std::size_t{32}}) {
        Coding coding = make_coding(codes, entries, zero_runs);
        if (!coding.valid(codes)) continue;
        const std::uint64_t bits = static_cost(codes, coding) + run_bits;
        if (bits < best.bits) best = {std::move(coding), bits};
    }
}

Candidate best_coding(std::span<const std::int16_t> values) {
    Candidate best;
    const Symbols symbols = split(values, false);
    const Histogram codes = count_codes(symbols.weights);
    consider(best, codes, false, 0);
    // Runs can pay only where zeros are common: a run costs at least one bit for every other weight.
    if (codes[0] * std::size_t{12} > values.size()) {
        const Symbols with_runs = split(values, true);
        consider(best, count_codes(with_runs.weights), true, run_cost(with_runs.runs).bits);
    }
    return best;
}

// Values that share a palette.
struct Section {
    std::size_t begin = 0, end = 0;
    Candidate best;
};

// One section for all of them, or the best of each half, whatever takes fewer bits by the estimate.
std::vector<Section> choose_sections(std::span<const std::int16_t> values, std::size_t begin, std::size_t end) {
    constexpr std::size_t kLeast = 8192;   // values; the palette and the codes of less are dear
    constexpr std::uint64_t kChange = 64;  // bits beside header and palette, which the estimate has: chunks that drain
    std::vector<Section> whole{{begin, end, best_coding(values.subspan(begin, end - begin))}};
    if (end - begin < 2 * kLeast) return whole;
    const std::size_t middle = begin + (end - begin) / 2 / kGroup * kGroup;
    auto parts = choose_sections(values, begin, middle);
    for (Section& s : choose_sections(values, middle, end)) parts.push_back(std::move(s));
    std::uint64_t bits = kChange * (parts.size() - 1);
    for (const Section& s : parts) bits += s.best.bits;
    return bits < whole[0].best.bits ? parts : whole;
}

void write_section(StreamBits& bits, std::span<const std::int16_t> values, const Coding& coding) {
    const Symbols symbols = split(values, coding.zero_runs);
    std::vector<std::uint16_t> indices(symbols.weights.size());
    for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = coding.index[symbols.weights[i]];
    bool first = true;
    for (const Slice& s : choose_slices(indices, cost_table(coding))) {
        const auto weights = std::span(indices).subspan(s.begin, s.end - s.begin);
        std::span<const std::uint32_t> runs;
        std::optional<std::uint8_t> divisor;
        if (coding.zero_runs) {
            const std::size_t from = first ? 0 : s.begin + 1;  // run i + 1 follows weight i
            runs = std::span(symbols.runs).subspan(from, s.end + 1 - from);
            divisor = run_cost(runs).divisor;
        }
        write_slice(bits, weights, runs, mode_code(s.mode, coding.fixed_bits), divisor,
                    first ? &coding.palette : nullptr);
        first = false;
    }
}

std::vector<std::uint8_t> write_stream(std::span<const std::int16_t> values, const std::vector<Section>& sections) {
    StreamBits bits;
    for (const Section& s : sections) write_section(bits, values.subspan(s.begin, s.end - s.begin), s.best.coding);
    bits.put(7, 3);  // end
    bits.pad_with_ones(16);
    return bits.take();
}

}  // namespace

std::vector<std::uint8_t> encode_weights(std::span<const std::int16_t> values) {
    const auto sections = choose_sections(values, 0, values.size());
    auto stream = write_stream(values, sections);
    if (sections.size() == 1) return stream;
    // The estimate knows one code a section; only the streams themselves say which is shorter.
    auto plain = write_stream(values, {{0, values.size(), best_coding(values)}});
    return plain.size() <= stream.size() ? plain : stream;
}

std::vector<std::uint8_t> encode_records(std::span<const ScaleRecord> records, unsigned core, unsigned cores) {
    std::vector<std::uint8_t> bytes;
    for (std::size_t i = core; i < records.size(); i += cores) {
        const ScaleRecord& r = records[i];
        for (unsigned b = 0; b < 5; ++b) bytes.push_back(static_cast<std::uint8_t>(r.bias >> (8 * b)));
        for (unsigned b = 0; b < 4; ++b) bytes.push_back(static_cast<std::uint8_t>(r.multiplier >> (8 * b)));
        bytes.push_back(r.shift & 63);
    }
    bytes.resize((bytes.size() + 15) / 16 * 16);
    return bytes;
}

}  // namespace talpa::compiler
