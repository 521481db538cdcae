// Linux's remoteproc against a firmware that is a thread of this test: the same link code that runs on the M33.
#include "board/linux/remoteproc.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <set>
#include <thread>

#include "board/linux/rpmsg_tty.h"
#include "link/memory_map.h"

namespace talpa::board {
namespace {

using namespace std::chrono_literals;

class Memory final : public SystemMemory {
  public:
    std::uint8_t* at(std::uint64_t address, std::size_t size) override {
        for (auto& bank : banks_)
            if (address >= bank.base && range_inside(address - bank.base, size, bank.bytes.size()))
                return bank.bytes.data() + (address - bank.base);
        return nullptr;
    }

  private:
    struct Bank {
        std::uint64_t base;
        std::vector<std::uint8_t> bytes;
    };
    std::vector<Bank> banks_{{link::kItcmSystem, std::vector<std::uint8_t>(0x20000)},
                             {link::kDtcmSystem, std::vector<std::uint8_t>(0x20000)},
                             {0xA4000000, std::vector<std::uint8_t>(0x120000)}};
};

constexpr link::Channel kChannels[] = {{"rpmsg-tty", 0x400}};

/// M33 and Messaging Unit: a thread that serves kicks with the firmware's own link code and echoes what it hears.
class Firmware final : public CoreControl, public Mailbox, public link::RpmsgPlatform {
  public:
    explicit Firmware(Memory& memory) : memory_(memory) {}
    ~Firmware() { stop(); }

    void start(std::uint32_t boot_address) override {
        last_boot_address = boot_address;
        ++starts;
        running_ = true;
        thread_ = std::thread([this] { run(); });
    }
    void stop() override {
        running_ = false;
        if (thread_.joinable()) thread_.join();
    }
    bool send(std::uint32_t) override {
        if (deaf) return false;
        kicked_ = true;
        return true;
    }
    void listen(bool) override {}

    std::uint8_t* memory(std::uint64_t address, std::size_t size) override { return memory_.at(address, size); }
    void notify(std::uint32_t) override { to_linux(); }
    std::size_t received(const link::Channel&, std::uint32_t source, Bytes payload) override {
        replies_.push_back({source, {payload.begin(), payload.end()}});
        return payload.size();
    }
    void link_is_new() override {}

    std::function<void()> to_linux = [] {};
    std::atomic<bool> deaf{false};
    std::atomic<unsigned> starts{0};
    std::uint32_t last_boot_address = 0;

  private:
    void run() {
        auto* const live =
            reinterpret_cast<link::FirmwareResourceTable*>(memory_.at(0x2021E000, sizeof(link::FirmwareResourceTable)));
        link::RpmsgDevice device(live, kChannels, *this);
        std::strcpy(reinterpret_cast<char*>(memory_.at(0x2021E200, 0x100)), "booted\n");
        while (running_) {
            if (!deaf) device.service();
            for (const auto& [to, text] : replies_)
                while (running_ && !device.send(0x400, to, text)) std::this_thread::sleep_for(1ms);
            replies_.clear();
            if (!kicked_.exchange(false)) std::this_thread::sleep_for(200us);
        }
    }

