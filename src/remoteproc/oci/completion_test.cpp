// What the shells themselves make of the completion scripts; bash is always there, the others are tried where they are.
#include "remoteproc/oci/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/host/file.h"

namespace talpa::remoteproc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CompletionTest : public ::testing::Test {
  protected:
    void SetUp() override {
        char folder[] = "/tmp/talpa-completion-XXXXXX";
        ASSERT_NE(::mkdtemp(folder), nullptr);
        folder_ = folder;
        for (const char* shell : {"bash", "zsh", "fish"})
            ASSERT_TRUE(host::write_text(file(shell), completion_script(shell).value()));
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    [[nodiscard]] std::filesystem::path file(const char* shell) const { return folder_ / shell; }
    /// Standard output of a shell that runs `code`.
    std::string output(const char* shell, const std::string& code) {
        EXPECT_TRUE(host::write_text(folder_ / "code", code));
        FILE* const pipe = ::popen(fmt::format("{} {} 2>&1", shell, (folder_ / "code").string()).c_str(), "r");
        std::string text;
        for (int c = 0; pipe != nullptr && (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
        ::pclose(pipe);
        return text;
    }
    /// What bash offers for the last word of a line.
    std::string bash(const std::string& line) {
        return output(
            "bash",
            fmt::format("remoteproc-runtime() {{ echo c1 c2; }}\ncompopt() {{ :; }}\nsource {}\n"
                        "line='{}'; COMP_WORDS=($line); [[ $line != *' ' ]] || COMP_WORDS+=('')\n"
                        "COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n_remoteproc_runtime\necho \"${{COMPREPLY[*]}}\"",
                        file("bash").string(), line));
    }
    static bool installed(const char* shell) {
        return ::system(fmt::format("command -v {} >/dev/null 2>&1", shell).c_str()) == 0;
    }

    std::filesystem::path folder_;
};

TEST_F(CompletionTest, BashOffersCommandsFlagsAndWhatThereIs) {
    EXPECT_THAT(bash("remoteproc-runtime "),
                AllOf(HasSubstr("create"), HasSubstr("--log-level"), HasSubstr("completion")));
    EXPECT_EQ(bash("remoteproc-runtime --root /r de"), "delete\n");
    EXPECT_EQ(bash("remoteproc-runtime --log-level w"), "warn\n");
    EXPECT_EQ(bash("remoteproc-runtime --log-format json state "), "c1 c2\n");
    EXPECT_EQ(bash("remoteproc-runtime kill c1 K"), "KILL\n");
    EXPECT_EQ(bash("remoteproc-runtime list --f"), "--format\n");
    EXPECT_EQ(bash("remoteproc-runtime list -f j"), "json\n");
    EXPECT_EQ(bash("remoteproc-runtime logs -f "), "c1 c2\n") << "the same letter is a switch there";
    EXPECT_EQ(bash("remoteproc-runtime create "), "\n") << "a new name";
    EXPECT_EQ(bash("remoteproc-runtime create --bundle " + folder_.string().substr(0, folder_.string().size() - 1)),
              folder_.string() + "\n");
    EXPECT_EQ(bash("remoteproc-runtime completion f"), "fish\n");
    EXPECT_EQ(bash("remoteproc-runtime pro"), "\n") << "what is not for users";
}

TEST_F(CompletionTest, FishOffersTheSame) {
    if (!installed("fish")) GTEST_SKIP() << "fish is not installed";
    const auto offered = [&](const std::string& line) {
        return output("fish",
                      fmt::format("function remoteproc-runtime; echo c1; echo c2; end\nsource {}\ncomplete -C '{}'",
                                  file("fish").string(), line));
    };
    EXPECT_EQ(offered("remoteproc-runtime state c"), "c1\nc2\n");
    EXPECT_THAT(offered("remoteproc-runtime de"), HasSubstr("delete\tremove a stopped container"));
    EXPECT_THAT(offered("remoteproc-runtime list --format j"), HasSubstr("json"));
}

TEST_F(CompletionTest, ZshReadsItsScript) {
    if (!installed("zsh")) GTEST_SKIP() << "zsh is not installed";
    EXPECT_EQ(output("zsh -n", host::read_text(file("zsh")).value()), "");
}

TEST(Completion, OtherShellsAreRefused) {
    const auto other = completion_script("tcsh");
    ASSERT_FALSE(other);
    EXPECT_THAT(other.error().message, HasSubstr("must be bash, zsh or fish"));
}

}  // namespace
}  // namespace talpa::remoteproc
