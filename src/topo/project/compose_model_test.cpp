// Compose files as deploy sees them: interpolation, env files, extends, include, short and long forms, profiles, names.
#include "topo/project/compose_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace talpa::topo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class Model : public ::testing::Test {
  protected:
    void SetUp() override {
        folder_ = std::filesystem::temp_directory_path() / fmt::format("topo_model_{}", ::getpid()) / "My.Project";
        std::filesystem::create_directories(folder_);
    }
    void TearDown() override { std::filesystem::remove_all(folder_.parent_path()); }
    void write(const std::string& name, const std::string& text) {
        std::filesystem::create_directories((folder_ / name).parent_path());
        std::ofstream(folder_ / name) << text;
    }
    Checked<Project> load(const std::string& text, std::vector<std::string> profiles = {}) {
        write("compose.yaml", text);
        return load_project({.file = folder_ / "compose.yaml",
                             .profiles = std::move(profiles),
                             .variables = {{"TOPO_TARGET", "ssh://b"}}});
    }
    std::string error(const std::string& text) {
        const auto project = load(text);
        return project ? "" : project.error().describe();
    }
    std::filesystem::path folder_;
};

// Of what runs already the file must be readable, whatever a new start would run into.
TEST_F(Model, AClashIsNoReasonNotToLookAtAProject) {
    const auto project = load(
        "services:\n  a: {image: x, ports: [\"80:80\"], container_name: c}\n  b: {image: x, ports: [\"80:81\"], "
        "container_name: c, scale: 2}\n");
    ASSERT_TRUE(project) << project.error().describe();
    EXPECT_EQ(project->services.size(), 2U);
}

TEST_F(Model, TheNpuProjectResolvesAsDocumented) {
    write("webapp/compose.yaml",
          "services:\n  webapp:\n    platform: linux/arm64\n    build: {context: ., dockerfile: Dockerfile, "
          "additional_contexts: {pte_artifacts: \"service:pte-artifacts\"}}\n"
          "    privileged: true\n    ports: [\"${WEBAPP_PORT:-3001}:3000\"]\n    volumes: [\"/sys:/sys\", "
          "\"/dev:/dev\"]\n    restart: unless-stopped\n");
    const auto project = load(
        "services:\n  webapp:\n    platform: linux/arm64\n    extends: {file: webapp/compose.yaml, service: webapp}\n  "
        "  depends_on: [cm33-runner]\n    build: {args: {CACHE: E}}\n"
        "  cm33-runner:\n    platform: linux/arm64\n    build: {context: executorch-runner, target: runner-runtime, "
        "cache_from: [\"${CACHE:-R}\"]}\n"
        "    runtime: io.containerd.remoteproc.v1\n    annotations: {remoteproc.name: imx-rproc}\n"
        "  pte-artifacts:\n    platform: linux/arm64\n    scale: 0\n    build: {context: executorch-runner, target: "
        "pte-artifacts}\n");
    ASSERT_TRUE(project) << project.error().describe();
    EXPECT_EQ(project->name, "myproject");
    const Service* web = project->find("webapp");
    ASSERT_NE(web, nullptr);
    EXPECT_EQ(web->build->context, (folder_ / "webapp").string());
    EXPECT_EQ(web->build->dockerfile, "Dockerfile");
    EXPECT_THAT(web->build->args, ElementsAre(Pair("CACHE", "E")));
    EXPECT_THAT(web->build->additional_contexts, ElementsAre(Pair("pte_artifacts", "service:pte-artifacts")));
    EXPECT_TRUE(web->privileged);
    ASSERT_EQ(web->ports.size(), 1U);
    EXPECT_EQ(web->ports[0].published, 3001);
    EXPECT_EQ(web->ports[0].target, 3000);
    EXPECT_EQ(web->mounts.size(), 2U);
    EXPECT_EQ(web->restart, "unless-stopped");
    EXPECT_EQ(web->depends_on[0].service, "cm33-runner");
    const Service* runner = project->find("cm33-runner");
    EXPECT_TRUE(runner->is_firmware());
    EXPECT_THAT(runner->annotations, ElementsAre(Pair("remoteproc.name", "imx-rproc")));
    EXPECT_THAT(runner->build->cache_from, ElementsAre("R"));
    EXPECT_EQ(project->find("pte-artifacts")->scale, 0);
    EXPECT_EQ(project->image_of(*web), "myproject-webapp");
}