    Memory& memory_;
    std::atomic<bool> running_{false}, kicked_{false};
    std::thread thread_;
    std::vector<std::pair<std::uint32_t, std::vector<std::uint8_t>>> replies_;
};

/// An ELF with a segment in each TCM, a resource table and a vector table section.
std::vector<std::uint8_t> firmware_elf(std::uint32_t paddr = 0x0FFE0000, std::uint32_t memsz = 0x100,
                                       bool with_table = true) {
    static constexpr auto kTable = link::firmware_resource_table();
    const std::string names = std::string("\0.resource_table\0.interrupts\0.shstrtab\0", 39);
    const std::uint32_t table_at = 52 + 32, names_at = table_at + sizeof kTable, sections_at = names_at + 40;
    std::vector<std::uint8_t> f(sections_at + 4 * 40, 0);
    std::memcpy(f.data(),
                "\x7f"
                "ELF\x01\x01\x01",
                7);
    store_le<std::uint32_t>(&f[28], 52);
    store_le<std::uint32_t>(&f[32], sections_at);
    store_le<std::uint16_t>(&f[44], 1);
    store_le<std::uint16_t>(&f[48], 4);
    store_le<std::uint16_t>(&f[50], 3);
    store_le<std::uint32_t>(&f[52], 1);
    store_le<std::uint32_t>(&f[56], table_at);
    store_le<std::uint32_t>(&f[64], paddr);
    store_le<std::uint32_t>(&f[68], std::min<std::uint32_t>(memsz, 16));
    store_le<std::uint32_t>(&f[72], memsz);
    std::memcpy(&f[table_at], &kTable, sizeof kTable);
    std::memcpy(&f[names_at], names.data(), names.size());
    const auto section = [&](unsigned i, std::uint32_t name, std::uint32_t address, std::uint32_t offset,
                             std::uint32_t size) {
        const std::uint32_t at = sections_at + 40 * i;
        store_le<std::uint32_t>(&f[at], name);
        store_le<std::uint32_t>(&f[at + 4], 1);
        store_le<std::uint32_t>(&f[at + 12], address);
        store_le<std::uint32_t>(&f[at + 16], offset);
        store_le<std::uint32_t>(&f[at + 20], size);
    };
    section(1, with_table ? 1 : 29, 0x0FFE0470, table_at, sizeof kTable);
    section(2, 17, 0x0FFE0000, table_at, 16);
    section(3, 29, 0, names_at, static_cast<std::uint32_t>(names.size()));
    return f;
}

class Listener final : public RpmsgChannelDriver {
  public:
    Listener(std::vector<std::string>& heard, std::mutex& mutex, std::atomic<int>& bound)
        : heard_(heard), mutex_(mutex), bound_(bound) {
        ++bound_;
    }
    ~Listener() override { --bound_; }
    void received(std::uint32_t, Bytes payload) override {
        const std::lock_guard lock(mutex_);
        heard_.emplace_back(payload.begin(), payload.end());
    }

  private:
    std::vector<std::string>& heard_;
    std::mutex& mutex_;
    std::atomic<int>& bound_;
};

class RemoteprocTest : public testing::Test {
  protected:
    void make(RemoteprocConfig config = {}) {
        config.startup_delay_ms = 0;
        rproc = std::make_unique<Remoteproc>(
            config, memory, core, core,
            [this](const std::string& name) -> FirmwareFile {
                const auto found = files.find(name);
                return found == files.end() ? FirmwareFile{{}, -ENOENT} : FirmwareFile{found->second, 0};
            },
            log,
            [this](VirtioRpmsg& bus, const VirtioRpmsg::Channel& channel) -> std::unique_ptr<RpmsgChannelDriver> {
                if (with_tty) return RpmsgTty::create(bus, channel, {}, registry).value();
                return std::make_unique<Listener>(heard, mutex, bound);
            });
        // the object, not the pointer to it: that one is null already while the object ends
        core.to_linux = [remoteproc = rproc.get()] { remoteproc->mailbox_received(); };
    }
    void SetUp() override {
        files["good.elf"] = firmware_elf();
        make();
    }
    void TearDown() override {
        rproc.reset();
        core.stop();
    }
    bool eventually(const std::function<bool()>& condition) {
        for (int i = 0; i < 2000; ++i) {
            if (condition()) return true;
            std::this_thread::sleep_for(1ms);
        }
        return false;
    }
    void start() {
        ASSERT_EQ(rproc->write_firmware("good.elf\n"), 0);
        ASSERT_EQ(rproc->write_state("start\n"), 0);
    }

