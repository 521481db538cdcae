// config.json, annotations, state files and the command line, without any process. What the operations do is tested by
// tests/remoteproc_scenarios_test.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <csignal>

#include "base/host/json.h"
#include "remoteproc/oci/allow.h"
#include "remoteproc/oci/arguments.h"
#include "remoteproc/oci/core_file.h"
#include "remoteproc/oci/hooks.h"
#include "remoteproc/oci/info.h"
#include "remoteproc/oci/log.h"
#include "remoteproc/oci/namespaces.h"
#include "remoteproc/oci/state.h"
#include "remoteproc/oci/wishes.h"

namespace talpa::remoteproc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T>
std::string why(const Result<T>& result) {
    return result ? "success" : error_line(result.error());
}

TEST(SpecTest, ReadsWhatFirmwareNeedsAndIgnoresTheRest) {
    const auto spec = parse_spec(R"( {"ociVersion":"1.1.0","process":{"args":["x.elf"],"env":["A=b"],"user":{"uid":5}},
        "root":{"path":"rootfs"},"annotations":{"remoteproc.name":"a","remoteproc.name":"imx-rproc"},
        "linux":{"namespaces":[{"type":"network","path":"/run/netns/x"},{"type":"pid"}],"seccomp":{"x":[]}},
        "hooks":{"prestart":[{"path":"/h","args":["h","1"],"env":["X=y"],"timeout":5}]}} trailing bytes)");
    ASSERT_TRUE(spec) << why(spec);
    EXPECT_THAT(*spec->arguments, ElementsAre("x.elf"));
    EXPECT_EQ(*spec->root, "rootfs");
    EXPECT_EQ(spec->annotations.at("remoteproc.name"), "imx-rproc") << "the last of equal keys wins";
    ASSERT_EQ(spec->namespaces.size(), 2u);
    EXPECT_EQ(spec->namespaces[0].path, "/run/netns/x");
    ASSERT_EQ(spec->hooks[0].size(), 1u);
    EXPECT_EQ(spec->hooks[0][0].timeout_s, 5);
}

TEST(SpecTest, NamesTheFieldOfTheWrongType) {
    EXPECT_THAT(why(parse_spec(R"({"process":{"args":["a",5]}})")),
                HasSubstr("process.args is not an array of strings"));
    EXPECT_THAT(why(parse_spec(R"({"root":"x"})")), HasSubstr("field root is not an object"));
    EXPECT_THAT(why(parse_spec(R"({"annotations":{"a":1}})")), HasSubstr("annotations"));
    EXPECT_THAT(why(parse_spec("[]")), HasSubstr("a JSON object is wanted"));
    EXPECT_THAT(why(parse_spec("{\"a\":")), HasSubstr("unexpected end"));
    EXPECT_THAT(why(parse_spec("{\"a\":" + std::string(100, '['))), HasSubstr("nested deeper than 64"));
    EXPECT_THAT(why(parse_spec("{\"a\":\"\xff\"}")), HasSubstr("invalid JSON"));
}

TEST(SpecTest, APodsSandboxIsTold) {
    EXPECT_EQ(container_kind({{"io.kubernetes.cri.container-type", "sandbox"}}), ContainerKind::Sandbox);
    EXPECT_EQ(container_kind({{"io.kubernetes.cri-o.ContainerType", "sandbox"}}), ContainerKind::Sandbox);
    EXPECT_EQ(container_kind({{"io.kubernetes.cri.container-type", "container"}}), ContainerKind::Firmware);
    EXPECT_EQ(sandbox_id({{"io.kubernetes.cri.sandbox-id", "s1"}}), "s1");
}

TEST(WishesTest, TheMissingNameIsTheErrorThatEnginesKnowUnlessCalledAsRunc) {
    Spec spec;
    EXPECT_THAT(why(read_wishes({}, &spec, false)), HasSubstr("missing remoteproc.name in annotations"));
    const auto only = read_wishes({}, &spec, true);
    ASSERT_TRUE(only);
    EXPECT_TRUE(only->selector.only);
    spec.environment = {"PATH=/", "REMOTEPROC_NAME=dsp"};
    const auto named = read_wishes({}, &spec, true);
    ASSERT_TRUE(named);
    EXPECT_EQ(named->selector.name, "dsp");
    EXPECT_TRUE(selection_warning({}, *named));
    EXPECT_FALSE(read_wishes({}, &spec, false)) << "the environment counts only where --root was given";
    EXPECT_EQ(read_wishes({{"remoteproc.name", ""}}, &spec, false)->selector.name, "");
}

