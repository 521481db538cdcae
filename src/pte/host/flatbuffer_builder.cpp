#include "pte/host/flatbuffer_builder.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace talpa::pte::host {
namespace {

/// What is equal is one node, and stands behind all that refer to it: offsets lead forwards only.
class Nodes {
  public:
    struct Node {
        const FlatNode* node = nullptr;
        std::vector<std::size_t> children;  ///< of a table in the order of its slots, of a vector in its own
        std::size_t height = 0;             ///< steps down to the deepest leaf
    };

    std::size_t add(const FlatNode& node) {
        Node entry{&node, {}, 0};
        const auto refer = [&](const FlatRef& child) {
            entry.children.push_back(add(*child));
            entry.height = std::max(entry.height, nodes_[entry.children.back()].height + 1);
        };
        for (const auto& [slot, child] : node.children) refer(child);
        for (const FlatRef& child : node.refs) refer(child);
        const auto [at, added] = known_.try_emplace(key(entry), nodes_.size());
        if (added) nodes_.push_back(std::move(entry));
        return at->second;
    }
    [[nodiscard]] const std::vector<Node>& all() const { return nodes_; }
    /// Each before what it refers to.
    [[nodiscard]] std::vector<std::size_t> order() const {
        std::vector<std::size_t> order(nodes_.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(SIZE_MAX - nodes_[i].height, i); });
        return order;
    }

  private:
    // The bytes that the node becomes, with numbers of nodes for offsets. An empty vector is the same whatever it is
    // of.
    [[nodiscard]] static std::vector<std::uint8_t> key(const Node& entry) {
        const FlatNode& node = *entry.node;
        std::vector<std::uint8_t> bytes;
        const auto number = [&](std::uint64_t v) {
            bytes.resize(bytes.size() + 8);
            store_le(bytes.data() + bytes.size() - 8, v);
        };
        const bool table = node.kind == FlatNode::Kind::Table;
        number(table ? 1 : 0);
        number(table || node.kind == FlatNode::Kind::Refs ? node.refs.size() : node.count);
        number(std::max<std::size_t>(node.alignment, 4));
        for (const auto& [slot, scalar] : node.fields) {
            number(slot);
            number(scalar.size());
            bytes.insert(bytes.end(), scalar.begin(), scalar.end());
        }
        auto child = entry.children.begin();
        for (const auto& [slot, ref] : node.children) {
            number(slot);
            number(*child++);
        }
        for (; child != entry.children.end(); ++child) number(*child);
        number(entry.children.size());
        bytes.insert(bytes.end(), node.bytes.begin(), node.bytes.end());
        return bytes;
    }

    std::vector<Node> nodes_;
    std::map<std::vector<std::uint8_t>, std::size_t> known_;
};

class Layout {
  public:
    explicit Layout(std::size_t first_free) : out_(first_free) {}

    /// The place of the root.
    std::uint32_t place(const FlatNode& root) {
        Nodes nodes;
        const std::size_t top = nodes.add(root);
        std::vector<std::uint32_t> places(nodes.all().size());
        for (const std::size_t i : nodes.order()) places[i] = place_one(nodes.all()[i]);
        for (const auto& [at, node] : waiting_) patch(at, places[node] - static_cast<std::uint32_t>(at));
        return places[top];
    }
    [[nodiscard]] std::vector<std::uint8_t> take() { return std::move(out_); }
    void patch(std::size_t at, std::uint32_t value) { store_le(out_.data() + at, value); }
    void align(std::size_t alignment, std::size_t ahead = 0) {
        while ((out_.size() + ahead) % alignment != 0) out_.push_back(0);
    }

  private:
    void u16(std::size_t v) {
        out_.resize(out_.size() + 2);
        store_le(out_.data() + out_.size() - 2, static_cast<std::uint16_t>(v));
    }
    void u32(std::uint32_t v) {
        out_.resize(out_.size() + 4);
        patch(out_.size() - 4, v);
    }

    std::uint32_t place_one(const Nodes::Node& entry) {
        switch (entry.node->kind) {
            case FlatNode::Kind::Table:
                return place_table(entry);
            case FlatNode::Kind::Scalars:
                return place_scalars(*entry.node);
            case FlatNode::Kind::Refs:
                break;
        }
        return place_refs(entry);
    }

    std::uint32_t place_scalars(const FlatNode& node) {
        align(std::max<std::size_t>(node.alignment, 4), 4);
        const auto at = static_cast<std::uint32_t>(out_.size());
        u32(node.count);
        out_.insert(out_.end(), node.bytes.begin(), node.bytes.end());
        return at;
    }

