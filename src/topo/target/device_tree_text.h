// A flattened device tree as dtc writes its source: nodes by path, properties by name, and who has which phandle. One
// run of dtc answers what would take a run of fdtget for each question.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/host/error.h"

namespace talpa::topo {

class TreeText {
  public:
    using Properties = std::map<std::string, std::string>;  ///< the value as written: "<0x01 0x02>", "\"okay\"", or ""

    /// Errors: no dtc, no device tree.
    [[nodiscard]] static host::Result<TreeText> read(const std::filesystem::path& dtb);
    /// Of source text; what is no source gives an empty tree.
    [[nodiscard]] static TreeText parse(const std::string& source);

    /// nullptr if there is no such node.
    [[nodiscard]] const Properties* node(const std::string& path) const;
    /// The first node of that name (with its unit address), wherever it is; empty if there is none.
    [[nodiscard]] std::string find_named(const std::string& name) const;
    /// The first node one of whose `compatible` texts is this; empty if there is none.
    [[nodiscard]] std::string find_compatible(const std::string& compatible) const;
    [[nodiscard]] std::vector<std::string> children(const std::string& path) const;
    [[nodiscard]] std::optional<std::uint32_t> phandle(const std::string& path) const;
    [[nodiscard]] std::uint32_t highest_phandle() const;
    [[nodiscard]] bool empty() const { return nodes_.empty(); }

    /// The 32-bit cells of a value; empty if it is not a list of cells.
    [[nodiscard]] static std::vector<std::uint32_t> cells(const std::string& value);

  private:
    std::map<std::string, Properties> nodes_;
    std::vector<std::string> order_;
};

}  // namespace talpa::topo
