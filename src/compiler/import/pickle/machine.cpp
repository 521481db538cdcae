#include "compiler/import/pickle/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace talpa::compiler::import::pickle {

using host::failure;
using host::Result;

namespace {

constexpr std::size_t kMostOpcodes = 4 << 20, kMostMemo = 1 << 20, kMostStack = 1 << 20;

}  // namespace

Result<talpa::Bytes> Machine::take(std::uint64_t count) {
    if (count > bytes_.size() - at_)
        return failure(ErrorCode::InvalidProgram, "{} bytes are needed, {} are left", count, bytes_.size() - at_);
    at_ += static_cast<std::size_t>(count);
    return bytes_.subspan(at_ - static_cast<std::size_t>(count), static_cast<std::size_t>(count));
}

Result<std::uint64_t> Machine::number(std::size_t bytes) {
    TRY_ASSIGN(const auto raw, take(bytes));
    std::uint64_t value = 0;
    for (std::size_t i = bytes; i-- > 0;) value = value << 8 | raw[i];
    return value;
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

Result<void> Machine::push_tuple(std::size_t count) {
    Object& o = make(Kind::Tuple);
    o.items.resize(count);
    for (std::size_t i = count; i-- > 0;) {
        TRY_ASSIGN(o.items[i], pop());
    }
    return push(&o);
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

Result<void> Machine::protocol(std::uint64_t version) {
    if (version < 2 || version > 5) return failure(ErrorCode::NotSupported, "pickle protocol {}", version);
    return {};
}

Result<void> Machine::frame(std::uint64_t size) {
    if (size > bytes_.size() - at_) return failure(ErrorCode::InvalidProgram, "a frame of {} bytes", size);
    return {};
}

Result<void> Machine::stop(std::uint64_t) {
    TRY_ASSIGN(document_.root_, pop());
    if (!stack_.empty() || !marks_.empty()) return failure(ErrorCode::InvalidProgram, "something is left on the stack");
    stopped_ = true;
    return {};
}

Result<void> Machine::mark(std::uint64_t) {
    if (marks_.size() >= kMostStack) return failure(ErrorCode::OutOfResources, "too many marks");
    marks_.push_back(stack_.size());
    return {};
}

Result<void> Machine::drop(std::uint64_t) {
    TRY(pop());
    return {};
}

Result<void> Machine::drop_to_mark(std::uint64_t) {
    TRY(pop_to_mark());
    return {};
}

Result<void> Machine::duplicate(std::uint64_t) {
    TRY_ASSIGN(const Ref top, pop());
    TRY(push(top));
    return push(top);
}

Result<void> Machine::unsigned_integer(std::uint64_t value) {
    Object& o = make(Kind::Int);
    o.integer = static_cast<std::int64_t>(value);
    return push(&o);
}

Result<void> Machine::signed_integer(std::uint64_t value) {
    Object& o = make(Kind::Int);
    o.integer = static_cast<std::int32_t>(static_cast<std::uint32_t>(value));
    return push(&o);
}

Result<void> Machine::long_integer(std::uint64_t size) {
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

Result<void> Machine::real(std::uint64_t) {
    TRY_ASSIGN(const auto raw, take(8));
    std::uint64_t bits = 0;
    for (const auto b : raw) bits = bits << 8 | b;
    Object& o = make(Kind::Float);
    o.number = std::bit_cast<double>(bits);
    return push(&o);
}

Result<void> Machine::text(std::uint64_t size) {
    TRY_ASSIGN(const auto raw, take(size));
    Object& o = make(Kind::Text);
    o.text.assign(raw.begin(), raw.end());
    return push(&o);
}

Result<void> Machine::tuple_to_mark(std::uint64_t) {
    TRY_ASSIGN(auto items, pop_to_mark());
    Object& o = make(Kind::Tuple);
    o.items = std::move(items);
    return push(&o);
}

Result<void> Machine::append_one(std::uint64_t) {
    TRY_ASSIGN(const Ref item, pop());
    return append({item});
}

Result<void> Machine::append_to_mark(std::uint64_t) {
    TRY_ASSIGN(auto items, pop_to_mark());
    return append(std::move(items));
}

Result<void> Machine::set_one(std::uint64_t) {
    TRY_ASSIGN(const Ref value, pop());
    TRY_ASSIGN(const Ref key, pop());
    return set_items({key, value});
}

Result<void> Machine::set_to_mark(std::uint64_t) {
    TRY_ASSIGN(auto items, pop_to_mark());
    return set_items(std::move(items));
}

Result<void> Machine::remember(std::uint64_t index) {
    if (memo_.size() >= kMostMemo) return failure(ErrorCode::OutOfResources, "the memo grows beyond {}", kMostMemo);
    if (stack_.empty()) return failure(ErrorCode::InvalidProgram, "the stack is empty");
    memo_[index] = stack_.back();
    next_memo_ = std::max(next_memo_, index + 1);
    return {};
}

Result<void> Machine::remember_next(std::uint64_t) {
    return remember(next_memo_);
}

Result<void> Machine::recall(std::uint64_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) return failure(ErrorCode::InvalidProgram, "memo entry {} does not exist", index);
    return push(found->second);
}

// As Python's pickletools names them. What is not here does more than hold data.
const Machine::Opcode Machine::kOpcodes[] = {
    {0x80, 1, &Machine::protocol},              // PROTO
    {0x95, 8, &Machine::frame},                 // FRAME
    {'.', 0, &Machine::stop},                   // STOP
    {'(', 0, &Machine::mark},                   // MARK
    {'0', 0, &Machine::drop},                   // POP
    {'1', 0, &Machine::drop_to_mark},           // POP_MARK
    {'2', 0, &Machine::duplicate},              // DUP
    {'N', 0, &Machine::fresh<Kind::None>},      // NONE
    {0x88, 0, &Machine::fresh<Kind::Bool, 1>},  // NEWTRUE
    {0x89, 0, &Machine::fresh<Kind::Bool, 0>},  // NEWFALSE
    {'K', 1, &Machine::unsigned_integer},       // BININT1
    {'M', 2, &Machine::unsigned_integer},       // BININT2
    {'J', 4, &Machine::signed_integer},         // BININT
    {0x8A, 1, &Machine::long_integer},          // LONG1
    {0x8B, 4, &Machine::long_integer},          // LONG4
    {'G', 0, &Machine::real},                   // BINFLOAT
    {'X', 4, &Machine::text},                   // BINUNICODE
    {0x8C, 1, &Machine::text},                  // SHORT_BINUNICODE
    {0x8D, 8, &Machine::text},                  // BINUNICODE8
    {'B', 4, &Machine::text},                   // BINBYTES
    {'C', 1, &Machine::text},                   // SHORT_BINBYTES
    {0x8E, 8, &Machine::text},                  // BINBYTES8
    {'T', 4, &Machine::text},                   // BINSTRING
    {'U', 1, &Machine::text},                   // SHORT_BINSTRING
    {')', 0, &Machine::fresh<Kind::Tuple>},     // EMPTY_TUPLE
    {0x85, 0, &Machine::tuple_of<1>},           // TUPLE1
    {0x86, 0, &Machine::tuple_of<2>},           // TUPLE2
    {0x87, 0, &Machine::tuple_of<3>},           // TUPLE3
    {'t', 0, &Machine::tuple_to_mark},          // TUPLE
    {']', 0, &Machine::fresh<Kind::List>},      // EMPTY_LIST
    {'a', 0, &Machine::append_one},             // APPEND
    {'e', 0, &Machine::append_to_mark},         // APPENDS
    {0x8F, 0, &Machine::fresh<Kind::List>},     // EMPTY_SET
    {0x90, 0, &Machine::append_to_mark},        // ADDITEMS
    {'}', 0, &Machine::fresh<Kind::Dict>},      // EMPTY_DICT
    {'s', 0, &Machine::set_one},                // SETITEM
    {'u', 0, &Machine::set_to_mark},            // SETITEMS
    {'q', 1, &Machine::remember},               // BINPUT
    {'r', 4, &Machine::remember},               // LONG_BINPUT
    {0x94, 0, &Machine::remember_next},         // MEMOIZE
    {'h', 1, &Machine::recall},                 // BINGET
    {'j', 4, &Machine::recall},                 // LONG_BINGET
    {'c', 0, &Machine::global_in_lines},        // GLOBAL
    {0x93, 0, &Machine::global_on_stack},       // STACK_GLOBAL
    {'R', 0, &Machine::reduce},                 // REDUCE
    {'b', 0, &Machine::build},                  // BUILD
    {'Q', 0, &Machine::persistent},             // BINPERSID
};

Result<void> Machine::step() {
    TRY_ASSIGN(const auto code, number(1));
    const auto* row = std::ranges::find(kOpcodes, code, &Opcode::code);
    if (row == std::end(kOpcodes)) return failure(ErrorCode::NotSupported, "it does more than hold data");
    TRY_ASSIGN(const auto operand, number(row->operand_bytes));
    return (this->*row->act)(operand);
}

Result<std::size_t> Machine::run() {
    for (std::size_t count = 0; count < kMostOpcodes; ++count) {
        const auto here = at_;
        if (auto done = step(); !done)
            return std::unexpected(std::move(done.error())
                                       .with_context(fmt::format("pickle, opcode 0x{:02X} at offset {}",
                                                                 here < bytes_.size() ? bytes_[here] : 0, here)));
        if (stopped_) return at_;
    }
    return failure(ErrorCode::OutOfResources, "a pickle of more than {} operations", kMostOpcodes);
}

Result<std::unique_ptr<Document>> Document::read(talpa::Bytes bytes, std::size_t& used) {
    auto document = std::make_unique<Document>();
    TRY_ASSIGN(used, Machine(bytes, *document).run());
    return document;
}

}  // namespace talpa::compiler::import::pickle
