#include "pte/flatbuffer.h"

#include "base/core/checked_math.h"

namespace talpa::pte {
namespace {

constexpr std::uint32_t kMaxFlatBuffer = 0x7FFFFFFF;

// The walk. It has no Result in its inner functions: they return false with `error` set, which is half the code on the
// M33.
class Verifier {
  public:
    explicit Verifier(Bytes bytes)
        : base_(bytes.data()), size_(static_cast<std::uint32_t>(bytes.size())), budget_(size_) {}

    // The schema has no table that contains itself, so the recursion ends after the depth of the schema (7).
    [[nodiscard]] bool table(TableKind kind, std::uint64_t position);

    Error error;

  private:
    struct Place {
        const char* table;
        std::uint32_t position;
        unsigned slot;
    };

    [[nodiscard]] bool inside(std::uint64_t position, std::uint64_t bytes) const {
        return range_inside(position, bytes, size_);
    }
    [[nodiscard]] bool bad(const Place& at, const char* sentence, std::uint64_t number) {
        error = Error(ErrorCode::InvalidProgram, sentence, at.table, at.position, at.slot, number, size_);
        return false;
    }
    /// The field at `field` is an offset: follows it to something that is at least 4 bytes long.
    [[nodiscard]] bool follow(const Place& at, std::uint32_t field, std::uint32_t& target);
    [[nodiscard]] bool scalar(const Place& at, std::uint32_t field, std::uint32_t width);
    [[nodiscard]] bool vector(const Place& at, std::uint32_t field, std::uint32_t width, std::uint32_t& first,
                              std::uint32_t& count);
    [[nodiscard]] bool slot(const Place& at, const SlotRule& rule, const Table& view);
    [[nodiscard]] bool tables(const Place& at, std::uint32_t field, TableKind kind);
    [[nodiscard]] bool union_value(const Place& at, const SlotRule& rule, const Table& view);
    [[nodiscard]] std::uint32_t u32(std::uint32_t position) const { return load_le<std::uint32_t>(base_ + position); }

