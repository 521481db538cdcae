// Fetching weights from a server of our own on the loopback: whole, cut off in the middle, changed on the way, and not
// there at all.
#include "compiler/models/registry.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/host/file.h"
#include "compiler/models/program.h"

namespace talpa::compiler::models {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

/// Answers GET with one body, from where a Range header says; remembers the requests.
class Server {
  public:
    explicit Server(std::string body) : body_(std::move(body)) {
        listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ::sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ::socklen_t size = sizeof at;
        auto* const address = reinterpret_cast<::sockaddr*>(&at);
        if (::bind(listener_, address, size) != 0 || ::listen(listener_, 8) != 0 ||
            ::getsockname(listener_, address, &size) != 0)
            ADD_FAILURE() << "no port on the loopback";
        port_ = ntohs(at.sin_port);
        thread_ = std::thread([this] { serve(); });
    }
    ~Server() { stop(); }
    void stop() {
        if (!thread_.joinable()) return;
        ::shutdown(listener_, SHUT_RDWR);
        thread_.join();
        ::close(listener_);
    }

    [[nodiscard]] std::string url() const { return fmt::format("http://127.0.0.1:{}/models/net-00000000.pth", port_); }
    /// Hangs up after so many bytes of a body.
    void cut_after(std::size_t bytes) { cut_ = bytes; }
    void set_body(std::string body) {
        const std::scoped_lock lock(mutex_);
        body_ = std::move(body);
    }
    /// Where each request wanted to begin, -1: no Range.
    std::vector<long> requests() {
        const std::scoped_lock lock(mutex_);
        return requests_;
    }

  private:
    void serve() {
        for (;;) {
            const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
            if (connection < 0) return;
            answer(connection);
            ::close(connection);
        }
    }
    void answer(int connection) {
        std::string request;
        char buffer[2048];
        while (request.find("\r\n\r\n") == std::string::npos) {
            const auto got = ::recv(connection, buffer, sizeof buffer, 0);
            if (got <= 0) return;
            request.append(buffer, static_cast<std::size_t>(got));
        }
        long from = -1;
        if (const auto at = request.find("Range: bytes="); at != std::string::npos)
            from = std::strtol(request.c_str() + at + 13, nullptr, 10);
        std::string reply, body;
        {
            const std::scoped_lock lock(mutex_);
            requests_.push_back(from);
            const auto begin = static_cast<std::size_t>(std::max(from, 0L));
            if (begin >= body_.size()) {
                reply =
                    fmt::format("HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */{}\r\n", body_.size());
            } else {
                body = body_.substr(begin);
                reply = from < 0 ? "HTTP/1.1 200 OK\r\n"
                                 : fmt::format("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {}-{}/{}\r\n",
                                               from, body_.size() - 1, body_.size());
            }
        }
        reply += fmt::format("Content-Length: {}\r\nConnection: close\r\n\r\n", body.size());
        reply += body.substr(0, cut_);
        for (std::size_t sent = 0; sent < reply.size();) {
            const auto n = ::send(connection, reply.data() + sent, reply.size() - sent, MSG_NOSIGNAL);
            if (n <= 0) return;
            sent += static_cast<std::size_t>(n);
        }
    }

    std::mutex mutex_;
    std::string body_;
    std::vector<long> requests_;
    std::atomic<std::size_t> cut_ = std::string::npos;
    int listener_ = -1, port_ = 0;
    std::thread thread_;
};

std::string sha256_of(const std::string& text, const fs::path& folder) {
    const auto file = folder / "digest";
    EXPECT_TRUE(host::write_text(file, text));
    const auto out = run_program({"sha256sum", file.string()});
    fs::remove(file);
    return out ? out->substr(0, 64) : "";
}

class Registry : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string name = (fs::temp_directory_path() / "talpa_registry_XXXXXX").string();
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
        cache_ = folder_ / "cache";
        for (int i = 0; i < 100'000; ++i) body_ += static_cast<char>('a' + i * 7919 % 26);
        digest_ = sha256_of(body_, folder_);
        ASSERT_EQ(digest_.size(), 64u);
        server_ = std::make_unique<Server>(body_);
        url_ = server_->url();
        entry_ = {.name = "net",
                  .architecture = "mobilenet_v2",
                  .what = {},
                  .licence = {},
                  .url = url_,
                  .package = {},
                  .member = {},
                  .sha256 = digest_,
                  .preprocessing = {},
                  .labels = {}};
    }
    void TearDown() override {
        server_.reset();
        std::error_code ignored;
        fs::remove_all(folder_, ignored);
    }
    [[nodiscard]] fs::path part() const { return cache_ / "net-00000000.pth.part"; }
    std::string content(const fs::path& file) { return host::read_text(file, 1 << 20).value_or(""); }

