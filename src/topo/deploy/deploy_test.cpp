// Words for the engine, plans, preflight, layers and records, without an engine: tests/topo_e2e_test.py has the real
// ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/host/json.h"
#include "base/host/sha256.h"
#include "topo/deploy/apply.h"
#include "topo/deploy/build.h"
#include "topo/deploy/docker_create.h"
#include "topo/deploy/image_archive.h"
#include "topo/deploy/listeners.h"
#include "topo/deploy/preflight.h"
#include "topo/deploy/record.h"
#include "topo/deploy/transfer.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Deploy : public ::testing::Test {
  protected:
    void SetUp() override {
        folder_ = std::filesystem::temp_directory_path() / fmt::format("topo_deploy_{}", ::getpid()) / "p";
        std::filesystem::create_directories(folder_);
    }
    void TearDown() override { std::filesystem::remove_all(folder_.parent_path()); }
    Project load(const std::string& text) {
        std::ofstream(folder_ / "compose.yaml") << text;
        const auto project = load_project({.file = folder_ / "compose.yaml", .profiles = {}, .variables = {}});
        EXPECT_TRUE(project) << project.error().describe();
        return project.value_or(Project{});
    }
    std::filesystem::path folder_;
};

std::map<std::string, Image> images_for(const Project& project) {
    std::map<std::string, Image> images;
    for (const Service& s : project.services)
        images[s.name] = Image{.id = "id-" + s.name,
                               .names = {},
                               .os = "linux",
                               .architecture = "arm64",
                               .variant = {},
                               .layers = {},
                               .size_bytes = 0};
    return images;
}

TargetFacts podman() {
    TargetFacts facts{
        .kind = EngineKind::Podman, .info = {}, .remoteproc_runtime = "/usr/local/bin/remoteproc-runtime"};
    facts.info.version = "4.3.1";
    return facts;
}

constexpr const char* kProject = R"(
services:
  web:
    image: example/web:1
    depends_on: [runner]
    ports: ["8080:80", "127.0.0.1:53:53/udp"]
    environment: {A: "b c"}
    volumes: ["/dev:/dev", "data:/d:ro"]
    privileged: true
    restart: unless-stopped
    entrypoint: ["/x", "y"]
    command: z
  runner: {image: example/fw:1, runtime: io.containerd.remoteproc.v1, annotations: {remoteproc.name: imx-rproc}}
  none: {image: example/none:1, scale: 0}
volumes: {data: {}}
)";

TEST_F(Deploy, WordsForPodman) {
    const Project project = load(kProject);
    const auto all = desired_containers(project, images_for(project), podman());
    ASSERT_TRUE(all) << all.error().describe();
    ASSERT_EQ(all->size(), 2U);
    EXPECT_EQ((*all)[0].name, "p-runner-1");
    const std::string runner = shell_quoted((*all)[0].words);
    EXPECT_THAT(runner,
                ::testing::StartsWith("--runtime /usr/local/bin/remoteproc-runtime run --detach --name p-runner-1 "));
    EXPECT_THAT(runner, HasSubstr("--annotation remoteproc.name=imx-rproc"));
    EXPECT_THAT(runner, HasSubstr("--network none"));
    EXPECT_THAT(runner,
                HasSubstr("--label com.docker.compose.project=p --label com.docker.compose.service=runner --label "
                          "com.docker.compose.container-number=1 --label com.docker.compose.oneoff=False"));
    const Desired& web = (*all)[1];
    const std::string words = shell_quoted(web.words);
    for (const char* part : {"--publish 8080:80/tcp", "--publish 127.0.0.1:53:53/udp", "--env 'A=b c'",
                             "--volume /dev:/dev", "--volume p_data:/d:ro", "--privileged", "--restart unless-stopped",
                             "--network p_default --network-alias web", "--entrypoint /x",
                             "com.docker.compose.depends_on=runner:service_started:false"})
        EXPECT_THAT(words, HasSubstr(part));
    EXPECT_THAT(words, ::testing::EndsWith(" localhost/example/web:1 y z"));
    EXPECT_EQ(web.words[web.image_at], startable_name(EngineKind::Podman, "example/web:1"));
}

TEST_F(Deploy, OldDockerTakesNoAnnotations) {
    const Project project = load(kProject);
    TargetFacts facts{.kind = EngineKind::Docker, .info = {}, .remoteproc_runtime = {}};
    facts.info.version = "20.10.24";
    std::string words = shell_quoted(desired_containers(project, images_for(project), facts)->front().words);
    EXPECT_THAT(words, HasSubstr("--runtime io.containerd.remoteproc.v1"));
    EXPECT_THAT(words, ::testing::Not(HasSubstr("--annotation")));
    EXPECT_THAT(words, HasSubstr("--label remoteproc.name=imx-rproc"));
    facts.info.version = "28.2.2";
    words = shell_quoted(desired_containers(project, images_for(project), facts)->front().words);
    EXPECT_THAT(words, HasSubstr("--annotation remoteproc.name=imx-rproc"));
}

