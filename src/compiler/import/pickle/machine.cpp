#include "compiler/import/pickle/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <unordered_map>

#include "base/core/checked_math.h"

namespace talpa::compiler::import::pickle {

using host::Error;
using host::failure;
using host::Result;

namespace {

constexpr std::size_t kMostOpcodes = 4 << 20, kMostMemo = 1 << 20, kMostStack = 1 << 20;

struct StorageType {
    std::string_view name;
    std::optional<RawType> type;
};
constexpr StorageType kStorageTypes[] = {
    {"torch DoubleStorage", RawType::Float64},
    {"torch FloatStorage", RawType::Float32},
    {"torch HalfStorage", RawType::Float16},
    {"torch BFloat16Storage", RawType::BFloat16},
    {"torch LongStorage", RawType::Int64},
    {"torch IntStorage", RawType::Int32},
    {"torch ShortStorage", RawType::Int16},
    {"torch CharStorage", RawType::Int8},
    {"torch ByteStorage", RawType::UInt8},
    {"torch BoolStorage", RawType::Bool},
    {"torch ComplexFloatStorage", {}},
    {"torch ComplexDoubleStorage", {}},
    {"torch QInt8Storage", {}},
    {"torch QUInt8Storage", {}},
    {"torch QInt32Storage", {}},
};
constexpr std::string_view kUntyped[] = {"torch.storage UntypedStorage", "torch UntypedStorage"};

constexpr StorageType kDtypes[] = {
    {"torch float32", RawType::Float32},   {"torch float64", RawType::Float64}, {"torch float16", RawType::Float16},
    {"torch bfloat16", RawType::BFloat16}, {"torch int64", RawType::Int64},     {"torch int32", RawType::Int32},
    {"torch int16", RawType::Int16},       {"torch int8", RawType::Int8},       {"torch uint8", RawType::UInt8},
    {"torch uint16", RawType::UInt16},     {"torch uint32", RawType::UInt32},   {"torch uint64", RawType::UInt64},
    {"torch bool", RawType::Bool},
};

/// Names that may appear; what they do when called is in Machine::call.
constexpr std::string_view kCallable[] = {
    "collections OrderedDict",
    "collections defaultdict",
    "collections Counter",
    "torch Size",
    "torch device",
    "torch.nn.parameter Parameter",
    "_codecs encode",
    "builtins set",
    "torch._utils _rebuild_tensor_v2",
    "torch._utils _rebuild_tensor_v3",
    "torch._utils _rebuild_tensor",
    "torch._utils _rebuild_parameter",
    "torch._utils _rebuild_parameter_with_state",
};

template <std::size_t N>
const StorageType* find_type(const StorageType (&types)[N], std::string_view name) {
    for (const auto& t : types)
        if (t.name == name) return &t;
    return nullptr;
}

bool known_global(std::string_view name) {
    return std::ranges::find(kCallable, name) != std::end(kCallable) ||
           std::ranges::find(kUntyped, name) != std::end(kUntyped) || find_type(kStorageTypes, name) != nullptr ||
           find_type(kDtypes, name) != nullptr;
}

}  // namespace

class Machine {
  public:
    Machine(talpa::Bytes bytes, Document& document) : bytes_(bytes), document_(document) {}
    Result<std::size_t> run();

  private:
    // Reading
    Result<talpa::Bytes> take(std::uint64_t count);
    template <typename T>
    Result<T> number() {
        TRY_ASSIGN(const auto raw, take(sizeof(T)));
        return load_le<T>(raw.data());
    }
    Result<std::string> text(std::uint64_t size);
    Result<std::string> line();
    // The stack
    Object& make(Kind kind) {
        document_.objects_.push_back({});
        document_.objects_.back().kind = kind;
        return document_.objects_.back();
    }
    Result<void> push(Ref ref);
    Result<Ref> pop();
    Result<std::vector<Ref>> pop_to_mark();
    Result<void> push_int(std::int64_t value, Kind kind = Kind::Int);
    Result<void> push_text(std::string value);
    Result<void> push_tuple(std::size_t count);
    Result<void> remember(std::uint64_t index);
    Result<void> recall(std::uint64_t index);
    Result<Object*> container(Kind kind);
    Result<void> set_items(std::vector<Ref> pairs);
    Result<void> append(std::vector<Ref> items);
    Result<void> global(const std::string& name);
    Result<void> reduce();
    Result<void> call(const std::string& name, const Object& args);
    Result<void> rebuild(const Object& args, bool typed);
    Result<void> build();
    Result<void> persistent();
    Result<void> big_integer(std::uint64_t size);
    Result<bool> step(std::uint8_t opcode);

