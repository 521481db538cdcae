// The parts of the Linux client that need no board: replies, placement, finding ttys, memory in a file.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <random>

#include "link/host/device_tree.h"
#include "link/host/runner_client.h"

namespace talpa::link::host {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Lines of imx93-remoteproc, section 11.
TEST(RunnerReply, LinesOfTheProtocol) {
    const Reply top = parse_reply("TOP 1 class=207 score=0.873421 logit=11.25");
    EXPECT_EQ(top.kind, Reply::Kind::Top);
    EXPECT_EQ(top.top.class_index, 207u);
    EXPECT_DOUBLE_EQ(top.top.score, 0.873421);
    EXPECT_DOUBLE_EQ(top.top.logit, 11.25);

    const Reply out = parse_reply("@ab12 OUT shape=1x1000 dtype=f32 bytes=4000 addr=0xAB000000 argmax=207");
    EXPECT_EQ(out.kind, Reply::Kind::Output);
    EXPECT_EQ(out.tag, "ab12");
    EXPECT_THAT(out.output.shape, ElementsAre(1, 1000));
    EXPECT_EQ(out.output.address, 0xAB000000u);
    EXPECT_EQ(out.output.argmax, 207u);

    const Reply time = parse_reply("TIME load_us=12 run_us=9000 npu_cycles=3460491 cpu_cycles=77 new_us=1");
    EXPECT_EQ(time.kind, Reply::Kind::Time);
    EXPECT_EQ(time.times.npu_cycles, 3460491u);
    EXPECT_EQ(time.times.crc_us, 0u) << "an older firmware does not say it";

    const Reply error = parse_reply("@x ERR 5 crc mismatch: program has 0x1, expected 0x2");
    EXPECT_EQ(error.kind, Reply::Kind::Error);
    EXPECT_EQ(error.number, 5u);
    EXPECT_EQ(error.text, "crc mismatch: program has 0x1, expected 0x2");
    EXPECT_TRUE(error.ends());

    EXPECT_EQ(parse_reply("CRC 0xCBF43926").number, 0xCBF43926u);
    EXPECT_EQ(parse_reply("OK RUN seq=3").text, "RUN seq=3");
    EXPECT_EQ(parse_reply("OUT i=0 from=0 v=1,2").kind, Reply::Kind::Values);
}

TEST(RunnerReply, WhatIsMalformedIsNone) {
    for (const auto* line :
         {"", " ", "@", "@toolongatag OK", "TOP", "TOP x class=1 score=1", "TOP 1 class=-1 score=1",
          "TOP 1 class=1 score=nan", "TOP 1 class=99999999999 score=0.1", "OUT shape=1x-2 dtype=f32 bytes=1 addr=0",
          "OUT shape=1x2 bytes=8 addr=0x1", "TIME run_us=-1", "TIME run_us=99999999999999999999999", "ERR", "ERR x",
          "CRC 0x1FFFFFFFF", "ok", "RUN", "OUT shape=1x1x1x1x1x1x1x1x1 dtype=f32 bytes=4 addr=0xAB000000"})
        EXPECT_EQ(parse_reply(line).kind, Reply::Kind::Other) << line;
}

TEST(Placement, SmallOnesLieInTheModelRegionAndLargeOnesAbove) {
    const std::vector<std::uint8_t> bytes(kInputTensor.size + 16);
    const Bytes image = Bytes(bytes).first(kInputTensor.size), large = bytes, one = Bytes(bytes).first(1);
    EXPECT_EQ(place(3'507'872, std::array{image})->inputs[0], 0xC036D000u);
    EXPECT_EQ(place(kProgram.size, std::array{image})->program, 0xC0000000u);
    EXPECT_EQ(place(kProgram.size + 1, std::array{image})->program, 0xAC000000u);
    const auto both = place(kProgram.size + 1, std::array{large, one, one}).value();
    EXPECT_EQ(both.inputs[0], 0xAC36C010u) << "behind the program, 16-aligned";
    EXPECT_EQ(both.inputs[1], 0xC036D000u);
    EXPECT_EQ(both.inputs[2], 0xC036D010u);
    EXPECT_EQ(place(kBigPrograms.size + 1, std::array{image}).error().fault, BoardFault::DoesNotFit);
    EXPECT_EQ(place(1, {}).error().fault, BoardFault::DoesNotFit);
    EXPECT_EQ(place(1, std::array{one, one, one, one, one}).error().fault, BoardFault::DoesNotFit);
}

class Folder : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string pattern = (fs::temp_directory_path() / "talpa-link-XXXXXX").string();
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        root_ = pattern;
    }
    void TearDown() override { fs::remove_all(root_); }
    void put(const std::string& path, const std::string& text) {
        fs::create_directories((root_ / path).parent_path());
        std::ofstream(root_ / path) << text;
    }
    fs::path root_;
};