// docker's --health-cmd makes {"CMD-SHELL", text}, which an image without a shell cannot run.
TEST_F(Deploy, DockerGetsHealthChecksThatAreListsThroughItsApi) {
    const Project project = load(
        "services:\n  a: {platform: linux/arm64, image: x, healthcheck: {test: [CMD, /c, \"a b\"]}}\n  b: {platform: "
        "linux/arm64, image: x, healthcheck: {test: /c}}\n");
    TargetFacts facts{.kind = EngineKind::Docker, .info = {}, .remoteproc_runtime = {}};
    const auto desired = *desired_containers(project, images_for(project), facts);
    EXPECT_TRUE(needs_api(EngineKind::Docker, desired[0]));
    EXPECT_FALSE(needs_api(EngineKind::Podman, desired[0]));
    EXPECT_FALSE(needs_api(EngineKind::Docker, desired[1]));
    const auto body = create_body(
        R"([{"Id": "0123456789abcdef", "Config": {"Hostname": "0123456789ab", "Image": "x", "Healthcheck": {"Test":
            ["CMD-SHELL", "/c"], "Interval": 5}}, "HostConfig": {"Binds": ["v:/v"]}, "NetworkSettings": {"Networks":
            {"n": {"Aliases": ["a", "0123456789ab"], "Gateway": "1.2.3.4"}}}}])",
        desired[0].healthcheck->test);
    ASSERT_TRUE(body);
    EXPECT_EQ(host::Json::parse(*body),
              host::Json::parse(R"({"Image": "x", "Healthcheck": {"Test": ["CMD", "/c", "a b"],
        "Interval": 5}, "HostConfig": {"Binds": ["v:/v"]}, "NetworkingConfig": {"EndpointsConfig": {"n": {"Aliases": ["a"]}}}})"));
    for (const char* bad : {"", "[]", "{}", "[1]", R"([{"Config": 1, "HostConfig": {}}])", R"([{"Config": {}}])"})
        EXPECT_FALSE(create_body(bad, {"CMD", "x"})) << bad;
    EXPECT_TRUE(parse_create_answer("HTTP/1.1 201 Created\r\nA: b\r\n\r\n{\"Id\":\"1\"}"));
    EXPECT_THAT(
        parse_create_answer("HTTP/1.1 409 Conflict\r\n\r\n2a\r\n{\"message\":\"in use\"}\r\n0\r\n").error().message,
        HasSubstr("(status 409): in use"));
    for (const char* bad : {"", "HTTP/1.1", "HTTP/1.1 ", "cannot connect"})
        EXPECT_FALSE(parse_create_answer(bad)) << bad;
}

TEST_F(Deploy, FirmwareWithoutARuntimeIsRefused) {
    const Project project = load(kProject);
    TargetFacts facts = podman();
    facts.remoteproc_runtime.clear();
    EXPECT_THAT(desired_containers(project, images_for(project), facts).error().message,
                HasSubstr("needs the Remoteproc Runtime"));
}

TEST_F(Deploy, BuildWords) {
    const Project project = load(
        "services:\n  a: {platform: linux/arm64, build: {context: a, target: t, args: {K: v}, additional_contexts: {c: "
        "\"service:b\"}, cache_from: [x]}}\n  b: {platform: linux/arm64, build: b}\n");
    const Service& a = project.services[0];
    const std::string base = folder_.string();
    EXPECT_EQ(shell_quoted(build_words(project, a, {.kind = EngineKind::Podman, .buildkit = true, .contexts = true},
                                       "linux/amd64", "")),
              fmt::format("build --platform linux/amd64 --target t --file {0}/a/Dockerfile --build-arg K=v "
                          "--build-context c=container-image://localhost/p-b --tag p-a {0}/a",
                          base));
    EXPECT_EQ(shell_quoted(build_words(project, a, {.kind = EngineKind::Docker, .buildkit = true, .contexts = false},
                                       "linux/arm64", "")),
              fmt::format("build --platform linux/arm64 --target t --file {0}/a/Dockerfile --build-arg K=v "
                          "--cache-from x --tag p-a {0}/a",
                          base));
    const auto order = in_build_order(project);
    EXPECT_EQ((*order)[0]->name, "b");
    EngineInfo amd64;
    amd64.os = "linux";
    amd64.architecture = "amd64";
    EXPECT_EQ(build_platform(a, amd64), "linux/amd64");
    amd64.architecture = "arm64";
    EXPECT_EQ(build_platform(a, amd64), "linux/arm64");
}

