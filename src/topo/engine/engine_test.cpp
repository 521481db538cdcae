// Answers of the engines, as Podman 4.3.1 and Docker 20.10 / 28 gave them (shortened), and garbage.
#include "topo/engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace talpa::topo {
namespace {

constexpr const char* kPodman =
    R"([{"Id":"ea4f75734b40400550125ec35e4456676ba0e3e8b3d54287a3dba07ebe4e487c","State":{"OciVersion":"1.0.2-dev",
 "Status":"running","Running":true,"Pid":265,"ExitCode":0,"Health":{"Status":"","FailingStreak":0,"Log":null}},
 "Image":"a72025821d3c74efeb5666443675125fc07fd6a65e35b0f0671ff137e8e420f1","ImageName":"localhost/webapp:latest","OCIRuntime":"/usr/local/bin/remoteproc-runtime",
 "Name":"p-webapp-1","NetworkSettings":{"Ports":{"3000/tcp":[{"HostIp":"","HostPort":"3001"}],"53/udp":[{"HostIp":"127.0.0.1","HostPort":"53"}],"9/tcp":null}},
 "Config":{"Annotations":{"remoteproc.name":" imx-rproc "},"Labels":{"com.docker.compose.project":"p","com.docker.compose.service":"webapp",
 "com.docker.compose.container-number":"1","com.docker.compose.oneoff":"False","com.docker.compose.config-hash":"abc"}},"HostConfig":{"NetworkMode":"bridge","Runtime":"oci"}}])";

TEST(Engine, PodmanContainers) {
    const auto all =
        parse_containers(EngineKind::Podman, kPodman,
                         "ea4f75734b40400550125ec35e4456676ba0e3e8b3d54287a3dba07ebe4e487c|Up 2 minutes\nother|Up\n");
    ASSERT_TRUE(all) << all.error().describe();
    ASSERT_EQ(all->size(), 1U);
    const Container& c = all->front();
    EXPECT_EQ(c.name, "p-webapp-1");
    EXPECT_EQ(c.image, "webapp");
    EXPECT_EQ(c.status, "Up 2 minutes");
    EXPECT_EQ(c.service, "webapp");
    EXPECT_EQ(c.number, 1);
    EXPECT_FALSE(c.oneoff);
    EXPECT_EQ(c.processing_domain(), "imx-rproc");
    ASSERT_EQ(c.ports.size(), 2U);
    EXPECT_EQ(c.ports[0].host_port + c.ports[1].host_port, 3001 + 53);
}

TEST(Engine, DockerContainersAndTheDomainRule) {
    const std::string one =
        R"([{"Id":"aa","Name":"/x","Image":"sha256:bb","Config":{"Image":"p-x","Labels":{}},"State":{"Status":"exited","ExitCode":3},
        "HostConfig":{"NetworkMode":"host","Runtime":"RUNTIME","Annotations":{"remoteproc.name":"NAME"}},"NetworkSettings":{"Ports":{}}}])";
    const auto domain = [&](const char* runtime, const char* name) {
        std::string text = one;
        text.replace(text.find("RUNTIME"), 7, runtime);
        text.replace(text.find("NAME\"}"), 4, name);
        return parse_containers(EngineKind::Docker, text, "")->front().processing_domain();
    };
    EXPECT_EQ(domain("io.containerd.remoteproc.v1", "imx-rproc"), "imx-rproc");
    EXPECT_EQ(domain("io.containerd.remoteproc.v1", "  "), "Linux Host");
    EXPECT_EQ(domain("runc", "imx-rproc"), "Linux Host");
    const Container c = parse_containers(EngineKind::Docker, one, "")->front();
    EXPECT_EQ(c.name, "x");
    EXPECT_EQ(c.image_id, "bb");
    EXPECT_EQ(c.exit_code, 3);
    EXPECT_TRUE(c.host_network);
}

TEST(Engine, ImagesAndInfo) {
    const auto images = parse_images(
        R"([{"Id":"sha256:c0","RepoTags":["a:latest"],"Architecture":"arm64","Os":"linux","Variant":"v8","Size":12,"RootFS":{"Layers":["sha256:1","sha256:2"]}}])");
    ASSERT_TRUE(images);
    EXPECT_EQ(images->front().id, "c0");
    EXPECT_EQ(images->front().platform(), "linux/arm64/v8");
    EXPECT_EQ(images->front().layers.size(), 2U);
    const auto podman = parse_info(
        EngineKind::Podman,
        R"({"host":{"arch":"amd64","os":"linux","remoteSocket":{"path":"/run/p.sock"}},"store":{"graphRoot":"/var/lib/containers/storage"},"version":{"Version":"4.3.1"}})");
    EXPECT_EQ(podman->version, "4.3.1");
    EXPECT_EQ(podman->architecture, "amd64");
    EXPECT_EQ(podman->root_folder, "/var/lib/containers/storage");
    const auto docker = parse_info(
        EngineKind::Docker,
        R"({"ServerVersion":"20.10.24","OSType":"linux","Architecture":"aarch64","DockerRootDir":"/var/lib/docker","Runtimes":{"runc":{"path":"runc"}}})");
    EXPECT_EQ(docker->architecture, "arm64");
    EXPECT_THAT(docker->runtimes, ::testing::ElementsAre("runc"));
}

TEST(Engine, NamesStandInThePlaceOfIds) {
    const std::string a(64, 'a'), b(64, 'b');
    const std::string said = "network in use by " + a + " and " + b + ", image sha256:" + a + ", " + a + "f";
    EXPECT_THAT(container_ids(said), ::testing::ElementsAre(a, b));
    EXPECT_EQ(with_names("in use by " + a + " and " + b, {{a, "p-web-1"}}), "in use by p-web-1 and bbbbbbbbbbbb");
    EXPECT_EQ(with_names("sha256:" + a, {{a, "p-web-1"}}), "sha256:" + a);
}

TEST(Engine, GarbageIsAnErrorOrEmpty) {
    for (const char* text : {"", "{", "null", "{}", "7", "Cannot connect to the Docker daemon"}) {
        EXPECT_FALSE(parse_containers(EngineKind::Docker, text, "")) << text;
        EXPECT_FALSE(parse_images(text)) << text;
    }
    EXPECT_TRUE(parse_containers(
                    EngineKind::Podman,
                    R"([7, null, {"Id": 5}, {"Id":"a","State":"x","Config":[],"NetworkSettings":{"Ports":{"x":[7]}}}])",
                    "a|")
                    ->size() == 1);
    EXPECT_TRUE(parse_images(R"([{"Id":"a","RepoTags":null,"RootFS":{"Layers":"x"},"Size":-5}])")->size() == 1);
    EXPECT_FALSE(parse_info(EngineKind::Docker, "[]"));
}

}  // namespace
}  // namespace talpa::topo
