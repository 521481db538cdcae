// Reads zip archives as PyTorch writes them (model-formats, sections 1.1 and 1.9): stored entries are handed out as
// spans of the file, deflated ones are inflated with a hard stop. Everything comes from the central directory and is
// held against the local headers; nothing may overlap.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/core/byte_reader.h"
#include "base/host/error.h"

namespace talpa::compiler::import {

/// An entry's bytes: of the archive itself, or inflated ones that it owns.
class EntryBytes {
  public:
    explicit EntryBytes(talpa::Bytes view) : view_(view) {}
    explicit EntryBytes(std::vector<std::uint8_t> owned) : owned_(std::move(owned)), view_(owned_) {}
    EntryBytes(EntryBytes&&) = default;
    EntryBytes& operator=(EntryBytes&&) = default;
    [[nodiscard]] talpa::Bytes bytes() const { return view_; }
    [[nodiscard]] std::string_view text() const { return {reinterpret_cast<const char*>(view_.data()), view_.size()}; }

  private:
    std::vector<std::uint8_t> owned_;
    talpa::Bytes view_;
};

class Zip {
  public:
    /// `file` must outlive the object. Refuses: no or a doubtful end record, split or encrypted archives, methods other
    /// than stored and deflate, unclean or duplicate names, entries that overlap or leave the file, absurd sizes.
    [[nodiscard]] static host::Result<Zip> open(talpa::Bytes file);

    struct Entry {
        std::uint64_t offset = 0;  ///< of the payload
        std::uint64_t stored_bytes = 0, bytes = 0;
        std::uint32_t crc32 = 0;
        bool deflated = false;
    };
    [[nodiscard]] const std::map<std::string, Entry>& entries() const { return entries_; }
    [[nodiscard]] bool has(const std::string& name) const { return entries_.contains(name); }

    /// The entry's bytes, checksum verified. NotFound; OutOfResources above `limit_bytes`.
    [[nodiscard]] host::Result<EntryBytes> read(const std::string& name, std::uint64_t limit_bytes) const;

  private:
    explicit Zip(talpa::Bytes file) : file_(file) {}
    talpa::Bytes file_;
    std::map<std::string, Entry> entries_;
};

}  // namespace talpa::compiler::import