TEST_F(Deploy, WhatIsBuiltInTheSameWayIsBuiltOnce) {
    const Project project = load(
        "services:\n  a: {build: web, environment: [A=1]}\n  b: {build: {context: web, target: t}}\n  c: {build: web}\n"
        "  d: {build: {dockerfile_inline: FROM x}}\n  e: {build: {dockerfile_inline: FROM y}}\n"
        "  f: {build: {context: web, additional_contexts: {x: \"service:a\"}}}\n  g: {build: web}\n");
    std::vector<const Service*> services;
    std::map<std::string, std::string> platforms;
    for (const Service& service : project.services) {
        services.push_back(&service);
        platforms[service.name] = service.name == "g" ? "linux/amd64" : "linux/arm64";
    }
    for (const bool contexts : {false, true}) {
        std::vector<std::string> names;
        for (const auto& same : same_builds(project, services, {.contexts = contexts}, platforms)) {
            names.emplace_back();
            for (const Service* one : same) names.back() += one->name;
        }
        EXPECT_THAT(names, ::testing::ElementsAre("ac", "b", "d", "e", "f", "g"));
    }
}

Container running(const std::string& name, const std::string& service, const std::string& hash,
                  const std::string& image) {
    Container c;
    c.id = "c-" + name;
    c.name = name;
    c.service = service;
    c.number = 1;
    c.hash = hash;
    c.image_id = image;
    c.state = "running";
    return c;
}

TEST_F(Deploy, PlansReplaceWhatChanged) {
    const Project project = load("services:\n  a: {image: i}\n  b: {image: i}\n  c: {image: i}\n  d: {image: i}\n");
    const auto desired = *desired_containers(project, images_for(project), podman());
    std::vector<Container> existing = {
        running("p-a-1", "a", desired[0].hash, "id-a"), running("p-b-1", "b", "other", "id-b"),
        running("p-c-1", "c", desired[2].hash, "old"), running("p-gone-1", "gone", "", "")};
    Container second = running("p-a-2", "a", desired[0].hash, "id-a");
    second.number = 2;
    existing.push_back(second);
    const auto acts = [&](Recreate recreate) {
        ApplyOptions options;
        options.recreate = recreate;
        std::string out;
        const ApplyPlan plan = plan_apply(desired, existing, {}, options);
        for (const Step& s : plan.steps) out += std::string(name_of(s.act)) + " ";
        return out + std::to_string(plan.orphans.size());
    };
    EXPECT_EQ(acts(Recreate::Changed), "keep replace replace create remove 1");
    EXPECT_EQ(acts(Recreate::Never), "keep keep keep create remove 1");
    EXPECT_EQ(acts(Recreate::Always), "replace replace replace create remove 1");
    existing[0].state = "exited";
    EXPECT_EQ(acts(Recreate::Changed), "start replace replace create remove 1");
}

TEST_F(Deploy, WhatAKilledTopoHadPutAside) {
    const Project project = load("services:\n  a: {image: i}\n  b: {image: i}\n  c: {image: i}\n");
    const auto desired = *desired_containers(project, images_for(project), podman());
    Container alone = running("topo-old-p-a-1", "a", desired[0].hash, "id-a");
    alone.state = "exited";
    Container beside = running("topo-old-p-b-1", "b", "old", "old");
    beside.state = "exited";
    Container paused = running("renamed", "c", desired[2].hash, "id-c");
    paused.state = "paused";
    const ApplyPlan plan =
        plan_apply(desired, {alone, beside, running("p-b-1", "b", desired[1].hash, "id-b"), paused}, {}, {});
    ASSERT_EQ(plan.steps.size(), 3U);
    EXPECT_EQ(plan.steps[0].act, Act::Start) << "the only one of its service comes back";
    EXPECT_EQ(plan.steps[0].existing->id, alone.id);
    EXPECT_EQ(plan.steps[1].act, Act::Keep);
    EXPECT_EQ(plan.steps[1].existing->name, "p-b-1");
    EXPECT_EQ(plan.steps[2].act, Act::Start) << "a paused one, under another name";
    ASSERT_EQ(plan.leftovers.size(), 1U);
    EXPECT_EQ(plan.leftovers[0].id, beside.id);
    EXPECT_TRUE(plan.orphans.empty());
}

