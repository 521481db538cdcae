#include "board/gdb/registers.h"

#include <fmt/format.h>

#include <vector>

namespace talpa::board::gdb {
namespace {

enum class Where : std::uint8_t { R, Xpsr, D, Fpscr, Msp, Psp, Primask, Basepri, Faultmask, Control, Msplim, Psplim };

struct Row {
    std::string name;
    const char* feature;
    const char* type;
    unsigned bits;
    Where where;
    unsigned index = 0;
};

std::vector<Row> make_rows() {
    constexpr const char *kProfile = "org.gnu.gdb.arm.m-profile", *kVfp = "org.gnu.gdb.arm.vfp",
                         *kSystem = "org.gnu.gdb.arm.m-system", *kOwn = "org.talpa.m33";
    std::vector<Row> rows;
    for (unsigned i = 0; i < 13; ++i) rows.push_back({fmt::format("r{}", i), kProfile, "uint32", 32, Where::R, i});
    rows.push_back({"sp", kProfile, "data_ptr", 32, Where::R, 13});
    rows.push_back({"lr", kProfile, "uint32", 32, Where::R, 14});
    rows.push_back({"pc", kProfile, "code_ptr", 32, Where::R, 15});
    rows.push_back({"xpsr", kProfile, "uint32", 32, Where::Xpsr});
    for (unsigned i = 0; i < 16; ++i) rows.push_back({fmt::format("d{}", i), kVfp, "ieee_double", 64, Where::D, i});
    rows.push_back({"fpscr", kVfp, "int", 32, Where::Fpscr});
    rows.push_back({"msp", kSystem, "data_ptr", 32, Where::Msp});
    rows.push_back({"psp", kSystem, "data_ptr", 32, Where::Psp});
    rows.push_back({"msplim", kOwn, "data_ptr", 32, Where::Msplim});
    rows.push_back({"psplim", kOwn, "data_ptr", 32, Where::Psplim});
    rows.push_back({"primask", kOwn, "uint8", 8, Where::Primask});
    rows.push_back({"basepri", kOwn, "uint8", 8, Where::Basepri});
    rows.push_back({"faultmask", kOwn, "uint8", 8, Where::Faultmask});
    rows.push_back({"control", kOwn, "uint8", 8, Where::Control});
    return rows;
}

const std::vector<Row>& rows() {
    static const std::vector<Row> made = make_rows();
    return made;
}

std::uint64_t value(const cpu::Registers& r, const Row& row) {
    switch (row.where) {
        case Where::R:
            return r.r[row.index];
        case Where::Xpsr:
            return r.xpsr;
        case Where::D:
            return r.s[2 * row.index] | std::uint64_t{r.s[2 * row.index + 1]} << 32;
        case Where::Fpscr:
            return r.fpscr;
        case Where::Msp:
            return r.msp;
        case Where::Psp:
            return r.psp;
        case Where::Msplim:
            return r.msplim;
        case Where::Psplim:
            return r.psplim;
        case Where::Primask:
            return r.primask;
        case Where::Basepri:
            return r.basepri;
        case Where::Faultmask:
            return r.faultmask;
        case Where::Control:
            return r.control;
    }
    return 0;
}

/// Does the core use the process stack now? (thread mode with CONTROL.SPSEL)
bool on_process_stack(const cpu::Registers& r) {
    return (r.xpsr & 0x1FF) == 0 && (r.control & 2) != 0;
}

void set(cpu::Registers& r, const Row& row, std::uint64_t v) {
    const auto low = static_cast<std::uint32_t>(v);
    switch (row.where) {
        case Where::R:
            r.r[row.index] = low;
            if (row.index == 13) (on_process_stack(r) ? r.psp : r.msp) = low;
            break;
        case Where::Xpsr:
            r.xpsr = low;
            break;
        case Where::D:
            r.s[2 * row.index] = low;
            r.s[2 * row.index + 1] = static_cast<std::uint32_t>(v >> 32);
            break;
        case Where::Fpscr:
            r.fpscr = low;
            break;
        case Where::Msp:
            r.msp = low;
            if (!on_process_stack(r)) r.r[13] = low;
            break;
        case Where::Psp:
            r.psp = low;
            if (on_process_stack(r)) r.r[13] = low;
            break;
        case Where::Msplim:
            r.msplim = low;
            break;
        case Where::Psplim:
            r.psplim = low;
            break;
        case Where::Primask:
            r.primask = static_cast<std::uint8_t>(low);
            break;
        case Where::Basepri:
            r.basepri = static_cast<std::uint8_t>(low);
            break;
        case Where::Faultmask:
            r.faultmask = static_cast<std::uint8_t>(low);
            break;
        case Where::Control:
            r.control = static_cast<std::uint8_t>(low);
            break;
    }
}

std::string make_description() {
    std::string xml =
        "<?xml version=\"1.0\"?>\n<!DOCTYPE target SYSTEM \"gdb-target.dtd\">\n<target version=\"1.0\">\n"
        "<architecture>arm</architecture>\n";
    const char* feature = "";
    unsigned number = 0;
    for (const Row& row : rows()) {
        if (feature != row.feature) {
            if (*feature != '\0') xml += "</feature>\n";
            feature = row.feature;
            xml += fmt::format("<feature name=\"{}\">\n", feature);
        }
        xml += fmt::format("<reg name=\"{}\" bitsize=\"{}\" regnum=\"{}\" type=\"{}\"{}/>\n", row.name, row.bits,
                           number++, row.type, row.where >= Where::Msplim ? " group=\"system\"" : "");
    }
    return xml + "</feature>\n</target>\n";
}

}  // namespace

unsigned register_count() {
    return static_cast<unsigned>(rows().size());
}

std::optional<std::string> read_register(const cpu::Registers& registers, unsigned number) {
    if (number >= rows().size()) return std::nullopt;
    const Row& row = rows()[number];
    std::string bytes;
    for (unsigned shift = 0; shift < row.bits; shift += 8)
        bytes += static_cast<char>(value(registers, row) >> shift & 0xFF);
    return bytes;
}

bool write_register(cpu::Registers& registers, unsigned number, std::string_view bytes) {
    if (number >= rows().size() || bytes.size() * 8 != rows()[number].bits) return false;
    std::uint64_t v = 0;
    for (std::size_t i = bytes.size(); i-- > 0;) v = v << 8 | static_cast<std::uint8_t>(bytes[i]);
    set(registers, rows()[number], v);
    return true;
}

const std::string& target_description() {
    static const std::string xml = make_description();
    return xml;
}

}  // namespace talpa::board::gdb
