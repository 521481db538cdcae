// Runs every case of tests/golden/operators: calls whose results PyTorch gave (scripts/make_operator_golden.py). The
// outputs are filled with garbage first, and bytes beside them are watched.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/host/file.h"
#include "base/host/json.h"
#include "base/host/testing.h"
#include "runtime/operators/all.h"
#include "runtime/operators/elements.h"

namespace talpa::runtime {
namespace {

using host::Json;

constexpr std::size_t kMargin = 32;  // watched bytes before and after each tensor

ScalarType type_named(const std::string& name) {
    for (int id = 0; id < 64; ++id)
        if (scalar_name(static_cast<ScalarType>(id)) == name) return static_cast<ScalarType>(id);
    ADD_FAILURE() << "no type " << name;
    return ScalarType::Float32;
}

// Element offsets in memory, by logical row-major position.
std::vector<std::size_t> offsets(const Tensor& t) {
    const auto strides = t.strides();
    std::vector<std::size_t> result(t.numel());
    for (std::size_t k = 0; k < result.size(); ++k) {
        std::size_t rest = k, offset = 0;
        for (std::size_t d = t.rank; d-- > 0;) {
            offset += rest % static_cast<std::size_t>(t.sizes[d]) * static_cast<std::size_t>(strides[d]);
            rest /= static_cast<std::size_t>(t.sizes[d]);
        }
        result[k] = offset;
    }
    return result;
}

double number(const Json& j) {
    if (j.is_boolean()) return j.get<bool>() ? 1 : 0;
    if (!j.is_string()) return j.get<double>();
    const auto& s = j.get_ref<const std::string&>();
    return s == "nan" ? std::numeric_limits<double>::quiet_NaN() : s == "inf" ? INFINITY : -INFINITY;
}

// The values of one call, with everything that they point at.
class Call {
  public:
    explicit Call(const Json& record) {
        for (const Json& arg : record["args"]) indices_.push_back(add(arg));
        if (record.contains("outs")) {
            for (const Json& out : record["outs"]) {
                outs_.push_back(add_tensor(out, false));
                if (record["op"] != "aten::copy_") indices_.push_back(value_of(outs_.back()));
            }
            if (record["op"] == "aten::copy_") outs_[0] = values_[indices_[0]].tensor;
        } else {
            std::vector<std::int32_t> items;
            for (const Json& out : record["out_list"]) {
                outs_.push_back(add_tensor(out, false));
                items.push_back(static_cast<std::int32_t>(value_of(outs_.back())));
            }
            indices_.push_back(add_list(Value::Kind::TensorList, items));
        }
    }

    [[nodiscard]] Result<void> run(const Operator& op) {
        values_final();
        std::vector<std::uint8_t> temporary;
        Arguments args(op.name, values_, indices_, {});
        TRY(check_kinds(op, args));
        if (op.temporary_bytes != nullptr) {
            TRY_ASSIGN(const auto bytes, op.temporary_bytes(args));
            temporary.resize(bytes + 16);
        }
        EXPECT_EQ(indices_.size(), op.schema_args()) << op.name;
        Arguments call(op.name, values_, indices_, temporary);
        return op.run(call);
    }
    [[nodiscard]] const Tensor& out(std::size_t k) const { return *outs_[k]; }
    [[nodiscard]] bool margins_are_whole() const {
        for (const auto& memory : memories_)
            for (std::size_t k = 0; k < kMargin; ++k)
                if (memory[k] != 0xA5 || memory[memory.size() - 1 - k] != 0xA5) return false;
        return true;
    }