TEST_F(Deploy, PreflightNamesEverythingAtOnce) {
    const Project project = load(kProject);
    TargetState state;
    state.listening = {8080};
    state.free_kb = 1000;
    state.knows_free = true;
    state.remote_processors = {{"other", "offline", "/sys/class/remoteproc/remoteproc0"}};
    const Destination destination = *parse_destination("root@board");
    const auto codes = [&](const std::vector<Container>& existing) {
        std::string out;
        for (const PreflightFinding& f : judge(project, state, podman(), existing, destination)) out += f.code + " ";
        return out;
    };
    EXPECT_EQ(codes({}), "target.disk.full target.port.taken target.runtime.missing target.remoteproc.missing ");
    Container ours = running("p-web-1", "web", "", "");
    ours.ports = {{.host_ip = "0.0.0.0", .host_port = 8080, .container_port = 80, .protocol = "tcp"}};
    EXPECT_EQ(codes({ours}), "target.disk.full target.runtime.missing target.remoteproc.missing ");
    state = TargetState{};
    state.runtime_path = "/usr/local/bin/remoteproc-runtime";
    state.remote_processors = {{"imx-rproc", "running", "/sys/class/remoteproc/remoteproc0"}};
    EXPECT_EQ(codes({}), "target.remoteproc.busy ");
    Container firmware = running("p-runner-1", "runner", "", "");
    firmware.remote_processor = "imx-rproc";
    EXPECT_EQ(codes({firmware}), "");
    EXPECT_THAT(judge(project, state, podman(), {}, destination)[0].fix,
                HasSubstr("ssh ssh://root@board 'echo stop > /sys/class/remoteproc/remoteproc0/state'"));
}

// In the network of the machine, or in none, an engine publishes nothing.
TEST_F(Deploy, PortsOfServicesThatPublishNoneAreNotAskedFor) {
    for (const char* mode : {"network_mode: host", "network_mode: none", "runtime: io.containerd.remoteproc.v1"}) {
        const std::string one = std::string("{image: x, ports: [\"80:80\"], ") + mode + "}\n";
        const Project project = load("services:\n  a: " + one + "  b: " + one);
        TargetState state;
        state.listening = {80};
        for (const PreflightFinding& f : judge(project, state, podman(), {}, *parse_destination("root@board")))
            EXPECT_THAT(f.code, ::testing::Not(::testing::AnyOf("project.port.twice", "target.port.taken"))) << mode;
    }
}

// A container of another project that has what this one wants is named, and ended by its engine.
TEST_F(Deploy, WhoHasTakenIt) {
    const Project project = load(
        "services:\n  web: {image: w, platform: linux/arm64, ports: [\"3001:80\"]}\n  fw: {image: f, runtime: "
        "io.containerd.remoteproc.v1, annotations: {remoteproc.name: imx-rproc}}\n");
    TargetState state;
    state.listening = {3001};
    state.runtime_path = "/usr/local/bin/remoteproc-runtime";
    state.remote_processors = {{"imx-rproc", "running", "/sys/class/remoteproc/remoteproc0"}};
    Container other;
    other.id = other.name = "q-fw-1";
    other.state = "running";
    other.remote_processor = "imx-rproc";
    other.working_folder = "/home/q";
    other.ports = {{.host_ip = "0.0.0.0", .host_port = 3001, .container_port = 80, .protocol = "tcp"}};
    const Destination board{.user = "root", .host = "board", .port = {}};
    const auto anonymous = judge(project, state, podman(), {}, board);
    const auto named = judge(project, state, podman(), {}, board, {other});
    ASSERT_EQ(anonymous.size(), 2U);
    ASSERT_EQ(named.size(), 2U);
    for (const PreflightFinding& f : anonymous) EXPECT_TRUE(is_taken(f)) << f.message;
    EXPECT_THAT(anonymous[1].fix, HasSubstr("echo stop"));
    for (const PreflightFinding& f : named) {
        EXPECT_THAT(f.message, HasSubstr("by the container q-fw-1 of /home/q"));
        EXPECT_EQ(f.fix, "ssh ssh://root@board 'podman stop q-fw-1'");
    }
    other.state = "paused";
    EXPECT_EQ(judge(project, state, podman(), {}, board, {other}).at(0).fix,
              "ssh ssh://root@board 'podman unpause q-fw-1 && podman stop q-fw-1'");
}

TEST(Preflight, ListeningPortsOfTheKernelTables) {
    EXPECT_THAT(parse_listening("  sl  local_address rem_address   st\n   0: 00000000:0BB9 00000000:0000 0A "
                                "00000000:0\n   1: 0100007F:0016 0100007F:9999 01 0\n   2: "
                                "00000000000000000000000001000000:1F90 0:0 0A x\ngarbage\n 3: x 0 0A\n"),
                ElementsAre(3001, 8080));
}

