#include "topo/deploy/image_archive.h"

#include <algorithm>
#include <cstring>

#include "base/host/json.h"
#include "topo/system/json_answer.h"

namespace talpa::topo {
namespace {

using host::Json;

constexpr std::size_t kBlock = 512;
constexpr std::size_t kMaxEntries = 100'000;
constexpr std::uint64_t kMaxText = 16 << 20;  // a config or a manifest

std::unexpected<host::Error> bad(std::uint64_t offset, std::string_view what) {
    return host::failure(ErrorCode::InvalidExternalData, "the image archive is damaged at byte {}: {}", offset, what);
}

std::string text_field(std::string_view field) {
    return std::string(field.substr(0, std::min(field.size(), field.find('\0'))));
}

// Octal digits, or base 256 when the first bit is set (sizes of 8 GiB and more).
std::optional<std::uint64_t> number_field(std::string_view field) {
    std::uint64_t value = 0;
    if ((static_cast<unsigned char>(field[0]) & 0x80U) != 0) {
        value = static_cast<unsigned char>(field[0]) & 0x7FU;
        for (const char c : field.substr(1)) {
            if (value >> 55 != 0) return std::nullopt;
            value = value << 8 | static_cast<unsigned char>(c);
        }
        return value;
    }
    for (const char c : field) {
        if (c == ' ' || c == '\0') continue;
        if (c < '0' || c > '7') return std::nullopt;
        value = value * 8 + static_cast<std::uint64_t>(c - '0');
    }
    return value;
}

std::string clean(std::string name) {
    while (name.starts_with("./")) name.erase(0, 2);
    return name;
}

// "path" and "linkpath" of a pax header: "LENGTH KEY=VALUE\n" records.
void read_pax(std::string_view text, std::string& path, std::string& link) {
    while (!text.empty()) {
        const std::size_t space = text.find(' ');
        const std::size_t length =
            space == std::string_view::npos
                ? 0
                : static_cast<std::size_t>(std::atoll(std::string(text.substr(0, space)).c_str()));
        if (length <= space + 1 || length > text.size()) return;
        const std::string_view record = text.substr(space + 1, length - space - 2);
        if (record.starts_with("path=")) path = record.substr(5);
        if (record.starts_with("linkpath=")) link = record.substr(9);
        text.remove_prefix(length);
    }
}

// A link's target, from the folder that it stands in.
std::string followed(const std::string& from, const std::string& link) {
    return clean((std::filesystem::path(from).parent_path() / link).lexically_normal().string());
}

class Archive {
  public:
    Archive(std::string_view bytes, std::map<std::string, TarEntry> entries)
        : bytes_(bytes), entries_(std::move(entries)) {}

    host::Result<std::string_view> file(const std::string& name, std::uint64_t limit) const {
        std::string at = clean(name);
        for (int hops = 0; hops < 10; ++hops) {
            const auto it = entries_.find(at);
            if (it == entries_.end())
                return host::failure(ErrorCode::InvalidExternalData, "the image archive lacks {}", at);
            if (it->second.link.empty()) {
                if (it->second.size > limit) return bad(it->second.offset, at + " is too large");
                return bytes_.substr(it->second.offset, it->second.size);
            }
            at = followed(at, it->second.link);
        }
        return host::failure(ErrorCode::InvalidExternalData, "the links of {} in the image archive do not end", name);
    }