TEST_F(Folder, TtysAreFoundByNumber) {
    for (const auto* name : {"ttyRPMSG10", "ttyRPMSG2", "ttyRPMSGx", "ttyRPMSG", "ttyRPMSG3b", "tty1"}) put(name, "");
    EXPECT_THAT(rpmsg_tty_numbers(root_), ElementsAre(2u, 10u));
    EXPECT_THAT(rpmsg_tty_numbers(root_ / "nothing"), ElementsAre());
}

TEST_F(Folder, TheRemoteProcessorIsFoundByName) {
    put("sys/class/remoteproc/remoteproc0/name", "dsp\n");
    put("sys/class/remoteproc/remoteproc1/name", "imx-rproc\n");
    put("sys/class/remoteproc/remoteproc1/state", "running\n");
    put("sys/class/remoteproc/remoteproc1/firmware", "x.elf\n");
    put("sys/kernel/debug/remoteproc/remoteproc1/trace0", "a\nb\x01\n");
    const auto look = direct_access({.root = root_})->look();
    EXPECT_EQ(look.folder, "remoteproc1");
    EXPECT_TRUE(look.runs());
    EXPECT_EQ(look.firmware, "x.elf");
    EXPECT_EQ(look.trace_lines, "a\nb?");
    BoardPaths other{.root = root_};
    other.remoteproc_name = "m4";
    EXPECT_EQ(direct_access(other)->look().other_names, "dsp, imx-rproc");
}

TEST_F(Folder, OfSeveralRemoteProcessorsANumberNamesOneWithItsMemoryAndItsTtys) {
    for (const char* k : {"0", "1"}) {
        const std::string processor = std::string("sys/class/remoteproc/remoteproc") + k;
        put(processor + "/name", "imx-rproc\n");
        put(processor + "/state", "running\n");
        fs::create_directories(root_ / "sys/bus/rpmsg/devices");
    }
    const auto announce = [&](int k, const std::string& tty) {
        const std::string device = fmt::format("virtio{}.rpmsg-tty.-1.1024", k);
        const std::string place = fmt::format("class/remoteproc/remoteproc{}/rproc-virtio.{}.auto/{}", k, k, device);
        put("sys/" + place + "/tty/" + tty + "/uevent", "");
        fs::create_symlink("../../../" + place, root_ / "sys/bus/rpmsg/devices" / device);
        put("dev/" + tty, "");
    };
    const auto tried = [&](const char* which) {
        BoardPaths paths{.root = root_};
        paths.remoteproc_name = which;
        return direct_access(paths)->open_tty().error().error.message;
    };
    announce(1, "ttyRPMSG0");
    EXPECT_EQ(tried("0"), "no /dev/ttyRPMSG* is of remoteproc0");
    EXPECT_THAT(tried("1"), HasSubstr("/dev/ttyRPMSG0: "));
    announce(0, "ttyRPMSG7");
    put("dev/ttyRPMSG9", "");  // of which the bus knows nothing
    EXPECT_THAT(tried("imx-rproc"),
                AllOf(HasSubstr("/dev/ttyRPMSG7: "), Not(HasSubstr("ttyRPMSG0")), Not(HasSubstr("G9"))));
    EXPECT_EQ(rpmsg_ttys_of(root_ / "sys/bus/rpmsg/devices", "remoteproc1").others,
              std::vector<std::string>{"ttyRPMSG7"});

    BoardPaths paths{.root = root_};
    EXPECT_EQ(paths.memory_of("remoteproc1"), "/dev/mem") << "a board with one memory";
    put("dev/mem1", "");
    EXPECT_EQ(paths.memory_of("remoteproc1"), "/dev/mem1");
    EXPECT_EQ(paths.memory_of("remoteproc0"), "/dev/mem");
    paths.remoteproc_name = "remoteproc1";
    EXPECT_EQ(direct_access(paths)->look().folder, "remoteproc1");
    EXPECT_TRUE(direct_access(paths)->open_memory().has_value());
    paths.tty = "/dev/ttyRPMSG3";
    EXPECT_EQ(direct_access(paths)->open_tty().error().error.hint,
              "there is /dev/ttyRPMSG0, /dev/ttyRPMSG7, /dev/ttyRPMSG9");
    EXPECT_EQ(direct_access(paths)->look().name, "imx-rproc");
    paths.remoteproc_name = "nope";
    EXPECT_EQ(direct_access(paths)->look().other_names, "remoteproc0 (imx-rproc), remoteproc1 (imx-rproc)");
    const auto access = direct_access(paths);
    const auto nope = RunnerClient(*access, "nope").info().error();
    EXPECT_EQ(nope.fault, BoardFault::NoRemoteproc) << "before anything is opened";
    EXPECT_THAT(nope.error.hint, HasSubstr("--remoteproc NAME"));
    paths.remoteproc_name = "0";
    EXPECT_THAT(direct_access(paths)->open_memory().error().error.message, HasSubstr("/dev/mem: No such file"));
}