    talpa::Bytes bytes_;
    Document& document_;
    std::size_t at_ = 0;
    std::vector<Ref> stack_;
    std::vector<std::size_t> marks_;
    std::unordered_map<std::uint64_t, Ref> memo_;
    std::uint64_t next_memo_ = 0;
    std::unordered_map<std::string, Ref> storages_;
};

Result<talpa::Bytes> Machine::take(std::uint64_t count) {
    if (count > bytes_.size() - at_)
        return failure(ErrorCode::InvalidProgram, "{} bytes are needed, {} are left", count, bytes_.size() - at_);
    at_ += static_cast<std::size_t>(count);
    return bytes_.subspan(at_ - static_cast<std::size_t>(count), static_cast<std::size_t>(count));
}

Result<std::string> Machine::text(std::uint64_t size) {
    TRY_ASSIGN(const auto raw, take(size));
    return std::string(raw.begin(), raw.end());
}

Result<std::string> Machine::line() {
    std::string out;
    while (true) {
        TRY_ASSIGN(const auto raw, take(1));
        if (raw[0] == '\n') return out;
        if (out.size() > 256 || raw[0] < 0x20) return failure(ErrorCode::InvalidProgram, "a name that is none");
        out.push_back(static_cast<char>(raw[0]));
    }
}

Result<void> Machine::push(Ref ref) {
    if (stack_.size() >= kMostStack) return failure(ErrorCode::OutOfResources, "the stack grows beyond {}", kMostStack);
    stack_.push_back(ref);
    return {};
}

Result<Ref> Machine::pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back()))
        return failure(ErrorCode::InvalidProgram, "the stack is empty");
    const Ref ref = stack_.back();
    stack_.pop_back();
    return ref;
}

Result<std::vector<Ref>> Machine::pop_to_mark() {
    if (marks_.empty()) return failure(ErrorCode::InvalidProgram, "there is no mark");
    const auto mark = static_cast<std::ptrdiff_t>(marks_.back());
    marks_.pop_back();
    std::vector<Ref> items(stack_.begin() + mark, stack_.end());
    stack_.resize(static_cast<std::size_t>(mark));
    return items;
}

Result<void> Machine::push_int(std::int64_t value, Kind kind) {
    Object& o = make(kind);
    o.integer = value;
    return push(&o);
}

Result<void> Machine::push_text(std::string value) {
    Object& o = make(Kind::Text);
    o.text = std::move(value);
    return push(&o);
}

Result<void> Machine::push_tuple(std::size_t count) {
    Object& o = make(Kind::Tuple);
    o.items.resize(count);
    for (std::size_t i = count; i-- > 0;) {
        TRY_ASSIGN(o.items[i], pop());
    }
    return push(&o);
}

Result<void> Machine::remember(std::uint64_t index) {
    if (memo_.size() >= kMostMemo) return failure(ErrorCode::OutOfResources, "the memo grows beyond {}", kMostMemo);
    if (stack_.empty()) return failure(ErrorCode::InvalidProgram, "the stack is empty");
    memo_[index] = stack_.back();
    next_memo_ = std::max(next_memo_, index + 1);
    return {};
}

Result<void> Machine::recall(std::uint64_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) return failure(ErrorCode::InvalidProgram, "memo entry {} does not exist", index);
    return push(found->second);
}

/// The container that is now on top; objects are owned by the document and ours to change while it is read.
Result<Object*> Machine::container(Kind kind) {
    if (stack_.empty() || stack_.back()->kind != kind)
        return failure(ErrorCode::InvalidProgram, "no container to fill");
    return const_cast<Object*>(stack_.back());
}

Result<void> Machine::set_items(std::vector<Ref> pairs) {
    if (pairs.size() % 2 != 0) return failure(ErrorCode::InvalidProgram, "a key without a value");
    TRY_ASSIGN(Object * dict, container(Kind::Dict));
    for (std::size_t i = 0; i < pairs.size(); i += 2)
        if (pairs[i]->kind == Kind::List || pairs[i]->kind == Kind::Dict)
            return failure(ErrorCode::InvalidProgram, "a key that is a list or dict");
    dict->items.insert(dict->items.end(), pairs.begin(), pairs.end());
    return {};
}

Result<void> Machine::append(std::vector<Ref> items) {
    TRY_ASSIGN(Object * list, container(Kind::List));
    list->items.insert(list->items.end(), items.begin(), items.end());
    return {};
}