  private:
    std::uint32_t add_value(const Value& v) {
        values_.push_back(v);
        return static_cast<std::uint32_t>(values_.size() - 1);
    }
    std::uint32_t value_of(Tensor* t) {
        Value v;
        v.kind = Value::Kind::Tensor;
        v.tensor = t;
        return add_value(v);
    }
    template <typename T>
    std::uint32_t add_list(Value::Kind kind, const std::vector<T>& items) {
        lists_.emplace_back(items.size() * sizeof(T) + 1);
        if (!items.empty()) std::memcpy(lists_.back().data(), items.data(), items.size() * sizeof(T));
        Value v;
        v.kind = kind;
        v.items = lists_.back().data();
        v.count = static_cast<std::uint32_t>(items.size());
        return add_value(v);
    }
    Tensor* add_tensor(const Json& j, bool with_data) {
        Tensor& t = tensors_.emplace_back();
        t.type = type_named(j["type"]);
        for (const Json& size : j["shape"]) t.sizes[t.rank++] = size.get<std::int32_t>();
        for (std::size_t d = 0; d < t.rank; ++d)
            t.dim_order[d] = j.contains("order") ? j["order"][d].get<std::uint8_t>() : static_cast<std::uint8_t>(d);
        auto& memory = memories_.emplace_back(kMargin * 2 + t.size_bytes(), std::uint8_t{0xA5});
        t.data = memory.data() + kMargin;
        t.capacity_bytes = t.size_bytes();
        t.is_constant = with_data;
        if (with_data) {
            const auto at = offsets(t);
            const std::size_t element = scalar_size(t.type);
            for (std::size_t k = 0; k < at.size(); ++k) {
                const Json& item = j["data"][k];
                std::uint8_t* const to = t.data + at[k] * element;
                if (t.type == ScalarType::Float32)
                    operators::store_one(static_cast<float>(number(item)), t.type, to);
                else
                    operators::store_one(item.is_boolean() ? std::int64_t{item.get<bool>()} : item.get<std::int64_t>(),
                                         t.type, to);
            }
        }
        return &t;
    }
    std::uint32_t add(const Json& arg) {
        Value v;
        if (arg.is_null()) return add_value(v);
        const auto entry = arg.begin();
        const std::string& key = entry.key();
        const Json& content = entry.value();
        if (key == "tensor") {
            Tensor* const t = add_tensor(content, true);
            t->is_constant = indices_.empty() ? false : true;  // argument 0 may be written by the in-place operator
            return value_of(t);
        }
        if (key == "tensors") {
            std::vector<std::int32_t> items;
            bool optional = false;
            for (const Json& item : content) {
                optional = optional || item.is_null();
                items.push_back(item.is_null() ? -1 : static_cast<std::int32_t>(value_of(add_tensor(item, true))));
            }
            return add_list(optional ? Value::Kind::OptionalTensorList : Value::Kind::TensorList, items);
        }
        if (key == "ints") {
            std::vector<std::int64_t> items;
            for (const Json& item : content) {
                Value i;
                i.kind = Value::Kind::Int;
                i.i = item.get<std::int64_t>();
                items.push_back(add_value(i));
            }
            return add_list(Value::Kind::IntList, items);
        }
        if (key == "doubles") return add_list(Value::Kind::DoubleList, content.get<std::vector<double>>());
        if (key == "string") {
            const auto& s = strings_.emplace_back(content.get<std::string>());
            v.kind = Value::Kind::String;
            v.items = reinterpret_cast<const std::uint8_t*>(s.data());
            v.count = static_cast<std::uint32_t>(s.size());
        } else if (key == "double") {
            v.kind = Value::Kind::Double;
            v.d = number(content);
        } else if (key == "bool") {
            v.kind = Value::Kind::Bool;
            v.i = content.get<bool>() ? 1 : 0;
        } else {
            EXPECT_EQ(key, "int");
            v.kind = Value::Kind::Int;
            v.i = content.get<std::int64_t>();
        }
        return add_value(v);
    }
    void values_final() {
        for (Tensor* out : outs_) out->is_constant = false;
    }

