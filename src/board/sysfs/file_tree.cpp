#include "board/sysfs/file_tree.h"

namespace talpa::board {
namespace {

/// Takes the first name off a path.
std::string_view next_name(std::string_view& path) {
    while (path.starts_with('/')) path.remove_prefix(1);
    const auto end = path.find('/');
    const auto name = path.substr(0, end);
    path.remove_prefix(end == std::string_view::npos ? path.size() : end + 1);
    return name;
}

}  // namespace

FolderNode& FileTree::folder(std::string_view path) {
    std::shared_ptr<FolderNode> at = root_;
    while (!path.empty()) {
        const std::string_view name = next_name(path);
        if (name.empty()) break;
        auto found = at->children.find(name);
        if (found == at->children.end())
            found = at->children.emplace(std::string(name), Node{std::make_shared<FolderNode>()}).first;
        at = std::get<std::shared_ptr<FolderNode>>(found->second.is);
    }
    return *at;
}

void FileTree::add(std::string_view path, Node node) {
    const auto slash = path.rfind('/');
    const std::string_view parent = slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
    folder(parent).children[std::string(path.substr(slash == std::string_view::npos ? 0 : slash + 1))] =
        std::move(node);
}

std::shared_ptr<const Node> FileTree::find(std::string_view path) const {
    auto node = std::make_shared<const Node>(Node{root_});
    while (!path.empty()) {
        const std::string_view name = next_name(path);
        if (name.empty()) break;
        const auto* const folder = std::get_if<std::shared_ptr<FolderNode>>(&node->is);
        if (folder == nullptr) return nullptr;
        if (const auto child = (*folder)->children.find(name); child != (*folder)->children.end()) {
            node = std::make_shared<const Node>(child->second);
            continue;
        }
        if (!(*folder)->dynamic) return nullptr;
        NodeMap now = (*folder)->dynamic();
        const auto child = now.find(name);
        if (child == now.end()) return nullptr;
        node = std::make_shared<const Node>(std::move(child->second));
    }
    return node;
}

NodeMap FileTree::list(const FolderNode& folder) {
    NodeMap all = folder.children;
    if (folder.dynamic) all.merge(folder.dynamic());
    return all;
}

Node attribute(std::function<std::string()> read, std::function<int(std::string_view)> write) {
    const unsigned mode = write ? 0644 : 0444;
    return {FileNode{FileRules::Sysfs, mode, std::move(read), std::move(write), 0}};
}

Node debug_file(unsigned mode, std::function<std::string()> read, std::function<int(std::string_view)> write) {
    return {FileNode{FileRules::Debugfs, mode, std::move(read), std::move(write), 0}};
}

Node bytes_file(std::string bytes, unsigned mode) {
    return {FileNode{FileRules::Bytes, mode, [bytes = std::move(bytes)] { return bytes; }, nullptr, 0}};
}

Node refused_file(int open_error) {
    return {FileNode{FileRules::Debugfs, 0600, nullptr, nullptr, open_error}};
}

Node link_to(std::string target) {
    return {LinkNode{std::move(target)}};
}

Node folder_of(NodeMap children) {
    auto folder = std::make_shared<FolderNode>();
    folder->children = std::move(children);
    return {std::move(folder)};
}

}  // namespace talpa::board
