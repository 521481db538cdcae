#include "board/linux/resources.h"

#include <algorithm>
#include <cerrno>

#include "base/host/error.h"
#include "link/resource_table.h"
#include "link/vring.h"

namespace talpa::board {
namespace {

constexpr std::uint32_t kPage = 4096;
constexpr unsigned kMaxVrings = 2;  // RVDEV_NUM_VRINGS
constexpr std::size_t kVringBytes = sizeof(link::VringResource);
constexpr std::size_t kVdevBytes = sizeof(link::VdevResource);

std::uint32_t word(Bytes bytes, std::size_t at) {
    return load_le<std::uint32_t>(bytes.data() + at);
}

std::string name_at(Bytes bytes, std::size_t at) {
    const auto field = bytes.subspan(at, 32);
    const auto end = std::find(field.begin(), field.end(), 0);
    return {field.begin(), end};
}

class Handler {
  public:
    Handler(std::vector<std::uint8_t>& table, const std::vector<ReservedNode>& nodes, KernelLog& log, unsigned index)
        : table_(table), nodes_(nodes), log_(log), index_(index) {}

    int carveout(const link::ResourceEntry& entry) {
        const Bytes b = entry.bytes;
        if (word(b, 0x14) != 0) return refuse("carveout rsc has non zero reserved bytes");
        const std::string name = name_at(b, 0x18);
        const std::uint32_t da = word(b, 4), length = word(b, 12);
        const ReservedNode* node = find(name);
        if (node == nullptr) return 0;  // Linux would allocate DMA memory; the entry stays as it is
        if (da != link::kAnyAddress &&
            (da < node->base || std::uint64_t{da} + length > std::uint64_t{node->base} + node->size)) {
            log_.line("imx-rproc remoteproc-cm33: Registered carveout doesn't fit da request");
            return -ENOMEM;
        }
        if (da == link::kAnyAddress) store_le(&table_[entry.offset + 4], node->base);
        store_le(&table_[entry.offset + 8], node->base);
        return 0;
    }

    int trace(const link::ResourceEntry& entry) {
        const Bytes b = entry.bytes;
        if (word(b, 12) != 0) return refuse("trace rsc has non zero reserved bytes");
        result_.traces.push_back({name_at(b, 16), word(b, 4), word(b, 8)});
        return 0;
    }

    int vdev(const link::ResourceEntry& entry) {
        const Bytes b = entry.bytes;
        if (b[26] != 0 || b[27] != 0) return refuse("vdev rsc has non zero reserved bytes");
        const unsigned count = b[25];
        if (count > kMaxVrings) {
            log_.line("remoteproc remoteproc{}: too many vrings: {}", index_, count);
            return -EINVAL;
        }
        VdevEntry vdev{entry.offset, word(b, 4), word(b, 12), {}};
        for (unsigned i = 0; i < count; ++i)
            if (const int error =
                    vring(entry.offset + static_cast<std::uint32_t>(kVdevBytes + i * kVringBytes), i, vdev);
                error != 0)
                return error;
        result_.vdevs.push_back(std::move(vdev));
        return 0;
    }

    Resources take() { return std::move(result_); }

  private:
    int vring(std::uint32_t offset, unsigned i, VdevEntry& vdev) {
        VringEntry ring{offset, word(table_, offset), word(table_, offset + 4), word(table_, offset + 8),
                        next_notify_id_++};
        const link::VringLayout layout{ring.num, ring.align};
        if (!layout.valid()) {
            log_.line("remoteproc remoteproc{}: invalid qsz ({}) or alignment ({})", index_, ring.num, ring.align);
            return -EINVAL;
        }
        const std::string name = fmt::format("vdev{}vring{}", result_.vdevs.size(), i);
        const ReservedNode* node = find(name);
        const auto size = round_up<std::uint64_t>(layout.size_bytes(), kPage);
        if (node == nullptr ||
            (ring.da != link::kAnyAddress &&
             (ring.da < node->base || ring.da + size > std::uint64_t{node->base} + node->size)) ||
            size > node->size) {
            log_.line("imx-rproc remoteproc-cm33: Registered carveout doesn't fit {}: da 0x{:x}, {} bytes", name,
                      ring.da, size);
            return -ENOMEM;
        }
        if (ring.da == link::kAnyAddress) ring.da = node->base;
        store_le(&table_[offset], ring.da);
        store_le(&table_[offset + 12], ring.notify_id);
        vdev.vrings.push_back(ring);
        return 0;
    }