    Memory memory;
    KernelLog log;
    Firmware core{memory};
    std::map<std::string, std::vector<std::uint8_t>> files;
    std::mutex mutex;
    std::vector<std::string> heard;
    std::atomic<int> bound{0};
    bool with_tty = false;
    TtyRegistry registry;
    std::unique_ptr<Remoteproc> rproc;
};

TEST_F(RemoteprocTest, AttributesBeforeTheFirstStart) {
    EXPECT_EQ(rproc->name(), "imx-rproc\n");
    EXPECT_EQ(rproc->read_state(), "offline\n");
    EXPECT_EQ(rproc->read_firmware(), "rproc-imx-rproc-fw\n");
    EXPECT_EQ(rproc->read_recovery(), "enabled\n");
    EXPECT_EQ(rproc->read_coredump(), "disabled\n");
    EXPECT_EQ(rproc->trace_count(), 0u);
    EXPECT_EQ(rproc->read_resource_table(), "No resource table found\n");
}

// imx93-remoteproc, section 7.1: each wrong write has the kernel's errno.
TEST_F(RemoteprocTest, WrongWritesGiveTheKernelsErrno) {
    EXPECT_EQ(rproc->write_state("stop"), -EINVAL);
    EXPECT_EQ(rproc->write_state("detach"), -EINVAL);
    EXPECT_EQ(rproc->write_state(" start"), -EINVAL);
    EXPECT_EQ(rproc->write_state("start\r\n"), -EINVAL);
    EXPECT_EQ(rproc->write_state("start\n\n"), -EINVAL);
    EXPECT_EQ(rproc->write_state(""), -EINVAL);
    EXPECT_TRUE(log.contains("Unrecognised option:  start"));
    EXPECT_EQ(rproc->write_firmware("\n"), -EINVAL);
    EXPECT_EQ(rproc->write_firmware(""), -EINVAL);
    EXPECT_EQ(rproc->write_recovery("on"), -EINVAL);
    EXPECT_EQ(rproc->write_coredump("yes"), -EINVAL);
    EXPECT_EQ(rproc->write_state("start"), -ENOENT) << "the default firmware does not exist";
    EXPECT_TRUE(log.contains("Direct firmware load for rproc-imx-rproc-fw failed with error -2"));
    EXPECT_EQ(rproc->read_state(), "offline\n");
    start();
    EXPECT_EQ(rproc->write_firmware("other.elf"), -EBUSY);
    EXPECT_EQ(rproc->write_state("detach"), -EINVAL);
}

TEST_F(RemoteprocTest, StartedFirmwareAnnouncesItselfAndAnswers) {
    start();
    EXPECT_EQ(rproc->read_state(), "running\n");
    EXPECT_EQ(core.last_boot_address, 0x0FFE0000u) << "from .interrupts";
    ASSERT_TRUE(eventually([&] { return bound == 1; }));
    EXPECT_EQ(rproc->channels().at(0).name, "rpmsg-tty");
    EXPECT_EQ(rproc->read_trace(0), "booted\n");
    EXPECT_NE(rproc->read_resource_table().find("Status 0x7"), std::string::npos);
    ASSERT_EQ(rproc->write_state("stop"), 0);
    EXPECT_EQ(bound, 0);
    EXPECT_EQ(rproc->trace_count(), 0u);
    EXPECT_EQ(*memory.at(0x2021E060, 1), 0) << "the firmware sees the reset";
}

TEST_F(RemoteprocTest, SecondStartIsCountedOnNewKernelsAndBusyOnOldOnes) {
    start();
    EXPECT_EQ(rproc->write_state("start"), 0);
    EXPECT_EQ(rproc->write_state("stop"), 0);
    EXPECT_EQ(rproc->read_state(), "running\n");
    EXPECT_EQ(rproc->write_state("stop"), 0);
    EXPECT_EQ(rproc->read_state(), "offline\n");
    RemoteprocConfig legacy;
    legacy.profile = KernelProfile::Legacy;
    make(legacy);
    start();
    EXPECT_EQ(rproc->write_state("start"), -EBUSY);
    EXPECT_EQ(rproc->write_state("stop"), 0);
    EXPECT_EQ(rproc->read_state(), "offline\n");
}

TEST_F(RemoteprocTest, BadImagesDoNotBoot) {
    files["bin"] = std::vector<std::uint8_t>(4096, 1);
    files["full-itcm"] = firmware_elf(0x0FFE0000, 0x20000);
    files["ddr"] = firmware_elf(0xC0000000, 16);
    files["empty-segment"] = firmware_elf(0x0FFE0000, 0);
    for (const char* name : {"bin", "full-itcm", "ddr", "empty-segment"}) {
        ASSERT_EQ(rproc->write_firmware(name), 0);
        EXPECT_EQ(rproc->write_state("start"), -EINVAL) << name;
        EXPECT_EQ(rproc->read_state(), "offline\n");
    }
    EXPECT_TRUE(log.contains("Translation failed: da = 0xffe0000 len = 0x20000"));
    EXPECT_TRUE(log.contains("bad phdr da 0xc0000000 mem 0x10"));
    EXPECT_EQ(core.starts, 0u);
    start();  // and a good one boots after all of them
}

TEST_F(RemoteprocTest, FirmwareWithoutTableRunsWithoutDevices) {
    files["bare.elf"] = firmware_elf(0x0FFE0000, 0x100, false);
    ASSERT_EQ(rproc->write_firmware("bare.elf"), 0);
    EXPECT_EQ(rproc->write_state("start"), 0);
    EXPECT_TRUE(log.contains("No resource table in elf"));
    EXPECT_EQ(rproc->trace_count(), 0u);
    EXPECT_TRUE(rproc->channels().empty());
}

TEST_F(RemoteprocTest, DeafFirmwareCostsAKickAndGetsALogLine) {
    core.deaf = true;
    start();
    EXPECT_TRUE(log.contains("imx_rproc_kick: failed (0, err:-62)"));
}

TEST_F(RemoteprocTest, TableCopyOnlyQuirkLeavesTheFirmwareWaiting) {
    RemoteprocConfig config;
    config.table_copy_only = true;
    make(config);
    start();
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(bound, 0);
}

TEST_F(RemoteprocTest, CrashRecoversOrStaysAsTheUserChose) {
    start();
    ASSERT_TRUE(eventually([&] { return bound == 1; }));
    EXPECT_EQ(rproc->write_crash("1\n"), 0);
    EXPECT_EQ(rproc->read_state(), "running\n");
    EXPECT_EQ(core.starts, 2u);
    EXPECT_TRUE(log.contains("crash detected in imx-rproc: type watchdog"));
    ASSERT_TRUE(eventually([&] { return bound == 1; })) << "announced again";
    ASSERT_EQ(rproc->write_recovery("disabled"), 0);
    EXPECT_EQ(rproc->write_crash("2"), 0);
    EXPECT_EQ(rproc->read_state(), "crashed\n");
    EXPECT_EQ(rproc->write_coredump("enabled"), -EBUSY);
    EXPECT_EQ(rproc->write_state("stop"), -EINVAL);
    EXPECT_EQ(rproc->write_state("start"), 0) << "counted, does nothing";
    EXPECT_EQ(rproc->read_state(), "crashed\n");
    EXPECT_EQ(rproc->write_recovery("recover"), 0);
    EXPECT_EQ(rproc->read_state(), "running\n");
}

TEST_F(RemoteprocTest, AttachedAtProbeShowsUnknownFirmwareAndCannotDetach) {
    rproc.reset();
    static constexpr auto kTable = link::firmware_resource_table();
    std::memcpy(memory.at(0x2021E000, sizeof kTable), &kTable, sizeof kTable);
    core.start(0);
    RemoteprocConfig config;
    config.attached_at_probe = true;
    make(config);
    EXPECT_EQ(rproc->read_state(), "attached\n");
    EXPECT_EQ(rproc->read_firmware(), "unknown\n");
    EXPECT_EQ(rproc->write_state("detach"), -EOPNOTSUPP);
    EXPECT_EQ(rproc->read_state(), "attached\n");
    EXPECT_EQ(rproc->write_state("stop"), 0);
    EXPECT_EQ(rproc->read_state(), "offline\n");
}

TEST_F(RemoteprocTest, TtyCarriesLinesBothWaysAndHangsUpOnStop) {
    with_tty = true;
    start();
    ASSERT_TRUE(eventually([&] { return registry.ttys().size() == 1; }));
    const auto [number, path] = registry.ttys().at(0);
    EXPECT_EQ(number, 0);
    const int fd = ::open(path.c_str(), O_RDWR | O_NOCTTY);
    ASSERT_GE(fd, 0);
    // 600 bytes: more than one message holds
    const std::string sent = std::string(600, 'x') + "\n";
    ASSERT_EQ(::write(fd, sent.data(), sent.size()), static_cast<ssize_t>(sent.size()));
    std::string back;
    char buffer[256];
    while (back.size() < sent.size()) {
        const ssize_t n = ::read(fd, buffer, sizeof buffer);
        ASSERT_GT(n, 0);
        back.append(buffer, static_cast<std::size_t>(n));
    }
    EXPECT_EQ(back, sent);
    std::thread stopper([&] {
        std::this_thread::sleep_for(20ms);
        ASSERT_EQ(rproc->write_state("stop"), 0);
    });
    EXPECT_LE(::read(fd, buffer, sizeof buffer), 0) << "a blocked reader wakes";
    stopper.join();
    EXPECT_TRUE(registry.ttys().empty());
    EXPECT_LT(::write(fd, "x", 1), 0);
    ::close(fd);
}

// A pseudo-terminal alone would take 8 KiB.
TEST_F(RemoteprocTest, TtyKeepsWhatNobodyReadsUntilItIsReadOrThrownAway) {
    with_tty = true;
    start();
    ASSERT_TRUE(eventually([&] { return registry.ttys().size() == 1; }));
    VirtioRpmsg bus({}, memory, core, log, [](VirtioRpmsg&, const VirtioRpmsg::Channel&) { return nullptr; });
    const auto tty = RpmsgTty::create(bus, {"rpmsg-tty", 0x400, 0x400}, {}, registry).value();
    const int fd = ::open(registry.ttys().at(1).second.c_str(), O_RDWR | O_NOCTTY | O_NONBLOCK);
    ASSERT_GE(fd, 0);
    std::string sent;
    const auto send = [&](std::size_t bytes) {
        for (sent.clear(); sent.size() < bytes;) {
            const std::string line = std::to_string(sent.size()) + std::string(80, '.') + "\n";
            tty->received(0x400, Bytes(reinterpret_cast<const std::uint8_t*>(line.data()), line.size()));
            sent += line;
        }
    };
    const auto read_all = [&](int quiet_ms) {
        std::string all;
        std::vector<char> buffer(65536);
        for (pollfd p{fd, POLLIN, 0}; ::poll(&p, 1, quiet_ms) > 0;) {
            const ssize_t n = ::read(fd, buffer.data(), buffer.size());
            if (n <= 0) break;
            all.append(buffer.data(), static_cast<std::size_t>(n));
        }
        return all;
    };
    send(200'000);
    EXPECT_EQ(read_all(2000), sent);
    send(200'000);
    ASSERT_EQ(::tcflush(fd, TCIFLUSH), 0);
    EXPECT_LT(read_all(500).size(), 30'000u) << "thrown away with the rest";
    send(1'000'000);
    EXPECT_LT(read_all(2000).size(), RpmsgTty::kUnreadBytes + 32'768) << "the board's buffers are not endless";
    ::close(fd);
}

TEST_F(RemoteprocTest, AHundredRestartsAnnounceEachTime) {
    ASSERT_EQ(rproc->write_firmware("good.elf"), 0);
    for (int i = 0; i < 100; ++i) {
        ASSERT_EQ(rproc->write_state("start"), 0);
        ASSERT_TRUE(eventually([&] { return bound == 1; })) << i;
        ASSERT_EQ(rproc->write_state("stop"), 0);
        ASSERT_EQ(bound, 0);
    }
}

}  // namespace
}  // namespace talpa::board