TEST(WishesTest, ValuesOutsideTheTableAreRefusedWithWhatIsAllowed) {
    Spec spec;
    const auto with = [&](const std::string& key, const std::string& value) {
        return why(read_wishes({{"remoteproc.name", "x"}, {key, value}}, &spec, false));
    };
    EXPECT_EQ(with("remoteproc.start-timeout", "5"), "success");
    EXPECT_THAT(with("remoteproc.start-timeout", "0"), HasSubstr("a number from 1 to 3600"));
    EXPECT_THAT(with("remoteproc.start-timeout", "5s"), HasSubstr("a number from 1 to 3600"));
    EXPECT_THAT(with("remoteproc.recovery", "maybe"), HasSubstr("one of enabled, disabled"));
    EXPECT_THAT(with("remoteproc.sha256", "abc"), HasSubstr("64 hex digits"));
    EXPECT_THAT(with("remoteproc.log", "../../etc"), HasSubstr("trace0"));
    EXPECT_THAT(with("remoteproc.console", "/dev/mem"), HasSubstr("a tty in /dev"));
    EXPECT_THAT(with("remoteproc.console", "/dev/tty/../mem"), HasSubstr("a tty in /dev"));
    EXPECT_EQ(with("remoteproc.console", "/dev/ttyRPMSG0"), "success");
}

TEST(WishesTest, EveryKnownAnnotationIsReadAndNoOther) {
    Spec spec;
    for (const AnnotationInfo& info : known_annotations()) {
        if (info.values == "NAME" || info.values == "COMPATIBLE" || info.values == "remoteprocN or a path") continue;
        EXPECT_FALSE(read_wishes({{"remoteproc.name", "x"}, {std::string(info.key), "%nonsense%"}}, &spec, false))
            << info.key;
    }
}

TEST(StateTest, HasTheOriginalsForm) {
    // As the original wrote it (remoteproc-runtime, section 3): order of keys, two spaces, no newline at the end.
    const StateFile state{"c1", "created", 42, "/b", {{"remoteproc.driver-path", "/sys/class/remoteproc/remoteproc0"}}};
    EXPECT_EQ(
        state_json(state, 2),
        "{\n  \"ociVersion\": \"1.3.0\",\n  \"id\": \"c1\",\n  \"status\": \"created\",\n  \"pid\": 42,\n  \"bundle\": "
        "\"/b\",\n  \"annotations\": {\n    \"remoteproc.driver-path\": \"/sys/class/remoteproc/remoteproc0\"\n  }\n}");
    const auto read = parse_state_file(state_json(state, 2));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->pid, 42);
    EXPECT_EQ(read->annotation("remoteproc.driver-path"), "/sys/class/remoteproc/remoteproc0");
    EXPECT_EQ(parse_state_file(R"({"pid":-1})")->pid, 0) << "kill(-1) would reach every process";
    EXPECT_EQ(parse_state_file(R"({"pid":99999999999})")->pid, 0);
    EXPECT_FALSE(parse_state_file(R"({"pid":"x"})"));
}

TEST(StateTest, DetailsSurviveTheirFile) {
    Details d;
    d.start_time = 77;
    d.boot = "b";
    d.root_folder = "/r";
    d.argument = "x.elf";
    d.firmware = {1, 2, 3, 4};
    d.annotations = {{"k", "v\xff"}};
    d.hooks[1].push_back({"/h", {"h"}, {"E=1"}, 3});
    const auto read = parse_details(details_json(d));
    ASSERT_TRUE(read) << why(read);
    EXPECT_EQ(read->firmware, d.firmware);
    EXPECT_EQ(read->hooks[1].at(0).timeout_s, 3);
    EXPECT_EQ(read->start_time, 77u);
}