Result<void> Machine::global(const std::string& name) {
    if (!known_global(name)) {
        const bool own = !name.starts_with("torch") && !name.starts_with("collections") && !name.starts_with("numpy");
        return std::unexpected(
            Error(ErrorCode::NotSupported, fmt::format("the global '{}' is not plain data", name),
                  own ? "The file holds a whole module: save model.state_dict() instead of the model." : ""));
    }
    Object& o = make(Kind::Global);
    o.text = name;
    return push(&o);
}

Result<void> whole_numbers(const Object& tuple, std::vector<std::int64_t>& into) {
    if (tuple.kind != Kind::Tuple && tuple.kind != Kind::List)
        return failure(ErrorCode::InvalidProgram, "no tuple of sizes");
    for (const Ref item : tuple.items) {
        if (item->kind != Kind::Int || item->integer < 0)
            return failure(ErrorCode::InvalidProgram, "a size that is no number");
        into.push_back(item->integer);
    }
    return {};
}

Result<void> Machine::rebuild(const Object& args, bool typed) {
    if (args.items.size() < 4 || args.items[0]->kind != Kind::Storage || args.items[1]->kind != Kind::Int)
        return failure(ErrorCode::InvalidProgram, "a tensor of something other than a storage");
    Object& o = make(Kind::Tensor);
    o.storage = args.items[0];
    o.offset = args.items[1]->integer;
    TRY(whole_numbers(*args.items[2], o.sizes));
    TRY(whole_numbers(*args.items[3], o.strides));
    o.type = o.storage->type;
    if (typed) {
        const StorageType* type = args.items.size() > 6 && args.items[6]->kind == Kind::Global
                                      ? find_type(kDtypes, args.items[6]->text)
                                      : nullptr;
        if (type == nullptr) return failure(ErrorCode::NotSupported, "a tensor of an unknown type");
        o.type = *type->type;
    } else if (o.storage->untyped) {
        return failure(ErrorCode::InvalidProgram, "a tensor without type");
    }
    return push(&o);
}

Result<void> Machine::call(const std::string& name, const Object& args) {
    if (name == "torch._utils _rebuild_tensor_v2" || name == "torch._utils _rebuild_tensor")
        return rebuild(args, false);
    if (name == "torch._utils _rebuild_tensor_v3") return rebuild(args, true);
    if (name.starts_with("torch._utils _rebuild_parameter") || name == "torch.nn.parameter Parameter") {
        if (args.items.empty() || args.items[0]->kind != Kind::Tensor)
            return failure(ErrorCode::InvalidProgram, "a parameter of something other than a tensor");
        return push(args.items[0]);
    }
    if (name.starts_with("collections ")) {
        Object& o = make(Kind::Dict);
        if (!args.items.empty() && args.items[0]->kind == Kind::List)
            for (const Ref pair : args.items[0]->items) {
                if ((pair->kind != Kind::Tuple && pair->kind != Kind::List) || pair->items.size() != 2)
                    return failure(ErrorCode::InvalidProgram, "a dict of something other than pairs");
                o.items.insert(o.items.end(), pair->items.begin(), pair->items.end());
            }
        return push(&o);
    }
    if (name == "torch Size" && args.items.size() == 1 && args.items[0]->kind == Kind::Tuple)
        return push(args.items[0]);
    if (name == "torch device") return push(&make(Kind::None));
    if (name == "builtins set") return push(&make(Kind::List));
    if (name == "_codecs encode" && !args.items.empty() && args.items[0]->kind == Kind::Text)
        return push(args.items[0]);
    return failure(ErrorCode::NotSupported, "a call of '{}'", name);
}

Result<void> Machine::reduce() {
    TRY_ASSIGN(const Ref args, pop());
    TRY_ASSIGN(const Ref callee, pop());
    if (args->kind != Kind::Tuple || callee->kind != Kind::Global)
        return failure(ErrorCode::InvalidProgram, "a call of something that is no global, or without a tuple");
    return call(callee->text, *args);
}

Result<void> Machine::build() {
    TRY_ASSIGN(const Ref state, pop());
    if (stack_.empty()) return failure(ErrorCode::InvalidProgram, "the stack is empty");
    const Kind kind = stack_.back()->kind;
    const bool plain = state->kind == Kind::Dict || state->kind == Kind::None;
    if ((kind == Kind::Dict || kind == Kind::Tensor) && plain) return {};  // metadata that nobody needs
    return failure(ErrorCode::NotSupported, "an object with a state of its own");
}

