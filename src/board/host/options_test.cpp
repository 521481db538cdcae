// Words of the command line, published ports, the log's size, and bytes through a relay.
#include "board/host/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "board/host/child_error.h"
#include "board/host/forward.h"
#include "board/host/log_file.h"

namespace talpa::board {
namespace {

using ::testing::HasSubstr;

TEST(BoardOptionsTest, WordsMayBeListedOrRepeated) {
    const auto without = parse_without({"devmem,npu-clock", "rpmsg"});
    ASSERT_TRUE(without);
    EXPECT_EQ(*without, (std::set{Without::Devmem, Without::NpuClock, Without::Rpmsg}));
    EXPECT_EQ(*parse_quirks({}), std::set<Quirk>{});
    EXPECT_EQ(*parse_quirks({"attached"}), std::set{Quirk::Attached});
    EXPECT_EQ(*parse_kernel("legacy"), KernelProfile::Legacy);
}

TEST(BoardOptionsTest, AWrongWordIsNamedWithThoseThereAre) {
    for (const char* bad : {"gravity", "", "devmem,", "devmem,,rpmsg", "DEVMEM"}) {
        const auto parsed = parse_without({bad});
        ASSERT_FALSE(parsed) << bad;
        EXPECT_THAT(parsed.error().message, HasSubstr("power-domain"));
    }
    EXPECT_THAT(parse_kernel("5.4").error().message, HasSubstr("bsp-6.6, legacy"));
}

TEST(ChildErrorTest, ComesOutAsItWentIn) {
    host::Error error(ErrorCode::Timeout, "too late", "be earlier\nor never");
    const host::Error back = unpacked(packed(error));
    EXPECT_EQ(back.code, ErrorCode::Timeout);
    EXPECT_EQ(back.message, "too late");
    EXPECT_EQ(back.hint, "be earlier\nor never");
    EXPECT_EQ(unpacked(packed(std::move(error).with_context("doing it"))).message, "doing it: too late");
    EXPECT_EQ(unpacked("").code, ErrorCode::Internal);
    EXPECT_EQ(unpacked("\x45").code, ErrorCode::Timeout) << "cut short";
}

TEST(BoardOptionsTest, NamesAreFileNames) {
    for (const char* good : {"board", "a", "root-0badcafe", "A_1.2"}) EXPECT_TRUE(check_board_name(good)) << good;
    for (const char* bad : {"", ".", "..", "a/b", "-x", "a b", "ä", "123456789012345678901234567890123"})
        EXPECT_FALSE(check_board_name(bad)) << bad;
}

TEST(PublishedPortTest, IsOnePortOrTwo) {
    EXPECT_EQ(parse_published("3001")->inside, 3001);
    EXPECT_EQ(parse_published("3001:80")->outside, 3001);
    EXPECT_EQ(parse_published("3001:80")->inside, 80);
    EXPECT_EQ(parse_published("0:80")->outside, 0);
    for (const char* bad : {"", "0", "65536", "-1", "80:", ":80", "80:0", "80:81:82", "http", "80 "})
        EXPECT_FALSE(parse_published(bad)) << bad;
}

TEST(RelayTest, MovesMoreThanItsBuffersBothWaysAndEndsWithBoth) {
    int client[2], server[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, client), 0);
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, server), 0);
    std::thread between([&] { relay(client[1], client[1], server[0]); });
    constexpr std::size_t kBytes = 3'000'000;
    const auto send = [](int fd, char c) {
        const std::string text(kBytes, c);
        for (std::size_t done = 0; done < kBytes;) {
            const ssize_t n = ::write(fd, text.data() + done, kBytes - done);
            ASSERT_GT(n, 0);
            done += static_cast<std::size_t>(n);
        }
        ::shutdown(fd, SHUT_WR);
    };
    const auto receive = [](int fd) {
        std::string text;
        char buffer[4096];
        for (ssize_t n = 0; (n = ::read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
        return text;
    };
    std::thread asks([&] { send(client[0], 'q'); });
    // The server answers after it has heard all, as HTTP servers do: a client that has said its word still listens.
    EXPECT_EQ(receive(server[1]), std::string(kBytes, 'q'));
    asks.join();
    std::thread answers([&] { send(server[1], 'a'); });
    EXPECT_EQ(receive(client[0]), std::string(kBytes, 'a'));
    answers.join();
    between.join();
    for (const int fd : {client[0], client[1], server[0], server[1]}) ::close(fd);
}

TEST(LogFileTest, BeginsAnewWhenItIsLong) {
    const auto folder = std::filesystem::temp_directory_path() / fmt::format("talpa-log-{}", ::getpid());
    std::filesystem::create_directories(folder);
    {
        LogFile log(folder, "log");
        const std::string line(1023, 'x');
        for (std::size_t written = 0; written <= LogFile::kLimitBytes; written += 1024) log.append(line);
        log.append("fresh");
    }
    std::ifstream fresh(folder / "log");
    std::string text;
    std::getline(fresh, text);
    EXPECT_EQ(text, "fresh");
    EXPECT_GT(std::filesystem::file_size(folder / "log.old"), LogFile::kLimitBytes);
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace talpa::board
