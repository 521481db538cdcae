#include "npu/scan.h"

#include "npu/extent.h"

namespace talpa::npu {

namespace {

constexpr std::int64_t kAddressEnd = std::int64_t{1} << 40;

Result<void> add_accesses(const Operation& op, ScanResult& result) {
    Result<void> outcome;
    for_each_access(op, [&](const Access& access, Extent extent) {
        if (!outcome) return;
        if (extent.begin < 0) {
            outcome = fail(ErrorCode::OutOfBounds,
                           "command stream offset {}: {}: its {} starts {} bytes below region {}", op.offset_bytes,
                           op_kind_name(op.kind), operand_name(access.operand), -extent.begin, unsigned{access.region});
            return;
        }
        if (extent.end > kAddressEnd) {
            outcome = fail(ErrorCode::OutOfBounds,
                           "command stream offset {}: {}: its {} ends at {} in region {}, beyond 40 bits",
                           op.offset_bytes, op_kind_name(op.kind), operand_name(access.operand),
                           hex(static_cast<std::uint64_t>(extent.end)), unsigned{access.region});
            return;
        }
        if (access.internal) return;
        RegionUse& use = result.regions[access.region];
        const auto end = static_cast<std::uint64_t>(extent.end);
        const OpPlace here{op.offset_bytes, op.kind};
        if (!use.used() || end > use.size()) use.furthest = here;
        if (access.is_write && !use.written) use.first_write = here;
        std::uint64_t& known = access.is_write ? use.write_end : use.read_end;
        (access.is_write ? use.written : use.read) = true;
        if (end > known) known = end;
    });
    return outcome;
}

}  // namespace

std::uint32_t ScanResult::kernels() const {
    std::uint32_t n = 0;
    for (std::size_t i = 0; i < counts.size(); ++i)
        if (is_kernel(static_cast<OpKind>(i))) n += counts[i];
    return n;
}

std::uint32_t ScanResult::operations() const {
    std::uint32_t n = 0;
    for (const std::uint32_t c : counts) n += c;
    return n;
}

Result<ScanResult> scan(Words words) {
    ScanResult result;
    Decoder decoder{words};
    while (true) {
        TRY_ASSIGN(const auto op, decoder.next());
        if (!op) return result;
        ++result.counts[static_cast<std::size_t>(op->kind)];
        if (is_kernel(op->kind) && op->cores > result.cores) result.cores = op->cores;
        if (op->kind == OpKind::Stop) result.size_bytes = op->offset_bytes + 4;
        TRY(add_accesses(*op, result));
    }
}

}  // namespace talpa::npu
