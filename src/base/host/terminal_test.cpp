// Progress on a terminal (a pseudo-terminal in place of standard error) and elsewhere.
#include "base/host/terminal.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <thread>

namespace talpa::host {
namespace {

/// Standard error is another file while this lives; what was written to it can be read.
class StandardError {
  public:
    explicit StandardError(bool terminal) : saved_(::dup(STDERR_FILENO)) {
        int there = -1;
        if (terminal) {
            EXPECT_EQ(::openpty(&here_, &there, nullptr, nullptr, nullptr), 0);
        } else {
            int ends[2] = {-1, -1};
            EXPECT_EQ(::pipe(ends), 0);
            here_ = ends[0], there = ends[1];
        }
        ::dup2(there, STDERR_FILENO);
        ::close(there);
    }
    ~StandardError() {
        ::dup2(saved_, STDERR_FILENO);
        ::close(saved_);
        ::close(here_);
    }
    StandardError(const StandardError&) = delete;
    StandardError& operator=(const StandardError&) = delete;

    /// Everything written so far: a mark is written behind it, so that reading never waits for more.
    [[nodiscard]] std::string written() {
        constexpr char kMark = '#';
        EXPECT_EQ(::write(STDERR_FILENO, &kMark, 1), 1);
        std::string text;
        for (char c = 0; ::read(here_, &c, 1) == 1 && c != kMark;) text += c;
        return text;
    }

  private:
    int saved_, here_ = -1;
};

TEST(Progress, AppearsAfterASecondAndGoesWhenAllIsDone) {
    StandardError error(true);
    Progress progress("picture", 3);
    progress.done(1);
    EXPECT_EQ(error.written(), "") << "what takes less than a second is not talked about";
    std::this_thread::sleep_for(std::chrono::milliseconds(1050));
    progress.done(2);
    EXPECT_EQ(error.written(), "\r\x1B[Kpicture 2 of 3");
    progress.done(2);
    EXPECT_EQ(error.written(), "") << "not more often than ten times a second";
    progress.done(3);
    EXPECT_EQ(error.written(), "\r\x1B[K");
}

TEST(Progress, WithoutATotalItOnlyCounts) {
    StandardError error(true);
    {
        Progress progress("operation", 0);
        std::this_thread::sleep_for(std::chrono::milliseconds(1050));
        progress.done(17);
        EXPECT_EQ(error.written(), "\r\x1B[Koperation 17");
    }
    EXPECT_EQ(error.written(), "\r\x1B[K") << "the line goes with the object";
}

TEST(Progress, IsSilentWhereThereIsNoTerminal) {
    StandardError error(false);
    Progress progress("picture", 3);
    std::this_thread::sleep_for(std::chrono::milliseconds(1050));
    progress.done(2);
    progress.clear();
    EXPECT_EQ(error.written(), "");
}

}  // namespace
}  // namespace talpa::host