    int refuse(const char* why) {
        log_.line("remoteproc remoteproc{}: {}", index_, why);
        return -EINVAL;
    }
    const ReservedNode* find(const std::string& name) const {
        const auto found =
            std::find_if(nodes_.begin(), nodes_.end(), [&](const ReservedNode& n) { return n.name == name; });
        return found == nodes_.end() ? nullptr : &*found;
    }

    std::vector<std::uint8_t>& table_;
    const std::vector<ReservedNode>& nodes_;
    KernelLog& log_;
    unsigned index_;
    Resources result_;
    std::uint32_t next_notify_id_ = 0;
};

}  // namespace

ResourcesOrErrno handle_resources(std::vector<std::uint8_t>& table, const std::vector<ReservedNode>& nodes,
                                  KernelLog& log, unsigned index) {
    const auto count = link::check_resource_table(table);
    if (!count) {
        log.line("remoteproc remoteproc{}: {}", index, host::Error(count.error()).message);
        return {{}, -EINVAL};
    }
    Handler handler(table, nodes, log, index);
    for (std::uint32_t i = 0; i < *count; ++i) {
        const auto entry = link::resource_entry(table, i).value();
        int error = 0;
        switch (static_cast<link::ResourceType>(entry.type)) {
            case link::ResourceType::Carveout:
                error = handler.carveout(entry);
                break;
            case link::ResourceType::Devmem:
                error = -EINVAL;
                break;  // needs an IOMMU, which i.MX has not
            case link::ResourceType::Trace:
                error = handler.trace(entry);
                break;
            case link::ResourceType::Vdev:
                error = handler.vdev(entry);
                break;
            default:
                log.line("remoteproc remoteproc{}: unsupported resource {}", index, entry.type);
                break;
        }
        if (error != 0) {
            log.line("remoteproc remoteproc{}: Failed to process resources: {}", index, error);
            return {{}, error};
        }
    }
    return {handler.take(), 0};
}

std::string describe_resource_table(Bytes table) {
    const auto count = link::check_resource_table(table);
    if (!count) return "No resource table found\n";
    std::string out;
    const auto line = [&]<typename... A>(fmt::format_string<A...> f, A&&... a) {
        out += "  " + fmt::format(f, std::forward<A>(a)...) + "\n";
    };
    for (std::uint32_t i = 0; i < *count; ++i) {
        const Bytes b = link::resource_entry(table, i).value().bytes;
        const std::uint32_t type = word(b, 0);
        static constexpr const char* kNames[] = {"carveout", "devmem", "trace", "vdev"};
        if (type > 3) {
            out += fmt::format("Unknown resource type found: {} [hdr: ...]\n\n", type);
            continue;
        }
        out += fmt::format("Entry {} is of type {}\n", i, kNames[type]);
        switch (static_cast<link::ResourceType>(type)) {
            case link::ResourceType::Carveout:
            case link::ResourceType::Devmem:
                line("Device Address 0x{:x}", word(b, 4));
                line("Physical Address 0x{:x}", word(b, 8));
                line("Length 0x{:x} Bytes", word(b, 12));
                line("Flags 0x{:x}", word(b, 16));
                line("Reserved (should be zero) [{}]", word(b, 20));
                line("Name {}", name_at(b, 0x18));
                break;
            case link::ResourceType::Trace:
                line("Device Address 0x{:x}", word(b, 4));
                line("Length 0x{:x} Bytes", word(b, 8));
                line("Reserved (should be zero) [{}]", word(b, 12));
                line("Name {}", name_at(b, 16));
                break;
            case link::ResourceType::Vdev:
                line("ID {}", word(b, 4));
                line("Notify ID {}", word(b, 8));
                line("Device features 0x{:x}", word(b, 12));
                line("Guest features 0x{:x}", word(b, 16));
                line("Config length 0x{:x}", word(b, 20));
                line("Status 0x{:x}", b[24]);
                line("Number of vrings {}", b[25]);
                line("Reserved (should be zero) [{}][{}]", b[26], b[27]);
                for (unsigned j = 0; j < b[25]; ++j) {
                    const Bytes ring = b.subspan(kVdevBytes + j * kVringBytes, kVringBytes);
                    line("Vring {}", j);
                    line("  Device Address 0x{:x}", word(ring, 0));
                    line("  Alignment {}", word(ring, 4));
                    line("  Number of buffers {}", word(ring, 8));
                    line("  Notify ID {}", word(ring, 12));
                    line("  Physical Address 0x{:x}", word(ring, 16));
                }
                break;
        }
        out += "\n";
    }
    return out;
}

}  // namespace talpa::board