    fs::path folder_, cache_;
    std::string body_, digest_, url_;
    Entry entry_;
    std::unique_ptr<Server> server_;
};

TEST_F(Registry, FetchesVerifiesAndAsksOnlyOnce) {
    const auto nothing = cached(entry_, cache_);
    ASSERT_TRUE(nothing);
    EXPECT_FALSE(*nothing);
    const auto path = fetch(entry_, cache_);
    ASSERT_TRUE(path) << path.error().describe();
    EXPECT_EQ(*path, cache_ / "net-00000000.pth");
    EXPECT_EQ(content(*path), body_);
    EXPECT_FALSE(fs::exists(part()));
    const auto again = fetch(entry_, cache_);
    ASSERT_TRUE(again);
    EXPECT_EQ(server_->requests(), (std::vector<long>{-1}));
    // What the publisher puts into the name is enough where no more is known.
    entry_.sha256 = std::string_view(digest_).substr(0, 8);
    EXPECT_TRUE(fetch(entry_, cache_));
}

TEST_F(Registry, GoesOnWhereAnAttemptStopped) {
    server_->cut_after(40'000);
    const auto first = fetch(entry_, cache_);
    ASSERT_FALSE(first);
    EXPECT_EQ(first.error().code, ErrorCode::AccessFailed);
    EXPECT_EQ(fs::file_size(part()), 40'000u);
    server_->cut_after(std::string::npos);
    const auto second = fetch(entry_, cache_);
    ASSERT_TRUE(second) << second.error().describe();
    EXPECT_EQ(content(*second), body_);
    EXPECT_EQ(server_->requests().back(), 40'000);
}

TEST_F(Registry, AnAttemptThatWasCompleteButForItsNameIsTaken) {
    fs::create_directories(cache_);
    ASSERT_TRUE(host::write_text(part(), body_));
    const auto path = fetch(entry_, cache_);
    ASSERT_TRUE(path) << path.error().describe();
    EXPECT_EQ(content(*path), body_);
    EXPECT_THAT(server_->requests(), IsEmpty());
}

TEST_F(Registry, AnAttemptThatCannotBeGoneOnWithBeginsAnew) {
    fs::create_directories(cache_);
    ASSERT_TRUE(host::write_text(part(), body_ + "more than there is"));
    const auto path = fetch(entry_, cache_);
    ASSERT_TRUE(path) << path.error().describe();
    EXPECT_EQ(content(*path), body_);
    EXPECT_EQ(server_->requests().back(), -1);
}

TEST_F(Registry, OtherBytesAreNotKept) {
    server_->set_body("something else");
    const auto path = fetch(entry_, cache_);
    ASSERT_FALSE(path);
    EXPECT_EQ(path.error().code, ErrorCode::InvalidExternalData);
    EXPECT_THAT(path.error().describe(), HasSubstr(digest_));
    EXPECT_TRUE(fs::is_empty(cache_));
}

TEST_F(Registry, ADamagedCopyIsToldAndFetchedAnew) {
    ASSERT_TRUE(fetch(entry_, cache_));
    ASSERT_TRUE(host::write_text(cache_ / "net-00000000.pth", "damaged"));
    const auto have = cached(entry_, cache_);
    ASSERT_FALSE(have);
    EXPECT_EQ(have.error().code, ErrorCode::InvalidExternalData);
    const auto path = fetch(entry_, cache_);
    ASSERT_TRUE(path) << path.error().describe();
    EXPECT_EQ(content(*path), body_);
}

TEST_F(Registry, WithoutANetworkItSaysWhatToDo) {
    server_->stop();
    const auto path = fetch(entry_, cache_);
    ASSERT_FALSE(path);
    EXPECT_EQ(path.error().code, ErrorCode::AccessFailed);
    EXPECT_THAT(path.error().hint, HasSubstr("Without a network: fetch " + url_ + " on another machine and put it at " +
                                             (cache_ / "net-00000000.pth").string()));
}

// The cache is never a folder that everybody can write to.
TEST_F(Registry, WithoutHomeItIsTheUserDatabasesFolder) {
    const char* const home = std::getenv("HOME");
    const std::string kept = home != nullptr ? home : "";
    const char* const cache = std::getenv("XDG_CACHE_HOME");
    const std::string kept_cache = cache != nullptr ? cache : "";
    ::unsetenv("XDG_CACHE_HOME");
    const ::passwd* const entry = ::getpwuid(::geteuid());
    const std::string of_the_user = entry != nullptr ? entry->pw_dir : "";
    for (const char* set : {"", "relative", static_cast<const char*>(nullptr)}) {
        if (set != nullptr)
            ::setenv("HOME", set, 1);
        else
            ::unsetenv("HOME");
        const auto folder = cache_folder();
        if (of_the_user.starts_with('/')) {
            ASSERT_TRUE(folder) << folder.error().describe();
            EXPECT_EQ(*folder, fs::path(of_the_user) / ".cache/talpa/models");
        } else {
            ASSERT_FALSE(folder);
            EXPECT_THAT(folder.error().hint, HasSubstr("XDG_CACHE_HOME"));
        }
    }
    if (home != nullptr) ::setenv("HOME", kept.c_str(), 1);
    if (cache != nullptr) ::setenv("XDG_CACHE_HOME", kept_cache.c_str(), 1);
}

TEST(RunProgram, SaysOnceWhatIsSaidAgain) {
    const auto out = run_program({"sh", "-c", "for i in 1 2 3; do echo no host >&2; done; echo the end >&2; exit 3"});
    ASSERT_FALSE(out);
    EXPECT_EQ(out.error().message, "sh failed: no host\nthe end");
    const auto none = run_program({"talpa-no-such-program"});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().message, "there is no program 'talpa-no-such-program'");
}

// A process that is killed takes its download along.
TEST(RunProgram, EndsWithItsParent) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const ::pid_t child = ::fork();
    if (child == 0) {
        // The pipe is open for writing as long as the program lives that inherits it; it writes when it does.
        (void)run_program({"sh", "-c", fmt::format("echo > /proc/self/fd/{}; exec sleep 600", ends[1])});
        ::_exit(0);
    }
    ::close(ends[1]);
    char lives = 0;
    EXPECT_EQ(::read(ends[0], &lives, 1), 1) << "the program does not begin";
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::pollfd closed{ends[0], POLLIN, 0};
    EXPECT_EQ(::poll(&closed, 1, 60'000), 1) << "the program outlives it";
    ::close(ends[0]);
}

TEST(RunProgram, SaysWhyAProgramDoesNotBegin) {
    const auto missing = run_program({"talpa-no-such-program"});
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, ErrorCode::NotFound);
    EXPECT_THAT(missing.error().message, HasSubstr("there is no program 'talpa-no-such-program'"));
    const auto folder = run_program({"/usr"});
    ASSERT_FALSE(folder);
    EXPECT_THAT(folder.error().message, HasSubstr("cannot run /usr: Permission denied"));
    // A status that a program chose is the program's.
    const auto own = run_program({"sh", "-c", "exit 127"});
    ASSERT_FALSE(own);
    EXPECT_THAT(own.error().message, HasSubstr("sh failed: status 127"));
}

TEST_F(Registry, EveryEntryIsComplete) {
    for (const Entry& e : entries()) {
        EXPECT_EQ(find(e.name), &e);
        EXPECT_TRUE(e.sha256.size() == 64 || e.sha256.size() == 8) << e.name;
        EXPECT_NE(e.url.empty(), e.package.empty()) << e.name;
        // Publishers put the first digits of the checksum into the file's name.
        EXPECT_THAT(std::string(e.url.empty() ? e.member : e.url), HasSubstr(std::string(e.sha256.substr(0, 8))));
        EXPECT_THAT(std::string(e.preprocessing), HasSubstr("--range"));
        EXPECT_FALSE(e.licence.empty());
    }
}

}  // namespace
}  // namespace talpa::compiler::models
