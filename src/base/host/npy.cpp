#include "base/host/npy.h"

#include <charconv>
#include <cstring>

namespace talpa::host {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr std::size_t kMaxDims = 32;  // NumPy's own limit until version 2

template <typename T>
void widen(Bytes bytes, std::vector<float>& out) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(load_le<T>(bytes.data() + i * sizeof(T)));
}

struct Row {
    std::string_view descr, name;
    std::size_t size;
    void (*widen)(Bytes, std::vector<float>&);
};
constexpr Row kRows[] = {
    // by NpyType
    {"'<f4'", "float32", 4, widen<float>},      {"'<f8'", "float64", 8, widen<double>},
    {"'|i1'", "int8", 1, widen<std::int8_t>},   {"'|u1'", "uint8", 1, widen<std::uint8_t>},
    {"'<i2'", "int16", 2, widen<std::int16_t>}, {"'<i4'", "int32", 4, widen<std::int32_t>},
    {"'<i8'", "int64", 8, widen<std::int64_t>},
};

const Row& row_of(NpyType type) {
    return kRows[static_cast<std::size_t>(type)];
}

/// What follows `'key':` in the header's Python dictionary, up to the comma that ends it; a tuple without its brackets.
std::string_view entry(std::string_view header, std::string_view key) {
    const auto at = header.find(key);
    if (at == std::string_view::npos) return {};
    auto rest = header.substr(at + key.size());
    const auto start = rest.find_first_not_of(": ");
    if (start == std::string_view::npos) return {};
    rest.remove_prefix(start);
    const bool tuple = rest.front() == '(';
    const auto stop = rest.find_first_of(tuple ? ")" : ",}");
    if (stop == std::string_view::npos) return {};
    rest = rest.substr(0, stop);
    if (tuple) rest.remove_prefix(1);
    while (rest.ends_with(' ')) rest.remove_suffix(1);
    return rest;
}

}  // namespace

bool is_npy(Bytes file) {
    return file.size() >= kMagic.size() && std::memcmp(file.data(), kMagic.data(), kMagic.size()) == 0;
}

Result<NpyArray> read_npy(Bytes file) {
    const auto bad = [](std::string_view why) {
        return failure(ErrorCode::InvalidArgument, "not a .npy array that can be read: {}", why);
    };
    if (!is_npy(file)) return bad("no NumPy mark");
    if (file.size() < 12) return bad("it is cut short");
    const unsigned version = file[6];
    if (version < 1 || version > 3) return bad(fmt::format("version {} of the format", version));
    const std::size_t prefix = version == 1 ? 10 : 12;
    const std::size_t length =
        version == 1 ? load_le<std::uint16_t>(file.data() + 8) : load_le<std::uint32_t>(file.data() + 8);
    if (length > file.size() - prefix) return bad("the header is cut short");
    const std::string_view header(reinterpret_cast<const char*>(file.data()) + prefix, length);

    const auto order = entry(header, "'fortran_order'");
    if (order == "True") return bad("Fortran order (save it with order='C')");
    if (order != "False") return bad("a header without its order");
    NpyArray array;
    array.data = file.subspan(prefix + length);
    const auto descr = entry(header, "'descr'");
    const Row* row = nullptr;
    for (const Row& r : kRows)
        if (descr == r.descr) row = &r;
    if (row == nullptr)
        return bad(fmt::format("elements of type {}; little-endian float32, float64 and integers can be", descr));
    array.type = static_cast<NpyType>(row - kRows);

    if (header.find("'shape'") == std::string_view::npos) return bad("no shape");
    auto dims = entry(header, "'shape'");
    std::uint64_t count = 1;
    for (;;) {
        const auto start = dims.find_first_not_of(" ,");
        if (start == std::string_view::npos) break;
        dims.remove_prefix(start);
        std::int64_t size = 0;
        const auto [end, error] = std::from_chars(dims.data(), dims.data() + dims.size(), size);
        if (error != std::errc{} || size < 0 || array.shape.size() == kMaxDims)
            return bad("a shape that makes no sense");
        dims.remove_prefix(static_cast<std::size_t>(end - dims.data()));
        array.shape.push_back(size);
        if (__builtin_mul_overflow(count, static_cast<std::uint64_t>(size), &count)) return bad("a shape too large");
    }
    if (count > array.data.size() / row->size || count * row->size != array.data.size())
        return bad("its data are not as long as its shape says");
    return array;
}

std::string_view npy_type_name(NpyType type) {
    return row_of(type).name;
}

std::vector<float> to_float32(const NpyArray& array) {
    const Row& row = row_of(array.type);
    std::vector<float> numbers(array.data.size() / row.size);
    row.widen(array.data, numbers);
    return numbers;
}

}  // namespace talpa::host
