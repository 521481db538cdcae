#include "npu_model/filter.h"

#include <algorithm>
#include <cstring>

namespace talpa::npu_model {

namespace {

constexpr std::size_t kRecordBytes = 10;
constexpr std::uint64_t kMaxBankSize = std::uint64_t{1} << 28;

ScaleRecord read_record(const std::uint8_t* p) {
    const std::uint64_t bias = load_le<std::uint32_t>(p) | (std::uint64_t{p[4]} << 32);
    return {static_cast<std::int64_t>(bias << 24) >> 24, load_le<std::uint32_t>(p + 5),
            static_cast<std::uint8_t>(p[9] & 0x3F)};
}

std::array<Bytes, 4> parts(const FilterSource& s) {
    return {s.weights[0], s.records[0], s.weights[1], s.records[1]};
}

// A mixing hash of 8 bytes a step. It only has to spread; equality is decided on the bytes.
std::uint64_t hash_bytes(Bytes bytes, std::uint64_t h) {
    constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;
    std::size_t i = 0;
    for (; i + 8 <= bytes.size(); i += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data() + i, 8);
        h = (h ^ word) * kOdd;
        h ^= h >> 32;
    }
    for (; i < bytes.size(); ++i) h = (h ^ bytes[i]) * kOdd;
    return h ^ (h >> 29);
}

std::uint64_t hash_source(const FilterSource& s) {
    const WeightOrder& o = s.order;
    const std::uint32_t shape[] = {o.ofm_depth, o.kernel_height, o.kernel_width, o.ifm_depth, o.block_depth, o.cores};
    std::uint64_t h = hash_bytes({reinterpret_cast<const std::uint8_t*>(shape), sizeof shape}, 1);
    for (const Bytes part : parts(s)) h = hash_bytes(part, h + part.size());
    return h;
}

}  // namespace

Result<Filter> decode_filter(const FilterSource& source) {
    const WeightOrder& order = source.order;
    Filter filter;
    filter.shape = order;
    if (order.bank_size() > kMaxBankSize)
        return fail(ErrorCode::OutOfResources, "a filter bank of {} weights, at most {} are supported",
                    order.bank_size(), kMaxBankSize);
    // All streams are decoded before the bank is allocated: they show that the bank is not much larger than its source.
    std::array<std::vector<std::int16_t>, npu::kMaxCores> symbols;
    for (unsigned core = 0; core < order.cores; ++core) {
        const std::uint64_t count = symbol_count(order, core);
        if (count == 0) continue;  // this core has no channels
        TRY_ASSIGN(symbols[core], decode_symbols(source.weights[core], count));
    }
    filter.weights.resize(static_cast<std::size_t>(order.bank_size()));
    for (unsigned core = 0; core < order.cores; ++core)
        if (!symbols[core].empty() && !place_weights(order, core, symbols[core], filter.weights))
            return fail(ErrorCode::WeightStream, "weight stream bit {}: {}", 0,
                        "it has non-zero weights where the filter bank is padded");
    if (source.scales_globally) return filter;
    filter.records.resize(order.ofm_depth);
    for (unsigned core = 0; core < order.cores; ++core) {
        const std::uint32_t channels = (order.ofm_depth + order.cores - 1 - core) / order.cores;
        if (source.records[core].size() < kRecordBytes * channels)
            return fail(ErrorCode::CommandStream, "SCALE_LENGTH {}, {} channels need {}", source.records[core].size(),
                        channels, kRecordBytes * channels);
        for (std::uint32_t c = 0; c < channels; ++c)
            filter.records[c * order.cores + core] = read_record(source.records[core].data() + kRecordBytes * c);
    }
    return filter;
}

bool FilterCache::same(const Entry& entry, const FilterSource& source) {
    if (!(entry.filter->shape == source.order)) return false;
    const auto all = parts(source);
    for (std::size_t i = 0; i < all.size(); ++i)
        if (entry.sizes[i] != all[i].size()) return false;
    const std::uint8_t* content = entry.content.data();
    for (const Bytes part : all) {
        if (!part.empty() && std::memcmp(content, part.data(), part.size()) != 0) return false;
        content += part.size();
    }
    return true;
}

void FilterCache::drop_last() {
    const auto last = std::prev(entries_.end());
    const auto [from, to] = by_hash_.equal_range(last->hash);
    by_hash_.erase(std::find_if(from, to, [&](const auto& item) { return item.second == last; }));
    size_bytes_ -= last->size_bytes;
    entries_.erase(last);
}

Result<std::shared_ptr<const Filter>> FilterCache::get(const FilterSource& source, std::uint64_t hint) {
    const auto found = [&](std::uint64_t hash) -> const Entry* {
        const auto [from, to] = by_hash_.equal_range(hash);
        for (auto it = from; it != to; ++it)
            if (same(*it->second, source)) {
                entries_.splice(entries_.begin(), entries_, it->second);
                return &entries_.front();
            }
        return nullptr;
    };
    if (const auto known = hash_of_hint_.find(hint); known != hash_of_hint_.end())
        if (const Entry* entry = found(known->second)) return entry->filter;
    const std::uint64_t hash = hash_source(source);
    if (hash_of_hint_.size() > 65536) hash_of_hint_.clear();
    hash_of_hint_[hint] = hash;
    if (const Entry* entry = found(hash)) return entry->filter;

    TRY_ASSIGN(Filter filter, decode_filter(source));
    ++decoded_;
    Entry entry;
    entry.hash = hash;
    const auto all = parts(source);
    for (std::size_t i = 0; i < all.size(); ++i) {
        entry.sizes[i] = all[i].size();
        entry.content.insert(entry.content.end(), all[i].begin(), all[i].end());
    }
    // The packed form is about as large as the bank.
    entry.size_bytes = entry.content.size() + 2 * filter.weights.size() * sizeof(std::int16_t) +
                       filter.records.size() * sizeof(ScaleRecord) + sizeof(Entry);
    entry.filter = std::make_shared<const Filter>(std::move(filter));
    size_bytes_ += entry.size_bytes;
    entries_.push_front(std::move(entry));
    by_hash_.emplace(hash, entries_.begin());
    const auto result = entries_.front().filter;
    while (size_bytes_ > limit_bytes_ && !entries_.empty()) drop_last();
    return result;
}

}  // namespace talpa::npu_model
