// Devices, firmware files, owners and traces against a folder that stands for the system's root. What the kernel would
// answer is tested by tests/remoteproc_scenarios_test.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/host/sha256.h"
#include "remoteproc/sysfs/device.h"
#include "remoteproc/sysfs/firmware_store.h"
#include "remoteproc/sysfs/owner.h"
#include "remoteproc/sysfs/trace_tail.h"

namespace talpa::remoteproc {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

Selector by_name(const char* name) {
    Selector selector;
    selector.name = name;
    return selector;
}
Selector by_compatible(const char* compatible) {
    Selector selector;
    selector.compatible = compatible;
    return selector;
}
Selector by_device(const char* device) {
    Selector selector;
    selector.device = device;
    return selector;
}
Selector the_only() {
    Selector selector;
    selector.only = true;
    return selector;
}

class System : public ::testing::Test {
  protected:
    System() {
        char name[] = "/tmp/talpa-sysfs-XXXXXX";
        path = ::mkdtemp(name);
        paths.root = path;
        file("sys/class/remoteproc/remoteproc0/name", "imx-rproc\n");
        file("sys/class/remoteproc/remoteproc0/state", "offline\n");
        file("sys/class/remoteproc/remoteproc1/name", "dsp\n");
        file("sys/class/remoteproc/remoteproc1/device/of_node/compatible",
             std::string("vendor,dsp-2\0vendor,dsp\0", 24));
    }
    ~System() override { fs::remove_all(path); }
    void file(const std::string& name, const std::string& text) const {
        fs::create_directories((path / name).parent_path());
        std::ofstream(path / name) << text;
    }
    [[nodiscard]] std::string node(const Selector& selector) const {
        const auto device = find_device(paths, selector);
        return device ? device->node() : error_line(device.error());
    }
    fs::path path;
    SystemPaths paths;
};

TEST_F(System, AProcessorIsFoundByNameCompatibleOrDevice) {
    EXPECT_EQ(node(by_name("dsp")), "remoteproc1");
    EXPECT_EQ(node(by_compatible("vendor,dsp")), "remoteproc1");
    EXPECT_EQ(node(by_device("remoteproc0")), "remoteproc0");
    EXPECT_EQ(node(by_device("/sys/class/remoteproc/remoteproc0")), "remoteproc0");
    EXPECT_EQ(node(by_name("x")), "remote processor x does not exist, available remote processors: imx-rproc, dsp");
    EXPECT_THAT(node(the_only()), HasSubstr("this machine has 2"));
    Selector both = by_name("dsp");
    both.compatible = "vendor,dsp";
    EXPECT_EQ(node(both), "remoteproc1");
    both.device = "remoteproc0";
    EXPECT_THAT(node(both),
                HasSubstr("remote processor dsp, compatible with vendor,dsp, at remoteproc0 does not exist"));
    EXPECT_THAT(node(by_name("a\nb")), HasSubstr("remote processor a\\x0ab does not exist"));
}

TEST_F(System, AStateThatNobodyKnowsIsAnErrorWithItsWord) {
    const auto device = find_device(paths, by_name("imx-rproc")).value();
    EXPECT_EQ(read_state(device).value(), CoreState::Offline);
    file("sys/class/remoteproc/remoteproc0/state", "dancing\n");
    EXPECT_THAT(error_line(read_state(device).error()), HasSubstr("unknown state dancing"));
}

TEST_F(System, FirmwareGoesWhereTheKernelLooksFirst) {
    EXPECT_EQ(firmware_folder(paths), (path / "lib/firmware").string());
    file("sys/module/firmware_class/parameters/path", "/custom/path \nrest");
    EXPECT_EQ(firmware_folder(paths), "/custom/path");
    file("sys/module/firmware_class/parameters/path", "\n");
    EXPECT_EQ(firmware_folder(paths), (path / "lib/firmware").string());
}

TEST_F(System, ACopyHasItsOwnNameModeAndEntry) {
    file("rootfs/a.b.elf", "content");
    fs::permissions(path / "rootfs/a.b.elf", fs::perms::owner_read | fs::perms::owner_write);
    const FirmwareIndex index(path / "index");
    const auto source = open_firmware(path / "rootfs", "a.b.elf", 100);
    ASSERT_TRUE(source);
    const auto stored = store_firmware(*source, path / "lib/firmware", index, "/state/c1");
    ASSERT_TRUE(stored);
    EXPECT_TRUE(is_stored_name(stored->path, (path / "lib/firmware").string(), "/x/a.b.elf"));
    EXPECT_FALSE(is_stored_name(stored->path, (path / "lib/firmware").string(), "/x/other.elf"));
    EXPECT_EQ(stored->sha256, host::sha256_hex("content"));
    struct stat info;
    ASSERT_EQ(::stat(stored->path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u) << "a private firmware stays private";
    EXPECT_TRUE(index.owns(stored->path));
    EXPECT_FALSE(index.owns("/etc/passwd"));
    ASSERT_TRUE(remove_firmware(stored->path, index));
    EXPECT_FALSE(fs::exists(stored->path));
    EXPECT_FALSE(index.owns(stored->path));
    EXPECT_TRUE(remove_firmware(stored->path, index)) << "what is gone already is no error";
}

TEST_F(System, AFileThatIsTooLargeIsRefusedBeforeItIsRead) {
    file("rootfs/big.elf", "12345");
    const auto source = open_firmware(path / "rootfs", "big.elf", 4);
    ASSERT_FALSE(source);
    EXPECT_THAT(error_line(source.error()), HasSubstr("5 bytes, more than the 4 allowed"));
}

TEST_F(System, AnOwnersRecordIsReadBackAndEndsWithTheBoot) {
    const CoreOwners owners(path / "run");
    const auto device = find_device(paths, by_name("dsp")).value();
    ASSERT_TRUE(owners.lock(device, 10));
    EXPECT_FALSE(owners.read(device));
    const Owner mine{
        "c1", "/state/c1", "/lib/firmware/x", "digest", boot_id(), ::getpid(), process_start_time(::getpid()).value()};
    ASSERT_TRUE(owners.write(device, mine));
    const auto read = owners.read(device);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->id, "c1");
    EXPECT_EQ(read->firmware, "/lib/firmware/x");
    EXPECT_TRUE(read->alive());
    EXPECT_EQ(owners.find("/state/c1").value().node, "remoteproc1");
    EXPECT_FALSE(owners.find("/state/c"));
    Owner other = mine;
    other.id = "c2";
    other.state_folder = "/state/c2";
    owners.clear(device, other);
    EXPECT_TRUE(owners.read(device)) << "only the owner's own record is cleared";
    other.boot = "another";
    ASSERT_TRUE(owners.write(device, other));
    EXPECT_FALSE(owners.read(device));
}

TEST(TraceTailTest, AppendedTextComesOnce) {
    TraceTail tail;
    EXPECT_EQ(tail.update("one\n"), "one\n");
    EXPECT_EQ(tail.update("one\n"), "");
    EXPECT_EQ(tail.update("one\ntwo\n"), "two\n");
}

TEST(TraceTailTest, ABufferThatDropsItsOlderPartLosesNothing) {
    TraceTail tail;
    EXPECT_EQ(tail.update("line1\nline2\nline3\n"), "line1\nline2\nline3\n");
    EXPECT_EQ(tail.update("line2\nline3\nline4\n"), "line4\n");
    EXPECT_EQ(tail.update("line4\nline5\n"), "line5\n");
}

TEST(TraceTailTest, ARingThatWritesRoundGivesWhatChanged) {
    TraceTail tail;
    EXPECT_EQ(tail.update("aaaabbbbcccc"), "aaaabbbbcccc");
    EXPECT_EQ(tail.update("XYZabbbbcccc"), "XYZ");
    EXPECT_EQ(tail.update("XYZQRSbbcccc"), "QRS");
}

TEST(TraceTailTest, ANewFirmwaresTextComesWhole) {
    TraceTail tail;
    EXPECT_EQ(tail.update("old\n"), "old\n");
    EXPECT_EQ(tail.update(""), "");
    EXPECT_EQ(tail.update("new firmware\n"), "new firmware\n");
}

}  // namespace
}  // namespace talpa::remoteproc
