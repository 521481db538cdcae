// What is said to the runner and what it answers while there is more than it can do at once: in the middle of a run,
// with a full queue, without buffers, to writers that are no users.
#include "firmware/runner_for_test.h"

namespace talpa::firmware {
namespace {

TEST_F(RunnerTest, CommandsAreAnsweredWhileTheNpuRuns) {
    stage("models", "ds_cnn_random");
    bool answered = false;
    board.during_npu = [&] {
        hear("PING\nSTATUS\n");
        runner.service();
        answered = has(board.replies, "PONG seq=0") && has(board.replies, "STATUS state=running");
    };
    EXPECT_EQ(say("RUN").back(), "OK RUN seq=1\n");
    EXPECT_TRUE(answered);
}

TEST_F(RunnerTest, QueueTakesFourAndTheFifthIsBusy) {
    stage("models", "ds_cnn_random");
    board.replies.clear();
    for (int i = 0; i < 5; ++i) hear("@" + std::to_string(i) + " RUN top=1\n");
    for (int i = 0; i < 10; ++i) runner.poll();
    for (int i = 0; i < 4; ++i)
        EXPECT_TRUE(has(board.replies, "@" + std::to_string(i) + " OK RUN seq=" + std::to_string(i + 1))) << i;
    EXPECT_TRUE(has(board.replies, "@4 ERR 3 busy"));
    EXPECT_FALSE(has(board.replies, "@4 OK"));
}

TEST_F(RunnerTest, AbortEndsTheRunAndTimeoutDoesToo) {
    stage("models", "ds_cnn_random");
    const auto wait_like_the_driver = [&](bool abort) {
        if (abort) hear("ABORT\n");
        while (runner.must_stop() == Runner::Stop::No) runner.service();
        board.npu_error = Error(ErrorCode::Timeout, "the NPU did not finish");
    };
    board.during_npu = [&] { wait_like_the_driver(true); };
    auto replies = say("RUN");
    EXPECT_TRUE(has(replies, "OK ABORT"));
    EXPECT_TRUE(has(replies, "ERR 7 aborted"));
    board.npu_error.reset();
    board.during_npu = [&] { wait_like_the_driver(false); };
    EXPECT_TRUE(has(say("RUN timeout=50"), "ERR 6 timeout"));
    board.npu_error.reset();
    board.during_npu = nullptr;
    EXPECT_TRUE(has(say("RUN"), "OK RUN"));
}

TEST_F(RunnerTest, RepliesWaitForBuffersInOrder) {
    stage("models", "ds_cnn_random");
    board.buffers = 0;
    board.replies.clear();
    hear("RUN\n");
    runner.poll();
    EXPECT_TRUE(board.replies.empty());
    board.buffers = -1;
    runner.poll();
    EXPECT_EQ(board.replies.front(), "STATUS loading\n");
    EXPECT_EQ(board.replies.back(), "OK RUN seq=1\n");
}

class FullRing : public RunnerTest {
  protected:
    /// Questions as a writer packs them who fills every message, and what they must be answered with.
    void ask(const std::string& word, int count, std::size_t lines_of_a_reply) {
        std::string all;
        for (int i = 0; i < count; ++i) {
            const std::string tag = "@" + std::to_string(i) + " ";
            all += tag + word + "\n";
            for (std::size_t l = 0; l + 1 < lines_of_a_reply; ++l) expected.push_back(tag + word);
            expected.push_back(tag + (lines_of_a_reply == 1 ? "PONG" : "OK " + word));
        }
        all += "@last PING\n";
        expected.push_back("@last PONG");
        for (std::size_t at = 0; at < all.size(); at += 496) board.waiting.emplace_back(kPeer, all.substr(at, 496));
    }
    /// Every reply once and in order.
    void expect_replies() {
        ASSERT_EQ(board.replies.size(), expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(board.replies[i].starts_with(expected[i])) << i;
    }
    std::vector<std::string> expected;
};

TEST_F(FullRing, NoReplyIsLostWhateverTheQuestionsThatNobodyReadTheAnswersOf) {
    for (const auto& [word, lines] : {std::pair{"PING", 1u}, std::pair{"STATUS", 2u}, std::pair{"INFO", 3u}}) {
        board.replies.clear();
        expected.clear();
        board.buffers = 0;
        ask(word, 1000, lines);
        for (int i = 0; i < 50; ++i) runner.poll();
        EXPECT_TRUE(board.replies.empty());
        EXPECT_FALSE(board.waiting.empty()) << "what has no room for its answer is not taken";
        EXPECT_FALSE(runner.idle());
        board.freed_each_time = 3;  // not a whole answer of INFO's and ABORT's at a time
        for (int i = 0; i < 5000 && !(runner.idle() && board.waiting.empty()); ++i) runner.poll();
        expect_replies();
        board.freed_each_time = 0;
    }
}

TEST_F(FullRing, ARunAmongThemLosesNothingEither) {
    stage("models", "ds_cnn_random");
    board.buffers = 0;
    board.freed_each_time = 1;
    board.during_npu = [&] {
        ask("STATUS", 200, 2);
        for (int i = 0; i < 30; ++i) runner.service();
    };
    hear("RUN top=3\n");
    for (int i = 0; i < 5000 && !(runner.idle() && board.waiting.empty()); ++i) runner.poll();
    // The run's lines lie among the others, each once and in their order.
    std::vector<std::string> run, others;
    for (const auto& reply : board.replies) (reply.starts_with("@") ? others : run).push_back(reply);
    ASSERT_EQ(run.size(), 8u);
    const char* const starts[] = {"STATUS loading", "STATUS running", "TOP 1", "TOP 2", "TOP 3", "OUT",
                                  "TIME",           "OK RUN seq=1"};
    for (std::size_t i = 0; i < run.size(); ++i) EXPECT_TRUE(run[i].starts_with(starts[i])) << run[i];
    board.replies = others;
    expect_replies();
}

TEST_F(FullRing, ANewLinkOwesNothingToThePeersOfTheLast) {
    stage("models", "ds_cnn_random");
    board.buffers = 0;
    hear("STATUS\nRUN\nhalf a li");
    runner.link_is_new();
    board.buffers = -1;
    board.replies.clear();
    for (int i = 0; i < 5; ++i) runner.poll();
    EXPECT_TRUE(board.replies.empty()) << board.replies.front();
    EXPECT_EQ(say("PING").back(), "PONG seq=0\n") << "the half line is forgotten";

    // In the middle of a run: it ends, and nobody hears of it.
    board.during_npu = [&] {
        runner.link_is_new();
        EXPECT_EQ(runner.must_stop(), Runner::Stop::Aborted);
        board.npu_error = Error(ErrorCode::Timeout, "the NPU did not finish");
        board.replies.clear();
    };
    EXPECT_TRUE(say("RUN").empty());
    board.npu_error.reset();
    board.during_npu = nullptr;
    EXPECT_TRUE(has(say("RUN"), "OK RUN"));
}

TEST_F(RunnerTest, EchoOfItsOwnRepliesIsNotAnswered) {
    stage("models", "ds_cnn_random");
    const auto replies = say("RUN");
    std::string echo;
    for (const auto& r : replies) echo += r;
    EXPECT_TRUE(say(echo.substr(0, echo.size() - 1)).empty());
}

TEST_F(RunnerTest, UnknownWordsAreAnsweredAtMostTenTimesASecond) {
    board.replies.clear();
    for (int i = 0; i < 50; ++i) hear("nonsense\n");
    runner.poll();
    EXPECT_EQ(board.replies.size(), 1u);
    board.time_ms += 200;
    hear("nonsense\n");
    runner.poll();
    EXPECT_EQ(board.replies.size(), 2u);
}

}  // namespace
}  // namespace talpa::firmware
