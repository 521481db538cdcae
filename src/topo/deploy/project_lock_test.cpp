#include "topo/deploy/project_lock.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "base/host/file.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

using testing::HasSubstr;

class ProjectLockTest : public testing::Test {
  protected:
    void SetUp() override {
        ::signal(SIGPIPE, SIG_IGN);  // as topo itself does
        ::mkdtemp(folder_.data());
        ::setenv("XDG_STATE_HOME", folder_.c_str(), 1);
    }
    void TearDown() override {
        ::unsetenv("XDG_STATE_HOME");
        std::filesystem::remove_all(folder_);
    }
    [[nodiscard]] std::string file() const { return folder_ + "/topo/locks/p1"; }
    // Does not wait.
    [[nodiscard]] host::Result<ProjectLock> try_to_take() const {
        std::stop_source now;
        now.request_stop();
        return ProjectLock::take(here_, "p1", "stop", now.get_token());
    }

    std::string folder_ = testing::TempDir() + "topo-lock-XXXXXX";
    Target here_{Destination{.user = {}, .host = "localhost", .port = {}}};
};

TEST_F(ProjectLockTest, TheSecondIsToldWhoHasIt) {
    {
        const auto first = ProjectLock::take(here_, "p1", "deploy");
        ASSERT_TRUE(first) << first.error().message;
        EXPECT_TRUE(first->still_held());
        const auto second = try_to_take();
        ASSERT_FALSE(second);
        EXPECT_THAT(second.error().message, HasSubstr("\"p1\" on this machine is being changed by topo deploy of "));
        EXPECT_THAT(second.error().message, HasSubstr(fmt::format("(process {}) since 20", ::getpid())));
        EXPECT_TRUE(ProjectLock::take(here_, "other", "deploy"));
    }
    EXPECT_TRUE(try_to_take()) << "free again when the first has gone";
}

TEST_F(ProjectLockTest, ItIsFreeWhenItsHolderDies) {
    int told[2];
    ASSERT_EQ(::pipe(told), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        const auto held = ProjectLock::take(here_, "p1", "deploy");
        const char ok = held ? 'y' : 'n';
        if (::write(told[1], &ok, 1) != 1) ::_exit(1);
        ::pause();
        ::_exit(0);
    }
    ::close(told[1]);
    char ok = 0;
    ASSERT_EQ(::read(told[0], &ok, 1), 1);
    EXPECT_EQ(ok, 'y');
    EXPECT_FALSE(try_to_take());
    ::kill(child, SIGKILL);
    EXPECT_TRUE(ProjectLock::take(here_, "p1", "stop"));
    ::close(told[0]);
    ::waitpid(child, nullptr, 0);
}

// Of a connection that was cut the target may not hear for hours: its session stays, and is known by its silence.
TEST_F(ProjectLockTest, AHolderThatHasBeenSilentForLongIsEnded) {
    const auto first = ProjectLock::take(here_, "p1", "deploy");
    ASSERT_TRUE(first) << first.error().message;
    const timespec old[2] = {{::time(nullptr) - 300, 0}, {::time(nullptr) - 300, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, file().c_str(), old, 0), 0);
    const auto second = ProjectLock::take(here_, "p1", "stop");
    ASSERT_TRUE(second) << second.error().message;
    EXPECT_TRUE(second->still_held());
    EXPECT_FALSE(first->waited());
    EXPECT_TRUE(second->waited()) << "what was asked before is old by now";
    const auto lost = first->still_held();
    ASSERT_FALSE(lost);
    EXPECT_THAT(lost.error().message, HasSubstr("has ended"));
}

TEST_F(ProjectLockTest, WhereNoFileCanBeWrittenNothingIsLocked) {
    ASSERT_TRUE(host::write_text(folder_ + "/topo", "a file where the folder should be"));
    const auto first = ProjectLock::take(here_, "p1", "deploy");
    EXPECT_TRUE(first && first->still_held());
    EXPECT_TRUE(try_to_take());
}

TEST_F(ProjectLockTest, AFileThatCannotBeWrittenIsSaidAndNothingIsLocked) {
    std::filesystem::create_directories(file());  // a folder of the lock's name
    const auto first = ProjectLock::take(here_, "p1", "deploy");
    EXPECT_TRUE(first && first->still_held());
}

}  // namespace
}  // namespace talpa::topo
