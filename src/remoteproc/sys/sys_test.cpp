// Paths, digests, processes and locks of remoteproc/sys, in a folder of their own below the system's temporary one.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "remoteproc/sys/files.h"
#include "remoteproc/sys/lock.h"
#include "remoteproc/sys/path_guard.h"
#include "remoteproc/sys/process.h"

namespace talpa::remoteproc {
namespace {

namespace fs = std::filesystem;

class Folder : public ::testing::Test {
  protected:
    Folder() {
        char name[] = "/tmp/talpa-sys-XXXXXX";
        path = ::mkdtemp(name);
    }
    ~Folder() override { fs::remove_all(path); }
    void file(const std::string& name, const std::string& text) const {
        fs::create_directories((path / name).parent_path());
        std::ofstream(path / name) << text;
    }
    fs::path path;
};

class Guard : public Folder, public ::testing::WithParamInterface<Walk> {
  protected:
    // What is read at `inside` in a root folder "root", or the errno.
    [[nodiscard]] std::expected<std::string, int> read(const std::string& inside) const {
        const Fd root(::open((path / "root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
        auto opened = open_in_root(root.get(), inside, O_RDONLY | O_NONBLOCK, GetParam());
        if (!opened) return std::unexpected(opened.error());
        return read_fd(opened->get(), 100);
    }
};

TEST_P(Guard, LinksAreFollowedAsInsideTheRoot) {
    file("root/real/fw", "firmware");
    file("secret", "outside");
    fs::create_symlink("/real/fw", path / "root/absolute");
    fs::create_symlink("../../../../real/fw", path / "root/real/up");
    fs::create_symlink("real", path / "root/dir");
    EXPECT_EQ(read("absolute"), "firmware");
    EXPECT_EQ(read("/absolute"), "firmware");
    EXPECT_EQ(read("real/up"), "firmware");
    EXPECT_EQ(read("dir/fw"), "firmware");
    EXPECT_EQ(read("../../real/../real/./fw"), "firmware");
}

TEST_P(Guard, NothingOutsideTheRootIsReached) {
    file("root/real/fw", "firmware");
    file("secret", "outside");
    fs::create_symlink(path / "secret", path / "root/absolute");
    fs::create_symlink("../secret", path / "root/relative");
    fs::create_symlink(path, path / "root/dir");
    fs::create_symlink("loop2", path / "root/loop1");
    fs::create_symlink("loop1", path / "root/loop2");
    for (const char* bad : {"absolute", "relative", "dir/secret", "../secret", "../../../../../../etc/passwd"})
        EXPECT_EQ(read(bad), std::unexpected(ENOENT)) << bad;
    EXPECT_EQ(read("loop1"), std::unexpected(ELOOP));
    EXPECT_EQ(read("real/fw/x"), std::unexpected(ENOTDIR));
}

TEST_P(Guard, ALinkToAProcessMagicLinkIsNotFollowed) {
    if (GetParam() == Walk::Kernel && ::syscall(SYS_openat2, -1, "", nullptr, 0) != 0 && errno == ENOSYS)
        GTEST_SKIP() << "no openat2 here (kernels before 5.6, qemu's user emulation)";
    fs::create_directories(path / "root");
    file("secret", "outside");
    const Fd held(::open((path / "secret").c_str(), O_RDONLY));
    // The root is "/" here, so that /proc/self/fd is inside it.
    const Fd root(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    const auto opened = open_in_root(root.get(), fmt::format("proc/self/fd/{}", held.get()), O_RDONLY, GetParam());
    // By hand the link's text is walked, which is a plain path below the root; the kernel refuses.
    if (GetParam() == Walk::Kernel) {
        ASSERT_FALSE(opened);
        EXPECT_EQ(opened.error(), ELOOP);
    }
}

INSTANTIATE_TEST_SUITE_P(, Guard, ::testing::Values(Walk::Kernel, Walk::ByHand),
                         [](const auto& walk) { return walk.param == Walk::Kernel ? "Openat2" : "ByHand"; });

TEST(Paths, AreCleanedByTheirLetters) {
    EXPECT_EQ(clean_path("a//b/./c/../d"), "a/b/d");
    EXPECT_EQ(clean_path("/../a"), "/a");
    EXPECT_EQ(clean_path("../a"), "../a");
    EXPECT_EQ(clean_path(""), ".");
    EXPECT_EQ(clean_below_root("a/../b"), "/b");
    EXPECT_EQ(clean_below_root("/"), "/");
    EXPECT_EQ(clean_below_root("a/../../b"), std::unexpected(EXDEV));
}

TEST(Errors, HaveTheTextThatEnginesLookFor) {
    EXPECT_EQ(errno_text(EBUSY), "device or resource busy");
    EXPECT_EQ(errno_text(EIO), "input/output error");
    EXPECT_EQ(os_error("open", "/x\n", ENOENT).message, "open /x\\x0a: no such file or directory");
}

TEST(Processes, ARecycledNumberIsNotTheProcess) {
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::pause();
        ::_exit(0);
    }
    const auto started = process_start_time(pid);
    ASSERT_TRUE(started);
    EXPECT_FALSE(PinnedProcess::pin(pid, *started + 1));
    const auto process = PinnedProcess::pin(pid, *started);
    ASSERT_TRUE(process);
    EXPECT_TRUE(process->alive());
    EXPECT_FALSE(process->wait_exit(10));
    EXPECT_EQ(process->signal(SIGKILL), 0);
    EXPECT_TRUE(process->wait_exit(2000));
    EXPECT_FALSE(process->alive()) << "a zombie does not live";
    ::waitpid(pid, nullptr, 0);
    EXPECT_EQ(process->signal(SIGTERM), ESRCH);
    EXPECT_FALSE(PinnedProcess::pin(pid, 0));
}

TEST(Processes, SpawnReportsTheErrorOfTheExec) {
    SpawnOptions options;
    options.executable = "/nowhere/program";
    options.arguments = {"program"};
    const auto pid = spawn(options);
    ASSERT_FALSE(pid);
    EXPECT_EQ(pid.error().message, "fork/exec /nowhere/program: no such file or directory");

    const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    options.fds.assign(40, null.get());
    EXPECT_FALSE(spawn(options)) << "with so many files that the report's own number is among theirs";
}

TEST(Processes, ASpawnedProgramHasTheGivenFilesAndNoOthers) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);  // not close-on-exec: spawn itself must close it
    SpawnOptions options;
    options.executable = "/bin/sh";
    // Nothing that opens a file of its own while it counts, as a pipeline or a glob would.
    options.arguments = {"sh", "-c",
                         "n=0; for f in 0 1 2 3 4 5 6 7 8 9; do [ -e /proc/$$/fd/$f ] && n=$((n + 1)); done; "
                         "echo $n; exec 3>&-"};
    const Fd null(::open("/dev/null", O_RDWR));
    options.fds = {null.get(), ends[1], null.get(), ends[1]};
    const auto pid = spawn(options);
    ASSERT_TRUE(pid);
    ::close(ends[1]);
    ::waitpid(*pid, nullptr, 0);
    char text[16] = {};
    ASSERT_GT(::read(ends[0], text, sizeof text - 1), 0);
    EXPECT_EQ(std::atoi(text), 4);
    ::close(ends[0]);
}

using LockTest = Folder;

TEST_F(LockTest, IsHeldByOneAndGoesWithIt) {
    const std::string name = path / "lock";
    {
        const auto first = FileLock::take(name, 100);
        ASSERT_TRUE(first);
        const auto second = FileLock::take(name, 50);
        ASSERT_FALSE(second);
        EXPECT_EQ(second.error().code, ErrorCode::Timeout);
    }
    EXPECT_TRUE(FileLock::take(name, 100));
}

TEST_F(LockTest, FilesAreReadOnlyIfRegularAndSmall) {
    file("small", "text");
    ::mkfifo((path / "fifo").c_str(), 0600);
    fs::create_symlink(path / "small", path / "link");
    EXPECT_EQ(read_small_file(path / "small", 4).value(), "text");
    EXPECT_FALSE(read_small_file(path / "small", 3));
    EXPECT_FALSE(read_small_file(path / "fifo", 100)) << "and it did not hang";
    EXPECT_FALSE(read_small_file(path / "link", 100));
}

}  // namespace
}  // namespace talpa::remoteproc
