#include "pte/host/flatbuffer_builder.h"

#include <algorithm>

namespace talpa::pte::host {
namespace {

class Layout {
  public:
    explicit Layout(std::size_t first_free) : out_(first_free) {}

    std::uint32_t place(const FlatNode& node) {
        switch (node.kind) {
            case FlatNode::Kind::Table:
                return place_table(node);
            case FlatNode::Kind::Scalars:
                return place_scalars(node);
            case FlatNode::Kind::Refs:
                break;
        }
        return place_refs(node);
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
    // Offsets lead forwards, so what they point to is written after the word that holds them.
    void place_children(const std::vector<std::pair<std::size_t, FlatRef>>& waiting) {
        for (const auto& [at, node] : waiting) {
            const std::uint32_t to = place(*node);
            patch(at, to - static_cast<std::uint32_t>(at));
        }
    }

    std::uint32_t place_scalars(const FlatNode& node) {
        align(std::max<std::size_t>(node.alignment, 4), 4);
        const auto at = static_cast<std::uint32_t>(out_.size());
        u32(node.count);
        out_.insert(out_.end(), node.bytes.begin(), node.bytes.end());
        return at;
    }

    std::uint32_t place_refs(const FlatNode& node) {
        align(4);
        const auto at = static_cast<std::uint32_t>(out_.size());
        u32(static_cast<std::uint32_t>(node.refs.size()));
        std::vector<std::pair<std::size_t, FlatRef>> waiting;
        for (const FlatRef& ref : node.refs) {
            waiting.emplace_back(out_.size(), ref);
            u32(0);
        }
        place_children(waiting);
        return at;
    }

    std::uint32_t place_table(const FlatNode& node) {
        // Inline: the widest fields first, so that nothing is lost to padding but after the leading word.
        struct Field {
            unsigned slot;
            std::size_t size;
            std::size_t offset = 0;
        };
        std::vector<Field> fields;
        for (const auto& [slot, bytes] : node.fields) fields.push_back({slot, bytes.size()});
        for (const auto& [slot, child] : node.children) fields.push_back({slot, 4});
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

        const std::size_t vtable_length = 4 + slots * std::size_t{2};
        if (wide)
            while ((out_.size() + vtable_length) % 8 != 4) out_.push_back(0);
        else
            align(4, vtable_length);
        const std::size_t vtable = out_.size();
        u16(vtable_length);
        u16(length);
        for (unsigned s = 0; s < slots; ++s) {
            const auto found = std::ranges::find(fields, s, &Field::slot);
            u16(found == fields.end() ? 0 : found->offset);
        }
        const std::size_t at = out_.size();
        u32(static_cast<std::uint32_t>(at - vtable));
        out_.resize(at + length);
        std::vector<std::pair<std::size_t, FlatRef>> waiting;
        for (const Field& f : fields) {
            if (const auto scalar = node.fields.find(f.slot); scalar != node.fields.end())
                std::ranges::copy(scalar->second, out_.begin() + static_cast<std::ptrdiff_t>(at + f.offset));
            else
                waiting.emplace_back(at + f.offset, node.children.at(f.slot));
        }
        std::ranges::sort(waiting, {}, [](const auto& w) { return w.first; });
        place_children(waiting);
        return static_cast<std::uint32_t>(at);
    }

    std::vector<std::uint8_t> out_;
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
