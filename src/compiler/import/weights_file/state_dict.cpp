// torch.save's two containers, and the way from the pickled object to named tensors (model-formats, sections 2.2, 2.3
// and 2.6).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "compiler/import/pickle/document.h"
#include "compiler/import/weights_file/weights.h"

namespace talpa::compiler::import {
namespace {

using host::Error;
using host::failure;
using host::Result;
using pickle::Document;
using pickle::Kind;
using pickle::Object;

constexpr std::uint64_t kMostPickleBytes = 64 << 20, kMostStorageBytes = std::uint64_t{16} << 30;
constexpr std::string_view kWellKnown[] = {"state_dict",     "model", "model_state_dict",
                                           "state_dict_ema", "net",   "params"};
constexpr std::string_view kPrefixes[] = {"module.", "model."};

using StorageBytes = std::function<Result<talpa::Bytes>(const Object& storage)>;

std::size_t item_bytes(const Object& storage) {
    return storage.untyped ? 1 : raw_size(storage.type);
}

bool holds_tensors(const Object& dict) {
    if (dict.kind != Kind::Dict) return false;
    for (std::size_t i = 1; i < dict.items.size(); i += 2)
        if (dict.items[i]->kind == Kind::Tensor) return true;
    return false;
}

/// The dict of tensors: the object itself, or one well-known member.
Result<const Object*> find_state_dict(const Object& root) {
    if (holds_tensors(root)) return &root;
    if (root.kind != Kind::Dict) return failure(ErrorCode::NotSupported, "the file holds no dict of tensors");
    std::vector<std::string> names;
    const Object* found = nullptr;
    for (std::size_t i = 0; i < root.items.size(); i += 2) {
        if (root.items[i]->kind != Kind::Text || !holds_tensors(*root.items[i + 1])) continue;
        if (std::ranges::find(kWellKnown, root.items[i]->text) == std::end(kWellKnown)) continue;
        names.push_back(root.items[i]->text);
        found = root.items[i + 1];
    }
    if (found == nullptr) return failure(ErrorCode::NotSupported, "the file holds no dict of tensors");
    if (names.size() > 1)
        return failure(ErrorCode::NotSupported, "the file holds several dicts of tensors: {}", fmt::join(names, ", "));
    return found;
}

Result<WeightsFile> collect(const Object& root, const StorageBytes& bytes_of) {
    TRY_ASSIGN(const Object* dict, find_state_dict(root));
    WeightsFile out;
    std::size_t common[std::size(kPrefixes)] = {}, named = 0;
    for (std::size_t i = 0; i < dict->items.size(); i += 2) {
        const Object &key = *dict->items[i], &value = *dict->items[i + 1];
        if (value.kind != Kind::Tensor) continue;
        if (key.kind != Kind::Text || key.text.empty() || key.text.size() > 1024)
            return failure(ErrorCode::InvalidProgram, "a tensor without a name");
        const Object& storage = *value.storage;
        auto bytes = bytes_of(storage);
        if (!bytes) return std::unexpected(std::move(bytes.error()).with_context(key.text));
        ++named;
        for (std::size_t p = 0; p < std::size(kPrefixes); ++p) common[p] += key.text.starts_with(kPrefixes[p]) ? 1 : 0;
        if (!out.tensors.emplace(key.text, StoredTensor{value.type, value.sizes, value.strides, value.offset, *bytes})
                 .second)
            return failure(ErrorCode::InvalidProgram, "two tensors have the name '{}'", key.text);
    }
    for (std::size_t p = 0; p < std::size(kPrefixes); ++p) {
        // "model." is part of some networks' own names; as a wrapper's prefix it stands before dotted names only.
        if (common[p] != named || (kPrefixes[p] == "model." && out.tensors.contains("model.0.0.weight"))) continue;
        std::map<std::string, StoredTensor> stripped;
        for (auto& [name, tensor] : out.tensors) stripped.emplace(name.substr(kPrefixes[p].size()), std::move(tensor));
        out.tensors = std::move(stripped);
        break;
    }
    return out;
}

Result<WeightsFile> read_zip(talpa::Bytes file) {
    TRY_ASSIGN(const Zip zip, Zip::open(file));
    std::string root;
    bool found = false;
    for (const auto& [name, entry] : zip.entries()) {
        if (name.ends_with("/constants.pkl"))
            return std::unexpected(Error(ErrorCode::NotSupported, "a TorchScript archive",
                                         "Export the model with torch.export instead of torch.jit."));
        if (!name.ends_with("/data.pkl")) continue;
        if (found) return failure(ErrorCode::InvalidProgram, "two pickles in one archive");
        found = true;
        root = name.substr(0, name.size() - 8);
    }
    if (!found) return failure(ErrorCode::InvalidProgram, "a zip archive without data.pkl");
    if (zip.has(root + "byteorder")) {
        TRY_ASSIGN(const auto order, zip.read(root + "byteorder", 64));
        if (order.text() != "little") return failure(ErrorCode::NotSupported, "byte order '{}'", order.text());
    }
    TRY_ASSIGN(const auto data, zip.read(root + "data.pkl", kMostPickleBytes));
    std::size_t used = 0;
    TRY_ASSIGN(const auto document, Document::read(data.bytes(), used));
    std::vector<std::shared_ptr<EntryBytes>> owned;
    std::unordered_map<std::string, talpa::Bytes> read;
    TRY_ASSIGN(WeightsFile out, collect(document->root(), [&](const Object& storage) -> Result<talpa::Bytes> {
                   if (const auto seen = read.find(storage.text); seen != read.end()) return seen->second;
                   TRY_ASSIGN(auto bytes, zip.read(root + "data/" + storage.text, kMostStorageBytes));
                   const auto wanted =
                       checked_mul(static_cast<std::uint64_t>(storage.integer), std::uint64_t{item_bytes(storage)});
                   if (!wanted || bytes.bytes().size() < *wanted)
                       return failure(ErrorCode::InvalidProgram, "storage '{}' has {} bytes, {} elements are promised",
                                      storage.text, bytes.bytes().size(), storage.integer);
                   owned.push_back(std::make_shared<EntryBytes>(std::move(bytes)));
                   return read.emplace(storage.text, owned.back()->bytes()).first->second;
               }));
    out.owned = std::move(owned);
    return out;
}

void find_storages(const Object& object, std::unordered_map<std::string, const Object*>& into, int depth) {
    if (depth > 8) return;
    if (object.kind == Kind::Tensor) into.emplace(object.storage->text, object.storage);
    for (const auto item : object.items) find_storages(*item, into, depth + 1);
}

/// Five pickles, then the storages (section 2.3).
Result<WeightsFile> read_legacy(talpa::Bytes file) {
    std::vector<std::unique_ptr<Document>> documents;
    std::size_t at = 0;
    for (int i = 0; i < 5; ++i) {
        std::size_t used = 0;
        auto document = Document::read(file.subspan(at), used);
        if (!document)
            return std::unexpected(
                std::move(document.error()).with_context(fmt::format("part {} at offset {}", i + 1, at)));
        documents.push_back(std::move(*document));
        at += used;
        if (i == 0 && documents[0]->root().text != std::string("\x6C\xFC\x9C\x46\xF9\x20\x6A\xA8\x50\x19", 10))
            return std::unexpected(Error(ErrorCode::NotSupported, "a bare pickle, not written by torch.save",
                                         "Save the weights with torch.save(model.state_dict(), path)."));
        if (i == 1 && documents[1]->root().integer != 1001)
            return failure(ErrorCode::NotSupported, "protocol {} of torch.save", documents[1]->root().integer);
    }
    const Object& system = documents[2]->root();
    for (std::size_t i = 0; system.kind == Kind::Dict && i + 1 < system.items.size(); i += 2)
        if (system.items[i]->text == "little_endian" && system.items[i + 1]->integer != 1)
            return failure(ErrorCode::NotSupported, "written on a big-endian machine");
    std::unordered_map<std::string, const Object*> storages;
    find_storages(documents[3]->root(), storages, 0);
    const Object& keys = documents[4]->root();
    if (keys.kind != Kind::List) return failure(ErrorCode::InvalidProgram, "no list of storages");
    std::unordered_map<std::string, talpa::Bytes> data;
    for (const auto key : keys.items) {
        const auto storage = storages.find(key->text);
        if (key->kind != Kind::Text || storage == storages.end())
            return failure(ErrorCode::InvalidProgram, "storage '{}' belongs to nothing", key->text);
        if (file.size() - at < 8) return failure(ErrorCode::InvalidProgram, "the file ends before its storages do");
        const auto count = load_le<std::int64_t>(file.data() + at);
        at += 8;
        if (count != storage->second->integer)
            return failure(ErrorCode::InvalidProgram, "storage '{}' has {} elements, {} are promised", key->text, count,
                           storage->second->integer);
        const auto bytes = checked_mul(static_cast<std::uint64_t>(count), std::uint64_t{item_bytes(*storage->second)});
        if (!bytes || *bytes > file.size() - at)
            return failure(ErrorCode::InvalidProgram, "the file ends before its storages do");
        if (!data.emplace(key->text, file.subspan(at, static_cast<std::size_t>(*bytes))).second)
            return failure(ErrorCode::InvalidProgram, "storage '{}' stands twice", key->text);
        at += static_cast<std::size_t>(*bytes);
    }
    if (at != file.size())
        return failure(ErrorCode::InvalidProgram, "{} bytes follow the last storage", file.size() - at);
    return collect(documents[3]->root(), [&](const Object& storage) -> Result<talpa::Bytes> {
        const auto found = data.find(storage.text);
        if (found == data.end()) return failure(ErrorCode::InvalidProgram, "storage '{}' is missing", storage.text);
        return found->second;
    });
}

}  // namespace

bool is_saved_by_torch(const Zip& zip) {
    return std::ranges::any_of(zip.entries(), [](const auto& e) { return e.first.ends_with("/data.pkl"); });
}

Result<WeightsFile> read_state_dict(talpa::Bytes file) {
    if (file.size() >= 2 && file[0] == 'P' && file[1] == 'K') return read_zip(file);
    return read_legacy(file);
}

}  // namespace talpa::compiler::import
