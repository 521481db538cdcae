#include "compiler/import/zip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace talpa::compiler::import {
namespace {

using host::failure;
using host::Result;

constexpr std::uint32_t kLocal = 0x04034B50, kCentral = 0x02014B50, kEnd = 0x06054B50, kEnd64 = 0x06064B50,
                        kLocator64 = 0x07064B50;
constexpr std::size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20;
constexpr std::uint64_t kMostEntries = 100'000, kMostBytes = std::uint64_t{16} << 30, kMostExpansion = 100;

template <typename T>
T at(talpa::Bytes bytes, std::uint64_t offset) {
    return load_le<T>(bytes.data() + offset);
}

struct Directory {
    std::uint64_t count = 0, offset = 0, bytes = 0, end = 0;
};

/// The end record whose sizes add up to the file's end exactly.
Result<Directory> find_directory(talpa::Bytes file) {
    if (file.size() < kEndBytes) return failure(ErrorCode::InvalidProgram, "{} bytes are no zip archive", file.size());
    const std::size_t furthest = std::min<std::size_t>(file.size() - kEndBytes, 65535);
    for (std::size_t back = 0; back <= furthest; ++back) {
        const std::uint64_t here = file.size() - kEndBytes - back;
        if (at<std::uint32_t>(file, here) != kEnd || at<std::uint16_t>(file, here + 20) != back) continue;
        if (at<std::uint16_t>(file, here + 4) != 0 || at<std::uint16_t>(file, here + 6) != 0 ||
            at<std::uint16_t>(file, here + 8) != at<std::uint16_t>(file, here + 10))
            continue;
        Directory d{at<std::uint16_t>(file, here + 10), at<std::uint32_t>(file, here + 16),
                    at<std::uint32_t>(file, here + 12), here};
        if (here >= kLocatorBytes && at<std::uint32_t>(file, here - kLocatorBytes) == kLocator64) {
            const auto record = at<std::uint64_t>(file, here - kLocatorBytes + 8);
            if (!range_inside(record, kEnd64Bytes, here - kLocatorBytes) || at<std::uint32_t>(file, record) != kEnd64)
                return failure(ErrorCode::InvalidProgram, "the zip64 end record at {} is not one", record);
            if (at<std::uint64_t>(file, record + 24) != at<std::uint64_t>(file, record + 32) ||
                at<std::uint64_t>(file, record + 4) != here - kLocatorBytes - record - 12)
                return failure(ErrorCode::InvalidProgram, "the zip64 end record at {} contradicts itself", record);
            d = {at<std::uint64_t>(file, record + 32), at<std::uint64_t>(file, record + 48),
                 at<std::uint64_t>(file, record + 40), record};
        }
        if (!range_inside(d.offset, d.bytes, d.end) || d.offset + d.bytes != d.end) continue;
        return d;
    }
    return failure(ErrorCode::InvalidProgram, "no end record of a zip archive fits the file: it is cut off or damaged");
}

Result<void> check_name(std::string_view name) {
    bool clean = !name.empty() && name.size() <= 1024 && name.find('\0') == name.npos && name.find('\\') == name.npos &&
                 name.front() != '/';
    for (std::size_t begin = 0; clean && begin <= name.size();) {
        const std::size_t end = std::min(name.find('/', begin), name.size());
        const auto part = name.substr(begin, end - begin);
        clean = part != ".." && part != "." && (!part.empty() || end == name.size());
        begin = end + 1;
    }
    if (!clean) return failure(ErrorCode::InvalidProgram, "an entry's name is empty, too long or leads elsewhere");
    return {};
}

struct Sizes {
    std::uint64_t bytes, stored, offset;
};

/// 32-bit sizes of a central header, widened by the zip64 extra field where they are all ones.
Result<Sizes> sizes_of(talpa::Bytes header, talpa::Bytes extra) {
    Sizes s{at<std::uint32_t>(header, 24), at<std::uint32_t>(header, 20), at<std::uint32_t>(header, 42)};
    while (extra.size() >= 4) {
        const auto id = at<std::uint16_t>(extra, 0), size = at<std::uint16_t>(extra, 2);
        if (size > extra.size() - 4u) break;
        if (id == 1) {
            auto field = extra.subspan(4, size);
            for (auto* number : {&s.bytes, &s.stored, &s.offset}) {
                if (*number != UINT32_MAX) continue;
                if (field.size() < 8) return failure(ErrorCode::InvalidProgram, "a zip64 field is too short");
                *number = at<std::uint64_t>(field, 0);
                field = field.subspan(8);
            }
        }
        extra = extra.subspan(4u + size);
    }
    return s;
}

Result<std::vector<std::uint8_t>> inflated(talpa::Bytes in, std::uint64_t size) {
    std::vector<std::uint8_t> out(static_cast<std::size_t>(size));
    z_stream stream{};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return failure(ErrorCode::OutOfResources, "zlib cannot start");
    // zlib counts in 32 bits; the archive's limits keep both sizes far below what several calls would need.
    int status = Z_OK;
    std::size_t read = 0, written = 0;
    std::uint8_t beyond = 0;
    while (status == Z_OK) {
        const auto chunk = std::min<std::size_t>(in.size() - read, 1u << 30);
        const auto room = std::min<std::size_t>(out.size() - written, 1u << 30);
        stream.next_in = const_cast<Bytef*>(in.data() + read);
        stream.avail_in = static_cast<uInt>(chunk);
        stream.next_out = room > 0 ? out.data() + written : &beyond;
        stream.avail_out = static_cast<uInt>(room > 0 ? room : 1);
        status = inflate(&stream, Z_NO_FLUSH);
        read += chunk - stream.avail_in;
        const std::size_t made = (room > 0 ? room : 1) - stream.avail_out;
        if (room == 0 && made > 0) status = Z_DATA_ERROR;
        if (room > 0) written += made;
        if (status == Z_OK && chunk == stream.avail_in && made == 0) status = Z_BUF_ERROR;
    }
    inflateEnd(&stream);
    if (status != Z_STREAM_END || written != out.size() || read != in.size())
        return failure(ErrorCode::InvalidProgram, "its compressed data are damaged or not of the size that is given");
    return out;
}

}  // namespace