    const std::uint8_t* base_;
    std::uint32_t size_;
    std::uint32_t budget_;
};

bool Verifier::follow(const Place& at, std::uint32_t field, std::uint32_t& target) {
    if (!scalar(at, field, 4)) return false;
    const std::uint64_t to = std::uint64_t{field} + u32(field);
    if (to == field || to % 4 != 0 || !inside(to, 4))
        return bad(at,
                   TALPA_SENTENCE("{} at {}: slot {} points to offset {}, which is misaligned or outside the {} bytes"),
                   to);
    target = static_cast<std::uint32_t>(to);
    return true;
}

bool Verifier::scalar(const Place& at, std::uint32_t field, std::uint32_t width) {
    if (field % width != 0 || !inside(field, width))
        return bad(
            at, TALPA_SENTENCE("{} at {}: the field of slot {} lies at offset {}, misaligned or outside the {} bytes"),
            field);
    return true;
}

bool Verifier::vector(const Place& at, std::uint32_t field, std::uint32_t width, std::uint32_t& first,
                      std::uint32_t& count) {
    std::uint32_t target = 0;
    if (!follow(at, field, target)) return false;
    count = u32(target);
    first = target + 4;
    if (!inside(first, std::uint64_t{count} * width))
        return bad(
            at,
            TALPA_SENTENCE("{} at {}: the vector of slot {} has {} elements, more than there is room for in {} bytes"),
            count);
    if (count != 0 && first % width != 0)
        return bad(at, TALPA_SENTENCE("{} at {}: the elements of slot {} lie at offset {}, which is misaligned"),
                   first);
    return true;
}

bool Verifier::tables(const Place& at, std::uint32_t field, TableKind kind) {
    std::uint32_t first = 0, count = 0;
    if (!vector(at, field, 4, first, count)) return false;
    for (std::uint32_t i = 0; i < count; ++i) {
        std::uint32_t target = 0;
        if (!follow(at, first + i * 4, target) || !table(kind, target)) return false;
    }
    return true;
}

bool Verifier::union_value(const Place& at, const SlotRule& rule, const Table& view) {
    const std::uint32_t type_field = view.field(rule.slot);
    const std::uint32_t value_field = view.field(rule.slot + 1U);
    if (type_field != 0 && !scalar(at, type_field, 1)) return false;
    const std::uint8_t number = type_field == 0 ? 0 : base_[type_field];
    if (number == 0)
        return value_field == 0 ||
               bad(at, TALPA_SENTENCE("{} at {}: slot {} has a value of type {}, which is none"), 0);
    const TableKind* const member = union_member(rule.type, number);
    if (member == nullptr)
        return bad(at, TALPA_SENTENCE("{} at {}: slot {} has type {}, which no known schema has"), number);
    if (value_field == 0) return bad(at, TALPA_SENTENCE("{} at {}: slot {} has type {}, but no value"), number);
    std::uint32_t target = 0;
    return follow(at, value_field, target) && table(*member, target);
}

bool Verifier::slot(const Place& at, const SlotRule& rule, const Table& view) {
    if (rule.type == SlotType::KernelTypes || rule.type == SlotType::InstructionArguments)
        return union_value(at, rule, view);
    const std::uint32_t field = view.field(rule.slot);
    if (field == 0) return true;
    std::uint32_t target = 0, count = 0;
    switch (rule.type) {
        case SlotType::Scalar1:
            return scalar(at, field, 1);
        case SlotType::Scalar4:
            return scalar(at, field, 4);
        case SlotType::Scalar8:
            return scalar(at, field, 8);
        case SlotType::Vector1:
            return vector(at, field, 1, target, count);
        case SlotType::Vector4:
            return vector(at, field, 4, target, count);
        case SlotType::Vector8:
            return vector(at, field, 8, target, count);
        case SlotType::Table:
            return follow(at, field, target) && table(rule.target, target);
        case SlotType::Tables:
            return tables(at, field, rule.target);
        default:
            break;
    }
    // A string: one NUL follows the bytes that are counted.
    if (!vector(at, field, 1, target, count)) return false;
    if (!inside(std::uint64_t{target} + count, 1) || base_[target + count] != 0)
        return bad(at, TALPA_SENTENCE("{} at {}: the string of slot {}, at offset {}, does not end with a NUL"),
                   target);
    return true;
}

bool Verifier::table(TableKind kind, std::uint64_t position) {
    const TableRule& rule = table_rule(kind);
    Place at{rule.name, static_cast<std::uint32_t>(position), 0};
    if (budget_ == 0)
        return bad(at,
                   TALPA_SENTENCE("{} at {} (slot {}): more than {} tables in {} bytes: they are shared without end"),
                   size_);
    --budget_;
    if (position % 4 != 0 || !inside(position, 4))
        return bad(at, TALPA_SENTENCE("{} at {} (slot {}): offset {} is misaligned or outside the {} bytes"), position);
    const std::int64_t vtable = static_cast<std::int64_t>(position) - static_cast<std::int32_t>(u32(at.position));
    if (vtable < 0 || vtable % 2 != 0 || !inside(static_cast<std::uint64_t>(vtable), 4))
        return bad(at,
                   TALPA_SENTENCE("{} at {} (slot {}): its vtable would be at {}, misaligned or outside the {} bytes"),
                   static_cast<std::uint64_t>(vtable));
    const std::uint16_t length = load_le<std::uint16_t>(base_ + vtable);
    if (length < 4 || length % 2 != 0 || !inside(static_cast<std::uint64_t>(vtable), length))
        return bad(at, TALPA_SENTENCE("{} at {} (slot {}): its vtable has a length of {}"), length);
    const Table view(base_, at.position);
    for (const SlotRule& slot_rule : rule.slots) {
        at.slot = slot_rule.slot;
        if (!slot(at, slot_rule, view)) return false;
    }
    return true;
}

}  // namespace

std::uint32_t Table::field(unsigned slot) const {
    if (base_ == nullptr) return 0;
    const std::uint32_t vtable = position_ - load_le<std::uint32_t>(base_ + position_);
    const std::uint32_t entry = 4 + slot * 2;
    if (entry + 2 > load_le<std::uint16_t>(base_ + vtable)) return 0;
    const std::uint16_t offset = load_le<std::uint16_t>(base_ + vtable + entry);
    return offset == 0 ? 0 : position_ + offset;
}

std::uint32_t Table::target(unsigned slot) const {
    const std::uint32_t at = field(slot);
    return at == 0 ? 0 : at + load_le<std::uint32_t>(base_ + at);
}

std::string_view Table::string(unsigned slot) const {
    const Vector<std::uint8_t> v = vector<std::uint8_t>(slot);
    return {reinterpret_cast<const char*>(v.data()), v.size()};
}

Table Table::table(unsigned slot) const {
    const std::uint32_t at = target(slot);
    return at == 0 ? Table() : Table(base_, at);
}

TableVector Table::tables(unsigned slot) const {
    const std::uint32_t at = target(slot);
    return at == 0 ? TableVector() : TableVector(base_, at + 4, load_le<std::uint32_t>(base_ + at));
}

Result<Table> verify(Bytes bytes, TableKind root) {
    if (bytes.size() < 8 || bytes.size() > kMaxFlatBuffer)
        return fail(ErrorCode::InvalidProgram, "a FlatBuffer of {} bytes", bytes.size());
    const std::uint32_t position = load_le<std::uint32_t>(bytes.data());
    if (position < 8 || position > bytes.size() - 4)
        return fail(ErrorCode::InvalidProgram, "the root table would be at offset {}, outside 8..{}", position,
                    bytes.size() - 4);
    Verifier verifier(bytes);
    if (!verifier.table(root, position)) return std::unexpected(verifier.error);
    return Table(bytes.data(), position);
}

}  // namespace talpa::pte
