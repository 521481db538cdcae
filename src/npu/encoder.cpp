#include "npu/encoder.h"

#include "npu/registers_used.h"

namespace talpa::npu {

namespace {

constexpr std::uint32_t kWithPayload = 1u << 14;

}  // namespace

Result<void> WordBuffer::put(std::uint32_t word) {
    if (used_ == memory_.size())
        return fail(ErrorCode::OutOfResources, "the command stream needs more than {} bytes", memory_.size() * 4);
    memory_[used_++] = word;
    return {};
}

Result<void> StreamWriter::put(std::uint32_t word) {
    TRY(sink_.put(word));
    ++words_;
    return {};
}

Result<void> StreamWriter::set(Cmd0 code, std::uint16_t parameter) {
    Known& known = cmd0_[static_cast<std::size_t>(code) - 0x100];
    if (known.valid && known.value == parameter) return {};
    known = {true, parameter};
    return put(static_cast<std::uint32_t>(code) | static_cast<std::uint32_t>(parameter) << 16);
}

Result<void> StreamWriter::set(Cmd1 code, std::uint64_t parameter_and_payload) {
    Known& known = cmd1_[static_cast<std::size_t>(code)];
    if (known.valid && known.value == parameter_and_payload) return {};
    known = {true, parameter_and_payload};
    const auto parameter = static_cast<std::uint32_t>(parameter_and_payload >> 32) & 0xFFFF;
    TRY(put(static_cast<std::uint32_t>(code) | kWithPayload | parameter << 16));
    return put(static_cast<std::uint32_t>(parameter_and_payload));
}

Result<void> StreamWriter::emit(const Operation& op) {
    const std::uint16_t uses = uses_of(op);
    for (const UsedCmd0& r : used_cmd0()) {
        if ((r.uses & uses) != r.uses) continue;
        if (r.code == Cmd0::PARALLEL_MODE && product_ == Product::EthosU55) continue;
        TRY(set(r.code, r.value(op)));
    }
    for (const UsedCmd1& r : used_cmd1())
        if ((r.uses & uses) == r.uses) TRY(set(r.code, r.value(op)));
    return put(operation_word(op));
}

}  // namespace talpa::npu
