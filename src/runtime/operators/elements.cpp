// Conversion of elements. The loops are instantiated for seven types and two domains; nothing else in the operators is.
#include "runtime/operators/elements.h"

#include <cstring>
#include <limits>

namespace talpa::runtime::operators {
namespace {

template <typename To, typename From>
To convert(From value) {
    if constexpr (std::is_same_v<To, bool>) {
        return value != From{0};
    } else if constexpr (std::is_same_v<From, float> && std::is_integral_v<To>) {
        return static_cast<To>(to_integer(value));
    } else {
        return static_cast<To>(value);
    }
}

// A stored bool is a byte; any value but 0 counts as true, so it is read as a number and not as C++ bool.
struct StoredBool {
    std::uint8_t byte;
};
template <typename T>
T read(const std::uint8_t* from) {
    T value;
    std::memcpy(&value, from, sizeof(T));
    return value;
}

template <typename Stored, typename T>
void load_run(const std::uint8_t* from, std::int64_t step, std::size_t n, T* to) {
    if constexpr (std::is_same_v<Stored, T>) {
        if (step == sizeof(T)) {
            std::memcpy(to, from, n * sizeof(T));
            return;
        }
    }
    for (std::size_t k = 0; k < n; ++k, from += step) {
        if constexpr (std::is_same_v<Stored, StoredBool>)
            to[k] = static_cast<T>(*from != 0);
        else
            to[k] = convert<T>(read<Stored>(from));
    }
}

template <typename Stored, typename T>
void store_run(const T* from, std::size_t n, std::uint8_t* to, std::int64_t step) {
    if constexpr (std::is_same_v<Stored, T>) {
        if (step == sizeof(T)) {
            std::memcpy(to, from, n * sizeof(T));
            return;
        }
    }
    for (std::size_t k = 0; k < n; ++k, to += step) {
        if constexpr (std::is_same_v<Stored, StoredBool>) {
            *to = convert<bool>(from[k]) ? 1 : 0;
        } else {
            const Stored value = convert<Stored>(from[k]);
            std::memcpy(to, &value, sizeof(Stored));
        }
    }
}

template <typename T>
void load_any(ScalarType type, const std::uint8_t* from, std::int64_t step, std::size_t n, T* to) {
    switch (type) {
        case ScalarType::UInt8:
            return load_run<std::uint8_t>(from, step, n, to);
        case ScalarType::Int8:
            return load_run<std::int8_t>(from, step, n, to);
        case ScalarType::Int16:
            return load_run<std::int16_t>(from, step, n, to);
        case ScalarType::Int32:
            return load_run<std::int32_t>(from, step, n, to);
        case ScalarType::Int64:
            return load_run<std::int64_t>(from, step, n, to);
        case ScalarType::Float32:
            return load_run<float>(from, step, n, to);
        case ScalarType::Bool:
            return load_run<StoredBool>(from, step, n, to);
        default:
            for (std::size_t k = 0; k < n; ++k) to[k] = T{0};  // not computable: the operator has refused it before
    }
}

template <typename T>
void store_any(const T* from, std::size_t n, ScalarType type, std::uint8_t* to, std::int64_t step) {
    switch (type) {
        case ScalarType::UInt8:
            return store_run<std::uint8_t>(from, n, to, step);
        case ScalarType::Int8:
            return store_run<std::int8_t>(from, n, to, step);
        case ScalarType::Int16:
            return store_run<std::int16_t>(from, n, to, step);
        case ScalarType::Int32:
            return store_run<std::int32_t>(from, n, to, step);
        case ScalarType::Int64:
            return store_run<std::int64_t>(from, n, to, step);
        case ScalarType::Float32:
            return store_run<float>(from, n, to, step);
        case ScalarType::Bool:
            return store_run<StoredBool>(from, n, to, step);
        default:
            return;
    }
}

// Rank among the signed integer types; uint8 and bool have none.
int signed_rank(ScalarType type) {
    switch (type) {
        case ScalarType::Int8:
            return 1;
        case ScalarType::Int16:
            return 2;
        case ScalarType::Int32:
            return 3;
        case ScalarType::Int64:
            return 4;
        default:
            return 0;
    }
}

}  // namespace

bool is_computable(ScalarType type) {
    return type == ScalarType::UInt8 || type == ScalarType::Float32 || type == ScalarType::Bool ||
           signed_rank(type) != 0;
}

ScalarType promote(ScalarType a, ScalarType b) {
    if (a == b) return a;
    if (a == ScalarType::Float32 || b == ScalarType::Float32) return ScalarType::Float32;
    if (a == ScalarType::Bool) return b;
    if (b == ScalarType::Bool) return a;
    const ScalarType larger = signed_rank(a) >= signed_rank(b) ? a : b;
    const bool has_uint8 = a == ScalarType::UInt8 || b == ScalarType::UInt8;
    return has_uint8 && larger == ScalarType::Int8 ? ScalarType::Int16 : larger;
}

bool can_store(ScalarType from, ScalarType to) {
    if (from == ScalarType::Float32) return to == ScalarType::Float32;
    return from == ScalarType::Bool || to != ScalarType::Bool;
}

std::int64_t to_integer(float value) {
    constexpr float kLimit = 9223372036854775808.0F;  // 2^63
    if (value >= -kLimit && value < kLimit) return static_cast<std::int64_t>(value);
    return std::numeric_limits<std::int64_t>::min();
}

std::int64_t wrap(ScalarType type, std::int64_t value) {
    switch (type) {
        case ScalarType::UInt8:
            return static_cast<std::uint8_t>(value);
        case ScalarType::Int8:
            return static_cast<std::int8_t>(value);
        case ScalarType::Int16:
            return static_cast<std::int16_t>(value);
        case ScalarType::Int32:
            return static_cast<std::int32_t>(value);
        case ScalarType::Bool:
            return value != 0 ? 1 : 0;
        default:
            return value;
    }
}

void load(Domain domain, ScalarType type, const std::uint8_t* from, std::int64_t step, std::size_t n, Chunk& to) {
    if (domain == Domain::Float)
        load_any(type, from, step, n, to.f);
    else
        load_any(type, from, step, n, to.i);
}

void store(Domain domain, const Chunk& from, std::size_t n, ScalarType type, std::uint8_t* to, std::int64_t step) {
    if (domain == Domain::Float)
        store_any(from.f, n, type, to, step);
    else
        store_any(from.i, n, type, to, step);
}

template <typename T>
T load_one(ScalarType type, const std::uint8_t* from) {
    T value;
    load_any(type, from, 0, 1, &value);
    return value;
}

template <typename T>
void store_one(T value, ScalarType type, std::uint8_t* to) {
    store_any(&value, 1, type, to, 0);
}

template float load_one<float>(ScalarType, const std::uint8_t*);
template std::int64_t load_one<std::int64_t>(ScalarType, const std::uint8_t*);
template void store_one<float>(float, ScalarType, std::uint8_t*);
template void store_one<std::int64_t>(std::int64_t, ScalarType, std::uint8_t*);

}  // namespace talpa::runtime::operators
