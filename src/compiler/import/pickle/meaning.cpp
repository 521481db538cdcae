// What a pickle's globals, calls and persistent ids mean: tensors, storages and the containers that hold them. Nothing
// is called; each name that may be is handled here by hand (model-formats, section 2.5).
#include <fmt/format.h>

#include <algorithm>

#include "compiler/import/pickle/globals.h"
#include "compiler/import/pickle/machine.h"

namespace talpa::compiler::import::pickle {

using host::Error;
using host::failure;
using host::Result;

namespace {

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

}  // namespace

Result<void> Machine::global_in_lines(std::uint64_t) {
    TRY_ASSIGN(const auto module, line());
    TRY_ASSIGN(const auto name, line());
    return global(module + " " + name);
}

Result<void> Machine::global_on_stack(std::uint64_t) {
    TRY_ASSIGN(const Ref name, pop());
    TRY_ASSIGN(const Ref module, pop());
    if (name->kind != Kind::Text || module->kind != Kind::Text || name->text.size() + module->text.size() > 512)
        return failure(ErrorCode::InvalidProgram, "a name that is none");
    return global(module->text + " " + name->text);
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
        const auto type =
            args.items.size() > 6 && args.items[6]->kind == Kind::Global ? dtype(args.items[6]->text) : std::nullopt;
        if (!type) return failure(ErrorCode::NotSupported, "a tensor of an unknown type");
        o.type = *type;
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

Result<void> Machine::reduce(std::uint64_t) {
    TRY_ASSIGN(const Ref args, pop());
    TRY_ASSIGN(const Ref callee, pop());
    if (args->kind != Kind::Tuple || callee->kind != Kind::Global)
        return failure(ErrorCode::InvalidProgram, "a call of something that is no global, or without a tuple");
    return call(callee->text, *args);
}

Result<void> Machine::build(std::uint64_t) {
    TRY_ASSIGN(const Ref state, pop());
    if (stack_.empty()) return failure(ErrorCode::InvalidProgram, "the stack is empty");
    const Kind kind = stack_.back()->kind;
    const bool plain = state->kind == Kind::Dict || state->kind == Kind::None;
    if ((kind == Kind::Dict || kind == Kind::Tensor) && plain) return {};  // metadata that nobody needs
    return failure(ErrorCode::NotSupported, "an object with a state of its own");
}

Result<void> Machine::persistent(std::uint64_t) {
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
    o.untyped = is_untyped_storage(p[1]->text);
    if (!o.untyped) {
        const auto type = storage_type(p[1]->text);
        if (!type) return failure(ErrorCode::NotSupported, "a storage of type '{}'", p[1]->text);
        o.type = *type;
    }
    if (const auto [seen, fresh] = storages_.emplace(key, &o); !fresh)
        if (seen->second->type != o.type || seen->second->integer != o.integer || seen->second->untyped != o.untyped)
            return failure(ErrorCode::InvalidProgram, "storage '{}' is described in two ways", key);
    return push(&o);
}

}  // namespace talpa::compiler::import::pickle
