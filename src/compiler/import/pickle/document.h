// Reads pickles as PyTorch's state dicts use them, and executes nothing (model-formats, sections 2.4 and 2.5): a global
// name is an inert token, and the few that mean something mean plain data. Values are shared by reference, so that what
// would expand without end stays small.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/core/byte_reader.h"
#include "base/host/error.h"
#include "compiler/graph/graph.h"
#include "compiler/import/stored_tensor.h"

namespace talpa::compiler::import::pickle {

struct Object;
using Ref = const Object*;

enum class Kind : std::uint8_t { None, Bool, Int, Float, Text, Tuple, List, Dict, Global, Storage, Tensor };

struct Object {
    Kind kind = Kind::None;
    std::int64_t integer = 0;  ///< Int, Bool; of a Storage: element count
    double number = 0;
    std::string text;        ///< Text; Global: "module name"; Storage: its key; LONG1 of more than 8 bytes: its bytes
    std::vector<Ref> items;  ///< Tuple, List; Dict: key, value, key, value …
    // Storage and Tensor
    RawType type = RawType::UInt8;
    bool untyped = false;  ///< a storage counted in bytes
    Ref storage = nullptr;
    Shape sizes{};
    std::vector<std::int64_t> strides{};
    std::int64_t offset = 0;
};

/// The objects of one pickle; they live as long as it.
class Document {
  public:
    /// Reads one pickle from the front of `bytes`; `used` takes its length. Errors name opcode and offset.
    [[nodiscard]] static host::Result<std::unique_ptr<Document>> read(talpa::Bytes bytes, std::size_t& used);
    [[nodiscard]] const Object& root() const { return *root_; }

  private:
    friend class Machine;
    std::deque<Object> objects_;
    Ref root_ = nullptr;
};

}  // namespace talpa::compiler::import::pickle