Result<void> Machine::persistent() {
    TRY_ASSIGN(const Ref id, pop());
    const auto& p = id->items;
    if (id->kind != Kind::Tuple || p.size() < 5 || p[0]->kind != Kind::Text || p[0]->text != "storage" ||
        p[1]->kind != Kind::Global || p[2]->kind != Kind::Text || p[4]->kind != Kind::Int || p[4]->integer < 0)
        return failure(ErrorCode::InvalidProgram, "a persistent id that is no storage");
    if (p.size() > 5 && p[5]->kind != Kind::None)
        return failure(ErrorCode::NotSupported, "a storage that is a window into another");
    const std::string& key = p[2]->text;
    const bool clean = !key.empty() && key.size() <= 64 && std::ranges::all_of(key, [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
    });
    if (!clean) return failure(ErrorCode::InvalidProgram, "a storage's key that is none");
    Object& o = make(Kind::Storage);
    o.text = key;
    o.integer = p[4]->integer;
    o.untyped = std::ranges::find(kUntyped, p[1]->text) != std::end(kUntyped);
    if (!o.untyped) {
        const StorageType* type = find_type(kStorageTypes, p[1]->text);
        if (type == nullptr || !type->type)
            return failure(ErrorCode::NotSupported, "a storage of type '{}'", p[1]->text);
        o.type = *type->type;
    }
    if (const auto [seen, fresh] = storages_.emplace(key, &o); !fresh)
        if (seen->second->type != o.type || seen->second->integer != o.integer || seen->second->untyped != o.untyped)
            return failure(ErrorCode::InvalidProgram, "storage '{}' is described in two ways", key);
    return push(&o);
}

Result<void> Machine::big_integer(std::uint64_t size) {
    if (size > 255) return failure(ErrorCode::NotSupported, "an integer of {} bytes", size);
    TRY_ASSIGN(const auto raw, take(size));
    Object& o = make(Kind::Int);
    if (size > 8) {
        o.text.assign(raw.begin(), raw.end());
    } else if (size > 0) {
        std::uint64_t bits = (raw.back() & 0x80) != 0 ? ~std::uint64_t{0} : 0;
        for (std::size_t i = raw.size(); i-- > 0;) bits = bits << 8 | raw[i];
        o.integer = static_cast<std::int64_t>(bits);
    }
    return push(&o);
}

