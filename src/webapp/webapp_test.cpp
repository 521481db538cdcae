// The parts of the web application that need no board and no socket.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/host/file.h"
#include "base/host/json.h"
#include "base/host/testing.h"
#include "image/decode.h"
#include "image/preprocess.h"
#include "webapp/broker.h"
#include "webapp/checks.h"
#include "webapp/embedded.h"
#include "webapp/gate.h"
#include "webapp/http/multipart.h"
#include "webapp/options.h"
#include "webapp/picture_png.h"
#include "webapp/problem.h"

namespace talpa::webapp {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// RFC 7578, section 4, and what browsers and curl send.
TEST(Multipart, PartsAreViewsWithTheirNames) {
    const std::string body =
        "--XX\r\nContent-Disposition: form-data; name=\"image\"; filename=\"C:\\\\a\\\\cat "
        "\\\"1\\\".jpg\"\r\nContent-Type: "
        "image/jpeg\r\n\r\n\xFF\xD8\r\n--X\r\n--XX\r\ncontent-disposition: form-data; name=top\r\n\r\n3\r\n--XX--\r\n";
    const auto parts = http::parse_multipart("multipart/form-data; boundary=\"XX\"", body).value();
    ASSERT_EQ(parts.size(), 2u);
    EXPECT_EQ(parts[0].name, "image");
    EXPECT_EQ(parts[0].filename, "cat \"1\".jpg");
    EXPECT_EQ(parts[0].content_type, "image/jpeg");
    EXPECT_EQ(parts[0].bytes, "\xFF\xD8\r\n--X") << "what only looks like the boundary belongs to the file";
    EXPECT_EQ(parts[1].name, "top");
    EXPECT_EQ(parts[1].bytes, "3");
}

TEST(Multipart, EmptyFilesAndFormsAreNoErrors) {
    const auto empty =
        http::parse_multipart("multipart/form-data; boundary=B",
                              "--B\r\nContent-Disposition: form-data; name=\"image\"; filename=\"\"\r\n\r\n\r\n--B--");
    ASSERT_TRUE(empty) << empty.error().message;
    EXPECT_EQ(empty->at(0).bytes, "");
    EXPECT_TRUE(http::parse_multipart("multipart/form-data; boundary=B", "--B--\r\n")->empty());
}

TEST(Multipart, WhatIsMalformedIsToldWithItsPlace) {
    const auto error = [](std::string_view body) {
        return http::parse_multipart("multipart/form-data; boundary=B", body).error().message;
    };
    EXPECT_THAT(error(""), HasSubstr("boundary is nowhere"));
    EXPECT_THAT(error("--B\r\nContent-Disposition: form-data; name=a\r\n\r\nx"), HasSubstr("has no end"));
    EXPECT_THAT(error("--B\r\nContent-Disposition"), HasSubstr("does not end"));
    EXPECT_THAT(error("--B\r\nX: y\r\n\r\nx\r\n--B--"), HasSubstr("no name"));
    EXPECT_THAT(error("--B\r\n" + std::string(5000, 'a') + "\r\n\r\n"), HasSubstr("too long"));
    EXPECT_FALSE(http::parse_multipart("multipart/form-data", "--B--"));
}

TEST(Target, PathAndQueryAreDecoded) {
    http::Head head;
    ASSERT_TRUE(http::parse_target("/a%20b/%2e?x=1%262&y=a+b&z", head));
    EXPECT_EQ(head.path, "/a b/.");
    EXPECT_EQ(head.query_value("x"), "1&2");
    EXPECT_EQ(head.query_value("y"), "a b");
    EXPECT_FALSE(http::parse_target("http://elsewhere/", head));
}

http::Head head_of(std::map<std::string, std::string> headers, std::string method = "GET") {
    http::Head head;
    head.method = std::move(method);
    head.path = "/api/status";
    head.headers = std::move(headers);
    return head;
}

TEST(Gate, NamesThatAStrangerCouldGiveToThisMachineAreRefused) {
    const Gate gate("", {"npu.example.com"});
    for (const auto* host : {"192.168.1.7:3001", "board:3001", "localhost", "[fe80::1]:3000", "board.local",
                             "npu.example.com:80", "frdm.LAN", "localhost.", "Board.Local.:3001", "NPU.example.COM"})
        EXPECT_FALSE(gate.refuse(head_of({{"host", host}}), false)) << host;
    for (const auto* host : {"evil.example", "127.0.0.1.evil.example:3000", "", "a.b", "local.evil.com"})
        EXPECT_EQ(gate.refuse(head_of({{"host", host}}), false)->status, 421) << host;
    EXPECT_FALSE(gate.refuse(head_of({}), true)) << "a probe by HTTP/1.0";
    EXPECT_EQ(gate.refuse(head_of({{"host", "evil.example"}}), true)->status, 421);
}

TEST(Gate, OtherSitesPagesAreRefused) {
    const Gate gate("", {});
    const auto refused = [&](std::map<std::string, std::string> more, std::string method = "POST") {
        more["host"] = "board:3001";
        return gate.refuse(head_of(more, std::move(method)), false).has_value();
    };
    EXPECT_FALSE(refused({})) << "curl";
    EXPECT_FALSE(refused({{"origin", "http://board:3001"}, {"sec-fetch-site", "same-origin"}}));
    EXPECT_TRUE(refused({{"origin", "http://evil.example"}}));
    EXPECT_TRUE(refused({{"origin", "http://board:8080"}}));
    EXPECT_TRUE(refused({{"origin", "null"}}));
    EXPECT_TRUE(refused({{"sec-fetch-site", "cross-site"}}, "GET"));
    EXPECT_FALSE(refused({{"sec-fetch-site", "cross-site"}, {"sec-fetch-mode", "navigate"}}, "GET")) << "a link";
}

TEST(Gate, ATokenIsAskedForAndBecomesACookie) {
    const Gate gate("s3 cret", {});
    http::Head head = head_of({{"host", "board"}});
    EXPECT_EQ(gate.refuse(head, false)->status, 401);
    EXPECT_FALSE(gate.refuse(head, true));
    head.headers["authorization"] = "Bearer s3 cre";
    EXPECT_EQ(gate.refuse(head, false)->status, 401);
    head.headers["authorization"] = "Bearer s3 cret";
    EXPECT_FALSE(gate.refuse(head, false));
    head.headers.erase("authorization");
    head.path = "/";
    head.query["token"] = "s3 cret";
    const auto to = gate.refuse(head, false);
    ASSERT_EQ(to->status, 303);
    EXPECT_THAT(to->headers, Contains(std::pair<std::string, std::string>(
                                 "Set-Cookie", "talpa_token=s3%20cret; HttpOnly; SameSite=Strict; Path=/")));
    head.query.clear();
    head.headers["cookie"] = "a=b; talpa_token=s3%20cret";
    EXPECT_FALSE(gate.refuse(head, false));
}

TEST(Options, ListenAddresses) {
    EXPECT_EQ(parse_listen("0.0.0.0:3000"), (std::pair<std::string, std::uint16_t>("0.0.0.0", 3000)));
    EXPECT_EQ(parse_listen("[::1]:80")->first, "::1");
    EXPECT_EQ(parse_listen(":81")->second, 81);
    EXPECT_EQ(parse_listen("82")->first, "0.0.0.0");
    for (const auto* bad : {"", "x", "1.2.3.4:", "1.2.3.4:70000", "::1:80", "a:b"})
        EXPECT_FALSE(parse_listen(bad)) << bad;
}

class Tree : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string pattern = (fs::temp_directory_path() / "talpa-webapp-XXXXXX").string();
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        root_ = pattern;
        paths_.board.root = root_;
    }
    void TearDown() override { fs::remove_all(root_); }
    void put(const std::string& path, const std::string& bytes) {
        fs::create_directories((root_ / path).parent_path());
        std::ofstream(root_ / path) << bytes;
    }
    static std::string cells(std::initializer_list<std::uint32_t> words) {
        std::string out;
        for (const std::uint32_t w : words)
            for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(w >> shift);
        return out;
    }
    void put_board(const std::string& base) {  // imx93-remoteproc, section 7.4
        const std::string reserved = base + "/reserved-memory/";
        put(reserved + "#address-cells", cells({2}));
        put(reserved + "#size-cells", cells({2}));
        put(reserved + "model@c0000000/reg", cells({0, 0xC0000000, 0, 0x400000}));
        put(reserved + "model@c0000000/no-map", "");
        put(reserved + "ethosu_region@A8000000/reg", cells({0, 0xA8000000, 0, 0x8000000}));
        put(reserved + "ethosu_region@A8000000/no-map", "");
        put(base + "/model", std::string("NXP i.MX93 11X11 FRDM board\0", 28));
        put(base + "/chosen/bootargs", std::string("console=ttyLP0 iomem=relaxed clk-imx93.mcore_booted\0", 52));
        put(base + "/remoteproc-cm33/power-domains", cells({0x61}));
        put("dev/mem", "");
        fs::resize_file(root_ / "dev/mem", std::uint64_t{1} << 32);
        put("dev/ethosu0", "");
        put("sys/class/remoteproc/remoteproc0/name", "imx-rproc\n");
        put("sys/class/remoteproc/remoteproc0/state", "offline\n");
    }
    std::map<std::string, Check> checks() {
        CheckInput input{.look = board_look_of(host::Json::parse(to_json(look_at_board(paths_)).dump())),
                         .remoteproc_name = "imx-rproc",
                         .info = link::host::FirmwareInfo{.version = "1", .protocol = "ETR/1", .words = {}},
                         .program_path = {},
                         .program_error = {},
                         .target = {},
                         .labels_path = {},
                         .labels_error = {}};
        std::map<std::string, Check> found;
        for (Check& check : board_checks(input)) found[check.id] = check;
        return found;
    }
    fs::path root_;
    LookPaths paths_;
};
constexpr auto kOk = Check::State::Ok;
constexpr auto kWarning = Check::State::Warning;
constexpr auto kFailed = Check::State::Failed;