  private:
    std::string_view bytes_;
    std::map<std::string, TarEntry> entries_;
};

}  // namespace

host::Result<std::map<std::string, TarEntry>> index_tar(std::string_view archive) {
    std::map<std::string, TarEntry> entries;
    std::string long_name, long_link;
    for (std::uint64_t at = 0; at + kBlock <= archive.size();) {
        const std::string_view header = archive.substr(at, kBlock);
        if (header.find_first_not_of('\0') == std::string_view::npos) break;
        const auto size = number_field(header.substr(124, 12));
        if (!size) return bad(at, "a size that is no number");
        const std::uint64_t data = at + kBlock;
        if (*size > archive.size() - data) return bad(at, "an entry that goes past the end");
        const char type = header[156];
        const std::string_view body = archive.substr(data, *size);
        if (type == 'L') {
            long_name = text_field(body);
        } else if (type == 'K') {
            long_link = text_field(body);
        } else if (type == 'x') {
            read_pax(body, long_name, long_link);
        } else if (type != 'g') {
            std::string name = text_field(header.substr(0, 100));
            if (const std::string prefix = text_field(header.substr(345, 155));
                header.substr(257, 5) == "ustar" && !prefix.empty())
                name = prefix + "/" + name;
            if (!long_name.empty()) name = long_name;
            TarEntry entry{.offset = data, .size = *size, .link = {}};
            if (type == '1' || type == '2') {
                entry.link = long_link.empty() ? text_field(header.substr(157, 100)) : long_link;
                // A hard link names its target from the root of the archive.
                if (type == '1')
                    entry.link = std::filesystem::path(entry.link)
                                     .lexically_relative(std::filesystem::path(name).parent_path())
                                     .string();
            }
            if (type != '5') entries[clean(name)] = std::move(entry);
            long_name.clear();
            long_link.clear();
            if (entries.size() > kMaxEntries) return bad(at, "too many entries");
        }
        at = data + (*size + kBlock - 1) / kBlock * kBlock;
    }
    return entries;
}

host::Result<std::vector<ArchivedImage>> read_image_archive(std::string_view bytes) {
    TRY_ASSIGN(auto entries, index_tar(bytes));
    const Archive archive(bytes, std::move(entries));
    TRY_ASSIGN(const std::string_view manifest_text, archive.file("manifest.json", kMaxText));
    const Json manifest = Json::parse(manifest_text, nullptr, false);
    if (manifest.is_discarded() || !manifest.is_array()) return bad(0, "its manifest.json is no list");
    std::vector<ArchivedImage> images;
    for (const Json& one : manifest) {
        if (!one.is_object() || !one.contains("Config") || !one.contains("Layers") || !one["Layers"].is_array())
            return bad(0, "its manifest.json lacks Config or Layers");
        ArchivedImage image;
        TRY_ASSIGN(const std::string_view config, archive.file(text_of(one["Config"]), kMaxText));
        image.config = config;
        if (one.contains("RepoTags"))
            for (const Json& name : one["RepoTags"]) image.names.push_back(text_of(name));
        const Json parsed = Json::parse(config, nullptr, false);
        if (parsed.is_discarded() || !parsed.is_object() || !parsed.contains("rootfs") ||
            !parsed["rootfs"].is_object() || !parsed["rootfs"].contains("diff_ids"))
            return bad(0, "a config without rootfs.diff_ids");
        const Json& diff_ids = parsed["rootfs"]["diff_ids"];
        if (!diff_ids.is_array() || diff_ids.size() != one["Layers"].size())
            return bad(0, "the manifest and the config differ in their layers");
        for (std::size_t i = 0; i < diff_ids.size(); ++i) {
            TRY_ASSIGN(const std::string_view layer, archive.file(text_of(one["Layers"][i]), UINT64_MAX));
            const std::string id = text_of(diff_ids[i]);
            if (!id.starts_with("sha256:") || id.size() != 71 ||
                id.find_first_not_of("0123456789abcdef", 7) != std::string::npos)
                return bad(0, "a layer without a SHA-256");
            image.layers.push_back({.diff_id = id, .bytes = layer});
        }
        images.push_back(std::move(image));
    }
    return images;
}

void TarWriter::add(const std::string& name, std::string_view bytes) {
    std::string header(kBlock, '\0');
    const auto put = [&](std::size_t at, const std::string& text) {
        std::memcpy(header.data() + at, text.data(), text.size());
    };
    put(0, name.substr(0, 99));
    put(100, "0000644");
    put(108, "0000000");
    put(116, "0000000");
    put(124, fmt::format("{:011o}", bytes.size()));
    put(136, "00000000000");
    put(148, "        ");
    header[156] = '0';
    put(257, "ustar");
    put(263, "00");
    unsigned sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    put(148, fmt::format("{:06o}", sum));
    header[154] = '\0';
    out_ += header;
    out_ += bytes;
    out_.append((kBlock - bytes.size() % kBlock) % kBlock, '\0');
}

std::string TarWriter::finish() {
    out_.append(2 * kBlock, '\0');
    return std::move(out_);
}

}  // namespace talpa::topo
