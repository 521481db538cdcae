#include "inspect/plan_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace talpa::inspect {
namespace {

constexpr std::uint32_t kMostListItems = 16;

template <typename Vector, typename Fn>
std::string list_text(const Vector& list, Fn&& item) {
    std::string text = "[";
    for (std::uint32_t i = 0; i < list.size() && i < kMostListItems; ++i) text += (i == 0 ? "" : ", ") + item(list[i]);
    return text + (list.size() > kMostListItems ? fmt::format(", ... {} in all]", list.size()) : "]");
}

// The call's arguments, without the outputs that calls repeat at their end, and what is left of the last as result.
std::string call_text(const pte::MethodView& method, const pte::Vector<std::int32_t>& args) {
    std::uint32_t count = args.size();
    if (count >= 2 && args[count - 1] == args[count - 2]) --count;
    std::string text = "(";
    for (std::uint32_t i = 0; i + 1 < count; ++i) text += (i == 0 ? "" : ", ") + value_text(method, args[i]);
    text += ")";
    if (count != 0) text += " -> " + value_text(method, args[count - 1]);
    return text;
}

}  // namespace

std::string operator_name(const pte::OperatorView& op) {
    return op.overload.empty() ? std::string(op.name) : fmt::format("{}.{}", op.name, op.overload);
}

std::string value_text(const pte::MethodView& method, std::int64_t index) {
    if (index < 0 || index >= method.values().size()) return fmt::format("%{}?", index);
    const pte::ValueView value = method.value(static_cast<std::uint32_t>(index));
    switch (value.type()) {
        case pte::ValueType::Null:
            return "null";
        case pte::ValueType::Int:
            return fmt::format("{}", value.as_int());
        case pte::ValueType::Bool:
            return value.as_bool() ? "true" : "false";
        case pte::ValueType::Double:
            return fmt::format("{:.6g}", value.as_double());
        case pte::ValueType::String:
            return fmt::format("'{}'", value.as_string());
        case pte::ValueType::IntList: {
            // Items are indices of Int values.
            return list_text(value.int_list(), [&](std::int64_t i) {
                const bool number = i >= 0 && i < method.values().size() &&
                                    method.value(static_cast<std::uint32_t>(i)).type() == pte::ValueType::Int;
                return number ? fmt::format("{}", method.value(static_cast<std::uint32_t>(i)).as_int())
                              : fmt::format("%{}", i);
            });
        }
        case pte::ValueType::DoubleList:
            return list_text(value.double_list(), [](double d) { return fmt::format("{:.6g}", d); });
        case pte::ValueType::BoolList:
            return list_text(value.bool_list(), [](std::uint8_t b) { return std::string(b != 0 ? "true" : "false"); });
        case pte::ValueType::TensorList:
        case pte::ValueType::OptionalTensorList:
            return list_text(value.tensor_list(),
                             [](std::int32_t i) { return i < 0 ? std::string("null") : fmt::format("%{}", i); });
        case pte::ValueType::Tensor:
        case pte::ValueType::None:
            break;
    }
    return fmt::format("%{}", index);
}

InstructionReport instruction_report(const pte::MethodView& method, std::uint32_t chain, std::uint32_t index,
                                     runtime::OperatorTable operators) {
    InstructionReport report;
    report.chain = chain;
    report.index = index;
    const pte::InstructionView instruction(method.instructions(chain)[index]);
    switch (instruction.type()) {
        case pte::InstructionType::KernelCall: {
            report.kind = "KernelCall";
            const std::int32_t op = instruction.op_index();
            if (op >= 0 && static_cast<std::uint32_t>(op) < method.operators().size()) {
                report.op = operator_name(method.op(static_cast<std::uint32_t>(op)));
                report.built_in =
                    runtime::find_operator(operators, method.op(static_cast<std::uint32_t>(op))) != nullptr;
            } else {
                report.op = fmt::format("operator {}?", op);
                report.built_in = false;
            }
            report.text = report.op + call_text(method, instruction.args());
            break;
        }
        case pte::InstructionType::DelegateCall: {
            report.kind = "DelegateCall";
            report.delegate = instruction.delegate_index();
            const bool known =
                report.delegate >= 0 && static_cast<std::uint32_t>(report.delegate) < method.delegate_count();
            report.op = known ? std::string(method.delegate(static_cast<std::uint32_t>(report.delegate)).id()) : "?";
            report.text = fmt::format("delegate {}: {}(", report.delegate, report.op);
            for (std::uint32_t i = 0; i < instruction.args().size(); ++i)
                report.text += (i == 0 ? "" : ", ") + value_text(method, instruction.args()[i]);
            report.text += ")";
            break;
        }
        case pte::InstructionType::MoveCall:
            report.kind = "MoveCall";
            report.text = fmt::format("%{} = %{}", instruction.move_to(), instruction.move_from());
            break;
        case pte::InstructionType::JumpFalseCall:
            report.kind = "JumpFalseCall";
            report.text = fmt::format("if not %{}: go to {}", instruction.condition(), instruction.destination());
            break;
        case pte::InstructionType::FreeCall:
            report.kind = "FreeCall";
            report.text = fmt::format("free %{}", instruction.freed_value());
            break;
        case pte::InstructionType::None:
            report.kind = "?";
            report.text = "an instruction of no known kind";
            break;
    }
    return report;
}

}  // namespace talpa::inspect
