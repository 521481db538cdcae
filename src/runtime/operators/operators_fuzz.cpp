// Calls a random operator with random small tensors, numbers and lists, each tensor in memory of exactly its size:
// under the address sanitizer any access outside of it stops the run. Arguments are what a method can hold after it was
// loaded: sizes that are not negative, dimension orders that are permutations, kinds that the table allows.
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "runtime/operators/all.h"

namespace talpa::runtime {
namespace {

// Takes numbers from the input's bytes; zeros after its end.
class Input {
  public:
    Input(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}
    [[nodiscard]] std::uint8_t byte() { return at_ == end_ ? 0 : *at_++; }
    [[nodiscard]] unsigned below(unsigned limit) { return byte() % limit; }
    [[nodiscard]] bool one_in(unsigned n) { return below(n) == n - 1; }
    [[nodiscard]] std::int64_t word() {
        std::uint64_t w = 0;
        for (int k = 0; k < 8; ++k) w = w << 8 | byte();
        return static_cast<std::int64_t>(w);
    }
    [[nodiscard]] bool empty() const { return at_ == end_; }

  private:
    const std::uint8_t* at_;
    const std::uint8_t* end_;
};

constexpr ScalarType kTypes[] = {ScalarType::Float32, ScalarType::Int64,  ScalarType::Int8,  ScalarType::Bool,
                                 ScalarType::Float32, ScalarType::UInt8,  ScalarType::Int16, ScalarType::Float16,
                                 ScalarType::Int32,   ScalarType::Float64};

class Call {
  public:
    Call(const Operator& op, Input& in) : in_(in), common_(kTypes[in.below(std::size(kTypes))]), rank_(in.below(5)) {
        for (std::size_t k = 0; k < op.kinds.size(); ++k) {
            const char letter = op.kinds[k];
            const bool optional = k + 1 < op.kinds.size() && op.kinds[k + 1] == '?';
            k += optional;
            indices_.push_back(optional && in.one_in(3) ? add({}) : argument(letter));
        }
    }

    void run(const Operator& op) {
        Arguments args(op.name, values_, indices_, {});
        if (!check_kinds(op, args)) return;
        std::size_t bytes = 0;
        if (op.temporary_bytes != nullptr) {
            const auto needed = op.temporary_bytes(args);
            if (!needed || *needed > 1U << 20) return;
            bytes = *needed;
        }
        const std::unique_ptr<std::uint8_t, decltype(&std::free)> room(static_cast<std::uint8_t*>(std::malloc(bytes)),
                                                                       std::free);
        Arguments call(op.name, values_, indices_, {room.get(), bytes});
        const auto result = op.run(call);
        std::array<char, 300> text;
        if (!result) (void)result.error().render(text);
    }