    std::vector<Value> values_;
    std::vector<std::uint32_t> indices_;
    std::deque<Tensor> tensors_;
    std::deque<std::vector<std::uint8_t>> memories_;
    std::deque<std::vector<std::uint8_t>> lists_;
    std::deque<std::string> strings_;
    std::vector<Tensor*> outs_;
};

// Bit for bit without a tolerance (any NaN equals any NaN), else relative to the larger of the value and 1e-30.
bool same_float(float got, double wanted, double tolerance) {
    const auto want = static_cast<float>(wanted);
    if (std::isnan(want)) return std::isnan(got);
    if (tolerance == 0 || std::isinf(want))
        return std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(want);
    return std::fabs(static_cast<double>(got) - wanted) <= tolerance * std::max(std::fabs(wanted), 1.0);
}

void expect_equal(const Tensor& got, const Json& wanted, double tolerance) {
    const auto at = offsets(got);
    ASSERT_EQ(at.size(), wanted["data"].size());
    for (std::size_t k = 0; k < at.size(); ++k) {
        const std::uint8_t* const from = got.data + at[k] * scalar_size(got.type);
        const Json& want = wanted["data"][k];
        if (got.type == ScalarType::Float32)
            EXPECT_TRUE(same_float(operators::load_one<float>(got.type, from), number(want), tolerance))
                << "element " << k << ": " << operators::load_one<float>(got.type, from) << ", PyTorch " << want;
        else
            EXPECT_EQ(operators::load_one<std::int64_t>(got.type, from),
                      want.is_boolean() ? std::int64_t{want.get<bool>()} : want.get<std::int64_t>())
                << "element " << k;
    }
}

std::map<std::string_view, const Operator*> by_name() {
    std::map<std::string_view, const Operator*> result;
    for (const Operator& op : all_operators()) result[op.name] = &op;
    return result;
}

std::vector<std::string> golden_files() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(testing::golden_folder() / "operators"))
        if (entry.path().extension() == ".json" && entry.path().stem() != "schemas")
            names.push_back(entry.path().stem());
    std::ranges::sort(names);
    return names;
}

Json golden(const std::string& name) {
    const auto text = host::read_text(testing::golden_folder() / "operators" / (name + ".json"));
    EXPECT_TRUE(text.has_value());
    return Json::parse(*text);
}

std::string rendered(const Error& error) {
    std::array<char, 300> buffer;
    return std::string(error.render(buffer));
}

class OperatorGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(OperatorGolden, GivesWhatPyTorchGives) {
    const auto operators = by_name();
    const Json records = golden(GetParam());
    ASSERT_FALSE(records.empty());
    for (std::size_t k = 0; k < records.size(); ++k) {
        const Json& record = records[k];
        SCOPED_TRACE(GetParam() + ".json case " + std::to_string(k) + ": " + record.dump().substr(0, 400));
        const auto op = operators.find(record["op"].get_ref<const std::string&>());
        ASSERT_NE(op, operators.end());
        Call call(record);
        const auto result = call.run(*op->second);
        if (!result) {
            ADD_FAILURE() << rendered(result.error());
            continue;
        }
        const Json& outs = record.contains("outs") ? record["outs"] : record["out_list"];
        for (std::size_t o = 0; o < outs.size(); ++o)
            expect_equal(call.out(o), outs[o], record.value("tolerance", 0.0));
        EXPECT_TRUE(call.margins_are_whole()) << "wrote beside a tensor";
    }
}
INSTANTIATE_TEST_SUITE_P(Files, OperatorGolden, ::testing::ValuesIn(golden_files()),
                         [](const auto& file) { return file.param; });

// The kinds of the table are PyTorch's own schemas. A Scalar slot may hold any number where a schema says float.
TEST(OperatorTable, KindsAreThoseOfPyTorchsSchemas) {
    const auto operators = by_name();
    const Json schemas = golden("schemas");
    EXPECT_GT(schemas.size(), 150u);
    for (const auto& [name, kinds] : schemas.items()) {
        const auto op = operators.find(name);
        ASSERT_NE(op, operators.end()) << name;
        EXPECT_EQ(op->second->kinds, kinds.get_ref<const std::string&>()) << name;
    }
}

TEST(OperatorTable, EveryOperatorHasAGoldenCase) {
    std::set<std::string> tested;
    for (const std::string& file : golden_files())
        for (const Json& record : golden(file)) tested.insert(record["op"].get<std::string>());
    for (const Operator& op : all_operators()) {
        const bool tested_elsewhere = op.name.find("quantize_per_tensor") != std::string_view::npos ||
                                      op.name.starts_with("executorch_prim::") || op.name.starts_with("aten::sym_") ||
                                      op.name == "aten::_local_scalar_dense" || op.name == "aten::empty.out" ||
                                      op.name == "dim_order_ops::_empty_dim_order.out";
        EXPECT_TRUE(tested_elsewhere || tested.contains(std::string(op.name))) << op.name;
    }
}

}  // namespace
}  // namespace talpa::runtime