Result<Zip> Zip::open(talpa::Bytes file) {
    TRY_ASSIGN(const Directory directory, find_directory(file));
    if (directory.count > kMostEntries)
        return failure(ErrorCode::OutOfResources, "{} entries, at most {} are read", directory.count, kMostEntries);
    Zip zip(file);
    struct Span {
        std::uint64_t begin, end;
    };
    std::vector<Span> spans;
    std::uint64_t here = directory.offset, total = 0, inflated_total = 0;
    for (std::uint64_t n = 0; n < directory.count; ++n) {
        if (!range_inside(here, kCentralBytes, directory.end) || at<std::uint32_t>(file, here) != kCentral)
            return failure(ErrorCode::InvalidProgram, "entry {} of the directory, at offset {}, is none", n, here);
        const auto header = file.subspan(here, kCentralBytes);
        const auto name_bytes = at<std::uint16_t>(header, 28), extra_bytes = at<std::uint16_t>(header, 30),
                   comment_bytes = at<std::uint16_t>(header, 32);
        const std::uint64_t whole = kCentralBytes + name_bytes + extra_bytes + comment_bytes;
        if (!range_inside(here, whole, directory.end))
            return failure(ErrorCode::InvalidProgram, "entry {} of the directory runs past its end", n);
        const std::string name(reinterpret_cast<const char*>(file.data() + here + kCentralBytes), name_bytes);
        TRY(check_name(name));
        const auto flags = at<std::uint16_t>(header, 8), method = at<std::uint16_t>(header, 10);
        if ((flags & 1) != 0) return failure(ErrorCode::NotSupported, "entry '{}' is encrypted", name);
        if (method != 0 && method != 8)
            return failure(ErrorCode::NotSupported, "entry '{}' is compressed by method {}", name, method);
        TRY_ASSIGN(const Sizes s, sizes_of(header, file.subspan(here + kCentralBytes + name_bytes, extra_bytes)));
        if (method == 0 && s.stored != s.bytes)
            return failure(ErrorCode::InvalidProgram, "entry '{}' is stored in {} bytes and has {}", name, s.stored,
                           s.bytes);
        if (!range_inside(s.offset, kLocalBytes, directory.offset) || at<std::uint32_t>(file, s.offset) != kLocal)
            return failure(ErrorCode::InvalidProgram, "entry '{}' has no header at offset {}", name, s.offset);
        const auto local_name = at<std::uint16_t>(file, s.offset + 26),
                   local_extra = at<std::uint16_t>(file, s.offset + 28);
        const std::uint64_t payload = s.offset + kLocalBytes + local_name + local_extra;
        if (!range_inside(payload, s.stored, directory.offset))
            return failure(ErrorCode::InvalidProgram, "entry '{}' runs past the end of the file", name);
        if (local_name != name_bytes || std::memcmp(file.data() + s.offset + kLocalBytes, name.data(), name_bytes) != 0)
            return failure(ErrorCode::InvalidProgram, "entry '{}' has another name at its data", name);
        total += s.bytes;
        if (s.bytes > kMostBytes || total > kMostBytes)
            return failure(ErrorCode::OutOfResources, "the entries have more than {} bytes in all", kMostBytes);
        if (method == 8) inflated_total += s.bytes;
        if (inflated_total > kMostExpansion * file.size())
            return failure(ErrorCode::OutOfResources, "compressed entries would expand the file {} times",
                           kMostExpansion);
        if (!zip.entries_.emplace(name, Entry{payload, s.stored, s.bytes, at<std::uint32_t>(header, 16), method == 8})
                 .second)
            return failure(ErrorCode::InvalidProgram, "two entries have the name '{}'", name);
        spans.push_back({s.offset, payload + s.stored});
        here += whole;
    }
    if (here != directory.offset + directory.bytes)
        return failure(ErrorCode::InvalidProgram, "the directory's size does not fit its entries");
    std::ranges::sort(spans, {}, &Span::begin);
    for (std::size_t i = 1; i < spans.size(); ++i)
        if (spans[i].begin < spans[i - 1].end)
            return failure(ErrorCode::InvalidProgram, "entries overlap at offset {}", spans[i].begin);
    return zip;
}

