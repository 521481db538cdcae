// For tests and benchmarks of this folder: the Ethos-U delegates inside a .pte file, found by their block names alone,
// so that nothing here depends on the .pte reader; with memory of their own, ready to run. (pte-format, section 7)
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/core/byte_reader.h"
#include "npu/cop.h"
#include "npu/device.h"
#include "npu/scan.h"
#include "npu_model/aligned_memory_for_test.h"

namespace talpa::npu_model::testing {

struct IoRecord {
    std::uint32_t size_bytes = 0, offset = 0, region = 1;
};

class Delegate {
  public:
    Delegate(Bytes command_data, Bytes constants, std::uint32_t scratch_size, std::vector<IoRecord> inputs,
             std::vector<IoRecord> outputs)
        : command_data_(command_data), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {
        payload_ = npu::parse_payload(command_data_.bytes()).value();
        const auto scan = npu::scan(payload_.stream).value();
        regions_[0] = AlignedMemory(std::max<std::size_t>(constants.size(), scan.regions[0].size()));
        if (!constants.empty()) std::memcpy(regions_[0].data(), constants.data(), constants.size());
        regions_[1] = AlignedMemory(std::max<std::size_t>(scratch_size, scan.regions[1].size()));
        for (std::size_t r = 2; r < npu::kRegionCount; ++r) regions_[r] = AlignedMemory(scan.regions[r].size());
    }

    [[nodiscard]] const npu::Payload& payload() const { return payload_; }
    [[nodiscard]] const std::vector<IoRecord>& inputs() const { return inputs_; }
    [[nodiscard]] const std::vector<IoRecord>& outputs() const { return outputs_; }
    void set_input(std::size_t i, Bytes bytes) {
        std::memcpy(regions_[inputs_.at(i).region].data() + inputs_[i].offset, bytes.data(),
                    std::min<std::size_t>(bytes.size(), inputs_[i].size_bytes));
    }
    [[nodiscard]] std::vector<std::uint8_t> output(std::size_t i) const {
        const IoRecord& r = outputs_.at(i);
        const std::uint8_t* p = regions_[r.region].data() + r.offset;
        return {p, p + r.size_bytes};
    }
    [[nodiscard]] npu::Job job() {
        npu::Job job{payload_.stream, {}, payload_.config, payload_.id};
        for (std::size_t r = 0; r < npu::kRegionCount; ++r) job.regions[r] = regions_[r].region();
        return job;
    }

  private:
    AlignedMemory command_data_;
    npu::Payload payload_;
    std::array<AlignedMemory, npu::kRegionCount> regions_;
    std::vector<IoRecord> inputs_, outputs_;
};

/// The delegates whose blocks are all inline, in file order.
inline std::vector<Delegate> delegates_in(const std::vector<std::uint8_t>& file) {
    std::vector<Delegate> found;
    const auto u32 = [&](std::size_t at) { return load_le<std::uint32_t>(file.data() + at); };
    for (std::size_t at = 0; at + 32 <= file.size(); at += 16) {
        if (std::memcmp(file.data() + at, "vela_bin_stream", 16) != 0) continue;
        std::map<std::string, Bytes> blocks;
        bool all_inline = true;
        for (std::size_t block = at; block + 32 <= file.size();) {
            const char* name = reinterpret_cast<const char*>(file.data() + block);
            const std::size_t size = u32(block + 16);
            if (block + 32 + size > file.size()) break;
            all_inline = all_inline && file[block + 20] == 0;
            blocks[std::string(name, strnlen(name, 16))] = Bytes(file).subspan(block + 32, size);
            block += 32 + (size + 15) / 16 * 16;
            if (blocks.contains("vela_end_stream")) break;
        }
        if (!all_inline || !blocks.contains("vela_end_stream")) continue;
        const auto records = [&](const std::string& name) {
            const Bytes b = blocks[name];
            std::vector<IoRecord> list(load_le<std::uint32_t>(b.data()));
            const std::size_t fields = (b.size() - 4) / 4 / list.size();
            for (std::size_t i = 0; i < list.size(); ++i) {
                const std::uint8_t* p = b.data() + 4 + 4 * fields * i;
                list[i].size_bytes = 1;
                for (std::size_t d = 0; d + 3 < fields; ++d)
                    list[i].size_bytes *= std::max(1u, load_le<std::uint32_t>(p + 4 * d));
                list[i].size_bytes *= load_le<std::uint32_t>(p + 4 * (fields - 3));
                list[i].offset = load_le<std::uint32_t>(p + 4 * (fields - 2));
                list[i].region = load_le<std::uint32_t>(p + 4 * (fields - 1));
            }
            return list;
        };
        found.emplace_back(blocks["cmd_data"], blocks["weight_data"],
                           load_le<std::uint32_t>(blocks["scratch_size"].data()), records("inputs"),
                           records("outputs"));
    }
    return found;
}

}  // namespace talpa::npu_model::testing
