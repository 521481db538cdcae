// Values that an engine would refuse, and late, are named where they stand; those that engines take are not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "topo/project/compose_forms.h"
#include "topo/project/project_checks.h"

namespace talpa::topo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Lint : public ::testing::Test {
  protected:
    void SetUp() override {
        folder_ = std::filesystem::temp_directory_path() / fmt::format("topo-lint-{}", ::getpid());
        std::filesystem::create_directories(folder_);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    [[nodiscard]] std::vector<std::string> said(const std::string& text) const {
        std::ofstream(folder_ / "compose.yaml") << text;
        std::vector<std::string> all;
        for (const Finding& f : lint(folder_ / "compose.yaml"))
            if (f.severity != Severity::Note)
                all.push_back(fmt::format("{}:{} {}", f.mark.line, f.mark.column, f.message));
        return all;
    }
    // A service with one more key, which stands in line 5.
    [[nodiscard]] std::vector<std::string> said_of(const std::string& key) const {
        const std::string image = key.starts_with("image:") || key.starts_with("build:") ? "" : "    image: x\n";
        return said("services:\n  a:\n    platform: linux/arm64\n" + (image.empty() ? "    tty: false\n" : image) +
                    "    " + key + "\n");
    }
    std::filesystem::path folder_;
};

TEST_F(Lint, ValuesThatEnginesRefuse) {
    struct Row {
        const char *key, *where, *part;
    };
    const Row rows[] = {
        {"image: x y", "5:12", "\"x y\" is not an image reference"},
        {"image: --help", "5:12", "is not an image reference"},
        {"image: UPPER/x", "5:12", "is not an image reference"},
        {"image: \"x:\"", "5:12", "is not an image reference"},
        {"container_name: a b", "5:21", "is no name of a container"},
        {"container_name: --rm", "5:21", "is no name of a container"},
        {"network_mode: service:zz", "2:3", "network_mode names the undefined service \"zz\""},
        {"network_mode: a b", "5:19", "\"a b\" is not none, host"},
        {"mem_limit: 5x", "5:16", "\"5x\" is not a size such as 64m"},
        {"shm_size: 1xyz", "5:15", "is not a size"},
        {"cpus: abc", "5:11", "is not a number such as 0.5"},
        {"restart: on-failure:x", "5:14", "only on-failure has a number"},
        {"restart: always:3", "5:14", "only on-failure has a number"},
        {"pull_policy: sometimes", "5:18", "is not a pull policy"},
        {"stop_signal: FOO", "5:18", "is not a signal such as SIGTERM"},
        {"tmpfs: 5", "5:12", "is not an absolute path"},
        {"extra_hosts: [a]", "5:19", "is no address of a"},
        {"extra_hosts: [\"a:example.org\"]", "5:19", "is no address of a"},
        {"ulimits: {nofile: abc}", "5:23", "is not a number"},
        {"ulimits: {nofile: {soft: x, hard: 5}}", "5:30", "is not a number"},
        {"devices: [\"/dev/x:/dev/y:rwmz\"]", "5:15", "\"rwmz\" are no permissions"},
        {"devices: [x]", "5:15", "is not \"/dev/NAME\""},
        {"runtime: --x", "5:14", "is not the name of a runtime"},
        {"volumes: [\":/y\"]", "5:15", "has no source"},
        {"volumes: [\"../x:/y:zz\"]", "5:15", "\"zz\" are no options of a mount"},
        {"healthcheck: {test: [CMD, /x], interval: 5}", "5:46", "\"5\" is no duration"},
        {"build: ./nope", "5:12", "nope is not there"},
        {"user: --root", "5:11", "is not a user"},
        {"dns: [example.org]", "5:11", "is not an address in numbers"},
        {"pids_limit: many", "5:17", "is not a number, or -1"},
    };
    for (const Row& row : rows) {
        SCOPED_TRACE(row.key);
        const std::vector<std::string> all = said_of(row.key);
        ASSERT_EQ(all.size(), 1U) << ::testing::PrintToString(all);
        EXPECT_THAT(all[0], ::testing::StartsWith(std::string(row.where) + " "));
        EXPECT_THAT(all[0], HasSubstr(row.part));
    }
}

TEST_F(Lint, ValuesThatEnginesTake) {
    for (const char* key :
         {"image: alpine:3.20",
          "image: localhost:5000/a/b_c--d:V1.2",
          "image: Registry.example.org/x",
          "image: docker.io/library/x@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
          "container_name: a.b_c-1",
          "network_mode: host",
          "network_mode: \"container:x\"",
          "mem_limit: 64M",
          "mem_limit: 1.5 GiB",
          "mem_limit: 67108864",
          "memswap_limit: -1",
          "cpus: 1.5",
          "cpus: 0.25",
          "restart: on-failure:3",
          "restart: \"no\"",
          "pull_policy: missing",
          "pull_policy: every_12h",
          "stop_signal: SIGUSR1",
          "stop_signal: term",
          "stop_signal: 15",
          "stop_signal: SIGRTMIN+3",
          "tmpfs: [/run, \"/tmp:size=64m\"]",
          "extra_hosts: [\"a=127.0.0.1\", \"b:::1\", \"c=[::1]\", \"d=host-gateway\"]",
          "ulimits: {nofile: 1024, core: {soft: -1, hard: -1}}",
          "devices: [/dev/x, \"/dev/x:/dev/y:rw\", \"/dev/x:r\"]",
          "devices: [\"vendor.com/class=one\"]",
          "runtime: io.containerd.remoteproc.v1",
          "volumes: [\"/x:/y:ro,z\", \"./x:/y:cached\", \"/y\"]",
          "user: \"1000:1000\"",
          "dns: [8.8.8.8, \"::1\"]",
          "healthcheck: {test: [CMD, /x], interval: 1m30s, timeout: 500ms, start_interval: 1s}",
          "pids_limit: -1",
          "build: {context: \"https://example.org/x.git\"}",
          "cap_add: [NET_ADMIN, ALL]",
          "mac_address: 02:00:00:00:00:01",
          "working_dir: /srv",
          "cpuset: 0-1",
          "oom_score_adj: -500",
          "hostname: a-b.c",
          "cpu_period: 50ms"})
        EXPECT_THAT(said_of(key), IsEmpty()) << key;
}

TEST_F(Lint, AllThatIsWrongIsSaidAtOnce) {
    EXPECT_THAT(
        said("services:\n  a:\n    platform: linux/arm64\n    image: x\n    ports: [\"x:1\", \"3000:3000\", "
             "\"0:70000\"]\n"
             "    wrong: 1\n    environment: 5\n  b:\n    platform: linux/amd64\n    image: \"y:\"\nmore: {}\n"),
        ElementsAre(HasSubstr("5:13 services.a.ports"), HasSubstr("5:33 services.a.ports"),
                    HasSubstr("6:5 services.a additional properties 'wrong' not allowed"),
                    HasSubstr("7:18 services.a.environment must be a mapping or a list, not a number"),
                    HasSubstr("8:3 service \"b\" declares platform"), HasSubstr("10:12 services.b.image"),
                    HasSubstr("11:1 (root) additional properties 'more' not allowed")));
}

std::string two_services(const std::string& first, const std::string& second) {
    const std::string common = "platform: linux/arm64, image: x, ";
    return "services:\n  a: {" + common + first + "}\n  b: {" + common + second + "}\n";
}

TEST_F(Lint, WhatTwoContainersCannotBothHave) {
    struct Row {
        const char *first, *second, *where, *part;
    };
    const Row rows[] = {
        {"container_name: same", "container_name: same", "3:3", "services \"a\" and \"b\" have one container_name"},
        {"ports: [\"8081:80\"]", "ports: [\"8081:81\"]", "3:48",
         "\"b\" wants port 8081 of the target, which service \"a\" has"},
        {"ports: [\"127.0.0.1:80:80\"]", "ports: [\"80:80\"]", "3:48", "port 80 of the target"},
        {"ports: [\"0.0.0.0:80:80\"]", "ports: [\"1.2.3.4:80:80\"]", "3:48", "port 80 of the target"},
        {"ports: [\"80:80\", \"80:81\"]", "init: true", "2:57", "\"a\" wants port 80"},
        {"ports: [\"8080-8082:80-82\"]", "ports: [\"8082:80\"]", "3:48", "port 8082"},
        {"ports: [\"80:80\"], profiles: [p, q]", "ports: [\"80:80\"], profiles: [q]", "3:48", "port 80 of"},
        {"ports: [\"[::]:80:80\"]", "ports: [\"[::1]:80:80\"]", "3:48", "port 80 of the target"},
        {"ports: [\"[0:0::0]:80:80\"]", "ports: [\"[fe80::1]:80:80\"]", "3:48", "port 80 of the target"},
        {"ports: [\"80:80\"], scale: 2", "init: true", "2:48", "\"a\" runs 2 times, and each wants port 80"},
        {"ports: [\"80:80\"]", "ports: [\"80:80\"], depends_on: {a: {condition: service_started}}", "3:48", "port 80"},
        {"container_name: q", "container_name: q, depends_on: {a: {condition: service_completed_successfully}}", "3:3",
         "have one container_name"},
        {"container_name: q, scale: 2", "init: true", "2:3", "has a container_name, so it cannot run 2 times"},
        {"build: {context: ., additional_contexts: {x: \"service:b\"}}",
         "build: {context: ., additional_contexts: {y: \"service:a\"}}", "2:47", "lead back to itself"},
        {"depends_on: [b]", "depends_on: [a]", "2:3", "depends on itself"},
    };
    for (const Row& row : rows) {
        SCOPED_TRACE(row.part);
        std::vector<std::string> all = said(two_services(row.first, row.second));
        std::erase_if(all, [](const std::string& one) { return one.find("Dockerfile") != std::string::npos; });
        ASSERT_EQ(all.size(), 1U) << ::testing::PrintToString(all);
        EXPECT_THAT(all[0], HasSubstr(row.part));
        EXPECT_THAT(all[0], ::testing::StartsWith(std::string(row.where) + " "));
    }
}

TEST_F(Lint, WhatTwoContainersMayHave) {
    const std::pair<const char*, const char*> rows[] = {
        {"ports: [\"80:80/udp\"]", "ports: [\"80:80/tcp\"]"},
        {"ports: [\"127.0.0.1:80:80\"]", "ports: [\"1.2.3.4:80:80\"]"},
        {"ports: [\"0.0.0.0:80:80\"]", "ports: [\"[::1]:80:80\"]"},
        {"ports: [\"80\"]", "ports: [\"80\"]"},
        {"ports: [\"80:80\", \"80:80\"]", "init: true"},
        {"ports: [\"80:80\"]", "ports: [\"80:80\"], scale: 0"},
        {"ports: [\"80:80\"]", "ports: [\"80:80\"], profiles: [other]"},
        {"ports: [\"80:80\"], profiles: [one]", "ports: [\"80:80\"], profiles: [other]"},
        {"container_name: same", "container_name: same, scale: 0"},
        {"ports: [\"80:80\"], network_mode: host", "ports: [\"80:80\"], network_mode: host"},
        {"ports: [\"80:80\"]", "ports: [\"80:80\"], network_mode: none"},
        {"ports: [\"80:80\"], container_name: c", "ports: [\"80:80\"], network_mode: \"service:a\""},
        {"ports: [\"80:80\"]", "ports: [\"80:80\"], runtime: io.containerd.remoteproc.v1"},
        {"ports: [\"80-81:80-81\"]", "ports: [\"82:80\"]"},
        {"ports: [\"80:80\"]", "ports: [\"80:80\"], depends_on: {a: {condition: service_completed_successfully}}"},
        {"ports: [\"80:80\"], depends_on: {b: {condition: service_completed_successfully}}", "ports: [\"80:80\"]"},
        {"ports: [\"[::]:80:80\"]", "ports: [\"127.0.0.1:80:80\"]"},
        {"ports: [\"80\"], scale: 2", "init: true"},
        {"ports: [\"80:80\"], scale: 2, network_mode: host", "init: true"},
    };
    for (const auto& [first, second] : rows) EXPECT_THAT(said(two_services(first, second)), IsEmpty()) << first;
}

// Who only waits for services of a circle is not named: to mend it there would not help.
TEST_F(Lint, TheServiceNamedIsOneOfTheCircle) {
    const auto said_of_three = [&](const std::string& a, const std::string& b, const std::string& c) {
        std::string text = "services:\n";
        for (const auto& [name, rest] : {std::pair("a", a), std::pair("b", b), std::pair("c", c)})
            text += fmt::format("  {}: {{platform: linux/arm64, image: x, {}}}\n", name, rest);
        std::vector<std::string> all = said(text);
        std::erase_if(all, [](const std::string& one) { return one.find("Dockerfile") != std::string::npos; });
        return all;
    };
    EXPECT_THAT(said_of_three("depends_on: [b]", "depends_on: [c]", "depends_on: [b]"),
                ElementsAre(HasSubstr("3:3 service \"b\" depends on itself")));
    const auto from = [](const char* name) {
        return fmt::format("build: {{context: ., additional_contexts: {{x: \"service:{}\"}}}}", name);
    };
    EXPECT_THAT(said_of_three(from("b"), from("c"), from("b")),
                ElementsAre(HasSubstr("service \"b\" lead back to itself")));
}

// "c" waits for "b", and "b" for the end of "a": "a" has come to its end when "c" starts. Not so where only "b" ends.
TEST_F(Lint, WhoWaitsForTheEndOfAnotherMayHaveItsPort) {
    const auto three = [&](const char* b_waits, const char* c_waits) {
        const auto one = [](const std::string& name, const std::string& rest) {
            return fmt::format("  {}: {{platform: linux/arm64, image: x, {}}}\n", name, rest);
        };
        const auto waits = [](const char* name, const char* condition) {
            return fmt::format("depends_on: {{{}: {{condition: service_{}}}}}", name, condition);
        };
        return said("services:\n" + one("c", "ports: [\"80:80\"], " + waits("b", c_waits)) +
                    one("b", waits("a", b_waits)) + one("a", "ports: [\"80:80\"]"));
    };
    EXPECT_THAT(three("completed_successfully", "started"), IsEmpty());
    EXPECT_THAT(three("started", "completed_successfully"), ElementsAre(HasSubstr("\"a\" wants port 80")));
}

TEST(Forms, ImageReferences) {
    for (const char* right : {"a", "a/b", "a.b/c:T", "h:5000/a", "a__b", "a---b", "localhost/x:latest"})
        EXPECT_TRUE(is_image_reference(right)) << right;
    for (const char* wrong :
         {"", "a//b", "/a", "a/", "-a", "a_", "a___b", "a..b", "a:-x", "a@sha256:12", "a@x", "A", "h:x/a", "a b"})
        EXPECT_FALSE(is_image_reference(wrong)) << wrong;
}

}  // namespace
}  // namespace talpa::topo
