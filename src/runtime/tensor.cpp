#include "runtime/tensor.h"

namespace talpa::runtime {

std::string_view scalar_name(ScalarType type) {
    switch (type) {
        case ScalarType::UInt8:
            return "uint8";
        case ScalarType::Int8:
            return "int8";
        case ScalarType::Int16:
            return "int16";
        case ScalarType::Int32:
            return "int32";
        case ScalarType::Int64:
            return "int64";
        case ScalarType::Float16:
            return "float16";
        case ScalarType::Float32:
            return "float32";
        case ScalarType::Float64:
            return "float64";
        case ScalarType::Bool:
            return "bool";
        case ScalarType::QInt8:
            return "qint8";
        case ScalarType::QUInt8:
            return "quint8";
        case ScalarType::QInt32:
            return "qint32";
        case ScalarType::BFloat16:
            return "bfloat16";
        case ScalarType::QUInt4x2:
            return "quint4x2";
        case ScalarType::QUInt2x4:
            return "quint2x4";
        case ScalarType::Bits16:
            return "bits16";
        case ScalarType::Float8E5M2:
            return "float8_e5m2";
        case ScalarType::Float8E4M3FN:
            return "float8_e4m3fn";
        case ScalarType::Float8E5M2FNUZ:
            return "float8_e5m2fnuz";
        case ScalarType::Float8E4M3FNUZ:
            return "float8_e4m3fnuz";
        case ScalarType::UInt16:
            return "uint16";
        case ScalarType::UInt32:
            return "uint32";
        case ScalarType::UInt64:
            return "uint64";
    }
    return "no scalar type";
}

std::string_view value_kind_name(Value::Kind kind) {
    switch (kind) {
        case Value::Kind::Null:
            return "Null";
        case Value::Kind::Int:
            return "Int";
        case Value::Kind::Double:
            return "Double";
        case Value::Kind::Bool:
            return "Bool";
        case Value::Kind::String:
            return "String";
        case Value::Kind::Tensor:
            return "Tensor";
        case Value::Kind::IntList:
            return "IntList";
        case Value::Kind::DoubleList:
            return "DoubleList";
        case Value::Kind::BoolList:
            return "BoolList";
        case Value::Kind::TensorList:
            return "TensorList";
        case Value::Kind::OptionalTensorList:
            return "OptionalTensorList";
    }
    return "no value kind";
}

}  // namespace talpa::runtime