TEST_F(Tree, ABoardThatHasEverythingButRunningFirmware) {
    put_board("sys/firmware/devicetree/base");
    const auto all = checks();
    for (const auto* id : {"reserved-model", "reserved-ethosu", "memory", "ethosu-device", "remoteproc"})
        EXPECT_EQ(all.at(id).state, kOk) << id << ": " << all.at(id).found;
    EXPECT_EQ(all.at("firmware").state, kFailed);
    EXPECT_THAT(all.at("firmware").fix, HasSubstr("echo start > /sys/class/remoteproc/remoteproc0/state"));
    EXPECT_EQ(all.at("tty").state, kFailed);
    EXPECT_EQ(all.at("program").state, kFailed);
    EXPECT_EQ(all.at("labels").state, kWarning);
}

TEST_F(Tree, TheOtherDeviceTreePathIsReadToo) {
    put_board("proc/device-tree");
    EXPECT_THAT(checks().at("reserved-model").looked_at, HasSubstr("/proc/device-tree"));
    EXPECT_EQ(checks().at("reserved-model").state, kOk);
}

// A pipe in place of a file of sysfs holds the broker until somebody writes: what comes then is no answer to the
// question after it.
TEST_F(Tree, ALateAnswerOfTheBrokerIsNotTakenForTheNext) {
    put_board("sys/firmware/devicetree/base");
    const fs::path state = root_ / "sys/class/remoteproc/remoteproc0/state";
    fs::remove(state);
    ASSERT_EQ(::mkfifo(state.c_str(), 0600), 0);
    auto started = Broker::start(paths_, std::chrono::milliseconds(300));
    ASSERT_TRUE(started);
    Broker& broker = **started;
    EXPECT_EQ(broker.look().folder, "") << "nobody has written";
    {
        std::ofstream writer(state);
        writer << "running\n";
    }
    fs::remove(state);
    put("sys/class/remoteproc/remoteproc0/state", "offline\n");
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    BoardLook look;
    while ((look = broker.look_at_board()).remoteproc.folder.empty() && std::chrono::steady_clock::now() < until)
        continue;
    EXPECT_THAT(look.model, HasSubstr("FRDM")) << look.memory_open;
    EXPECT_EQ(broker.look().folder, "remoteproc0");
}