TEST_F(Model, VariablesComeFromTheEnvironmentThenDotEnv) {
    write(".env", "A=from file\nB=\"two words\" # c\nexport C='$A'\nD=${A}/d\n");
    ::setenv("A", "from env", 1);
    const auto project = load(
        "services: {s: {image: i, environment: {V1: \"$A\", V2: \"${B}\", V3: $C, V4: $D, V5: \"${NONE}\", V6: "
        "\"$$x\", V7: \"${NONE:-${A:+y}}\", V8: $TOPO_TARGET}}}");
    ::unsetenv("A");
    ASSERT_TRUE(project) << project.error().describe();
    EXPECT_THAT(project->services[0].environment,
                ElementsAre(Pair("V1", "from env"), Pair("V2", "two words"), Pair("V3", "$A"), Pair("V4", "from env/d"),
                            Pair("V5", ""), Pair("V6", "$x"), Pair("V7", "y"), Pair("V8", "ssh://b")));
    EXPECT_THAT(project->missing_variables, ElementsAre("NONE"));
    EXPECT_THAT(error("services: {s: {image: \"${X:?say it}\"}}"),
                HasSubstr(":1:23: required variable X is missing a value: say it"));
    EXPECT_THAT(error("services: {s: {image: \"${X\"}}"), HasSubstr("no closing brace"));
    EXPECT_THAT(error("services: {s: {image: \"$ {X\"}}"), HasSubstr("is no variable"));
}