    std::uint32_t place_refs(const Nodes::Node& entry) {
        align(4);
        const auto at = static_cast<std::uint32_t>(out_.size());
        u32(static_cast<std::uint32_t>(entry.children.size()));
        for (const std::size_t child : entry.children) {
            waiting_.emplace_back(out_.size(), child);
            u32(0);
        }
        return at;
    }

    std::uint32_t place_table(const Nodes::Node& entry) {
        const FlatNode& node = *entry.node;
        // Inline: the widest fields first, so that nothing is lost to padding but after the leading word.
        struct Field {
            unsigned slot;
            std::size_t size;
            std::size_t child;  ///< kScalar: none
            std::size_t offset = 0;
        };
        constexpr std::size_t kScalar = SIZE_MAX;
        std::vector<Field> fields;
        for (const auto& [slot, bytes] : node.fields) fields.push_back({slot, bytes.size(), kScalar});
        auto next = entry.children.begin();
        for (const auto& [slot, child] : node.children) fields.push_back({slot, 4, *next++});
        std::ranges::sort(fields, [](const Field& a, const Field& b) {
            return a.size != b.size ? a.size > b.size : a.slot < b.slot;
        });
        const bool wide = !fields.empty() && fields.front().size == 8;
        // With 8-byte fields the table begins at 8k + 4, so that they follow its first word.
        std::size_t length = 4;
        for (Field& f : fields) {
            f.offset = length;
            length += f.size;
        }
        unsigned slots = 0;
        for (const Field& f : fields) slots = std::max(slots, f.slot + 1);

        std::vector<std::size_t> vtable{4 + slots * std::size_t{2}, length};
        for (unsigned s = 0; s < slots; ++s) {
            const auto found = std::ranges::find(fields, s, &Field::slot);
            vtable.push_back(found == fields.end() ? 0 : found->offset);
        }
        const auto [known, added] = vtables_.try_emplace(vtable);
        const std::size_t ahead = added ? vtable[0] : 0;
        if (wide)
            while ((out_.size() + ahead) % 8 != 4) out_.push_back(0);
        else
            align(4, ahead);
        if (added) {
            known->second = out_.size();
            for (const std::size_t entry_of : vtable) u16(entry_of);
        }
        const std::size_t at = out_.size();
        u32(static_cast<std::uint32_t>(at - known->second));
        out_.resize(at + length);
        for (const Field& f : fields) {
            if (f.child == kScalar)
                std::ranges::copy(node.fields.at(f.slot), out_.begin() + static_cast<std::ptrdiff_t>(at + f.offset));
            else
                waiting_.emplace_back(at + f.offset, f.child);
        }
        return static_cast<std::uint32_t>(at);
    }

    std::vector<std::uint8_t> out_;
    std::vector<std::pair<std::size_t, std::size_t>>
        waiting_;  // words that hold an offset, the nodes that they lead to
    std::map<std::vector<std::size_t>, std::size_t> vtables_;
};

}  // namespace

TableBuilder::TableBuilder() : node_(std::make_shared<FlatNode>()) {
    node_->kind = FlatNode::Kind::Table;
}

void TableBuilder::add(unsigned slot, std::vector<std::uint8_t> bytes) {
    node_->fields[slot] = std::move(bytes);
}

TableBuilder& TableBuilder::child(unsigned slot, FlatRef node) {
    if (node != nullptr) node_->children[slot] = std::move(node);
    return *this;
}

FlatRef flat_scalars(std::vector<std::uint8_t> bytes, std::uint32_t count, std::size_t alignment) {
    auto node = std::make_shared<FlatNode>();
    node->bytes = std::move(bytes);
    node->count = count;
    node->alignment = alignment;
    return node;
}

FlatRef flat_string(std::string_view text) {
    std::vector<std::uint8_t> bytes(text.begin(), text.end());
    bytes.push_back(0);
    return flat_scalars(std::move(bytes), static_cast<std::uint32_t>(text.size()), 1);
}

FlatRef flat_bytes(Bytes bytes, std::size_t alignment) {
    return flat_scalars({bytes.begin(), bytes.end()}, static_cast<std::uint32_t>(bytes.size()), alignment);
}

FlatRef flat_tables(std::vector<FlatRef> tables) {
    auto node = std::make_shared<FlatNode>();
    node->kind = FlatNode::Kind::Refs;
    node->refs = std::move(tables);
    return node;
}

std::vector<std::uint8_t> finish_flatbuffer(const FlatRef& root, std::string_view identifier, std::size_t first_free) {
    Layout layout(first_free);
    const std::uint32_t at = layout.place(*root);
    layout.patch(0, at);
    layout.align(8);
    std::vector<std::uint8_t> bytes = layout.take();
    std::ranges::copy(identifier, bytes.begin() + 4);
    return bytes;
}

}  // namespace talpa::pte::host
