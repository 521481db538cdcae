#include "base/host/program.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "base/host/fd.h"

namespace talpa::host {
namespace {

using ::testing::HasSubstr;

struct Said {
    int status = -1;
    std::string text;
};

Said run(Program program) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const Fd reader(ends[0]);
    Fd writer(ends[1]);
    program.out = program.err = writer.get();
    const auto child = start_program(program);
    if (!child) return {-1, child.error().message};
    writer.reset();
    Said said;
    char buffer[4096];
    for (ssize_t n = 0; (n = ::read(reader.get(), buffer, sizeof buffer)) > 0;)
        said.text.append(buffer, static_cast<std::size_t>(n));
    said.status = wait_for_end(*child);
    return said;
}

TEST(StartProgram, HasFolderEnvironmentAndNothingToRead) {
    const Said said = run({.arguments = {"sh", "-c", "pwd; echo $TALPA_WORD; cat; exit 3"},
                           .environment = {{"TALPA_WORD", "a word"}},
                           .folder = "/usr"});
    EXPECT_EQ(said.text, "/usr\na word\n");
    EXPECT_EQ(said.status, 3);
}

TEST(StartProgram, SaysWhyItDoesNotBegin) {
    EXPECT_EQ(run({.arguments = {"talpa-no-such-program"}}).text, "there is no program 'talpa-no-such-program'");
    EXPECT_EQ(run({.arguments = {"/usr"}}).text, "cannot run /usr: Permission denied");
    EXPECT_EQ(run({.arguments = {"sh"}, .folder = "/talpa-no-such-folder"}).text,
              "cannot run sh in /talpa-no-such-folder: No such file or directory");
}

// A program that inherits them blocked cannot be ended; one for which SIGPIPE is ignored goes on writing to nobody.
TEST(StartProgram, HasNoSignalBlockedAndItsOwnGroup) {
    sigset_t term, before;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &term, &before), 0);
    const auto pipes = ::signal(SIGPIPE, SIG_IGN), hangups = ::signal(SIGHUP, SIG_IGN);
    const Said said = run({.arguments = {"grep", "-E", "^(SigBlk|SigIgn)", "/proc/self/status"}, .own_group = true});
    const auto child = start_program({.arguments = {"sleep", "600"}, .own_group = true});
    ::signal(SIGPIPE, pipes);
    ::signal(SIGHUP, hangups);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    EXPECT_EQ(said.text, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000001\n");  // SIGHUP, as nohup wants it
    ASSERT_TRUE(child);
    EXPECT_EQ(::getpgid(*child), *child);
    ::kill(-*child, SIGTERM);
    EXPECT_EQ(wait_for_end(*child), 128 + SIGTERM);
}

TEST(StartProgram, StatusesAreHadThoughWhoeverStartedUsIgnoredThem) {
    ::signal(SIGCHLD, SIG_IGN);
    const auto child = start_program({.arguments = {"false"}});
    ASSERT_TRUE(child);
    EXPECT_EQ(wait_for_end(*child), 1);
    EXPECT_EQ(wait_for_end(*child), kEndUnknown) << "had already";
    ::signal(SIGCHLD, SIG_DFL);
}

}  // namespace
}  // namespace talpa::host
