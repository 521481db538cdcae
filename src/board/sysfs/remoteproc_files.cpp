#include "board/sysfs/remoteproc_files.h"

#include <fmt/format.h>

#include <cerrno>

namespace talpa::board {
namespace {

constexpr const char* kDeviceUevent =
    "DRIVER=imx-rproc\nOF_NAME=remoteproc-cm33\nOF_FULLNAME=/remoteproc-cm33\nOF_COMPATIBLE_0=fsl,imx93-cm33\n"
    "OF_COMPATIBLE_N=1\nMODALIAS=of:Nremoteproc-cm33T(null)Cfsl,imx93-cm33\n";
constexpr std::size_t kDebugWordBytes = 10;  // the kernel's buffer for such a word

std::function<std::string()> text(std::string constant) {
    return [constant = std::move(constant)] { return constant; };
}

/// debugfs takes short words only.
std::function<int(std::string_view)> short_word(std::function<int(std::string_view)> write) {
    return [write = std::move(write)](std::string_view word) {
        return word.empty() || word.size() > kDebugWordBytes ? -EINVAL : write(word);
    };
}

bool is_up(const Remoteproc& processor) {
    const std::string state = processor.read_state();
    return state == "running\n" || state == "attached\n";
}

std::string name_service_device(unsigned k) {
    return fmt::format("virtio{}.rpmsg_ns.53.53", k);
}

NodeMap rpmsg_device(std::string_view name, std::uint32_t source, std::uint32_t destination) {
    return {{"name", attribute(text(fmt::format("{}\n", name)))},
            {"src", attribute(text(fmt::format("0x{:x}\n", source)))},
            {"dst", attribute(text(fmt::format("0x{:x}\n", destination)))},
            {"announce", attribute(text("false\n"))},
            {"modalias", attribute(text(fmt::format("rpmsg:{}\n", name)))}};
}

/// virtioK below its remote processor, with all that is on its bus.
Node virtio_device(unsigned k, const Remoteproc& processor, const TtyOf& tty_of) {
    NodeMap files{{"device", attribute(text("0x0007\n"))},
                  {"vendor", attribute(text("0x0000\n"))},
                  {"status", attribute(text("0x00000007\n"))},
                  {name_service_device(k), folder_of(rpmsg_device("rpmsg_ns", 53, 53))}};
    for (const auto& channel : processor.channels()) {
        NodeMap device = rpmsg_device(channel.name, channel.local, channel.remote);
        if (const int number = tty_of(channel.device(k)); number >= 0) {
            const std::string name = fmt::format("ttyRPMSG{}", number);
            device.emplace("tty",
                           folder_of({{name, folder_of({{"uevent", attribute(text("DEVNAME=" + name + "\n"))}})}}));
        }
        files.emplace(channel.device(k), folder_of(std::move(device)));
    }
    return folder_of(std::move(files));
}

std::string virtio_folder(unsigned k) {
    return fmt::format("rproc-virtio.{0}.auto/virtio{0}", k);
}

Node link_to_virtio(unsigned k, const std::string& below) {
    return link_to(fmt::format("../../../class/remoteproc/remoteproc{}/{}{}", k, virtio_folder(k), below));
}

}  // namespace

void add_remoteproc_files(FileTree& tree, unsigned index, Remoteproc& p, TtyOf tty_of) {
    NodeMap files{
        {"name", attribute([&p] { return p.name(); })},
        {"state", attribute([&p] { return p.read_state(); }, [&p](std::string_view s) { return p.write_state(s); })},
        {"firmware",
         attribute([&p] { return p.read_firmware(); }, [&p](std::string_view s) { return p.write_firmware(s); })},
        {"recovery",
         attribute([&p] { return p.read_recovery(); }, [&p](std::string_view s) { return p.write_recovery(s); })},
        {"coredump",
         attribute([&p] { return p.read_coredump(); }, [&p](std::string_view s) { return p.write_coredump(s); })},
        {"uevent", attribute(text(""), [](std::string_view) { return 0; })},
        {"subsystem", link_to("../../remoteproc")},
        {"device", folder_of({{"uevent", attribute(text(kDeviceUevent))},
                              {"of_node", link_to("../../../../firmware/devicetree/base/remoteproc-cm33")}})},
        {"power",
         folder_of({{"control", attribute(text("auto\n"))}, {"runtime_status", attribute(text("unsupported\n"))}})}};
    auto folder = std::make_shared<FolderNode>();
    folder->children = std::move(files);
    folder->dynamic = [&p, index, tty_of = std::move(tty_of)] {
        NodeMap devices;
        if (is_up(p))
            devices.emplace(fmt::format("rproc-virtio.{}.auto", index),
                            folder_of({{fmt::format("virtio{}", index), virtio_device(index, p, tty_of)}}));
        return devices;
    };
    tree.add(fmt::format("class/remoteproc/remoteproc{}", index), {std::move(folder)});

    auto debug = std::make_shared<FolderNode>();
    debug->children = {
        {"name", debug_file(0400, [&p] { return p.name(); })},
        {"recovery", debug_file(
                         0600, [&p] { return p.read_recovery(); },
                         short_word([&p](std::string_view s) { return p.write_recovery(s); }))},
        {"crash", debug_file(0200, nullptr, short_word([&p](std::string_view s) { return p.write_crash(s); }))},
        {"resource_table", debug_file(0400, [&p] { return p.read_resource_table(); })},
        {"carveout_memories", debug_file(0400, [&p] { return p.read_carveouts(); })},
        {"coredump",
         debug_file(
             0600, [&p] { return p.read_coredump(); }, [&p](std::string_view s) { return p.write_coredump(s); })}};
    debug->dynamic = [&p] {
        NodeMap traces;
        for (std::size_t i = 0; i < p.trace_count(); ++i)
            traces.emplace(fmt::format("trace{}", i), debug_file(0400, [&p, i] { return p.read_trace(i); }));
        return traces;
    };
    tree.add(fmt::format("kernel/debug/remoteproc/remoteproc{}", index), {std::move(debug)});
    tree.folder("kernel/debug").mode = 0700;
}

void CoreDumps::add(std::string core) {
    const std::lock_guard lock(mutex_);
    dumps_[next_++] = {std::make_shared<const std::string>(std::move(core)), std::chrono::steady_clock::now()};
}

NodeMap CoreDumps::files() {
    constexpr std::chrono::minutes kLifetime{5};  // of the kernel's own timer
    const std::lock_guard lock(mutex_);
    std::erase_if(dumps_, [&](const auto& d) { return std::chrono::steady_clock::now() - d.second.born > kLifetime; });
    NodeMap out;
    for (const auto& [number, dump] : dumps_) {
        FileNode data{FileRules::Bytes, 0600, [core = dump.core] { return *core; },
                      [this, n = number](std::string_view) {
                          const std::lock_guard again(mutex_);
                          dumps_.erase(n);
                          return 0;
                      },
                      0};
        out.emplace(fmt::format("devcd{}", number), folder_of({{"data", {std::move(data)}}}));
    }
    return out;
}

void add_bus_files(FileTree& tree, std::vector<const Remoteproc*> processors) {
    tree.folder("bus/rpmsg/devices").dynamic = [processors] {
        NodeMap devices;
        for (unsigned k = 0; k < processors.size(); ++k) {
            if (!is_up(*processors[k])) continue;
            for (const auto& channel : processors[k]->channels())
                devices.emplace(channel.device(k), link_to_virtio(k, "/" + channel.device(k)));
            devices.emplace(name_service_device(k), link_to_virtio(k, "/" + name_service_device(k)));
        }
        return devices;
    };
    tree.folder("bus/virtio/devices").dynamic = [processors] {
        NodeMap devices;
        for (unsigned k = 0; k < processors.size(); ++k)
            if (is_up(*processors[k])) devices.emplace(fmt::format("virtio{}", k), link_to_virtio(k, ""));
        return devices;
    };
}

}  // namespace talpa::board
