#include "inspect/debug_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "inspect/printable.h"

namespace talpa::inspect {
namespace {

using host::failure;
using host::Result;

constexpr std::size_t kMostRows = 2'000'000;

std::string in_quotes(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        // A database is lines, and its tables are CDATA, which ends at "]]>".
        if (static_cast<unsigned char>(c) < 0x20)
            out += ' ';
        else if (c == '"')
            out += "\"\"";
        else if (c == '>' && out.ends_with("]]"))
            out += " >";
        else
            out += c;
    }
    return out + '"';
}

std::string attribute(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '&')
            out += "&amp;";
        else if (c == '<')
            out += "&lt;";
        else if (c == '"')
            out += "&quot;";
        else
            out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return out;
}

void begin(std::string& out, const char* name, const char* columns) {
    out += fmt::format("<table name=\"{}\">\n<![CDATA[\n{}\n", name, columns);
}
void end(std::string& out) {
    out += "]]>\n</table>\n";
}

/// One table of a file, by the names of its columns.
class Table {
  public:
    Table(std::string file, std::string name) : file_(std::move(file)), name_(std::move(name)) {}

    Result<void> read(std::string_view text) {
        std::size_t line = 0;
        while (!text.empty()) {
            const std::size_t length = std::min(text.find('\n'), text.size());
            std::string_view row = text.substr(0, length);
            text.remove_prefix(std::min(length + 1, text.size()));
            ++line;
            if (row.ends_with('\r')) row.remove_suffix(1);
            if (row.empty()) continue;
            TRY_ASSIGN(auto cells, cells_of(row, line));
            if (columns_.empty()) {
                columns_ = std::move(cells);
                continue;
            }
            if (cells.size() != columns_.size())
                return failure(ErrorCode::InvalidExternalData, "{}: table '{}', line {}: {} values in {} columns",
                               file_, name_, line, cells.size(), columns_.size());
            if (rows_.size() >= kMostRows)
                return failure(ErrorCode::InvalidExternalData, "{}: table '{}' has more than {} rows", file_, name_,
                               kMostRows);
            rows_.push_back(std::move(cells));
        }
        return {};
    }
    [[nodiscard]] std::size_t rows() const { return rows_.size(); }
    /// The value in a column; "" if there is no such column.
    [[nodiscard]] std::string_view text(std::size_t row, std::string_view column) const {
        const auto at = std::ranges::find(columns_, column);
        return at == columns_.end() ? std::string_view{}
                                    : std::string_view(rows_[row][static_cast<std::size_t>(at - columns_.begin())]);
    }
    template <typename T>
    Result<void> number(std::size_t row, std::string_view column, T& into) const {
        const std::string_view s = text(row, column);
        if (s.empty()) return {};
        T v{};
        const auto [stop, status] = std::from_chars(s.data(), s.data() + s.size(), v);
        if (status != std::errc() || stop != s.data() + s.size())
            return failure(ErrorCode::InvalidExternalData, "{}: table '{}', row {}: '{}' in column '{}' is no number",
                           file_, name_, row + 1, printable(s.substr(0, 40)), column);
        into = v;
        return {};
    }

  private:
    Result<std::vector<std::string>> cells_of(std::string_view row, std::size_t line) const {
        std::vector<std::string> cells(1);
        bool inside = false;
        for (std::size_t i = 0; i < row.size(); ++i) {
            const char c = row[i];
            if (c == '"' && inside && i + 1 < row.size() && row[i + 1] == '"') {
                cells.back() += '"';
                ++i;
            } else if (c == '"') {
                inside = !inside;
            } else if (c == ',' && !inside) {
                cells.emplace_back();
            } else {
                cells.back() += c;
            }
        }
        if (inside)
            return failure(ErrorCode::InvalidExternalData, "{}: table '{}', line {}: a quotation mark is missing",
                           file_, name_, line);
        return cells;
    }

    std::string file_, name_;
    std::vector<std::string> columns_;
    std::vector<std::vector<std::string>> rows_;
};

Result<void> read_operators(const Table& t, const char* key, std::vector<DebugMap::Operator>& into) {
    for (std::size_t i = 0; i < t.rows(); ++i) {
        DebugMap::Operator o;
        o.name = t.text(i, "operator");
        TRY(t.number(i, "id", o.id));
        TRY(t.number(i, key, o.key));
        TRY(t.number(i, "kernel_w", o.kernel_width));
        TRY(t.number(i, "kernel_h", o.kernel_height));
        TRY(t.number(i, "ofm_w", o.width));
        TRY(t.number(i, "ofm_h", o.height));
        TRY(t.number(i, "ofm_d", o.depth));
        into.push_back(std::move(o));
    }
    return {};
}

Result<void> read_table(const Table& t, std::string_view name, DebugMap& map) {
    if (name == "source") return read_operators(t, "ext_key", map.source);
    if (name == "optimised") return read_operators(t, "source_id", map.optimised);
    for (std::size_t i = 0; i < t.rows(); ++i) {
        if (name == "cmdstream") {
            std::uint32_t id = 0;
            TRY(t.number(i, "id", id));
            map.streams.push_back(id);
        } else if (name == "queue") {
            DebugMap::Command c;
            TRY(t.number(i, "offset", c.offset));
            TRY(t.number(i, "cmdstream_id", c.stream));
            TRY(t.number(i, "optimised_id", c.optimised));
            TRY(t.number(i, "scheduled_id", c.scheduled));
            map.queue.push_back(c);
        } else {
            DebugMap::Performance p;
            p.kind = t.text(i, "operator");
            p.name = t.text(i, "name");
            TRY(t.number(i, "id", p.scheduled));
            TRY(t.number(i, "source_id", p.source));
            TRY(t.number(i, "optimised_id", p.optimised));
            TRY(t.number(i, "staging_usage", p.staging_bytes));
            TRY(t.number(i, "op_cycles", p.cycles));
            TRY(t.number(i, "npu_cycles", p.npu_cycles));
            TRY(t.number(i, "mac_count", p.macs));
            TRY(t.number(i, "Sram_ac", p.sram_cycles));
            TRY(t.number(i, "Dram_ac", p.dram_cycles));
            map.performance.push_back(std::move(p));
        }
    }
    return {};
}

}  // namespace