TEST_F(Folder, WithoutAnythingEachFaultHasItsKind) {
    const auto access = direct_access({.root = root_});
    RunnerClient client(*access, "imx-rproc");
    EXPECT_EQ(client.info().error().fault, BoardFault::MemoryMissing);
    put("dev/mem", "");
    fs::resize_file(root_ / "dev/mem", std::uint64_t{1} << 32);
    EXPECT_EQ(client.info().error().fault, BoardFault::NoRemoteproc);
    put("sys/class/remoteproc/remoteproc0/name", "imx-rproc\n");
    put("sys/class/remoteproc/remoteproc0/state", "offline\n");
    const auto offline = client.info().error();
    EXPECT_EQ(offline.fault, BoardFault::FirmwareNotRunning);
    EXPECT_THAT(offline.error.hint, HasSubstr("echo start > /sys/class/remoteproc/remoteproc0/state"));
    put("sys/class/remoteproc/remoteproc0/state", "running\n");
    EXPECT_EQ(client.info().error().fault, BoardFault::NoTty);
    put("dev/ttyRPMSG0", "");
    const auto no_tty = client.info().error();
    EXPECT_EQ(no_tty.fault, BoardFault::NoTty);
    EXPECT_THAT(no_tty.error.message, HasSubstr("/dev/ttyRPMSG0: Inappropriate ioctl"));
}