Result<EntryBytes> Zip::read(const std::string& name, std::uint64_t limit_bytes) const {
    const auto found = entries_.find(name);
    if (found == entries_.end()) return failure(ErrorCode::NotFound, "the archive has no entry '{}'", name);
    const Entry& entry = found->second;
    if (entry.bytes > limit_bytes)
        return failure(ErrorCode::OutOfResources, "entry '{}' has {} bytes, at most {} are read", name, entry.bytes,
                       limit_bytes);
    const auto stored =
        file_.subspan(static_cast<std::size_t>(entry.offset), static_cast<std::size_t>(entry.stored_bytes));
    std::optional<EntryBytes> bytes;
    if (entry.deflated) {
        auto out = host::with_context(inflated(stored, entry.bytes), fmt::format("entry '{}'", name));
        if (!out) return std::unexpected(std::move(out.error()));
        bytes.emplace(std::move(*out));
    } else {
        bytes.emplace(stored);
    }
    if (crc32_z(0, bytes->bytes().data(), bytes->bytes().size()) != entry.crc32)
        return std::unexpected(host::Error(ErrorCode::InvalidProgram,
                                           fmt::format("the checksum of entry '{}' is wrong", name),
                                           "The file is damaged, or was saved without checksums: save it again."));
    return std::move(*bytes);
}

}  // namespace talpa::compiler::import