std::vector<std::string> DebugMap::nodes_of(std::uint32_t index, std::span<const std::uint32_t> offsets) const {
    std::map<std::uint32_t, const Command*> commands;
    for (const Command& c : queue)
        if (c.stream == index + 1) commands.emplace(c.offset, &c);
    std::map<std::uint32_t, const Performance*> costs;
    for (const Performance& p : performance) costs.emplace(p.scheduled, &p);
    std::map<std::uint32_t, const Operator*> sources, made;
    for (const Operator& o : source) sources.emplace(o.id, &o);
    for (const Operator& o : optimised) made.emplace(o.id, &o);
    std::vector<std::string> names;
    for (const std::uint32_t offset : offsets) {
        std::string& name = names.emplace_back();
        const auto listed = commands.lower_bound(offset);
        if (listed == commands.end()) continue;
        const Command& c = *listed->second;
        if (const auto cost = costs.find(c.scheduled); cost != costs.end()) name = cost->second->name;
        if (!name.empty()) continue;
        const auto operation = made.find(c.optimised);
        const auto from = operation == made.end() ? sources.end() : sources.find(operation->second->key);
        if (from != sources.end()) name = fmt::format("{} {}", from->second->name, from->second->key);
    }
    return names;
}

std::string debug_map_xml(const DebugMap& map) {
    std::string out =
        fmt::format("<?xml version='1.0' encoding='UTF-8'?>\n<debug source=\"{}\">\n", attribute(map.model));
    begin(out, "source", R"("id","operator","kernel_w","kernel_h","ofm_w","ofm_h","ofm_d","ext_key")");
    for (const DebugMap::Operator& o : map.source)
        out += fmt::format("{},{},{},{},{},{},{},{}\n", o.id, in_quotes(o.name), o.kernel_width, o.kernel_height,
                           o.width, o.height, o.depth, o.key);
    end(out);
    begin(out, "optimised", R"("id","source_id","operator","kernel_w","kernel_h","ofm_w","ofm_h","ofm_d")");
    for (const DebugMap::Operator& o : map.optimised)
        out += fmt::format("{},{},{},{},{},{},{},{}\n", o.id, o.key, in_quotes(o.name), o.kernel_width, o.kernel_height,
                           o.width, o.height, o.depth);
    end(out);
    begin(out, "cmdstream", R"("id")");
    for (const std::uint32_t id : map.streams) out += fmt::format("{}\n", id);
    end(out);
    begin(out, "queue", R"("offset","cmdstream_id","optimised_id","scheduled_id")");
    for (const DebugMap::Command& c : map.queue)
        out += fmt::format("{},{},{},{}\n", c.offset, c.stream, c.optimised, c.scheduled);
    end(out);
    begin(out, "perf",
          R"("id","source_id","optimised_id","operator","name","staging_usage","op_cycles","npu_cycles","mac_count",)"
          R"("Sram_ac","Dram_ac")");
    for (const DebugMap::Performance& p : map.performance)
        out += fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", p.scheduled, p.source, p.optimised, in_quotes(p.kind),
                           in_quotes(p.name), p.staging_bytes, p.cycles, p.npu_cycles, p.macs, p.sram_cycles,
                           p.dram_cycles);
    end(out);
    return out + "</debug>\n";
}

Result<DebugMap> read_debug_map(std::string_view xml, const std::string& name) {
    DebugMap map;
    if (xml.find("<debug") == std::string_view::npos)
        return failure(ErrorCode::InvalidExternalData, "{} is no debug database: there is no <debug> in it", name);
    constexpr std::string_view kTable = "<table name=\"", kData = "<![CDATA[", kEnd = "]]>";
    for (std::size_t at = 0; (at = xml.find(kTable, at)) != std::string_view::npos;) {
        at += kTable.size();
        const std::size_t close = xml.find('"', at);
        if (close == std::string_view::npos)
            return failure(ErrorCode::InvalidExternalData, "{}: the name of a table has no end", name);
        const std::string_view table = xml.substr(at, close - at);
        const std::size_t from = xml.find(kData, close);
        const std::size_t to = from == std::string_view::npos ? from : xml.find(kEnd, from);
        if (to == std::string_view::npos)
            return failure(ErrorCode::InvalidExternalData, "{}: table '{}' has no end", name,
                           printable(table.substr(0, 40)));
        at = to;
        if (table != "source" && table != "optimised" && table != "cmdstream" && table != "queue" && table != "perf")
            continue;
        Table rows(name, std::string(table));
        TRY(rows.read(xml.substr(from + kData.size(), to - from - kData.size())));
        TRY(read_table(rows, table, map));
    }
    if (map.queue.empty())
        return failure(ErrorCode::InvalidExternalData, "{}: no table 'queue' with commands in it", name);
    std::ranges::stable_sort(map.queue, {}, [](const DebugMap::Command& c) { return std::pair(c.stream, c.offset); });
    return map;
}

}  // namespace talpa::inspect