TEST(StateTest, TheProxysNotesTellHowItWent) {
    const auto lived =
        parse_proxy_record("5 ready\n6 started\n7 crashed\n9 exit 139 the firmware crashed\n10 exit 1 x\n");
    EXPECT_TRUE(lived.started);
    EXPECT_EQ(lived.exit_code, 139) << "the first exit counts";
    EXPECT_EQ(lived.exit_ns, 9u);
    const auto failed = parse_proxy_record("5 ready\n6 failed 22 write /sys/x: invalid argument\nnonsense\n7 exi");
    EXPECT_EQ(failed.failed_errno, 22);
    EXPECT_EQ(failed.failed_text, "write /sys/x: invalid argument");
    EXPECT_FALSE(failed.exit_code);
}

TEST(StateTest, FirmwareThatCrashesForeverDoesNotPushItsEndOutOfTheNotes) {
    const Fd notes(::memfd_create("notes", MFD_CLOEXEC));
    note_event(notes.get(), "started");
    std::size_t incidents = 0;
    for (; ::lseek(notes.get(), 0, SEEK_CUR) < static_cast<off_t>(kIncidentLimit); ++incidents)
        note_incident(notes.get(), "crashed");
    note_incident(notes.get(), "recovered");
    EXPECT_LT(::lseek(notes.get(), 0, SEEK_CUR), static_cast<off_t>(kIncidentLimit) + 100);
    note_event(notes.get(), "exit 139 the firmware crashed");
    ::lseek(notes.get(), 0, SEEK_SET);
    const auto record = parse_proxy_record(read_fd(notes.get(), 1 << 20).value_or(""));
    EXPECT_TRUE(record.started);
    EXPECT_EQ(record.exit_code, 139) << incidents;
}

// As a process that was started with SIGCHLD ignored sees it: the kernel throws statuses away.
TEST(HooksTest, AnEndThatWasLostIsNoSuccess) {
    Hooks hooks;
    hooks[0].push_back({"/bin/false", {}, {}, 5});
    EXPECT_THAT(why(run_hooks(hooks, HookKind{}, "{}")), HasSubstr("exit status 1"));
    std::signal(SIGCHLD, SIG_IGN);
    EXPECT_THAT(why(run_hooks(hooks, HookKind{}, "{}")), HasSubstr("its end was lost"));
    std::signal(SIGCHLD, SIG_DFL);
}

TEST(StateTest, IdsThatArePathsAreRefused) {
    for (const char* good : {"c1", "a", "A.b-c_d", "0123"}) EXPECT_TRUE(check_id(good)) << good;
    for (const char* bad : {"", ".", "..", "../x", "a/b", "a\nb", "-a", ".a", "a b", "\xc3\xa9"})
        EXPECT_FALSE(check_id(bad)) << bad;
    EXPECT_FALSE(check_id(std::string(256, 'a')));
}

TEST(AllowTest, RulesFitByProcessorUserAndNamespace) {
    const std::string rules =
        "# cores of this board\n"
        "imx-rproc  uid:0 namespace:k8s.io   # the cluster\n"
        "\n"
        "dsp\tnamespace:default uid:1000\r\n"
        "spare *";
    const auto allowed = [&](std::string_view processor, unsigned uid, std::string ns) {
        const auto result = is_allowed(rules, processor, {uid, std::move(ns)});
        return result && *result;
    };
    EXPECT_TRUE(allowed("imx-rproc", 0, ""));
    EXPECT_FALSE(allowed("imx-rproc", 1000, "k8s.io")) << "whoever is not root can claim any namespace";
    EXPECT_FALSE(allowed("imx-rproc", 5, ""));
    EXPECT_TRUE(allowed("dsp", 0, "default"));
    EXPECT_TRUE(allowed("dsp", 1000, ""));
    EXPECT_FALSE(allowed("dsp", 0, "k8s.io"));
    EXPECT_FALSE(allowed("dsp", 0, ""));
    EXPECT_TRUE(allowed("spare", 7, ""));
    EXPECT_FALSE(allowed("other", 0, "")) << "what no line names";
    EXPECT_FALSE(allowed("imx", 0, "")) << "whole names only";
    EXPECT_TRUE(is_allowed("* uid:3", "any", {3, ""}).value());
    EXPECT_FALSE(is_allowed("", "any", {0, ""}).value());
    EXPECT_EQ(why(is_allowed("\nimx-rproc", "x", {})), "line 2: PROCESSOR WHO… is wanted");
    EXPECT_THAT(why(is_allowed("imx-rproc root", "x", {})), HasSubstr("line 1: root is none of *, uid:N"));
    EXPECT_THAT(why(is_allowed("a uid:-1", "x", {})), HasSubstr("uid:-1 is none of"));
    EXPECT_THAT(why(is_allowed("a namespace:", "x", {})), HasSubstr("is none of"));
}

