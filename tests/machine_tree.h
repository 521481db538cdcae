// For system tests: the virtual hardware in this process, its Linux side as files under a folder of its own, so that
// programs can be pointed at it with --root. No namespaces, no FUSE: `start` and `stop` are functions here.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "base/host/file.h"
#include "board/linux/remoteproc.h"
#include "board/linux/rpmsg_tty.h"
#include "board/machine/machine.h"

namespace talpa::testing {

class MachineTree {
  public:
    static std::filesystem::path firmware_elf() {
        return std::filesystem::path(TALPA_SOURCE_DIR) / "build/firmware/executorch_runner_cm33.elf";
    }

    explicit MachineTree(board::MachineOptions options = {}) {
        namespace fs = std::filesystem;
        std::string pattern = (fs::temp_directory_path() / "talpa-tree-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) std::abort();
        root_ = pattern;
        for (const auto* folder :
             {"dev", "sys/class/remoteproc/remoteproc0", "sys/kernel/debug/remoteproc/remoteproc0"})
            fs::create_directories(root_ / folder);
        options.memory_file = root_ / "dev/mem";
        elf_ = host::read_file(firmware_elf()).value();
        machine_ = board::Machine::create(options, log_).value();
        registry_.changed = [this](int number, const std::string& slave, bool present) {
            const fs::path link = root_ / fmt::format("dev/ttyRPMSG{}", number);
            std::error_code ignored;
            fs::remove(link, ignored);
            if (present) fs::create_symlink(slave, link, ignored);
        };
        board::RemoteprocConfig config;
        config.startup_delay_ms = 0;
        rproc_ = std::make_unique<board::Remoteproc>(
            config, machine_->memory(), *machine_, machine_->mailbox(),
            [this](const std::string&) { return board::FirmwareFile{elf_, 0}; }, log_,
            [this](board::VirtioRpmsg& bus,
                   const board::VirtioRpmsg::Channel& channel) -> std::unique_ptr<board::RpmsgChannelDriver> {
                if (!board::tty_serves(board::TtyFlavour::Mainline, channel.name)) return nullptr;
                return board::RpmsgTty::create(bus, channel, {}, registry_).value();
            });
        machine_->on_mailbox([remoteproc = rproc_.get()] { remoteproc->mailbox_received(); });
        write("sys/class/remoteproc/remoteproc0/name", "imx-rproc\n");
        write("sys/class/remoteproc/remoteproc0/firmware", "executorch_runner_cm33.elf\n");
        show();
    }
    ~MachineTree() {
        rproc_.reset();
        machine_.reset();
        std::filesystem::remove_all(root_);
    }
    MachineTree(const MachineTree&) = delete;
    MachineTree& operator=(const MachineTree&) = delete;

    [[nodiscard]] const std::filesystem::path& root() const { return root_; }
    [[nodiscard]] board::SystemMemory& memory() { return machine_->memory(); }
    int start() {
        const int error = rproc_->write_state("start");
        show();
        return error;
    }
    int stop() {
        const int error = rproc_->write_state("stop");
        show();
        return error;
    }
    /// Brings the file trace0 up to date.
    void show_trace() { write("sys/kernel/debug/remoteproc/remoteproc0/trace0", rproc_->read_trace(0)); }
    void write(const std::string& path, const std::string& text) {
        std::filesystem::create_directories((root_ / path).parent_path());
        std::ofstream(root_ / path) << text;
    }

  private:
    void show() { write("sys/class/remoteproc/remoteproc0/state", rproc_->read_state()); }

    std::filesystem::path root_;
    board::KernelLog log_;
    board::TtyRegistry registry_;
    std::vector<std::uint8_t> elf_;
    std::unique_ptr<board::Machine> machine_;
    std::unique_ptr<board::Remoteproc> rproc_;
};

}  // namespace talpa::testing
