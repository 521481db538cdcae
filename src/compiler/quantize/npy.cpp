#include "compiler/quantize/npy.h"

#include <array>
#include <charconv>
#include <cstring>
#include <string_view>

namespace talpa::compiler {

namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);

template <typename T>
void widen(std::span<const std::uint8_t> bytes, std::vector<float>& out) {
    for (std::size_t i = 0; i < out.size(); ++i) {
        T x;
        std::memcpy(&x, bytes.data() + i * sizeof(T), sizeof(T));
        out[i] = static_cast<float>(x);
    }
}

struct Type {
    std::string_view name;
    std::size_t size;
    void (*widen)(std::span<const std::uint8_t>, std::vector<float>&);
};
constexpr std::array<Type, 7> kTypes{{{"<f4", 4, widen<float>},
                                      {"<f8", 8, widen<double>},
                                      {"|i1", 1, widen<std::int8_t>},
                                      {"|u1", 1, widen<std::uint8_t>},
                                      {"<i2", 2, widen<std::int16_t>},
                                      {"<i4", 4, widen<std::int32_t>},
                                      {"<i8", 8, widen<std::int64_t>}}};

/// What follows `'key':` in the header's Python dictionary, up to the comma or bracket that ends it.
std::string_view entry(std::string_view header, std::string_view key) {
    const auto at = header.find(key);
    if (at == std::string_view::npos) return {};
    auto rest = header.substr(at + key.size());
    const auto colon = rest.find(':');
    if (colon == std::string_view::npos) return {};
    rest.remove_prefix(colon + 1);
    while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
    if (rest.empty()) return {};
    const char end = rest.front() == '(' ? ')' : rest.front() == '\'' ? '\'' : ',';
    const auto stop = rest.find(end, 1);
    return stop == std::string_view::npos ? std::string_view{} : rest.substr(0, stop);
}

}  // namespace

host::Result<NpyArray> read_npy(std::span<const std::uint8_t> file) {
    const auto bad = [](std::string_view why) {
        return host::failure(ErrorCode::InvalidArgument, "not a .npy array that can be read: {}", why);
    };
    if (file.size() < 12 || std::memcmp(file.data(), kMagic.data(), kMagic.size()) != 0) return bad("no NumPy mark");
    const unsigned version = file[6];
    if (version < 1 || version > 3) return bad("an unknown version");
    const std::size_t prefix = version == 1 ? 10 : 12;
    std::size_t length = file[8] | (std::size_t{file[9]} << 8);
    if (version > 1) length |= (std::size_t{file[10]} << 16) | (std::size_t{file[11]} << 24);
    if (length > file.size() - prefix) return bad("the header is cut short");
    const std::string_view header(reinterpret_cast<const char*>(file.data()) + prefix, length);
    const auto data = file.subspan(prefix + length);

    if (entry(header, "fortran_order").starts_with("True")) return bad("Fortran order (save it with order='C')");
    const auto descr = entry(header, "descr");
    const Type* type = nullptr;
    for (const auto& t : kTypes)
        if (descr.size() > 1 && descr.substr(1) == t.name) type = &t;
    if (type == nullptr) return bad("an element type other than float32, float64 and integers");
    auto dims = entry(header, "shape");
    if (dims.empty() || dims.front() != '(') return bad("no shape");
    dims.remove_prefix(1);
    NpyArray array;
    std::uint64_t count = 1;
    while (!dims.empty()) {
        while (!dims.empty() && (dims.front() == ' ' || dims.front() == ',')) dims.remove_prefix(1);
        if (dims.empty()) break;
        std::int64_t size = 0;
        const auto [end, error] = std::from_chars(dims.data(), dims.data() + dims.size(), size);
        if (error != std::errc{} || size < 0 || array.shape.size() == 8) return bad("a shape that makes no sense");
        dims.remove_prefix(static_cast<std::size_t>(end - dims.data()));
        array.shape.push_back(size);
        if (__builtin_mul_overflow(count, static_cast<std::uint64_t>(size), &count)) return bad("a shape too large");
    }
    if (count > data.size() / type->size || count * type->size != data.size())
        return bad("its data are not as long as its shape says");
    array.numbers.resize(count);
    type->widen(data, array.numbers);
    return array;
}

}  // namespace talpa::compiler