TEST_F(Folder, MemoryIsWrittenInSixteensAndReadBack) {
    put("mem", "");
    fs::resize_file(root_ / "mem", std::uint64_t{1} << 32);
    const Fd fd(::open((root_ / "mem").c_str(), O_RDWR | O_CLOEXEC));
    auto memory = DeviceMemory::map(fd).value();
    std::mt19937 random(7);
    std::vector<std::uint8_t> bytes(200'003);
    for (auto& b : bytes) b = static_cast<std::uint8_t>(random());
    memory.set_word(kProgram.base + 200'004, 0xFFFFFFFF);
    memory.set_word(kProgram.base + 200'016, 0x12345678);
    ASSERT_TRUE(memory.write(kProgram.base, bytes));
    std::vector<std::uint8_t> back(bytes.size());
    ASSERT_TRUE(memory.read(kProgram.base, back));
    EXPECT_EQ(back, bytes);
    EXPECT_EQ(memory.word(kProgram.base + 200'004), 0u) << "the rest of its last 16 bytes";
    EXPECT_EQ(memory.word(kProgram.base + 200'016), 0x12345678u) << "and nothing behind them";
    EXPECT_TRUE(memory.looks_like(kProgram.base, bytes));
    bytes[131072] ^= 1;
    EXPECT_FALSE(memory.looks_like(kProgram.base, bytes));
    bytes[131072] ^= 1;
    bytes.back() ^= 1;
    EXPECT_FALSE(memory.looks_like(kProgram.base, bytes)) << "the end is compared";

    EXPECT_FALSE(memory.write(kProgram.base + 8, Bytes(bytes).first(16)));
    EXPECT_FALSE(memory.write(kModelRegion.end() - 16, Bytes(bytes).first(17)));
    EXPECT_FALSE(memory.write(0xA8000000, Bytes(bytes).first(16))) << "the NPU's scratch is none of ours";
    EXPECT_TRUE(memory.write(kBigPrograms.end() - 16, Bytes(bytes).first(16)));
}

/// In a mount namespace of its own: a disk of 64 KiB that holds the memory's file, full. What have_room says of it.
std::string on_a_full_disk(const fs::path& folder) {
    if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return "no namespace";
    if (::mount("none", folder.c_str(), "tmpfs", 0, "size=64k") != 0) return "no mount";
    const Fd fd(::open((folder / "mem").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (::ftruncate(fd.get(), std::int64_t{1} << 32) != 0) return "no file";
    const auto memory = DeviceMemory::map(fd);
    if (!memory) return memory.error().error.message;
    if (!memory->have_room(kProgram.base, 4096)) return "refused too early";
    const auto refused = memory->have_room(kProgram.base, 1 << 20);
    return refused ? "taken" : refused.error().error.message;
}

TEST_F(Folder, AFullDiskBelowTheMemoryIsAnErrorAndNoSignal) {
    const fs::path disk = root_ / "disk", said = root_ / "said";
    fs::create_directories(disk);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        // The system's root may be shared: nothing that is mounted here shall be seen there.
        if (::unshare(CLONE_NEWNS) == 0) (void)::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
        std::ofstream(said) << on_a_full_disk(disk);
        ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << "by signal " << WTERMSIG(status);
    std::string text;
    std::getline(std::ifstream(said), text);
    if (text == "no namespace" || text == "no mount") GTEST_SKIP() << text;
    EXPECT_EQ(text, "no room for 1048576 bytes of the board's memory at 0xC0000000: No space left on device");
}

TEST(RegRanges, CellsOfTheParentCount) {
    const std::vector<std::uint8_t> two{0, 0, 0, 1, 0xA8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0};
    EXPECT_THAT(reg_ranges(two, 2, 2), ElementsAre(std::pair<std::uint64_t, std::uint64_t>(0x1A8000000, 0x1000)));
    EXPECT_EQ(reg_ranges(two, 1, 1).size(), 2u);
    EXPECT_TRUE(reg_ranges(two, 2, 1).empty()) << "16 bytes are no multiple of 12";
    EXPECT_TRUE(reg_ranges(two, 0, 9).empty());
}

TEST_F(Folder, RangesThatNoNodeReservesAreNamed) {
    const BoardPaths paths{.root = root_};
    EXPECT_TRUE(unreserved_ranges(paths).empty()) << "nothing is known without a tree";
    using namespace std::string_literals;
    const std::string reserved = "sys/firmware/devicetree/base/reserved-memory/";
    put(reserved + "model@c0000000/reg", "\0\0\0\0\xC0\0\0\0\0\0\0\0\0\x40\0\0"s);
    put(reserved + "ethosu_region@A8000000/reg", "\0\0\0\0\xA8\0\0\0\0\0\0\0\x07\0\0\0"s);
    const auto missing = unreserved_ranges(paths);
    ASSERT_EQ(missing.size(), 1u) << "the NPU's is 16 MiB too short";
    EXPECT_EQ(missing[0].base, 0xA8000000u);
}

}  // namespace
}  // namespace talpa::link::host
