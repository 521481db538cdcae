#include "base/host/interrupt.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

namespace talpa::host {
namespace {

namespace fs = std::filesystem;

/// How a child ends that holds a guard on `file`, has let go of `kept`, and gets `signal`.
int status_after(int signal, const fs::path& file, const fs::path& kept) {
    const pid_t child = ::fork();
    if (child == 0) {
        clean_up_on_interrupt();
        {
            const TemporaryFileGuard over(kept);
        }
        const TemporaryFileGuard guard(file);
        std::ofstream(file) << "half";
        std::ofstream(kept) << "whole";
        ::raise(signal);
        ::_exit(99);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
}

TEST(Interrupt, TemporaryFilesGoAndTheStatusIs130) {
    const fs::path folder = fs::temp_directory_path() / ("talpa_interrupt_test_" + std::to_string(::getpid()));
    fs::create_directories(folder);
    int status = status_after(SIGINT, folder / "a", folder / "b");
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 130);
    EXPECT_FALSE(fs::exists(folder / "a"));
    EXPECT_TRUE(fs::exists(folder / "b"));
    status = status_after(SIGTERM, folder / "a", folder / "b");
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    EXPECT_FALSE(fs::exists(folder / "a"));
    fs::remove_all(folder);
}

}  // namespace
}  // namespace talpa::host
