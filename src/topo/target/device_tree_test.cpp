// The patch of an EVK's device tree, with dtc and fdtput themselves; the wanted nodes are those of NXP's FRDM tree.
#include "topo/target/device_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/host/file.h"
#include "topo/system/process.h"
#include "topo/target/device_tree_rpmsg.h"

namespace talpa::topo {
namespace {

using ::testing::HasSubstr;

// The parts that matter of an EVK's tree; what is in braces differs between the tests.
constexpr const char* kEvk = R"(/dts-v1/;
/ {
    #address-cells = <2>; #size-cells = <2>;
    compatible = "fsl,imx93-11x11-evk", "fsl,imx93";
    reserved-memory {
        #address-cells = <2>; #size-cells = <2>; ranges;
        linux,cma { compatible = "shared-dma-pool"; reusable; size = <0 0x10000000>; };
        ethosu_region@A8000000 { compatible = "shared-dma-pool"; reg = <0 0xa8000000 0 0x8000000>; reusable; phandle = <7>; };
        REGION
    };
    chosen { bootargs = "clk-imx93.mcore_booted"; };
    remoteproc-cm33 { compatible = "fsl,imx93-cm33"; clocks = <&clk 102>; status = "disabled"; };
    soc@0 {
        #address-cells = <1>; #size-cells = <1>; ranges;
        mailbox@44230000 { compatible = "fsl,imx93-mu"; reg = <0x44230000 0x10000>; #mbox-cells = <2>; status = "disabled"; };
        clk: clock-controller@44450000 { reg = <0x44450000 0x10000>; #clock-cells = <1>; };
        power-domain@44461800 { compatible = "fsl,imx93-src-slice"; reg = <0x44461800 0x400>; #power-domain-cells = <0>; };
    };
};
)";

class DeviceTree : public ::testing::Test {
  protected:
    void SetUp() override {
        if (!find_program("dtc") || !find_program("fdtput")) GTEST_SKIP() << "needs device-tree-compiler";
        std::string name = (std::filesystem::temp_directory_path() / "topo-tree-XXXXXX").string();
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
    }
    void TearDown() override {
        std::error_code ignored;
        if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
    }
    std::filesystem::path compiled(std::string source, const std::string& region = "") {
        source.replace(source.find("REGION"), 6, region);
        const auto dts = folder_ / "tree.dts", dtb = folder_ / "tree.dtb";
        EXPECT_TRUE(host::write_text(dts, source));
        const auto ran = capture({.argv = {"dtc", "-q", "-I", "dts", "-O", "dtb", "-o", dtb.string(), dts.string()}});
        EXPECT_TRUE(ran && ran->ok()) << ran->err;
        return dtb;
    }
    std::filesystem::path folder_;
};

TEST_F(DeviceTree, AnEvkGetsPowerAndRpmsg) {
    const auto dtb = compiled(kEvk);
    const auto changes = missing_in_tree(dtb);
    ASSERT_TRUE(changes) << changes.error().describe();
    std::string all;
    for (const TreeChange& change : *changes) all += change.what + "\n";
    for (const char* part :
         {"reserve model@c0000000", "reserve ethosu_region@A8000000", "iomem=relaxed",
          "give /remoteproc-cm33 a power domain", "reserve the memory of RPMsg", "connect /remoteproc-cm33"})
        EXPECT_THAT(all, HasSubstr(part));
    const auto patched = patch_tree(dtb, *changes);
    ASSERT_TRUE(patched) << patched.error().describe();
    const auto tree = TreeText::read(dtb);
    ASSERT_TRUE(tree);
    const auto phandle = [&](const char* path) { return tree->phandle(path).value_or(0); };
    const TreeText::Properties& core = *tree->node("/remoteproc-cm33");
    EXPECT_EQ(TreeText::cells(core.at("power-domains")),
              std::vector<std::uint32_t>{phandle("/soc@0/power-domain@44461800")});
    const std::uint32_t mu = phandle("/soc@0/mailbox@44230000");
    EXPECT_EQ(TreeText::cells(core.at("mboxes")), (std::vector<std::uint32_t>{mu, 0, 1, mu, 1, 1, mu, 3, 1}));
    // The buffers first, as the driver's vdev looks for them.
    std::vector<std::uint32_t> regions;
    for (const char* name : {"vdevbuffer@a4020000", "vdev0vring0@a4000000", "vdev0vring1@a4008000",
                             "vdev1vring0@a4010000", "vdev1vring1@a4018000", "rsc-table@2021e000"}) {
        const std::string path = std::string("/reserved-memory/") + name;
        ASSERT_NE(tree->node(path), nullptr) << path;
        EXPECT_TRUE(tree->node(path)->contains("no-map")) << path;
        regions.push_back(phandle(path.c_str()));
    }
    EXPECT_EQ(TreeText::cells(core.at("memory-region")), regions);
    EXPECT_EQ(std::set<std::uint32_t>(regions.begin(), regions.end()).size(), 6U);
    EXPECT_FALSE(std::count(regions.begin(), regions.end(), 7U)) << "a phandle that was taken";
    EXPECT_EQ(TreeText::cells(tree->node("/reserved-memory/rsc-table@2021e000")->at("reg")),
              (std::vector<std::uint32_t>{0, 0x2021E000, 0, 0x1000}));
    EXPECT_EQ(core.at("status"), "\"okay\"");
    EXPECT_EQ(tree->node("/soc@0/mailbox@44230000")->at("status"), "\"okay\"");
    EXPECT_EQ(TreeText::cells(core.at("clocks")).back(), 102U) << "what is not ours stays";
    EXPECT_TRUE(missing_in_tree(dtb)->empty());
}

TEST_F(DeviceTree, ARegionInTheWayIsNamed) {
    const auto audio = missing_in_tree(
        compiled(kEvk, "audio-rpmsg@c0000000 { reg = <0 0xc0000000 0 0x10000000>; no-map; phandle = <9>; };"));
    ASSERT_FALSE(audio);
    EXPECT_THAT(audio.error().message, HasSubstr("/reserved-memory/audio-rpmsg@c0000000 of the tree lies where"));
    const auto rings = missing_in_tree(compiled(kEvk, "other@a4017000 { reg = <0 0xa4017000 0 0x2000>; no-map; };"));
    ASSERT_FALSE(rings);
    EXPECT_THAT(rings.error().message, HasSubstr("/reserved-memory/other@a4017000 of the tree lies where"));
    EXPECT_TRUE(missing_in_tree(compiled(kEvk, "beside@a4120000 { reg = <0 0xa4120000 0 0x100000>; no-map; };")));
}

TEST_F(DeviceTree, WhatCannotBeDoneIsLeftToPeople) {
    std::string text = kEvk;
    text.replace(text.find("fsl,imx93-cm33"), 14, "fsl,imx00-cm33");
    const auto changes = missing_in_tree(compiled(text));
    ASSERT_TRUE(changes);
    EXPECT_THAT(changes->back().what, HasSubstr("has no node of the Cortex-M33"));
    EXPECT_TRUE(changes->back().words.empty());
    text = kEvk;
    text.replace(text.find("power-domain@44461800"), 21, "power-domain@44462400");
    const auto no_domain = missing_in_tree(compiled(text));
    ASSERT_TRUE(no_domain);
    EXPECT_TRUE(std::any_of(no_domain->begin(), no_domain->end(), [](const TreeChange& change) {
        return change.words.empty() && change.what.starts_with("names no power domain");
    }));
}

TEST_F(DeviceTree, NoTree) {
    ASSERT_TRUE(host::write_text(folder_ / "x.dtb", "no tree"));
    EXPECT_FALSE(missing_in_tree(folder_ / "x.dtb"));
    EXPECT_FALSE(TreeText::read(folder_ / "x.dtb"));
}

TEST(TreeText, PathsPropertiesAndGarbage) {
    const TreeText tree = TreeText::parse(
        "/dts-v1/;\n\n/ {\n\ta = <0x01 0x02>;\n\tflag;\n\tx: n@1 {\n\t\tphandle = <0x61>;\n\t\tcompatible = "
        "\"a\\0b\";\n\t};\n};\n");
    EXPECT_EQ(TreeText::cells(tree.node("/")->at("a")), (std::vector<std::uint32_t>{1, 2}));
    EXPECT_TRUE(tree.node("/")->contains("flag"));
    EXPECT_EQ(tree.find_named("n@1"), "/n@1");
    EXPECT_EQ(tree.find_compatible("b"), "/n@1");
    EXPECT_EQ(tree.highest_phandle(), 0x61U);
    for (const char* bad : {"", "};\n};\n", "{", "x = 1;", "\0", "a {\nb {\n"}) (void)TreeText::parse(bad);
    for (const char* bad : {"", "<", "<x>", "<0x>", "<0x100000000>", "\"a\""})
        EXPECT_TRUE(TreeText::cells(bad).empty()) << bad;
}

}  // namespace
}  // namespace talpa::topo