// Each prerequisite taken away: the right check fails and says the right fix.
TEST_F(Tree, EachThingThatIsMissingIsTold) {
    const std::string base = "sys/firmware/devicetree/base";
    put_board(base);
    fs::remove_all(root_ / base / "reserved-memory/model@c0000000");
    EXPECT_EQ(checks().at("reserved-model").state, kFailed);
    EXPECT_THAT(checks().at("reserved-model").fix, HasSubstr("reg = <0x0 0xc0000000 0x0 0x400000>;"));

    put_board(base);
    fs::remove(root_ / base / "reserved-memory/ethosu_region@A8000000/no-map");
    put(base + "/reserved-memory/ethosu_region@A8000000/reusable", "");
    EXPECT_EQ(checks().at("reserved-ethosu").state, kFailed);
    EXPECT_THAT(checks().at("reserved-ethosu").means, HasSubstr("reusable"));
    fs::remove(root_ / base / "reserved-memory/ethosu_region@A8000000/reusable");

    put_board(base);
    fs::remove(root_ / "dev/mem");
    EXPECT_EQ(checks().at("memory").state, kFailed);
    put("dev/mem", "");
    fs::remove(root_ / "dev/ethosu0");
    EXPECT_EQ(checks().at("ethosu-device").state, kFailed);
    EXPECT_THAT(checks().at("ethosu-device").fix, HasSubstr("modprobe ethosu"));

    put_board(base);
    fs::remove(root_ / base / "remoteproc-cm33/power-domains");
    EXPECT_EQ(checks().at("remoteproc").state, kWarning);
    put("sys/class/remoteproc/remoteproc0/name", "other\n");
    EXPECT_EQ(checks().at("remoteproc").state, kFailed);
    EXPECT_THAT(checks().at("remoteproc").found, HasSubstr("other"));
}

