// The method of a .pte under construction: values, instructions, constants and the memory plan of what lies in the
// arena.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"
#include "pte/host/writer.h"

namespace talpa::compiler {

/// ExecuTorch's number of a type (pte-format, section 3.1).
[[nodiscard]] std::int8_t scalar_type(DType type);

class ProgramBuilder {
  public:
    explicit ProgramBuilder(std::string method) { spec_.name = std::move(method); }

    /// A tensor in the arena, alive from the first to the last instruction that names it.
    std::int32_t tensor(DType type, const Shape& shape);
    std::int32_t constant(DType type, const Shape& shape, const std::vector<std::uint8_t>& data);
    std::int32_t number(std::int64_t v);
    std::int32_t real(double v);
    std::int32_t boolean(bool v);
    std::int32_t null();
    std::int32_t integers(const std::vector<std::int64_t>& list);
    std::int32_t tensors(const std::vector<std::int32_t>& list);
    std::int32_t text(const std::string& s);

    /// `name` with its overload after a dot. All of the arguments, repeated tail included.
    void call(const std::string& name, std::vector<std::int32_t> arguments);
    void call_delegate(pte::host::DelegateSpec delegate, std::vector<std::int32_t> arguments);

    void input(std::int32_t value) { spec_.inputs.push_back(value); }
    void output(std::int32_t value) { spec_.outputs.push_back(value); }

    /// Plans the arena and hands the method over. `constants` are the program's.
    [[nodiscard]] pte::host::MethodSpec finish();
    [[nodiscard]] std::vector<std::vector<std::uint8_t>> take_constants() { return std::move(constants_); }

  private:
    std::int32_t add(pte::host::ValueSpec value);
    void used(std::int32_t value);

    struct Life {
        std::uint32_t first = UINT32_MAX, last = 0;
        std::uint64_t bytes = 0;
    };
    pte::host::MethodSpec spec_;
    std::map<std::int32_t, Life> lives_;  ///< of tensors in the arena
    std::map<std::string, std::int32_t> operators_;
    std::map<std::int64_t, std::int32_t> numbers_;
    std::vector<std::vector<std::uint8_t>> constants_;
    std::uint32_t now_ = 0;
};

}  // namespace talpa::compiler
