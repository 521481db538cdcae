// Wire format, frames, options and replies of the shim. Bytes that are expected were written by protobuf's own encoder
// (tests/remoteproc_shim_test.py compares the two at length) or follow ttrpc's description.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remoteproc/shim/bootstrap.h"
#include "remoteproc/shim/mounts.h"
#include "remoteproc/shim/options.h"
#include "remoteproc/shim/ttrpc.h"
#include "remoteproc/shim/wire.h"

namespace talpa::remoteproc::shim {
namespace {

using namespace std::string_literals;

TEST(Wire, NumbersAndTextsAreThoseOfProtobuf) {
    WireWriter w;
    w.number(1, 150);
    w.number(2, 0);
    w.text(2, "testing");
    w.number(16, UINT64_MAX);
    // protobuf's own encoding guide gives the first two: 08 96 01 and 12 07 74 65 73 74 69 6e 67.
    EXPECT_EQ(w.bytes(), "\x08\x96\x01\x12\x07testing\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s);
    WireReader r(w.bytes());
    ASSERT_TRUE(r.next());
    EXPECT_EQ(r.number(), 150u);
    ASSERT_TRUE(r.next());
    EXPECT_EQ(r.bytes(), "testing");
    ASSERT_TRUE(r.next());
    EXPECT_EQ(r.field(), 16u);
    EXPECT_EQ(r.number(), UINT64_MAX);
    EXPECT_FALSE(r.next());
    EXPECT_TRUE(r.sound());
}

TEST(Wire, MalformedBytesEndTheWalk) {
    for (const std::string& bad : {"\x08"s,
                                   "\x0a\x05"
                                   "ab"s,
                                   "\x00\x00"s, "\x0b"s, "\x09\x01"s, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"s,
                                   "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s})
        EXPECT_FALSE(is_sound(bad));
    EXPECT_TRUE(is_sound("\x0d\x01\x02\x03\x04\x11\x01\x02\x03\x04\x05\x06\x07\x08"s)) << "fixed fields are skipped";
    EXPECT_TRUE(is_sound(""));
}

TEST(Ttrpc, FramesComeInPieces) {
    const std::string bytes = frame(1, FrameType::Request, "abc") + frame(3, FrameType::Request, "");
    EXPECT_EQ(bytes.substr(0, 13),
              "\x00\x00\x00\x03\x00\x00\x00\x01\x01\x00"
              "abc"s);
    FrameReader reader;
    std::vector<Frame> frames;
    for (const char c : bytes) {
        reader.feed({&c, 1});
        while (auto f = reader.next()) frames.push_back(std::move(*f));
    }
    ASSERT_EQ(frames.size(), 2u);
    EXPECT_EQ(frames[0].payload, "abc");
    EXPECT_EQ(frames[1].stream, 3u);
}

TEST(Ttrpc, APayloadOverTheLimitIsSkippedAndTheNextFrameFound) {
    FrameReader reader;
    reader.feed("\x00\x40\x00\x01\x00\x00\x00\x05\x01\x00"s);  // 4194305 bytes follow
    auto f = reader.next();
    ASSERT_TRUE(f);
    EXPECT_TRUE(f->too_long);
    EXPECT_EQ(f->stream, 5u);
    for (int i = 0; i < 64; ++i) reader.feed(std::string(65536, 'x'));
    reader.feed("x" + frame(7, FrameType::Request, "ok"));
    f = reader.next();
    ASSERT_TRUE(f);
    EXPECT_EQ(f->payload, "ok");
}

TEST(Ttrpc, RequestsAndResponsesSurviveTheWire) {
    const auto request = parse_request(request_bytes({"s", "M", "payload", 5'000'000'000}, "default"));
    ASSERT_TRUE(request);
    EXPECT_EQ(request->service, "s");
    EXPECT_EQ(request->method, "M");
    EXPECT_EQ(request->payload, "payload");
    EXPECT_EQ(request->timeout_ns, 5'000'000'000);
    const auto good = parse_response(response_bytes(std::string("x")));
    ASSERT_TRUE(good && *good);
    EXPECT_EQ(**good, "x");
    const auto bad = parse_response(response_bytes(std::unexpected(Status{Code::NotFound, "gone"})));
    ASSERT_TRUE(bad && !*bad);
    EXPECT_EQ(bad->error().code, Code::NotFound);
    EXPECT_EQ(bad->error().message, "gone");
    EXPECT_FALSE(parse_request("\xff"));
}

TEST(Options, AreReadInGoStyle) {
    const auto o = parse_shim_options(std::vector<std::string>{"-namespace", "ns", "--id=c1", "-address=/a", "-debug",
                                                               "-publish-binary", "/p", "start"});
    ASSERT_TRUE(o);
    EXPECT_EQ(o->namespace_name, "ns");
    EXPECT_EQ(o->id, "c1");
    EXPECT_EQ(o->address, "/a");
    EXPECT_TRUE(o->debug);
    EXPECT_EQ(o->action, "start");
    EXPECT_FALSE(parse_shim_options(std::vector<std::string>{"-bogus"}));
    EXPECT_FALSE(parse_shim_options(std::vector<std::string>{"-id"}));
}

ShimOptions called(const std::string& ns, const std::string& id) {
    ShimOptions o;
    o.namespace_name = ns;
    o.id = id;
    o.address = "/run/containerd/containerd.sock";
    return o;
}

TEST(Bootstrap, ParametersAreToldFromRuntimeOptions) {
    WireWriter params;
    params.text(1, "c1");
    params.text(2, "ns");
    params.number(3, static_cast<std::uint64_t>(-4));
    params.text(5, "/run/containerd/containerd.sock.ttrpc");
    params.text(6, "/run/containerd/containerd.sock");
    params.text(9, "/run/s");
    const auto modern = parse_bootstrap(params.bytes(), called("ns", "c1"));
    ASSERT_TRUE(modern);
    EXPECT_TRUE(modern->debug);
    EXPECT_EQ(modern->socket_folder, "/run/s");
    EXPECT_FALSE(parse_bootstrap(params.bytes(), called("ns", "c2")));
    EXPECT_FALSE(parse_bootstrap(any("containerd.runc.v1.Options", "\x32\x04name"), called("ns", "c1")));
    EXPECT_FALSE(parse_bootstrap("", called("ns", "c1")));
    EXPECT_FALSE(parse_bootstrap("not protobuf at all", called("ns", "c1")));
}

TEST(Bootstrap, EachCallerGetsTheReplyThatItReads) {
    EXPECT_EQ(start_reply("unix:///a", false, false), "unix:///a");
    EXPECT_EQ(start_reply("unix:///a", false, true), R"({"version":2,"address":"unix:///a","protocol":"ttrpc"})");
    EXPECT_EQ(start_reply("unix:///a", true, true), "\x08\x03\x12\x09unix:///a\x1a\x05ttrpc");
}

TEST(Bootstrap, TheAddressIsTheDigestOfTheJoinedPath) {
    // sha256sum of "/run/containerd/containerd.sock/default/c1"
    EXPECT_EQ(socket_address("/run/containerd/s", "/run/containerd/containerd.sock", "default", "c1"),
              "unix:///run/containerd/s/d25aa4ef11a84e954e74a5bcff06557d0b6ea8d0c00243896f29826694bbd888");
}

TEST(Mounts, OptionsAreSplitIntoFlagsAndData) {
    const auto o = split_options({"ro", "nosuid", "lowerdir=/a:/b", "index=off", "rw"});
    EXPECT_EQ(o.flags, 2u);  // MS_NOSUID
    EXPECT_EQ(o.data, "lowerdir=/a:/b,index=off");
    EXPECT_EQ(split_options({"rbind", "ro"}).flags, 4096u | 16384u | 1u);
}

TEST(Mounts, AnOverlaysLowerFoldersLoseTheirCommonPart) {
    std::string folder;
    EXPECT_EQ(shorten_overlay("index=off,lowerdir=/var/lib/s/12/fs:/var/lib/s/13/fs,workdir=/w", folder),
              "index=off,lowerdir=12/fs:13/fs,workdir=/w");
    EXPECT_EQ(folder, "/var/lib/s/");
}

}  // namespace
}  // namespace talpa::remoteproc::shim
