#include "board/host/options.h"

#include <algorithm>
#include <cctype>

namespace talpa::board {
namespace {

#define X(name, word, text) {word, text},
constexpr OptionWord kWithout[] = {TALPA_BOARD_WITHOUT(X)};
constexpr OptionWord kQuirks[] = {TALPA_BOARD_QUIRKS(X)};
#undef X
constexpr OptionWord kKernels[] = {
    {"bsp-6.6", "starts are counted: a second start succeeds and wants a second stop"},
    {"legacy", "a second start is EBUSY; a newline in the firmware path is kept"},
};
constexpr std::size_t kLongestName = 32;

host::Result<std::size_t> index_of(std::span<const OptionWord> words, std::string_view word, const char* option) {
    const auto found = std::find_if(words.begin(), words.end(), [&](const OptionWord& w) { return w.word == word; });
    if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
    std::string all;
    for (const OptionWord& w : words) all += (all.empty() ? "" : ", ") + std::string(w.word);
    return host::failure(ErrorCode::InvalidArgument, "{}: there is no '{}'; there are {}", option, word, all);
}

template <typename E>
host::Result<std::set<E>> parse_set(std::span<const OptionWord> table, const std::vector<std::string>& words,
                                    const char* option) {
    std::set<E> out;
    for (const std::string& list : words)
        for (std::size_t from = 0; from <= list.size();) {
            const std::size_t comma = std::min(list.find(',', from), list.size());
            TRY_ASSIGN(const std::size_t index, index_of(table, list.substr(from, comma - from), option));
            out.insert(static_cast<E>(index));
            from = comma + 1;
        }
    return out;
}

}  // namespace

std::span<const OptionWord> without_words() {
    return kWithout;
}
std::span<const OptionWord> quirk_words() {
    return kQuirks;
}
std::span<const OptionWord> kernel_words() {
    return kKernels;
}

host::Result<std::set<Without>> parse_without(const std::vector<std::string>& words) {
    return parse_set<Without>(kWithout, words, "--without");
}
host::Result<std::set<Quirk>> parse_quirks(const std::vector<std::string>& words) {
    return parse_set<Quirk>(kQuirks, words, "--quirk");
}
host::Result<KernelProfile> parse_kernel(const std::string& word) {
    TRY_ASSIGN(const std::size_t index, index_of(kKernels, word, "--kernel"));
    return static_cast<KernelProfile>(index);
}

host::Result<void> check_board_name(std::string_view name) {
    const bool good = !name.empty() && name.size() <= kLongestName && name[0] != '.' && name[0] != '-' &&
                      std::all_of(name.begin(), name.end(), [](char c) {
                          return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_';
                      });
    if (!good)
        return host::failure(ErrorCode::InvalidArgument,
                             "'{}' is no name for a board: letters, digits, '.', '-' and '_', at most {}", name,
                             kLongestName);
    return {};
}

}  // namespace talpa::board
