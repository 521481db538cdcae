// The stack machine of a pickle: opcodes push values, move them and put them together.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/import/pickle/document.h"

namespace talpa::compiler::import::pickle {

class Machine {
  public:
    Machine(talpa::Bytes bytes, Document& document) : bytes_(bytes), document_(document) {}
    host::Result<std::size_t> run();

  private:
    /// What an opcode does; the operand is the unsigned number of `operand_bytes` that follows it.
    using Act = host::Result<void> (Machine::*)(std::uint64_t operand);
    struct Opcode {
        std::uint8_t code;
        std::uint8_t operand_bytes;
        Act act;
    };
    static const Opcode kOpcodes[];
    host::Result<void> step();

    host::Result<talpa::Bytes> take(std::uint64_t count);
    host::Result<std::uint64_t> number(std::size_t bytes);
    host::Result<std::string> line();
    Object& make(Kind kind) {
        document_.objects_.push_back({});
        document_.objects_.back().kind = kind;
        return document_.objects_.back();
    }
    host::Result<void> push(Ref ref);
    host::Result<Ref> pop();
    host::Result<std::vector<Ref>> pop_to_mark();
    host::Result<void> push_tuple(std::size_t count);
    host::Result<Object*> container(Kind kind);
    host::Result<void> set_items(std::vector<Ref> pairs);
    host::Result<void> append(std::vector<Ref> items);

    // Opcodes that only move values
    host::Result<void> protocol(std::uint64_t version);
    host::Result<void> frame(std::uint64_t size);
    host::Result<void> stop(std::uint64_t);
    host::Result<void> mark(std::uint64_t);
    host::Result<void> drop(std::uint64_t);
    host::Result<void> drop_to_mark(std::uint64_t);
    host::Result<void> duplicate(std::uint64_t);
    template <Kind kKind, std::int64_t kInteger = 0>
    host::Result<void> fresh(std::uint64_t) {
        Object& o = make(kKind);
        o.integer = kInteger;
        return push(&o);
    }
    host::Result<void> unsigned_integer(std::uint64_t value);
    host::Result<void> signed_integer(std::uint64_t value);
    host::Result<void> long_integer(std::uint64_t size);
    host::Result<void> real(std::uint64_t);
    host::Result<void> text(std::uint64_t size);
    template <std::size_t kCount>
    host::Result<void> tuple_of(std::uint64_t) {
        return push_tuple(kCount);
    }
    host::Result<void> tuple_to_mark(std::uint64_t);
    host::Result<void> append_one(std::uint64_t);
    host::Result<void> append_to_mark(std::uint64_t);
    host::Result<void> set_one(std::uint64_t);
    host::Result<void> set_to_mark(std::uint64_t);
    host::Result<void> remember(std::uint64_t index);
    host::Result<void> remember_next(std::uint64_t);
    host::Result<void> recall(std::uint64_t index);

    // Opcodes that mean something, and what they mean (meaning.cpp)
    host::Result<void> global_in_lines(std::uint64_t);
    host::Result<void> global_on_stack(std::uint64_t);
    host::Result<void> reduce(std::uint64_t);
    host::Result<void> build(std::uint64_t);
    host::Result<void> persistent(std::uint64_t);
    host::Result<void> global(const std::string& name);
    host::Result<void> call(const std::string& name, const Object& args);
    host::Result<void> rebuild(const Object& args, bool typed);

    talpa::Bytes bytes_;
    Document& document_;
    bool stopped_ = false;
    std::size_t at_ = 0;
    std::vector<Ref> stack_;
    std::vector<std::size_t> marks_;
    std::unordered_map<std::uint64_t, Ref> memo_;
    std::uint64_t next_memo_ = 0;
    std::unordered_map<std::string, Ref> storages_;
};

}  // namespace talpa::compiler::import::pickle