TEST_F(Model, ListAndMapFormsAreTheSame) {
    const auto project = load(
        "services: {s: {image: i, environment: [A=1, B], labels: [x=y=z], annotations: [remoteproc.name=imx-rproc], "
        "depends_on: {t: {condition: service_healthy}}, command: a 'b c', healthcheck: {test: curl x, interval: 1m, "
        "retries: 5}},\n"
        " t: {image: j, entrypoint: [\"/x\", \"$$y\"], expose: [1], env_file: e.env, environment: {K: mine}, user: 5, "
        "tty: true, cap_add: [SYS_ADMIN]}}\n");
    EXPECT_FALSE(project);  // e.env is not there
    write("e.env", "K=theirs\nL=l\n");
    const auto again = load(
        "services: {s: {image: i, environment: [A=1, B], labels: [x=y=z], annotations: [remoteproc.name=imx-rproc], "
        "depends_on: {t: {condition: service_healthy}}, command: a 'b c', healthcheck: {test: curl x, interval: 1m, "
        "retries: 5}},\n"
        " t: {image: j, entrypoint: [\"/x\", \"$$y\"], expose: [1], env_file: e.env, environment: {K: mine}, user: 5, "
        "tty: true, cap_add: [SYS_ADMIN]}}\n");
    ASSERT_TRUE(again) << again.error().describe();
    const Service& s = again->services[0];
    EXPECT_THAT(s.environment, ElementsAre(Pair("A", "1")));
    EXPECT_THAT(s.labels, ElementsAre(Pair("x", "y=z")));
    EXPECT_THAT(s.annotations, ElementsAre(Pair("remoteproc.name", "imx-rproc")));
    EXPECT_EQ(s.depends_on[0].condition, Dependency::Condition::Healthy);
    EXPECT_THAT(*s.command, ElementsAre("a", "b c"));
    EXPECT_THAT(s.healthcheck->test, ElementsAre("CMD-SHELL", "curl x"));
    EXPECT_EQ(s.healthcheck->interval.count(), 60'000);
    const Service& t = again->services[1];
    EXPECT_THAT(*t.entrypoint, ElementsAre("/x", "$y"));
    EXPECT_THAT(t.environment, ElementsAre(Pair("K", "mine"), Pair("L", "l")));
    EXPECT_THAT(t.run_flags, ElementsAre(Pair("--user", "5"), Pair("--tty", ""), Pair("--cap-add", "SYS_ADMIN")));
}

TEST_F(Model, PortsInAllForms) {
    const auto project = load(
        "services: {s: {image: i, ports: [80, \"8080:81\", \"127.0.0.1:82:82/udp\", \"[::1]:83:83\", "
        "\"9000-9002:90-92\", {target: 84, published: \"85\", host_ip: 1.2.3.4}]}}");
    ASSERT_TRUE(project) << project.error().describe();
    std::vector<std::string> ports;
    for (const Port& p : project->services[0].ports)
        ports.push_back(fmt::format("{}|{}|{}|{}", p.host_ip, p.published, p.target, p.protocol));
    EXPECT_THAT(ports, ElementsAre("|0|80|tcp", "|8080|81|tcp", "127.0.0.1|82|82|udp", "::1|83|83|tcp", "|9000|90|tcp",
                                   "|9001|91|tcp", "|9002|92|tcp", "1.2.3.4|85|84|tcp"));
    EXPECT_THAT(error("services: {s: {image: i, ports: [\"70000:1\"]}}"), HasSubstr("\"70000\" is no host port"));
    EXPECT_THAT(error("services: {s: {image: i, ports: [x]}}"), HasSubstr("no container port"));
}

TEST_F(Model, WhoseNetworkIsUsedIsStartedFirst) {
    const auto project = load("services: {a: {image: i, network_mode: \"service:b\"}, b: {image: i}}");
    ASSERT_EQ(project->services[0].depends_on.size(), 1U);
    EXPECT_EQ(project->services[0].depends_on[0].service, "b");
    EXPECT_THAT(error("services: {a: {image: i, network_mode: \"service:b\"}, b: {image: i, depends_on: [a]}}"),
                HasSubstr("depends on itself"));
}

TEST_F(Model, ErrorsSayWhatAndWhere) {
    EXPECT_THAT(error("services:\n  s:\n    image: i\n    colour: red\n"),
                HasSubstr("compose.yaml:4:5: services.s additional properties 'colour' not allowed"));
    EXPECT_THAT(error("services: {s: {}}"), HasSubstr("neither an image nor a build context"));
    EXPECT_THAT(error("services: {s: {image: i, depends_on: [t]}}"), HasSubstr("depends on undefined service \"t\""));
    EXPECT_THAT(error("services: {s: {image: i, depends_on: [t]}, t: {image: i, depends_on: [s]}}"),
                HasSubstr("depends on itself"));
    EXPECT_THAT(error("services: {s: {extends: {service: s}}}"), HasSubstr("extends itself"));
    EXPECT_THAT(error("services: {s: {extends: {service: nobody}}}"), HasSubstr("there is no service \"nobody\""));
    EXPECT_THAT(error("services: {s: {image: i, volumes: [data:/d]}}"), HasSubstr("undefined volume data"));
    EXPECT_THAT(error("services: {s: {image: i, restart: sometimes}}"), HasSubstr("no restart policy"));
    EXPECT_THAT(error("name: Bad Name\nservices: {s: {image: i}}"), HasSubstr("is no project name"));
    EXPECT_THAT(error("include: [other.yaml]\nservices: {s: {image: i}}"), HasSubstr("cannot include"));
    EXPECT_THAT(error("include: [compose.yaml]\nservices: {s: {image: i}}"), HasSubstr("includes itself"));
}

TEST_F(Model, ProfilesIncludeAndDocumentsJoin) {
    write("more/other.yaml", "services: {inc: {build: here}}\n");
    const auto project = load(
        "include: [more/other.yaml]\nservices:\n  a: {image: i, command: [x], ports: [1]}\n  dbg: {image: d, profiles: "
        "[debug]}\n---\nservices:\n  a: {image: j, ports: [2]}\n");
    ASSERT_TRUE(project) << project.error().describe();
    EXPECT_EQ(project->services.size(), 2U);
    EXPECT_THAT(project->inactive, ElementsAre("dbg"));
    EXPECT_EQ(project->find("a")->image, "j");
    EXPECT_EQ(project->find("a")->ports.size(), 2U);
    EXPECT_EQ(project->find("inc")->build->context, (folder_ / "more" / "here").string());
    EXPECT_EQ(load("services:\n  dbg: {image: d, profiles: [debug]}\n", {"debug"})->services.size(), 1U);
}

TEST_F(Model, KeysThatNeedThePluginAreNamed) {
    const auto project = load(
        "services: {s: {image: i, secrets: [a], gpus: all, build: {ssh: default}, x-mine: 1}}\nsecrets: {a: {file: "
        "f}}\n");
    ASSERT_TRUE(project) << project.error().describe();
    std::vector<std::string> names;
    for (const NotHonoured& one : project->not_honoured) names.push_back(one.path);
    EXPECT_THAT(names, ::testing::UnorderedElementsAre("secrets", "services.s.secrets", "services.s.gpus",
                                                       "services.s.build.ssh"));
}

TEST_F(Model, NamesThatNoEngineTakesAreRefused) {
    for (const char* bad :
         {"\"a b\": {image: i}", "$(reboot): {image: i}", "a/b: {image: i}", "s: {image: i, container_name: a b}",
          "s: {image: i, container_name: --rm}", "s: {image: i, container_name: \"\"}"})
        EXPECT_FALSE(load(std::string("services: {") + bad + "}\n")) << bad;
    EXPECT_TRUE(load("services: {a.b_c-D9: {image: i, container_name: x.y-z_1}}\n"));
}

TEST_F(Model, TheHashFollowsTheMeaning) {
    const std::string first = load("services: {s: {image: i, environment: {A: 1, B: 2}}}")->services[0].config_hash;
    EXPECT_EQ(load("services:\n  s:\n    environment: [B=2, A=1]\n    image: i\n")->services[0].config_hash, first);
    EXPECT_NE(load("services: {s: {image: i, environment: {A: 1, B: 3}}}")->services[0].config_hash, first);
    // What makes the image, and where the project lies, is no part of it.
    const std::string built = load("services: {s: {build: here, environment: [A=1]}}")->services[0].config_hash;
    EXPECT_EQ(load("services: {s: {build: {context: /elsewhere, target: t}, environment: [A=1], depends_on: [o]}, o: "
                   "{image: i}}")
                  ->services[0]
                  .config_hash,
              built);
}

}  // namespace
}  // namespace talpa::topo