Result<CommandLine> parse(std::vector<std::string> arguments) {
    return parse_command_line(arguments);
}

TEST(ArgumentsTest, FlagsStandAnywhere) {
    for (const auto& words : std::vector<std::vector<std::string>>{{"create", "--bundle", "/b", "c1"},
                                                                   {"--bundle", "/b", "create", "c1"},
                                                                   {"create", "c1", "--bundle=/b"},
                                                                   {"create", "-b", "/b", "--", "c1"},
                                                                   {"create", "-b/b", "c1"}}) {
        const auto line = parse(words);
        ASSERT_TRUE(line) << why(line);
        EXPECT_EQ(line->command->name, "create");
        EXPECT_EQ(line->value("bundle"), "/b");
        EXPECT_THAT(line->positional, ElementsAre("c1"));
    }
    const auto docker = parse({"--root", "/r", "--log", "/l", "--log-format", "json", "delete", "--force", "c1"});
    ASSERT_TRUE(docker);
    EXPECT_EQ(docker->value("root"), "/r");
    EXPECT_TRUE(docker->has("force"));
}

TEST(ArgumentsTest, WrongUsageIsToldAsTheOriginalTellsIt) {
    EXPECT_EQ(why(parse({"bogus"})), "unknown command \"bogus\" for \"remoteproc-runtime\"");
    EXPECT_EQ(why(parse({"start", "--bogus"})), "unknown flag: --bogus");
    EXPECT_EQ(why(parse({"start", "-x"})), "unknown shorthand flag: 'x' in -x");
    EXPECT_EQ(why(parse({"start"})), "accepts 1 arg(s), received 0");
    EXPECT_EQ(why(parse({"kill"})), "accepts between 1 and 2 arg(s), received 0");
    EXPECT_EQ(why(parse({"proxy"})), "required flag(s) \"device-path\" not set");
    EXPECT_EQ(why(parse({"create", "c1", "--bundle"})), "flag needs an argument: --bundle");
    EXPECT_EQ(why(parse({"--bundle", "/b", "start", "c1"})), "unknown flag: --bundle");
    EXPECT_TRUE(parse({"exec", "--anything", "c1", "ls"})) << "refused later, with the reason";
}

TEST(FeaturesTest, AreJson) {
    const auto json = host::Json::parse(features_json("1"));
    EXPECT_EQ(json["hooks"].size(), 6u);
    EXPECT_EQ(json["ociVersionMax"], "1.3.0");
    EXPECT_TRUE(json["remoteproc"]["annotations"].contains("remoteproc.sha256"));
}

TEST(LogTest, TextOfStrangersIsQuoted) {
    EXPECT_EQ(json_quoted("a\"b\\c\n\x01\x7f\xff\xc3\xa9"), "\"a\\\"b\\\\c\\n\\u0001\\u007f?\xc3\xa9\"");
    EXPECT_EQ(json_quoted("\xe0\x80\x80\xed\xa0\x80"), "\"??????\"");  // an overlong form and a surrogate: no UTF-8
}

TEST(NamespacesTest, NewOnesBecomeFlagsAndPathsAreSkipped) {
    const auto plan = plan_namespaces({{"cgroup", ""}, {"user", ""}, {"network", "/run/netns/x"}}, false);
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->clone_flags, 0x02000000u | 0x10000000u);  // CLONE_NEWCGROUP, CLONE_NEWUSER of <linux/sched.h>
    EXPECT_TRUE(plan->join.empty());
    EXPECT_EQ(why(plan_namespaces({{"moon", ""}}, false)), "unknown namespace type \"moon\"");
}

}  // namespace
}  // namespace talpa::remoteproc