/// False at STOP.
Result<bool> Machine::step(std::uint8_t opcode) {
    const auto going = [](Result<void> done) -> Result<bool> {
        if (!done) return std::unexpected(std::move(done.error()));
        return true;
    };
    switch (opcode) {
        case 0x80: {
            TRY_ASSIGN(const auto version, number<std::uint8_t>());
            if (version < 2 || version > 5) return failure(ErrorCode::NotSupported, "pickle protocol {}", version);
            return true;
        }
        case 0x95: {
            TRY_ASSIGN(const auto size, number<std::uint64_t>());
            if (size > bytes_.size() - at_) return failure(ErrorCode::InvalidProgram, "a frame of {} bytes", size);
            return true;
        }
        case '(':
            if (marks_.size() >= kMostStack) return failure(ErrorCode::OutOfResources, "too many marks");
            marks_.push_back(stack_.size());
            return true;
        case '.': {
            TRY_ASSIGN(document_.root_, pop());
            if (!stack_.empty() || !marks_.empty())
                return failure(ErrorCode::InvalidProgram, "something is left on the stack");
            return false;
        }
        case '0': {
            TRY(pop());
            return true;
        }
        case '1':
            TRY(pop_to_mark());
            return true;
        case '2': {
            TRY_ASSIGN(const Ref top, pop());
            TRY(push(top));
            return going(push(top));
        }
        case 'N':
            return going(push(&make(Kind::None)));
        case 0x88:
        case 0x89:
            return going(push_int(opcode == 0x88 ? 1 : 0, Kind::Bool));
        case 'K': {
            TRY_ASSIGN(const auto v, number<std::uint8_t>());
            return going(push_int(v));
        }
        case 'M': {
            TRY_ASSIGN(const auto v, number<std::uint16_t>());
            return going(push_int(v));
        }
        case 'J': {
            TRY_ASSIGN(const auto v, number<std::int32_t>());
            return going(push_int(v));
        }
        case 0x8A: {
            TRY_ASSIGN(const auto size, number<std::uint8_t>());
            return going(big_integer(size));
        }
        case 0x8B: {
            TRY_ASSIGN(const auto size, number<std::uint32_t>());
            return going(big_integer(size));
        }
        case 'G': {
            TRY_ASSIGN(const auto raw, take(8));
            std::uint64_t bits = 0;
            for (const auto b : raw) bits = bits << 8 | b;
            Object& o = make(Kind::Float);
            o.number = std::bit_cast<double>(bits);
            return going(push(&o));
        }
        case 'X':
        case 'B':
        case 'T': {
            TRY_ASSIGN(const auto size, number<std::uint32_t>());
            TRY_ASSIGN(auto value, text(size));
            return going(push_text(std::move(value)));
        }
        case 0x8C:
        case 'U':
        case 'C': {
            TRY_ASSIGN(const auto size, number<std::uint8_t>());
            TRY_ASSIGN(auto value, text(size));
            return going(push_text(std::move(value)));
        }
        case 0x8D:
        case 0x8E: {
            TRY_ASSIGN(const auto size, number<std::uint64_t>());
            TRY_ASSIGN(auto value, text(size));
            return going(push_text(std::move(value)));
        }
        case ')':
            return going(push(&make(Kind::Tuple)));
        case 0x85:
        case 0x86:
        case 0x87:
            return going(push_tuple(opcode - 0x84u));
        case 't': {
            TRY_ASSIGN(auto items, pop_to_mark());
            Object& o = make(Kind::Tuple);
            o.items = std::move(items);
            return going(push(&o));
        }
        case ']':
        case 0x8F:
            return going(push(&make(Kind::List)));
        case 'a': {
            TRY_ASSIGN(const Ref item, pop());
            return going(append({item}));
        }
        case 'e':
        case 0x90: {
            TRY_ASSIGN(auto items, pop_to_mark());
            return going(append(std::move(items)));
        }
        case '}':
            return going(push(&make(Kind::Dict)));
        case 's': {
            TRY_ASSIGN(const Ref value, pop());
            TRY_ASSIGN(const Ref key, pop());
            return going(set_items({key, value}));
        }
        case 'u': {
            TRY_ASSIGN(auto items, pop_to_mark());
            return going(set_items(std::move(items)));
        }
        case 'q': {
            TRY_ASSIGN(const auto index, number<std::uint8_t>());
            return going(remember(index));
        }
        case 'r': {
            TRY_ASSIGN(const auto index, number<std::uint32_t>());
            return going(remember(index));
        }
        case 0x94:
            return going(remember(next_memo_));
        case 'h': {
            TRY_ASSIGN(const auto index, number<std::uint8_t>());
            return going(recall(index));
        }
        case 'j': {
            TRY_ASSIGN(const auto index, number<std::uint32_t>());
            return going(recall(index));
        }
        case 'c': {
            TRY_ASSIGN(const auto module, line());
            TRY_ASSIGN(const auto name, line());
            return going(global(module + " " + name));
        }
        case 0x93: {
            TRY_ASSIGN(const Ref name, pop());
            TRY_ASSIGN(const Ref module, pop());
            if (name->kind != Kind::Text || module->kind != Kind::Text || name->text.size() + module->text.size() > 512)
                return failure(ErrorCode::InvalidProgram, "a name that is none");
            return going(global(module->text + " " + name->text));
        }
        case 'R':
            return going(reduce());
        case 'b':
            return going(build());
        case 'Q':
            return going(persistent());
        default:
            return failure(ErrorCode::NotSupported, "it does more than hold data");
    }
}

Result<std::size_t> Machine::run() {
    for (std::size_t count = 0; count < kMostOpcodes; ++count) {
        const auto here = at_;
        auto opcode = number<std::uint8_t>();
        auto going = opcode ? step(*opcode) : Result<bool>(std::unexpected(std::move(opcode.error())));
        if (!going)
            return std::unexpected(std::move(going.error())
                                       .with_context(fmt::format("pickle, opcode 0x{:02X} at offset {}",
                                                                 here < bytes_.size() ? bytes_[here] : 0, here)));
        if (!*going) return at_;
    }
    return failure(ErrorCode::OutOfResources, "a pickle of more than {} operations", kMostOpcodes);
}

Result<std::unique_ptr<Document>> Document::read(talpa::Bytes bytes, std::size_t& used) {
    auto document = std::make_unique<Document>();
    TRY_ASSIGN(used, Machine(bytes, *document).run());
    return document;
}

}  // namespace talpa::compiler::import::pickle
