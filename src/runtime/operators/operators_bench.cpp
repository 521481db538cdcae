// Time of the CPU operators that weigh most in programs without, or around, delegates. Shapes are those of MobileNetV2.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdlib>
#include <deque>
#include <vector>

#include "runtime/operators/all.h"

namespace talpa::runtime {
namespace {

// A call that owns its tensors.
class Call {
  public:
    explicit Call(std::string_view name) {
        for (const Operator& op : all_operators())
            if (op.name == name) op_ = &op;
        if (op_ == nullptr) std::abort();
    }
    Call& tensor(ScalarType type, std::initializer_list<std::int32_t> sizes) {
        Tensor& t = tensors_.emplace_back();
        t.type = type;
        for (const std::int32_t size : sizes) {
            t.dim_order[t.rank] = t.rank;
            t.sizes[t.rank++] = size;
        }
        auto& memory = memories_.emplace_back(t.size_bytes() / sizeof(float) + 1, 0.5F);
        t.data = reinterpret_cast<std::uint8_t*>(memory.data());
        t.capacity_bytes = t.size_bytes();
        Value v;
        v.kind = Value::Kind::Tensor;
        v.tensor = &t;
        return argument(v);
    }
    Call& floats(std::initializer_list<std::int32_t> sizes) { return tensor(ScalarType::Float32, sizes); }
    Call& integer(std::int64_t i, Value::Kind kind = Value::Kind::Int) {
        Value v;
        v.kind = kind;
        v.i = i;
        return argument(v);
    }
    Call& boolean(bool b) { return integer(b, Value::Kind::Bool); }
    Call& null() { return argument({}); }
    Call& list(std::initializer_list<std::int64_t> integers) {
        auto& items = lists_.emplace_back();
        for (const std::int64_t i : integers) {
            items.push_back(static_cast<std::int64_t>(values_.size()));
            Value v;
            v.kind = Value::Kind::Int;
            v.i = i;
            values_.push_back(v);
        }
        Value v;
        v.kind = Value::Kind::IntList;
        v.items = reinterpret_cast<const std::uint8_t*>(items.data());
        v.count = static_cast<std::uint32_t>(items.size());
        return argument(v);
    }
    void measure(benchmark::State& state, double operations) {
        alignas(16) static std::array<std::uint8_t, 1 << 16> room;
        for (auto _ : state) {
            Arguments args(op_->name, values_, indices_, room);
            if (!op_->run(args)) return state.SkipWithError("the call failed");
        }
        state.counters["op/s"] = benchmark::Counter(operations, benchmark::Counter::kIsIterationInvariantRate);
    }

  private:
    Call& argument(const Value& v) {
        indices_.push_back(static_cast<std::uint32_t>(values_.size()));
        values_.push_back(v);
        return *this;
    }
    const Operator* op_ = nullptr;
    std::vector<Value> values_;
    std::vector<std::uint32_t> indices_;
    std::deque<Tensor> tensors_;
    std::deque<std::vector<float>> memories_;
    std::deque<std::vector<std::int64_t>> lists_;
};

void convolution_1x1(benchmark::State& state) {
    Call call("aten::convolution.out");
    call.floats({1, 96, 28, 28})
        .floats({64, 96, 1, 1})
        .floats({64})
        .list({1, 1})
        .list({0, 0})
        .list({1, 1})
        .boolean(false)
        .list({0, 0})
        .integer(1);
    call.floats({1, 64, 28, 28}).measure(state, 96.0 * 64 * 28 * 28);
}
void convolution_3x3(benchmark::State& state) {
    Call call("aten::convolution.out");
    call.floats({1, 32, 56, 56})
        .floats({32, 32, 3, 3})
        .null()
        .list({1, 1})
        .list({1, 1})
        .list({1, 1})
        .boolean(false)
        .list({0, 0})
        .integer(1);
    call.floats({1, 32, 56, 56}).measure(state, 32.0 * 32 * 9 * 56 * 56);
}
void convolution_depthwise(benchmark::State& state) {
    Call call("aten::convolution.out");
    call.floats({1, 96, 56, 56})
        .floats({96, 1, 3, 3})
        .null()
        .list({1, 1})
        .list({1, 1})
        .list({1, 1})
        .boolean(false)
        .list({0, 0})
        .integer(96);
    call.floats({1, 96, 56, 56}).measure(state, 96.0 * 9 * 56 * 56);
}
void addmm(benchmark::State& state) {
    Call call("aten::addmm.out");
    call.floats({1000})
        .floats({1, 1280})
        .floats({1280, 1000})
        .integer(1)
        .integer(1)
        .floats({1, 1000})
        .measure(state, 1280e3);
}
void add(benchmark::State& state) {
    Call call("aten::add.out");
    call.floats({1, 64, 56, 56})
        .floats({1, 64, 56, 56})
        .integer(1)
        .floats({1, 64, 56, 56})
        .measure(state, 64 * 56 * 56);
}
void hardtanh(benchmark::State& state) {
    Call call("aten::hardtanh.out");
    call.floats({1, 64, 56, 56}).integer(0).integer(6).floats({1, 64, 56, 56}).measure(state, 64 * 56 * 56);
}
void permute_to_nhwc(benchmark::State& state) {
    Call call("aten::permute_copy.out");
    call.floats({1, 3, 224, 224}).list({0, 2, 3, 1}).floats({1, 224, 224, 3}).measure(state, 3 * 224 * 224);
}
void softmax_1000(benchmark::State& state) {
    Call call("aten::_softmax.out");
    call.floats({1, 1000}).integer(1).boolean(false).floats({1, 1000}).measure(state, 1000);
}
void topk_5_of_1000(benchmark::State& state) {
    Call call("aten::topk.values");
    call.floats({1, 1000})
        .integer(5)
        .integer(1)
        .boolean(true)
        .boolean(true)
        .floats({1, 5})
        .tensor(ScalarType::Int64, {1, 5})
        .measure(state, 1000);
}
void mean_7x7(benchmark::State& state) {
    Call call("aten::mean.out");
    call.floats({1, 1280, 7, 7}).list({2, 3}).boolean(false).null().floats({1, 1280}).measure(state, 1280 * 49);
}

BENCHMARK(convolution_1x1);
BENCHMARK(convolution_3x3);
BENCHMARK(convolution_depthwise);
BENCHMARK(addmm);
BENCHMARK(add);
BENCHMARK(hardtanh);
BENCHMARK(permute_to_nhwc);
BENCHMARK(softmax_1000);
BENCHMARK(topk_5_of_1000);
BENCHMARK(mean_7x7);

}  // namespace
}  // namespace talpa::runtime

BENCHMARK_MAIN();
