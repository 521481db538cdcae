// Files of strangers: cut off, contradicting themselves, or made to hurt (model-formats, sections 1.9, 2.7, 3.5, 4.4,
// 5). Each case changes one thing in a sound file and names what the error must say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <zlib.h>

#include <cstring>

#include "base/host/file.h"
#include "base/host/testing.h"
#include "compiler/graph/check.h"
#include "compiler/graph/constant.h"
#include "compiler/import/import.h"
#include "compiler/import/json_tree.h"
#include "compiler/import/pickle/document.h"
#include "compiler/import/weights_file/weights.h"
#include "compiler/import/zip.h"
#include "compiler/import/zip_for_test.h"

namespace talpa::compiler::import {
namespace {

using ::testing::HasSubstr;

std::vector<std::uint8_t> golden(const std::string& name) {
    return host::read_file(talpa::testing::golden_folder() / "import" / name).value();
}

std::string complaint(talpa::Bytes file) {
    const auto graph = import_bytes(file, talpa::testing::golden_folder() / "import");
    return graph ? "imported" : graph.error().describe();
}

std::vector<EntryForTest> entries_of(const std::vector<std::uint8_t>& file) {
    const auto zip = Zip::open(file).value();
    std::vector<EntryForTest> out;
    for (const auto& [name, entry] : zip.entries())
        out.push_back({name, std::string(zip.read(name, UINT64_MAX).value().text())});
    return out;
}

/// The archive with `from` replaced by `to` in the entry that ends in `ending`.
std::string edited(const std::string& archive, const std::string& ending, const std::string& from,
                   const std::string& to) {
    auto entries = entries_of(golden(archive));
    for (auto& e : entries) {
        if (!e.name.ends_with(ending)) continue;
        const auto at = e.data.find(from);
        if (at == std::string::npos) return "the test's text '" + from + "' is not in " + e.name;
        e.data.replace(at, from.size(), to);
    }
    return complaint(zip_for_test(entries));
}

TEST(Attacks, EveryCutOfEveryFormatIsAnError) {
    for (const char* name : {"conv3x3_same.float.pt2", "conv3x3_same.quantized.pt2", "float_net.onnx", "qdq_net.onnx",
                             "small.safetensors", "small.tflite"}) {
        const auto file = golden(name);
        ASSERT_FALSE(file.empty()) << name;
        const std::size_t step = std::max<std::size_t>(1, file.size() / 300);
        for (std::size_t size = 0; size < file.size(); size += step) {
            const auto graph = import_bytes(talpa::Bytes(file).first(size), {});
            ASSERT_FALSE(graph.has_value()) << name << " cut to " << size;
        }
    }
}

TEST(Attacks, FlippedBytesNeverGiveABrokenGraph) {
    for (const char* name :
         {"conv3x3_same.quantized.pt2", "float_net.onnx", "qdq_net.onnx", "shapes_net.onnx", "small.tflite"}) {
        auto file = golden(name);
        const std::size_t step = std::max<std::size_t>(1, file.size() / 700);
        for (std::size_t at = 0; at < file.size(); at += step) {
            const auto kept = file[at];
            file[at] ^= static_cast<std::uint8_t>(1u << (at % 8));
            const auto graph = import_bytes(file, {});
            EXPECT_TRUE(!graph || check_graph(*graph).has_value()) << name << " " << at;
            file[at] = kept;
        }
    }
}

TEST(Attacks, ZipArchives) {
    const EntryForTest good{"a/x", "hello"};
    const auto open = [](const std::vector<EntryForTest>& entries) {
        const auto file = zip_for_test(entries);
        const auto zip = Zip::open(file);
        return zip ? std::string("opened") : zip.error().describe();
    };
    EXPECT_EQ(open({good}), "opened");
    EXPECT_THAT(open({good, good}), HasSubstr("two entries have the name"));
    EXPECT_THAT(open({{"../x", "1"}}), HasSubstr("leads elsewhere"));
    EXPECT_THAT(open({{"/x", "1"}}), HasSubstr("leads elsewhere"));
    EXPECT_THAT(open({{"a\\x", "1"}}), HasSubstr("leads elsewhere"));
    EXPECT_THAT(open({{"a/x", "1", 12}}), HasSubstr("compressed by method 12"));
    EXPECT_THAT(open({{"a/x", "1", 0, 100}}), HasSubstr("stored in 1 bytes and has 100"));
    // A bomb: a few bytes that claim to become four gigabytes.
    EXPECT_THAT(open({{"a/x", "1234", 8, 0xFFFFFFF0u}}), HasSubstr("would expand the file"));
    EXPECT_THAT(open({}), HasSubstr("opened"));

    auto file = zip_for_test({good});
    file[30] ^= 1;  // the name at the data differs from the directory's
    EXPECT_THAT(Zip::open(file).error().describe(), HasSubstr("another name"));
    file = zip_for_test({good});
    file[30 + 3] ^= 1;
    EXPECT_THAT(Zip::open(file)->read("a/x", 100).error().describe(), HasSubstr("checksum"));
    file = zip_for_test(
        {{"a/x", std::string("\x4B\x4C\x04\x00", 4), 8, 1}});  // "a", deflated; the checksum is of the stored bytes
    EXPECT_FALSE(Zip::open(file)->read("a/x", 100).has_value());
}

TEST(Attacks, Json) {
    const auto parse = [](std::string_view text) {
        const auto tree = JsonTree::parse(text);
        return tree ? std::string("parsed") : tree.error().describe();
    };
    EXPECT_EQ(parse(R"({"a": [1, -2.5e3, "x", null, true]})"), "parsed");
    EXPECT_THAT(parse(R"({"a": 1, "a": 2})"), HasSubstr("stands twice"));
    EXPECT_THAT(parse("[1] 2"), HasSubstr("no JSON"));
    EXPECT_THAT(parse("[18446744073709551616]"), HasSubstr("64 bits"));
    EXPECT_THAT(parse("[NaN]"), HasSubstr("no JSON"));
    EXPECT_THAT(parse(std::string(101, '[') + std::string(101, ']')), HasSubstr("deeper than 100"));
    EXPECT_THAT(parse("\"\xFF\""), HasSubstr("no JSON"));
}

TEST(Attacks, ExportedPrograms) {
    struct Case {
        const char *entry, *from, *to, *says;
    };
    const Case cases[] = {
        {"model.json", "\"major\": 8", "\"major\": 9", "schema version 9, 8 is known"},
        {"model.json", "aten.conv2d.default", "aten.conv9d.default", "the operator is not supported"},
        {"model.json", "\"name\": \"stride\"", "\"name\": \"strude\"", "argument 'strude' is not known"},
        {"model.json", "\"name\": \"weight\"", "\"name\": \"wait\"", "argument 'weight' is missing"},
        {"model.json", "\"as_ints\": [1, 1]", "\"as_ints\": [0, 1]", "must be positive"},
        {"model.json", "\"as_ints\": [1, 1]", "\"as_ints\": [1, 1, 1]", "has 3 numbers for 2 dimensions"},
        {"model.json", "\"as_ints\": [1, 1]", "\"as_ints\": [9223372036854775807, 1]", "height: kernel"},
        {"model.json", "{\"as_int\": 32}", "{\"as_int\": 33}", "says"},
        {"model.json", "{\"as_int\": 32}", "{\"as_int\": -1}", "a dimension of -1"},
        {"model.json", "{\"as_int\": 32}", "{\"as_int\": 4611686018427387904}", "too many elements"},
        {"model.json", "{\"as_int\": 32}", "{\"as_expr\": {\"expr_str\": \"s0\", \"hint\": null}}",
         "the dynamic size s0"},
        {"archive_version", "0", "1", "archive version '1'"},
        {"byteorder", "little", "big", "byte order 'big'"},
        {"_weights_config.json", "\"layout\": 7", "\"layout\": 1", "only dense tensors"},
        {"_weights_config.json", "\"path_name\": \"weight_0\"", "\"path_name\": \"../../x\"", "no plain name"},
        {"_weights_config.json", "\"use_pickle\": false", "\"use_pickle\": true", "stored as a pickle"},
        {"_weights_config.json", "{\"as_int\": 27}", "{\"as_int\": 270}", "reaches element"},
    };
    for (const Case& c : cases)
        EXPECT_THAT(edited("conv3x3_same.float.pt2", c.entry, c.from, c.to), HasSubstr(c.says))
            << c.from << " -> " << c.to;
}

TEST(Attacks, NodesThatReadEachOtherInACircle) {
    // The convolution reads what the relu behind it makes.
    EXPECT_THAT(
        edited("conv3x3_same.float.pt2", "model.json", R"({"name": "input", "arg": {"as_tensor": {"name": "input"}})",
               R"({"name": "input", "arg": {"as_tensor": {"name": "relu"}})"),
        HasSubstr("'relu'"));
}

TEST(Attacks, CompressedZerosDoNotFillTheMemory) {
    // 64 MiB of zeros in 64 KiB: what it would become is known before any of it is made.
    std::string zeros(64 << 20, '\0'), packed(1 << 20, '\0');
    ::z_stream stream{};
    ASSERT_EQ(::deflateInit2(&stream, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = reinterpret_cast<::Bytef*>(zeros.data());
    stream.avail_in = static_cast<::uInt>(zeros.size());
    stream.next_out = reinterpret_cast<::Bytef*>(packed.data());
    stream.avail_out = static_cast<::uInt>(packed.size());
    ASSERT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
    packed.resize(stream.total_out);
    ::deflateEnd(&stream);
    auto entries = entries_of(golden("conv3x3_same.float.pt2"));
    for (auto& e : entries)
        if (e.name.ends_with("/weight_0")) e = {e.name, packed, 8, static_cast<std::uint32_t>(zeros.size())};
    EXPECT_THAT(complaint(zip_for_test(entries)), HasSubstr("would expand the file"));
}

TEST(Attacks, WeightsThatAreNoNumbersAreNamed) {
    auto entries = entries_of(golden("conv3x3_same.float.pt2"));
    for (auto& e : entries)
        if (e.name.ends_with("/weight_0")) e.data.replace(8, 4, std::string("\x00\x00\xC0\x7F", 4));
    const auto text = complaint(zip_for_test(entries));
    EXPECT_THAT(text, HasSubstr("element 2 is not a number"));
    EXPECT_THAT(text, HasSubstr("0.weight"));
}

TEST(Attacks, QuantizationThatContradictsItself) {
    EXPECT_THAT(
        edited("conv3x3_same.quantized.pt2", "model.json", "\"as_float\": 0.0288159", "\"as_float\": -0.0288159"),
        HasSubstr("finite and positive"));
    EXPECT_THAT(edited("conv3x3_same.quantized.pt2", "model.json", "\"as_int\": -128", "\"as_int\": -300"),
                HasSubstr("quantized to -300"));
}

/// A pickle of protocol 2 around some opcodes.
std::string pickled(const std::string& opcodes) {
    const std::string whole = std::string("\x80\x02", 2) + opcodes + ".";
    std::size_t used = 0;
    const auto document =
        pickle::Document::read({reinterpret_cast<const std::uint8_t*>(whole.data()), whole.size()}, used);
    return document ? "read" : document.error().describe();
}

TEST(Attacks, PicklesExecuteNothing) {
    EXPECT_EQ(pickled("}"), "read");
    EXPECT_THAT(pickled("cos\nsystem\n(X\x04\0\0\0true" + std::string("tR")),
                HasSubstr("'os system' is not plain data"));
    EXPECT_THAT(pickled("cbuiltins\neval\n"), HasSubstr("not plain data"));
    EXPECT_THAT(pickled("cmymodel\nNet\n"), HasSubstr("save model.state_dict()"));
    EXPECT_THAT(pickled("(ios\nsystem\n"), HasSubstr("does more than hold data"));         // INST
    EXPECT_THAT(pickled(std::string("}\x81", 2)), HasSubstr("does more than hold data"));  // NEWOBJ
    EXPECT_THAT(pickled("h\x05"), HasSubstr("memo entry 5"));
    EXPECT_THAT(pickled("R"), HasSubstr("stack is empty"));
    EXPECT_THAT(pickled("t"), HasSubstr("no mark"));
    EXPECT_THAT(pickled("}K\x01s"), HasSubstr("no container"));
    EXPECT_THAT(pickled("}(K\x01u"), HasSubstr("a key without a value"));
    EXPECT_THAT(pickled(std::string("X\xFF\xFF\xFF\x7Fxy", 7)), HasSubstr("bytes are needed"));
    EXPECT_THAT(pickled(std::string("\x8D\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 9)), HasSubstr("bytes are needed"));
    EXPECT_THAT(pickled("}}"), HasSubstr("left on the stack"));
    // A list that holds itself is only dangerous to those who walk it.
    EXPECT_EQ(pickled(std::string("]q\0h\0a", 6)), "read");
}

/// Written by Python's own pickle: a is [2, 3] in order, b is [3, 2] with strides 1 and 3.
TEST(StateDict, BothContainersGiveTheirTensorsByStrides) {
    for (const char* name : {"zip.pth", "legacy.pth"}) {
        const auto file =
            host::read_file(std::string(TALPA_SOURCE_DIR) + "/tests/corpus/import_weights_fuzz/" + name).value();
        const auto weights = read_state_dict(file);
        ASSERT_TRUE(weights.has_value()) << name << ": " << weights.error().describe();
        ASSERT_EQ(weights->tensors.size(), 2u);
        const auto a = real_numbers(load_tensor("a", weights->tensors.at("a"), Finite::Required).value());
        const auto b = real_numbers(load_tensor("b", weights->tensors.at("b"), Finite::Required).value());
        EXPECT_EQ(a, (std::vector<float>{0, 1, 2, 3, 4, 5})) << name;
        EXPECT_EQ(b, (std::vector<float>{0, 3, 1, 4, 2, 5})) << name;
        for (std::size_t size = 0; size < file.size(); ++size)
            ASSERT_FALSE(read_state_dict(talpa::Bytes(file).first(size)).has_value()) << name << " cut to " << size;
    }
}

TEST(Attacks, Safetensors) {
    const auto file = golden("small.safetensors");
    const auto weights = read_safetensors(file);
    ASSERT_TRUE(weights.has_value()) << weights.error().describe();
    EXPECT_EQ(weights->tensors.at("a").sizes, (Shape{2, 3}));
    EXPECT_EQ(weights->tensors.at("h").type, RawType::Float16);
    const auto changed = [&](const std::string& from, const std::string& to) {
        std::string text(file.begin(), file.end());
        const auto at = text.find(from);
        if (at == std::string::npos || from.size() != to.size()) return std::string("the test is wrong: ") + from;
        text.replace(at, from.size(), to);
        const std::vector<std::uint8_t> bytes(text.begin(), text.end());
        const auto result = read_safetensors(bytes);
        return result ? std::string("read") : result.error().describe();
    };
    EXPECT_THAT(changed("\"shape\":[2,3]", "\"shape\":[2,4]"), HasSubstr("bytes for 8 elements"));
    EXPECT_THAT(changed("\"F16\"", "\"F17\""), HasSubstr("element type 'F17'"));
    EXPECT_THAT(changed("{", "["), HasSubstr("no JSON"));
    auto huge = file;
    std::memset(huge.data(), 0xFF, 8);
    EXPECT_THAT(read_safetensors(huge).error().describe(), HasSubstr("a header of"));
    auto longer = file;
    longer.push_back(0);
    EXPECT_THAT(read_safetensors(longer).error().describe(), HasSubstr("belong to no tensor"));
}

// --- ONNX, written by hand: a field is its number and wire type, then a length ---

std::string varint(std::int64_t number) {
    auto n = static_cast<std::uint64_t>(number);
    std::string out;
    for (; n >= 0x80; n >>= 7) out.push_back(static_cast<char>(n | 0x80));
    out.push_back(static_cast<char>(n));
    return out;
}
std::string field(int number, const std::string& bytes) {
    std::string out;
    out.push_back(static_cast<char>(number << 3 | 2));
    return out + varint(static_cast<std::int64_t>(bytes.size())) + bytes;
}
std::string node(const std::string& op, const std::string& in, const std::string& out) {
    return field(1, field(1, in) + field(2, out) + field(4, op));
}
std::string port(int number, const std::string& name) {
    // float, [1, 4]
    return field(number, field(1, name) + field(2, field(1, std::string("\x08\x01", 2) +
                                                                field(2, field(1, std::string("\x08\x01", 2)) +
                                                                             field(1, std::string("\x08\x04", 2))))));
}
std::string onnx_model(const std::string& graph) {
    return std::string("\x08\x08", 2) + field(7, graph) + field(8, std::string("\x10\x11", 2));
}
std::string onnx_of(const std::string& graph) {
    const std::string model = onnx_model(graph);
    return complaint({reinterpret_cast<const std::uint8_t*>(model.data()), model.size()});
}

TEST(Attacks, Onnx) {
    EXPECT_EQ(onnx_of(node("Relu", "x", "y") + port(11, "x") + port(12, "y")), "imported");
    EXPECT_THAT(onnx_of(node("Relu", "y", "z") + node("Relu", "z", "y") + port(11, "x") + port(12, "y")),
                HasSubstr("cycle through"));
    EXPECT_THAT(onnx_of(node("Relu", "x", "y") + node("Relu", "x", "y") + port(11, "x") + port(12, "y")),
                HasSubstr("made twice"));
    EXPECT_THAT(onnx_of(node("Relu", "q", "y") + port(11, "x") + port(12, "y")), HasSubstr("never made"));
    EXPECT_THAT(onnx_of(node("Relu", "x", "y") + port(11, "x") + port(12, "w")), HasSubstr("never made"));
    EXPECT_THAT(onnx_of(node("NonZero", "x", "y") + port(11, "x") + port(12, "y")), HasSubstr("NonZero"));
    EXPECT_THAT(onnx_of(node("Relu", "x", "y")), HasSubstr("never made"));
    // A dimension of 2^62: what follows from it is not computed.
    const std::string huge = field(
        11, field(1, "x") +
                field(2, field(1, std::string("\x08\x01", 2) +
                                      field(2, field(1, std::string("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x40", 10)) +
                                                   field(1, std::string("\x08\x04", 2))))));
    EXPECT_THAT(onnx_of(node("Relu", "x", "y") + huge + port(12, "y")), HasSubstr("too many elements"));
    // Out of order is sorted.
    EXPECT_EQ(onnx_of(node("Relu", "m", "y") + node("Abs", "x", "m") + port(11, "x") + port(12, "y")), "imported");
    // External data must not lead out of the folder: TensorProto with location "../x".
    const std::string tensor =
        field(5, std::string("\x08\x04\x10\x01", 4) + field(8, "w") +
                     field(13, field(1, "location") + field(2, "../x")) + std::string("\x70\x01", 2));
    EXPECT_THAT(onnx_of(tensor + node("Relu", "x", "y") + port(11, "x") + port(12, "y")),
                HasSubstr("leads out of the model's folder"));
}

/// An attribute of whole numbers (field 8), or of one (field 3).
std::string numbers(const std::string& name, const std::vector<std::int64_t>& list) {
    std::string body = field(1, name);
    for (const auto n : list) body += "\x40" + varint(n);
    return field(5, body + std::string("\xA0\x01\x07", 3));
}
std::string number(const std::string& name, std::int64_t n) {
    return field(5, field(1, name) + "\x18" + varint(n) + std::string("\xA0\x01\x02", 3));
}
std::string with(const std::string& op, const std::string& ins, const std::string& out, const std::string& attributes) {
    std::string body;
    for (const char in : ins) body += field(1, std::string(1, in));
    return field(1, body + field(2, out) + field(4, op) + attributes);
}
/// Sizes below 0 are a name instead. `number`: 11 an input, 12 a result.
std::string float_port(const std::string& name, const std::vector<std::int64_t>& shape, int number = 11) {
    std::string dims;
    for (const auto d : shape) dims += field(1, d < 0 ? field(2, "N") : "\x08" + varint(d));
    return field(number, field(1, name) + field(2, field(1, std::string("\x08\x01", 2) + field(2, dims))));
}
std::string shapeless(const std::string& name) {
    return field(12, field(1, name) + field(2, field(1, std::string("\x08\x01", 2))));
}

TEST(Attacks, OnnxNumbersNearTheLargest) {
    const auto image = float_port("x", {1, 2, 4, 4});
    const auto says = [&](const std::string& nodes) { return onnx_of(nodes + image + shapeless("y")); };
    const auto pool = [&](const std::string& more) {
        return says(with("MaxPool", "x", "y", numbers("kernel_shape", {2, 2}) + more));
    };
    EXPECT_EQ(pool(numbers("strides", {2, 2})), "imported");
    EXPECT_THAT(pool(numbers("strides", {INT64_MAX, 1}) + number("ceil_mode", 1)),
                HasSubstr("stride 9223372036854775807"));
    EXPECT_THAT(pool(numbers("dilations", {1, INT64_MAX})), HasSubstr("dilation 9223372036854775807"));
    EXPECT_THAT(pool(numbers("pads", {INT64_MAX, 0, 0, 0})), HasSubstr("pads 9223372036854775807"));
    EXPECT_THAT(pool(numbers("strides", {0, 1})), HasSubstr("stride 0"));
    // A range whose beginning has no absolute value, and one that would never reach its end.
    const auto range = [&](std::int64_t from, std::int64_t to, std::int64_t by) {
        return says(with("Constant", "", "a", number("value_int", from)) +
                    with("Constant", "", "b", number("value_int", to)) +
                    with("Constant", "", "c", number("value_int", by)) + with("Range", "abc", "r", "") +
                    with("Reshape", "xr", "y", ""));
    };
    EXPECT_THAT(range(INT64_MIN, 0, 1), HasSubstr("a range from"));
    EXPECT_THAT(range(0, 10, INT64_MAX), HasSubstr("a range from"));
    EXPECT_THAT(range(0, 10, 0), HasSubstr("a range from"));
    EXPECT_EQ(range(32, 33, 1), "imported");
    // Pictures without pixels.
    const auto empty = [&](const std::string& op, const std::string& attributes) {
        return onnx_of(with(op, "x", "y", attributes) + float_port("x", {1, 2, 0, 4}) + shapeless("y"));
    };
    EXPECT_THAT(empty("MaxPool", numbers("kernel_shape", {1, 1})), HasSubstr("no elements"));
    EXPECT_THAT(empty("GlobalAveragePool", ""), HasSubstr("no elements"));
    EXPECT_THAT(empty("Softmax", ""), HasSubstr("no elements"));
    EXPECT_THAT(empty("Relu", ""), HasSubstr("no elements"));
    EXPECT_THAT(empty("Flatten", ""), HasSubstr("no elements"));
}

// What the file declares and what follows from it are the same, or one is named.
TEST(Attacks, OnnxShapesThatAreDeclared) {
    const auto declares = [&](const std::string& result) {
        return onnx_of(node("Relu", "x", "y") + float_port("x", {1, 3, 8, 8}) + result);
    };
    EXPECT_EQ(declares(float_port("y", {1, 3, 8, 8}, 12)), "imported");
    EXPECT_EQ(declares(float_port("y", {-1, 3, -1, 0}, 12)), "imported");
    EXPECT_EQ(declares(shapeless("y")), "imported");
    EXPECT_THAT(declares(float_port("y", {1, 7, 8, 8}, 12)),
                HasSubstr("result 'y' has shape [1, 3, 8, 8], the file declares [1, 7, 8, 8]"));
    EXPECT_THAT(declares(float_port("y", {-1, 3, 8, 9}, 12)), HasSubstr("the file declares [-1, 3, 8, 9]"));
    EXPECT_THAT(declares(float_port("y", {1, 192}, 12)), HasSubstr("the file declares [1, 192]"));
    // One number is one number, of whatever rank.
    const auto one = [&](std::vector<std::int64_t> made, std::vector<std::int64_t> declared) {
        return onnx_of(node("Relu", "x", "y") + float_port("x", std::move(made)) +
                       float_port("y", std::move(declared), 12));
    };
    EXPECT_EQ(one({1}, {1, 1, 1, 1}), "imported");
    EXPECT_EQ(one({1, 1}, {}), "imported");
    EXPECT_THAT(one({1}, {1, 2}), HasSubstr("the file declares [1, 2]"));
}

TEST(Attacks, OnnxFreeBatchIsSaid) {
    std::vector<std::string> warnings;
    Options options;
    options.warnings = &warnings;
    const auto imported = [&](const std::string& ports) {
        const std::string model = onnx_model(node("Relu", "x", "y") + ports);
        return import_bytes({reinterpret_cast<const std::uint8_t*>(model.data()), model.size()}, {}, options);
    };
    ASSERT_TRUE(imported(float_port("x", {1, 3, 8, 8}) + float_port("y", {1, 3, 8, 8}, 12)));
    EXPECT_THAT(warnings, ::testing::IsEmpty());
    const auto graph = imported(float_port("x", {-1, 3, 8, 8}) + float_port("y", {-1, 3, 8, 8}, 12));
    ASSERT_TRUE(graph) << graph.error().describe();
    EXPECT_EQ((*graph)[graph->inputs[0]].shape[0], 1);
    EXPECT_THAT(warnings, ::testing::ElementsAre("dimension 0 of input 'x' is free: the network is compiled for 1"));
    EXPECT_TRUE(imported(float_port("x", {0, 3, 8, 8}) + float_port("y", {0, 3, 8, 8}, 12)));
    EXPECT_EQ(warnings.size(), 2u);
    EXPECT_FALSE(imported(float_port("x", {1, -1, 8, 8}) + shapeless("y")));
}

TEST(Attacks, TfLite) {
    // A root table that is its own vtable, one outside the file, one whose vtable is odd.
    const auto file = [](std::uint32_t root, std::int32_t back, std::uint16_t size) {
        std::vector<std::uint8_t> bytes(32, 0);
        store_le(bytes.data(), root);
        std::memcpy(bytes.data() + 4, "TFL3", 4);
        store_le(bytes.data() + 16, back);
        store_le(bytes.data() + 20, size);
        store_le<std::uint16_t>(bytes.data() + 22, 4);
        return complaint(bytes);
    };
    EXPECT_THAT(file(1000, -4, 4), HasSubstr("leads outside the file"));
    EXPECT_THAT(file(16, 100, 4), HasSubstr("leads outside the file"));
    EXPECT_THAT(file(16, -4, 5), HasSubstr("has a vtable of 5"));
    EXPECT_THAT(file(16, -4, 4), HasSubstr("version 0 of the format"));
    // A result of five numbers that is said to have six.
    auto six = golden("small.tflite");
    six[1008 + 8] = 6;
    EXPECT_THAT(complaint(six), HasSubstr("its result 'y' should have shape [1, 5], the file says [1, 6]"));
}

// The input's table gets a signature: its new list of fields and what that adds lie behind the file.
TEST(Attacks, TfLiteFreeBatchIsSaid) {
    const auto signed_as = [](std::int32_t batch) {
        constexpr std::size_t kTable = 1960;
        auto bytes = golden("small.tflite");
        const std::size_t fields = bytes.size();
        const auto added = static_cast<std::uint16_t>(fields + 20 - kTable);
        const auto append = [&](auto n) {
            bytes.resize(bytes.size() + sizeof n);
            store_le(bytes.data() + bytes.size() - sizeof n, n);
        };
        for (const int n : {20, added + 4, 16, 15, 0, 8, 4, 0, 0, int{added}}) append(static_cast<std::uint16_t>(n));
        for (const std::int32_t n : {4, 4, batch, 6, 6, 3}) append(n);
        store_le(bytes.data() + kTable, static_cast<std::int32_t>(kTable) - static_cast<std::int32_t>(fields));
        std::vector<std::string> warnings;
        Options options;
        options.warnings = &warnings;
        const auto graph = import_bytes(bytes, {}, options);
        EXPECT_TRUE(graph) << graph.error().describe();
        return warnings;
    };
    EXPECT_THAT(signed_as(1), ::testing::IsEmpty());
    EXPECT_THAT(signed_as(-1),
                ::testing::ElementsAre("dimension 0 of input 'x' is free: the network is compiled for 1"));
}

}  // namespace
}  // namespace talpa::compiler::import
