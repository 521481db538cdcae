// What the registry's way reads of engines and kernels, and the choice of the Compose plugin. The commands themselves
// are tried in tests/topo_compose_test.py.
#include "topo/deploy/registry.h"
#include "topo/deploy/listeners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topo/deploy/compose_plugin.h"

namespace talpa::topo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Registry, NamesAndDigests) {
    EXPECT_EQ(registry_name("p-web", 12737), "localhost:12737/p-web");
    EXPECT_EQ(registry_name("localhost/p-web:1", 5000), "localhost:5000/p-web:1");
    EXPECT_EQ(registry_name("ghcr.example/a/b@sha256:00", 5000), "localhost:5000/ghcr.example/a/b");
    const std::string digest(64, 'a');
    EXPECT_EQ(pushed_digest("latest: digest: sha256:" + digest + " size: 528"), "sha256:" + digest);
    for (const char* bad : {"", "digest: sha256:", "digest: sha256:zz", "pushed"})
        EXPECT_EQ(pushed_digest(bad), "") << bad;
}

// Rows as Linux prints them (proc(5)); the address is of the host's byte order.
TEST(Registry, ListenersBeyondLoopback) {
    const std::string head = "  sl  local_address rem_address   st tx_queue rx_queue\n";
    EXPECT_THAT(exposed_listeners(
                    head + "   0: 0100007F:31C1 00000000:0000 0A 0\n   1: 0100007F:31C1 0100007F:9999 01 0\n"
                           "   0: 00000000000000000000000001000000:31C1 00000000000000000000000000000000:0000 0A 0\n",
                    12737),
                ElementsAre());
    EXPECT_THAT(
        exposed_listeners(head + "   0: 00000000:31C1 00000000:0000 0A 0\n   1: 00000000:0016 00000000:0000 0A 0\n"
                                 "   0: 00000000000000000000000000000000:31C1 0:0000 0A 0\n",
                          12737),
        ElementsAre("00000000", "00000000000000000000000000000000"));
    EXPECT_THAT(exposed_listeners("", 1), ElementsAre());
    EXPECT_THAT(exposed_listeners("0: x:31C1 0:0 0A\n0: :31C1 : 0A\n0: y:zz 0 0A", 12737), ElementsAre("x", ""));
}

TEST(Registry, ItsContainer) {
    const auto there = parse_registry_container(
        R"([{"State":{"Status":"Exited"},"HostConfig":{"PortBindings":{"5000/tcp":[{"HostIp":"127.0.0.1","HostPort":"12737"}]}}}])");
    ASSERT_TRUE(there);
    EXPECT_EQ(there->state, "exited");
    EXPECT_EQ(there->port, 12737);
    for (const char* bad : {"", "{}", "[]", "[1]"}) EXPECT_FALSE(parse_registry_container(bad)) << bad;
    for (const char* odd : {"[{}]", R"([{"State":1,"HostConfig":2}])",
                            R"([{"HostConfig":{"PortBindings":{"5000/tcp":[{"HostPort":"x"}]}}}])",
                            R"([{"HostConfig":{"PortBindings":{"5000/tcp":{}}}}])",
                            R"([{"HostConfig":{"PortBindings":{"5000/tcp":[1]}}}])"}) {
        const auto found = parse_registry_container(odd);
        ASSERT_TRUE(found) << odd;
        EXPECT_EQ(found->port, 0) << odd;
    }
}

TEST(ComposePlugin, IsChosenWhereItCanDoAll) {
    PluginFacts facts;
    facts.there_version = "28.2.2";
    int asked = 0;
    const auto choose = [&](ComposeUse wanted, const char* compose, bool buildx, const char* here) {
        return choose_method(wanted, facts, [&](PluginFacts& f) {
            ++asked;
            f.compose = compose;
            f.buildx = buildx;
            f.here_version = here;
            return host::Result<void>();
        });
    };
    const auto automatic = choose(ComposeUse::Auto, "v2.21.0", true, "23.0.1");
    ASSERT_TRUE(automatic);
    EXPECT_TRUE(automatic->plugin);
    EXPECT_EQ(automatic->why, "docker compose v2.21.0 with buildx");
    EXPECT_FALSE(choose(ComposeUse::Auto, "2.20.9", true, "28.0.0")->plugin);
    EXPECT_FALSE(choose(ComposeUse::Auto, "2.32.4", false, "28.0.0")->plugin);
    EXPECT_FALSE(choose(ComposeUse::Auto, "2.32.4", true, "20.10.24")->plugin);
    EXPECT_FALSE(choose(ComposeUse::Auto, "", true, "28.0.0")->plugin);
    EXPECT_TRUE(choose(ComposeUse::Always, "2.32.4", false, "20.10.24")->plugin);
    EXPECT_THAT(choose(ComposeUse::Always, "", false, "28.0.0").error().message, HasSubstr("is not installed"));
    // What can be said without asking this machine is.
    asked = 0;
    EXPECT_FALSE(choose(ComposeUse::Never, "2.32.4", true, "28.0.0")->plugin);
    facts.there_version = "20.10.24";
    EXPECT_THAT(choose(ComposeUse::Auto, "2.32.4", true, "28.0.0")->why, HasSubstr("Docker 20.10.24 of the target"));
    facts.there_version = "28.2.2";
    facts.other_platform = true;
    EXPECT_FALSE(choose(ComposeUse::Auto, "2.32.4", true, "28.0.0")->plugin);
    facts.there = EngineKind::Podman;
    EXPECT_FALSE(choose(ComposeUse::Auto, "2.32.4", true, "28.0.0")->plugin);
    EXPECT_FALSE(choose(ComposeUse::Always, "2.32.4", true, "28.0.0"));
    EXPECT_EQ(asked, 0);
}

}  // namespace
}  // namespace talpa::topo
