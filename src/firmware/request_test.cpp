#include "firmware/request.h"

#include <gtest/gtest.h>

namespace talpa::firmware {
namespace {

using link::RunnerCommand;
using link::RunnerError;

TEST(Request, BareRunHasDefaults) {
    const auto r = parse_request("RUN", {0x400, 0x401}).value();
    EXPECT_EQ(r.command, RunnerCommand::Run);
    EXPECT_FALSE(r.program.given);
    EXPECT_EQ(r.input_count, 0u);
    EXPECT_EQ(r.timeout_ms, 10'000u);
    EXPECT_EQ(r.top, 5u);
    EXPECT_EQ(r.peer.address, 0x401u);
}

TEST(Request, RunWithEverything) {
    const auto r =
        parse_request(
            "@w1 RUN pte=0xAC000000,4712345 in=0x36D000,16,0x36E000,32 crc=0x11,0x22 timeout=500 top=3 out=0xAB000000",
            {})
            .value();
    EXPECT_EQ(r.tag_view(), "w1");
    EXPECT_EQ(r.program.offset, 0xAC000000u);
    EXPECT_TRUE(r.program.check_crc);
    EXPECT_EQ(r.input_count, 2u);
    EXPECT_TRUE(r.inputs[0].check_crc);
    EXPECT_EQ(r.inputs[0].crc32, 0x22u);
    EXPECT_FALSE(r.inputs[1].check_crc);
    EXPECT_EQ(r.inputs[1].length, 32u);
    EXPECT_TRUE(r.output_given);
}

TEST(Request, MalformedArgumentsAreRefused) {
    for (const char* bad :
         {"RUN pte=1", "RUN in=1", "RUN in=1,2,3", "RUN crc=1", "RUN pte=0,1 crc=1,2", "RUN timeout=0", "RUN top=21",
          "RUN pte=x,1", "CRC 1", "CRC a b", "LEVEL", "OUT i=x", "RUN in=1,2,3,4,5,6,7,8,9,10"})
        EXPECT_EQ(parse_request(bad, {}).error(), RunnerError::BadArgument) << bad;
    EXPECT_EQ(parse_request("JUMP", {}).error(), RunnerError::UnknownCommand);
}

TEST(Request, UnknownKeysAreIgnored) {
    EXPECT_TRUE(parse_request("RUN colour=blue n=1", {}));
}

TEST(Request, CrcAndOutReadTheirNumbers) {
    EXPECT_EQ(parse_request("crc 0x10 32", {}).value().program.length, 32u);
    const auto out = parse_request("OUT i=1 from=8 count=4 fmt=hex", {}).value();
    EXPECT_EQ(out.index, 1u);
    EXPECT_EQ(out.from, 8u);
    EXPECT_TRUE(out.hex);
}

}  // namespace
}  // namespace talpa::firmware
