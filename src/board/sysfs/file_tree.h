// A tree of small files that are functions: what the board's kernel shows under /sys. Says what sysfs, debugfs and the
// device tree answer to each kind of access; knows nothing of FUSE. (imx93-remoteproc, sections 7 and 13)
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

namespace talpa::board {

/// Whose rules a file follows.
enum class FileRules : std::uint8_t {
    Sysfs,    ///< mode bits bind root too (EACCES at open); text of the first read is kept for that open file
    Debugfs,  ///< opens for root whatever the mode; what is not implemented is EINVAL; each read is a fresh look
    Bytes,    ///< as Sysfs, but stat shows the true length: device-tree properties
};

struct Node;

struct FileNode {
    FileRules rules = FileRules::Sysfs;
    unsigned mode = 0444;
    std::function<std::string()> read;
    /// One write(2): 0 or a negative errno. May block; called on a thread of its own.
    std::function<int(std::string_view)> write;
    int open_error = 0;  ///< errno with which every open fails
};

struct LinkNode {
    std::string target;
};

struct FolderNode {
    unsigned mode = 0755;
    std::map<std::string, Node, std::less<>> children;
    /// Children that come and go; asked at each look. Names differ from those of `children`.
    std::function<std::map<std::string, Node, std::less<>>()> dynamic;
};

struct Node {
    std::variant<FileNode, LinkNode, std::shared_ptr<FolderNode>> is;
};

using NodeMap = std::map<std::string, Node, std::less<>>;

/// Longest text that one write(2) carries into sysfs, and the size that stat shows for an attribute.
inline constexpr std::size_t kSysfsPage = 4096;

class FileTree {
  public:
    FileTree() : root_(std::make_shared<FolderNode>()) {}

    /// The folder at `path` ("class/remoteproc"), made with its parents where missing. Before anything is served.
    FolderNode& folder(std::string_view path);
    /// Puts a node at `path`.
    void add(std::string_view path, Node node);

    /// The node at `path` ("" is the root) as of now, or nothing. Any thread.
    [[nodiscard]] std::shared_ptr<const Node> find(std::string_view path) const;
    /// Names and nodes in a folder as of now.
    [[nodiscard]] static NodeMap list(const FolderNode& folder);

  private:
    std::shared_ptr<FolderNode> root_;
};

/// A sysfs attribute: mode 0444 without `write`, 0644 with it.
[[nodiscard]] Node attribute(std::function<std::string()> read, std::function<int(std::string_view)> write = nullptr);
/// A debugfs file.
[[nodiscard]] Node debug_file(unsigned mode, std::function<std::string()> read,
                              std::function<int(std::string_view)> write = nullptr);
/// A file of constant bytes whose stat shows their number.
[[nodiscard]] Node bytes_file(std::string bytes, unsigned mode = 0444);
/// A file that nobody may open.
[[nodiscard]] Node refused_file(int open_error);
[[nodiscard]] Node link_to(std::string target);
[[nodiscard]] Node folder_of(NodeMap children);

}  // namespace talpa::board