TEST(OpenApi, EveryProblemCodeIsDocumented) {
    const std::string text(embedded("openapi.json"));
    for (const std::string_view code : problem_codes()) {
        if (code == "unauthorized" || code == "wrong-origin" || code == "wrong-host" || code == "head-too-long" ||
            code == "method-not-allowed")
            continue;  // of every route, described there in words
        EXPECT_THAT(text, HasSubstr(std::string(code)));
    }
    EXPECT_TRUE(host::Json::accept(text));
}

TEST(Page, EverythingTogetherIsUnder150KiB) {
    std::size_t bytes = 0;
    for (const auto* name : {"ui/index.html", "ui/assets/app.js", "ui/assets/app.css", "ui/assets/icon.svg",
                             "samples/cat.jpg", "samples/coffee.jpg"}) {
        EXPECT_FALSE(embedded(name).empty()) << name;
        bytes += embedded(name).size();
    }
    EXPECT_LT(bytes, 150u << 10);
    const std::string page(embedded("ui/index.html"));
    EXPECT_EQ(page.find("style="), std::string::npos) << "the Content-Security-Policy forbids it";
    EXPECT_EQ(page.find("http://"), std::string::npos) << "nothing is requested from elsewhere";
}

TEST(Png, IsThePictureItself) {
    image::Picture picture{.width = 3, .height = 2, .rgb = {}};
    for (int i = 0; i < 18; ++i) picture.rgb.push_back(static_cast<std::uint8_t>(i * 14));
    const std::string file = png_of(picture);
    const auto back = image::decode({reinterpret_cast<const std::uint8_t*>(file.data()), file.size()}).value();
    EXPECT_EQ(back.rgb, picture.rgb);
    // RFC 4648, section 10
    EXPECT_EQ(base64("f"), "Zg==");
    EXPECT_EQ(base64("fo"), "Zm8=");
    EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
}

// What the server makes of an upload is what `talpa run --image` makes of the file.
TEST(PreparedPicture, IsTheTensorOfTalpaRun) {
    const image::PreprocessSpec spec;
    std::size_t pictures = 0;
    for (const auto& entry : fs::directory_iterator(fs::path(TALPA_SOURCE_DIR) / "tests/corpus/image_fuzz")) {
        const auto file = host::read_file(entry.path()).value();
        const auto picture = image::decode(file);
        if (!picture) continue;
        const auto prepared = classifier::prepare_picture(file, spec);
        ASSERT_TRUE(prepared) << entry.path();
        EXPECT_EQ(prepared->tensor, image::to_tensor(*picture, spec).value()) << entry.path();
        ++pictures;
    }
    EXPECT_GT(pictures, 40u);
}

}  // namespace
}  // namespace talpa::webapp