  private:
    std::uint32_t add(const Value& v) {
        values_.push_back(v);
        return static_cast<std::uint32_t>(values_.size() - 1);
    }
    std::uint32_t integer(std::int64_t i, Value::Kind kind = Value::Kind::Int) {
        Value v;
        v.kind = kind;
        v.i = i;
        return add(v);
    }
    std::int64_t number() {  // mostly small, sometimes at the edges
        const std::uint8_t b = in_.byte();
        if (b < 200) return b % 11 - 4;
        if (b < 220) return INT64_MAX - b % 3;
        if (b < 240) return INT64_MIN + b % 3;
        return in_.word();
    }
    template <typename T>
    std::uint32_t list(Value::Kind kind, const std::vector<T>& items) {
        auto& bytes = lists_.emplace_back(items.size() * sizeof(T));
        if (!items.empty()) std::memcpy(bytes.data(), items.data(), bytes.size());
        Value v;
        v.kind = kind;
        v.items = bytes.data();
        v.count = static_cast<std::uint32_t>(items.size());
        return add(v);
    }
    std::uint32_t tensor(bool is_output) {
        if (!tensors_.empty() && in_.one_in(16)) {  // one tensor in two roles
            Value v;
            v.kind = Value::Kind::Tensor;
            v.tensor = &tensors_[in_.below(static_cast<unsigned>(tensors_.size()))];
            return add(v);
        }
        Tensor& t = tensors_.emplace_back();
        t.type = in_.one_in(4) ? kTypes[in_.below(std::size(kTypes))] : common_;
        t.rank = static_cast<std::uint8_t>(in_.one_in(4) ? in_.below(6) : rank_);
        for (std::size_t d = 0; d < t.rank; ++d) {
            t.sizes[d] = static_cast<std::int32_t>(in_.below(5));
            t.dim_order[d] = static_cast<std::uint8_t>(d);
        }
        if (t.rank > 1 && in_.one_in(4)) std::swap(t.dim_order[in_.below(t.rank)], t.dim_order[in_.below(t.rank)]);
        t.is_dynamic = is_output ? !in_.one_in(4) : in_.one_in(8);
        t.capacity_bytes = t.size_bytes();
        if (t.is_dynamic) t.capacity_bytes += 8U * in_.byte();
        if (t.capacity_bytes != 0) {  // from malloc, so that the sanitizer guards both ends
            memories_.emplace_back(static_cast<std::uint8_t*>(std::malloc(t.capacity_bytes)), std::free);
            t.data = memories_.back().get();
            fill(t);
        }
        if (is_output && in_.one_in(16) && !memories_.empty() &&
            tensors_.size() > 1) {  // over the memory of another, as planners do
            const Tensor& other = tensors_[tensors_.size() - 2];
            if (other.data != nullptr && other.capacity_bytes >= t.size_bytes())
                t.data = other.data, t.capacity_bytes = other.capacity_bytes;
        }
        Value v;
        v.kind = Value::Kind::Tensor;
        v.tensor = &t;
        return add(v);
    }
    void fill(const Tensor& t) {
        std::memset(t.data, 0, t.capacity_bytes);
        const std::size_t element = scalar_size(t.type);
        const bool small = in_.one_in(2);
        for (std::size_t k = 0; k < t.numel() && !in_.empty(); ++k) {
            std::uint8_t* const to = t.data + k * element;
            if (t.type == ScalarType::Int64) {
                const std::int64_t i = small ? in_.below(4) : number();
                std::memcpy(to, &i, sizeof(i));
            } else if (t.type == ScalarType::Int32) {
                const auto i = static_cast<std::int32_t>(small ? in_.below(4) : number());
                std::memcpy(to, &i, sizeof(i));
            } else if (t.type == ScalarType::Float32 && small) {
                const float f = static_cast<float>(in_.below(9)) - 4.0F;
                std::memcpy(to, &f, sizeof(f));
            } else {
                for (std::size_t b = 0; b < element; ++b) to[b] = in_.byte();
            }
        }
    }
    std::uint32_t scalar() {
        switch (in_.below(4)) {
            case 0:
                return integer(in_.below(2), Value::Kind::Bool);
            case 1: {
                Value v;
                v.kind = Value::Kind::Double;
                const std::int64_t bits = in_.word();
                if (in_.one_in(3))
                    std::memcpy(&v.d, &bits, sizeof(bits));
                else
                    v.d = static_cast<double>(bits % 64) / 8;
                return add(v);
            }
            default:
                return integer(number());
        }
    }
    std::uint32_t argument(char letter) {
        switch (letter) {
            case 't':
            case 'o':
                return tensor(letter == 'o');
            case 'i':
            case 'r':
                return integer(number());
            case 'b':
                return integer(in_.below(2), Value::Kind::Bool);
            case 'n':
                return scalar();
            case 'I': {
                std::vector<std::int64_t> items(in_.one_in(16) ? in_.below(40) : in_.below(5));
                for (auto& item : items) item = integer(number());
                return list(Value::Kind::IntList, items);
            }
            case 'D': {
                std::vector<double> items(in_.below(4));
                for (auto& item : items) {
                    const std::int64_t bits = in_.word();
                    if (in_.one_in(3))
                        std::memcpy(&item, &bits, sizeof(bits));
                    else
                        item = static_cast<double>(in_.byte()) / 16;
                }
                return list(Value::Kind::DoubleList, items);
            }
            case 'T':
            case 'O':
            case 'Q': {
                std::vector<std::int32_t> items(in_.below(5));
                for (auto& item : items)
                    item = letter == 'Q' && in_.one_in(3) ? -1 : static_cast<std::int32_t>(tensor(letter == 'O'));
                return list(letter == 'Q' ? Value::Kind::OptionalTensorList : Value::Kind::TensorList, items);
            }
            default: {  // anything
                constexpr const char* kTexts[] = {"none", "tanh", "trunc", "floor", ""};
                const unsigned choice = in_.below(10);
                if (choice < std::size(kTexts)) {
                    Value v;
                    v.kind = Value::Kind::String;
                    v.items = reinterpret_cast<const std::uint8_t*>(kTexts[choice]);
                    v.count = static_cast<std::uint32_t>(std::strlen(kTexts[choice]));
                    return add(v);
                }
                return choice == 5 ? add({}) : choice == 6 ? tensor(true) : scalar();
            }
        }
    }

    Input& in_;
    ScalarType common_;
    unsigned rank_;
    std::vector<Value> values_;
    std::vector<std::uint32_t> indices_;
    std::deque<Tensor> tensors_;
    std::deque<std::unique_ptr<std::uint8_t, decltype(&std::free)>> memories_;
    std::deque<std::vector<std::uint8_t>> lists_;
};

}  // namespace
}  // namespace talpa::runtime

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace talpa::runtime;
    Input in(data, size);
    const OperatorTable table = all_operators();
    // Two bytes: there are nearly as many operators as one can tell apart, and there will be more.
    const unsigned low = in.byte();
    const Operator& op = table[(low | unsigned{in.byte()} << 8) % table.size()];
    Call call(op, in);
    call.run(op);
    return 0;
}