TEST(Transfer, LayersThatCount) {
    TransferPlan plan;
    plan.layers_there = {"sha256:a", "sha256:c"};
    plan.chains_there = {{"sha256:a", "sha256:x"}, {"sha256:c"}};
    const std::vector<std::string> chain = {"sha256:a", "sha256:c"};
    EXPECT_FALSE(layer_is_missing(EngineKind::Podman, plan, chain, 0));
    EXPECT_FALSE(layer_is_missing(EngineKind::Podman, plan, chain, 1));
    EXPECT_FALSE(layer_is_missing(EngineKind::Docker, plan, chain, 0));
    EXPECT_TRUE(layer_is_missing(EngineKind::Docker, plan, chain, 1));  // its chain is not there
}

TEST_F(Deploy, ArchivesAreIndexedAsTarWritesThem) {
    const std::string layer = "layer bytes";
    const std::string digest = host::sha256_hex(layer);
    const std::string long_folder = std::string(80, 'd') + "/" + std::string(60, 'e');
    std::filesystem::create_directories(folder_ / "in" / long_folder);
    const auto put = [&](const std::string& name, const std::string& text) {
        std::ofstream(folder_ / "in" / name) << text;
    };
    put("config.json", "{\"rootfs\":{\"diff_ids\":[\"sha256:" + digest + "\",\"sha256:" + digest + "\"]}}");
    put(long_folder + "/layer.tar", layer);
    put("manifest.json", "[{\"Config\":\"config.json\",\"RepoTags\":[\"a:1\"],\"Layers\":[\"" + long_folder +
                             "/layer.tar\",\"link/layer.tar\"]}]");
    std::filesystem::create_directories(folder_ / "in" / "link");
    std::filesystem::create_symlink("../" + long_folder + "/layer.tar", folder_ / "in" / "link" / "layer.tar");
    for (const char* format : {"gnu", "pax"}) {
        const auto made = capture({.argv = {"tar", std::string("--format=") + format, "-cf",
                                            (folder_ / "x.tar").string(), "-C", (folder_ / "in").string(), "."}});
        ASSERT_TRUE(made && made->ok()) << format;
        const std::string bytes = *host::read_text(folder_ / "x.tar");
        const auto images = read_image_archive(bytes);
        ASSERT_TRUE(images) << format << images.error().describe();
        ASSERT_EQ(images->size(), 1U);
        EXPECT_EQ((*images)[0].layers[0].bytes, layer);
        EXPECT_EQ((*images)[0].layers[1].bytes, layer);
        for (std::size_t cut = 0; cut < bytes.size(); cut += 97)
            (void)read_image_archive(std::string_view(bytes).substr(0, cut));
    }
}

TEST_F(Deploy, TarStreamsAreReadByTar) {
    TarWriter writer;
    writer.add("a/b.txt", "hello");
    writer.add("c", std::string(600, 'x'));
    const auto ran = capture({.argv = {"tar", "-xf", "-", "-C", folder_.string()},
                              .environment = {},
                              .folder = {},
                              .input = writer.finish()});
    ASSERT_TRUE(ran && ran->ok()) << ran->err;
    EXPECT_EQ(*host::read_text(folder_ / "a" / "b.txt"), "hello");
    EXPECT_EQ(host::read_text(folder_ / "c")->size(), 600U);
}

TEST_F(Deploy, RecordsComeBackAsTheyWere) {
    const Project project = load(kProject);
    const Record record{.time = "now", .containers = *desired_containers(project, images_for(project), podman())};
    const auto again = parse_record(record_json(record));
    ASSERT_TRUE(again) << again.error().describe();
    EXPECT_EQ(record_json(*again), record_json(record));
    EXPECT_EQ(again->containers[1].words, record.containers[1].words);
    EXPECT_TRUE(again->knows_order);
    ASSERT_EQ(again->containers[1].depends_on.size(), 1U);
    EXPECT_EQ(again->containers[1].depends_on[0].service, "runner");
    EXPECT_EQ(again->containers[1].depends_on[0].condition, Dependency::Condition::Started);
    for (const char* bad :
         {"", "{}", "[]", "{\"version\":1,\"containers\":[{}]}",
          "{\"version\":1,\"containers\":[{\"name\":\"x\",\"imageId\":\"y\",\"words\":[\"a\"],\"imageAt\":5}]}"})
        EXPECT_FALSE(parse_record(bad)) << bad;
}

}  // namespace
}  // namespace talpa::topo
