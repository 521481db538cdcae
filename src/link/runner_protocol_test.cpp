#include "link/runner_protocol.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace talpa::link {
namespace {

std::vector<std::string> lines_of(const std::vector<std::string>& messages) {
    LineAssembler assembler;
    std::vector<std::string> lines;
    for (const auto& message : messages)
        assembler.feed(message, [&](std::string_view line, bool too_long) {
            lines.push_back(std::string(line) + (too_long ? "…" : ""));
        });
    return lines;
}

TEST(LineAssembler, EndsAreCrLfOrBothWhereverTheyArrive) {
    EXPECT_EQ(lines_of({"RUN", "\r\n"}), std::vector<std::string>{"RUN"})
        << "the cooked tty sends the end as a message of its own";
    EXPECT_EQ(lines_of({"RUN\r", "\nPI", "NG\n\n\n"}), (std::vector<std::string>{"RUN", "PING"}));
    EXPECT_EQ(lines_of({"RUN"}), std::vector<std::string>{}) << "no end, no line";
}

TEST(LineAssembler, GreetingOfTheVendorsTtyIsSwallowed) {
    EXPECT_EQ(lines_of({"hello world!", "RUN\n"}), std::vector<std::string>{"RUN"});
    EXPECT_EQ(lines_of({"hello world!RUN\n"}), std::vector<std::string>{"hello world!RUN"})
        << "only as a message of its own";
}

TEST(LineAssembler, StopsBeforeALineThatCannotBeTaken) {
    LineAssembler assembler;
    std::vector<std::string> lines;
    int room = 1;
    const auto feed = [&](std::string_view message) {
        return assembler.feed(
            message, [&](std::string_view line, bool) { lines.emplace_back(line); }, [&] { return room-- > 0; });
    };
    EXPECT_EQ(feed("one\r\n\ntwo\nthree\n"), 9u) << "up to the end of the second";
    EXPECT_EQ(lines, std::vector<std::string>{"one"});
    room = 2;
    EXPECT_EQ(feed("\nthree\n"), 7u);
    EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", "three"}));
}

TEST(LineAssembler, OverlongLineIsReportedOnceAndTheNextIsWhole) {
    const auto lines = lines_of({std::string(300, 'x'), std::string(300, 'y') + "\nPING\n"});
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(lines[0], std::string(240, 'x') + "…");
    EXPECT_EQ(lines[1], "PING");
    EXPECT_EQ(lines_of({std::string(240, 'x') + "\n"})[0], std::string(240, 'x'));
}

TEST(ParseCommand, TagCommandAndArguments) {
    const auto line = parse_command("@web1 run pte=0x10,32 Top=3  x").value();
    EXPECT_EQ(line.tag, "web1");
    EXPECT_EQ(line.command, RunnerCommand::Run);
    EXPECT_EQ(line.find("PTE"), "0x10,32");
    EXPECT_EQ(line.find("top"), "3");
    EXPECT_EQ(line.arguments[2].value, "x");
    EXPECT_FALSE(line.find("in"));
}

TEST(ParseCommand, WhatIsWrong) {
    EXPECT_EQ(parse_command("RUNX").error(), RunnerError::UnknownCommand);
    EXPECT_EQ(parse_command("").error(), RunnerError::UnknownCommand);
    EXPECT_EQ(parse_command("@muchtoolong RUN").error(), RunnerError::BadArgument);
    EXPECT_EQ(parse_command("@ RUN").error(), RunnerError::BadArgument);
    EXPECT_EQ(parse_command("RUN 1 2 3 4 5 6 7 8 9 10 11 12 13").error(), RunnerError::BadArgument);
}

TEST(ParseNumber, DecimalAndHexOfThirtyTwoBits) {
    EXPECT_EQ(parse_number("0"), 0u);
    EXPECT_EQ(parse_number("4294967295"), 4294967295u);
    EXPECT_EQ(parse_number("0xC0000000"), 0xC0000000u);
    for (const char* bad : {"", "0x", "4294967296", "-1", "1a", "0x1g", "0x1234567890", "1 ", "99999999999"})
        EXPECT_FALSE(parse_number(bad)) << bad;
}

TEST(ParseNumbers, CountsThem) {
    std::uint32_t out[2];
    EXPECT_EQ(parse_numbers("1,0x2", out), 2u);
    EXPECT_EQ(out[1], 2u);
    EXPECT_EQ(parse_numbers("7", out), 1u);
    EXPECT_FALSE(parse_numbers("1,2,3", out));
    EXPECT_FALSE(parse_numbers("1,", out));
    EXPECT_FALSE(parse_numbers("", out));
}

TEST(ReplyLines, EchoedRepliesAreKnownAndCommandsAreNot) {
    for (const char* reply : {"OK RUN seq=1", "ERR 4 no model", "@a OK INFO", "STATUS loading",
                              "STATUS state=idle run=0", "TOP 1 class=3", "PONG seq=1", "INFO proto=ETR/1",
                              "OUT shape=1x1000", "OUT i=0 from=0 v=1", "TIME load_us=3", "CRC 0x12345678"})
        EXPECT_TRUE(is_reply_line(reply)) << reply;
    for (const char* command :
         {"RUN", "STATUS", "INFO", "PING", "OUT i=0 from=8", "CRC 0x0 16", "OKAY", "@a STATUS", "LOAD"})
        EXPECT_FALSE(is_reply_line(command)) << command;
}

TEST(RunnerErrors, NumbersAreStable) {
    EXPECT_EQ(static_cast<int>(RunnerError::Busy), 3);
    EXPECT_EQ(static_cast<int>(RunnerError::Version), 17);
    EXPECT_STREQ(runner_error_text(RunnerError::NoModel), "no model");
}

}  // namespace
}  // namespace talpa::link
