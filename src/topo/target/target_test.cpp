// Destinations, ssh's words, hardware and probes: what the specification says, and garbage from the other side.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topo/system/text.h"
#include "topo/target/probe.h"
#include "topo/target/ssh_arguments.h"
#include "topo/target/ssh_error.h"

namespace talpa::topo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Destination, FormsAndTheirUri) {
    const std::pair<const char*, const char*> kForms[] = {
        {"board", "ssh://board"},
        {"ssh://root@board:2222", "ssh://root@board:2222"},
        {"a@b@board", "ssh://a@b@board"},
        {" board ", "ssh://board"},
        {"[::1]", "ssh://[::1]"},
        {"root@[::1]:22022", "ssh://root@[::1]:22022"},  // the original loses the brackets
        {"fe80::1", "ssh://[fe80::1]"},
        {"ssh://board/", "ssh://board"},
    };
    for (const auto& [text, uri] : kForms) EXPECT_EQ(parse_destination(text).value().uri(), uri) << text;
    for (const char* bad : {"", "root@", "board:", "board:0", "board:70000", "board:x", "[::1", "a b",
                            "-oProxyCommand=x", "root@-x", "x;reboot", "$(reboot)", "a\x1b[31m"})
        EXPECT_FALSE(parse_destination(bad)) << bad;
}

TEST(Destination, LocalhostIsPlainOnlyWithoutUserAndPort) {
    for (const char* text : {"localhost", "LOCALHOST", "127.0.0.1"})
        EXPECT_TRUE(parse_destination(text)->is_plain_localhost());
    for (const char* text : {"root@localhost", "localhost:22", "127.0.0.2", "::1"})
        EXPECT_FALSE(parse_destination(text)->is_plain_localhost()) << text;
    EXPECT_TRUE(parse_destination("root@localhost")->is_localhost());
    EXPECT_EQ(parse_destination("pi@board.local:2222")->slug(), "pi_board.local_2222");
    EXPECT_EQ(parse_destination("h:2222")->known_hosts_name(), "[h]:2222");
    EXPECT_EQ(parse_destination("h:22")->known_hosts_name(), "h");
}

TEST(Destination, Ipv6IsNotGivenToSshAsAUri) {
    EXPECT_THAT(ssh_arguments(*parse_destination("root@[::1]:22022")),
                ElementsAre("-l", "root", "-p", "22022", "--", "::1"));
    EXPECT_THAT(ssh_arguments(*parse_destination("root@h:2")), ElementsAre("--", "ssh://root@h:2"));
}

TEST(SshError, ClassesAndFixes) {
    const std::pair<const char*, SshFault> kCases[] = {
        {"@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\r\nHost key verification failed.",
         SshFault::HostKeyChanged},
        {"No ED25519 host key is known for [h]:22 and you have requested strict checking.\r\nHost key verification "
         "failed.",
         SshFault::HostKeyUnknown},
        {"ssh: connect to host h port 22: Connection timed out", SshFault::TimedOut},
        {"root@h: Permission denied (publickey,password).", SshFault::AuthenticationFailed},
        {"Received disconnect from h port 22:2: Too many authentication failures",
         SshFault::TooManyAuthenticationFailures},
        {"ssh: connect to host h port 1: Connection refused", SshFault::ConnectionFailed},
        {"ssh: Could not resolve hostname h: Name or service not known", SshFault::ConnectionFailed},
        {"something else", SshFault::Other},
    };
    for (const auto& [text, fault] : kCases) EXPECT_EQ(classify_ssh(text), fault) << text;
    const Destination d = *parse_destination("root@h:2222");
    EXPECT_EQ(fix_for(SshFault::HostKeyChanged, d).command, "ssh-keygen -R '[h]:2222'");
    EXPECT_EQ(fix_for(SshFault::AuthenticationFailed, d).command, "topo setup-keys --target ssh://root@h:2222");
    EXPECT_EQ(ssh_error(d, "x: Permission denied (publickey).", 255, false).message,
              "ssh command to ssh://root@h:2222 failed: ssh failed: authentication failed | stderr: x: Permission "
              "denied (publickey).");
}

TEST(Marker, EverythingBeforeItGoes) {
    bool found = false;
    EXPECT_EQ(after_marker("banner\n__TOPO_COMMAND_START__\nout\n", found), "out\n");
    EXPECT_TRUE(found);
    EXPECT_EQ(after_marker("x __TOPO_COMMAND_START__\n__TOPO_COMMAND_START__\r\nout", found), "out");
    EXPECT_EQ(after_marker("only noise", found), "only noise");
    EXPECT_FALSE(found);
}

TEST(Marker, ThePayloadSurvivesEveryCharacter) {
    const std::string script = "printf '%s|' \"$HOME\" 'a\"b' `echo c` \\$d \"$(echo 'e  f')\"; echo \"\\\\\"";
    const auto direct = capture({.argv = {"/bin/sh", "-c", script}});
    const auto wrapped = capture({.argv = {"/bin/sh", "-c", login_shell_payload(script)}});
    bool found = false;
    EXPECT_EQ(after_marker(wrapped->out, found), direct->out);
    EXPECT_TRUE(found);
}

TEST(Hardware, TwoClustersAsMeasured) {
    const auto cpus = parse_lscpu(
        R"({"lscpu":[{"field":"Architecture:","data":"aarch64"},{"field":"Model name:","data":"Cortex-A55"},{"field":"Core(s) per cluster:","data":"4"},
        {"field":"Socket(s):","data":"-"},{"field":"Cluster(s):","data":"1"},{"field":"Flags:","data":"fp asimd"},{"field":"Model name:","data":"Cortex-A78"},
        {"field":"Core(s) per socket:","data":"2"},{"field":"Socket(s):","data":"1"}]})");
    ASSERT_TRUE(cpus) << cpus.error().describe();
    ASSERT_EQ(cpus->size(), 2U);
    EXPECT_EQ((*cpus)[0].model, "Cortex-A55");
    EXPECT_EQ((*cpus)[0].cores, 4);
    EXPECT_THAT((*cpus)[0].features, ElementsAre("fp", "asimd"));
    EXPECT_EQ((*cpus)[1].cores, 2);
}

TEST(Hardware, OldTablesAndNestedAnswers) {
    const auto table = parse_lscpu(
        "Architecture: x86_64\nCore(s) per socket:  2\nSocket(s):   1\nModel name:  Some CPU\nFlags: a b\n");
    ASSERT_TRUE(table);
    EXPECT_EQ((*table)[0].model, "Some CPU");
    EXPECT_EQ((*table)[0].cores, 2);
    const auto nested = parse_lscpu(
        R"({"lscpu":[{"field":"Vendor ID:","data":"ARM","children":[{"field":"Model name:","data":"Cortex-A55","children":[{"field":"Core(s) per socket:","data":"2"},{"field":"Socket(s):","data":"1"}]}]}]})");
    ASSERT_TRUE(nested);
    EXPECT_EQ((*nested)[0].cores, 2);
    EXPECT_TRUE(parse_lscpu(R"({"lscpu":[]})").value().empty());
}

TEST(Hardware, GarbageIsAnError) {
    for (const char* text : {"", "{", "{\"lscpu\":[", "[]", "{\"x\":1}", "no table here",
                             "{\"lscpu\":[{\"field\":\"Model name:\",\"data\":\"x\"}]}"})
        EXPECT_FALSE(parse_lscpu(text)) << text;
    EXPECT_TRUE(parse_lscpu("{\"lscpu\":[{\"field\":5},7,null]}"));
    EXPECT_EQ(parse_meminfo("MemFree: 1 kB\nMemTotal:       1985284 kB\n").value(), 1985284U);
    EXPECT_THAT(parse_meminfo("").error().message, HasSubstr("field MemTotal not found"));
    EXPECT_FALSE(parse_meminfo("MemTotal: lots\n"));
}

TEST(Hardware, PlainFormAsTheOriginalPrintsIt) {
    const Hardware hardware{.host_processors = {{"Cortex-A55", 2, {"fp", "asimd"}}},
                            .remote_processors = {"imx-rproc"},
                            .total_memory_kb = 1985284};
    EXPECT_EQ(hardware_yaml(hardware),
              "hostProcessors:\n    - model: Cortex-A55\n      cores: 2\n      features:\n        - fp\n        - "
              "asimd\nremoteProcessors:\n    - name: imx-rproc\ntotalMemoryKb: 1985284\n");
    EXPECT_THAT(hardware.feature_names(), ElementsAre("NEON", "remoteproc", "remoteproc-runtime"));
    EXPECT_THAT(missing_features({"neon", "SVE"}, hardware.feature_names()), ElementsAre("SVE"));
}

TEST(Probe, AnswersComeBackByName) {
    const std::vector<ProbeCheck> checks = {{"a", "echo one; echo two >&2; exit 3"},
                                            {"slow", "sleep 5", 1},
                                            {"fake", "echo __TOPO_other__end a 0; printf 'no end'"}};
    const auto ran = capture({.argv = {"/bin/sh", "-c", probe_script(checks, "n1")}});
    ProbeAnswers answers = parse_probe("noise\n" + ran->out, "n1");
    EXPECT_EQ(answers["a"].status, 3);
    EXPECT_EQ(answers["a"].out, "one\ntwo\n");
    EXPECT_TRUE(answers["slow"].timed_out());
    EXPECT_EQ(answers["fake"].out, "__TOPO_other__end a 0\nno end");
    EXPECT_TRUE(parse_probe("__TOPO_n1__end a 0\n__TOPO_n1__begin a\n__TOPO_n1__end a x\n", "n1").empty());
}

TEST(Text, WordsForAShellAndDurations) {
    EXPECT_EQ(shell_quoted("it's $(x)"), "'it'\\''s $(x)'");
    EXPECT_EQ(parse_duration("1m30s")->count(), 90'000);
    EXPECT_EQ(parse_duration("250ms")->count(), 250);
    EXPECT_FALSE(parse_duration("5"));
    EXPECT_FALSE(parse_duration("s"));
}

}  // namespace
// What OpenSSH 9.2 says, with 255, when a server lets nobody in for now, and when it has begun.
TEST(SshError, RefusedForNow) {
    for (const char* said :
         {"kex_exchange_identification: read: Connection reset by peer\r\nConnection reset by ::1 port 22",
          "mux_client_request_session: session request failed: Session open refused by peer\n"
          "ControlSocket /tmp/x already exists, disabling multiplexing\n"
          "kex_exchange_identification: Connection closed by remote host"})
        EXPECT_TRUE(refused_for_now(255, said)) << said;
    EXPECT_FALSE(refused_for_now(1, "kex_exchange_identification: read: Connection reset by peer"));
    for (const char* said : {"", "ssh: connect to host h port 22: Connection refused", "Permission denied (publickey).",
                             "curl: kex_exchange_identification: no",
                             "banner exchange: Connection to 10.0.0.1 port 22: Connection timed out"})
        EXPECT_FALSE(refused_for_now(255, said)) << said;
    EXPECT_EQ(classify_ssh(""), SshFault::ConnectionLost);
    EXPECT_EQ(classify_ssh("Timeout, server 10.0.0.1 not responding.\r\n"), SshFault::ConnectionLost);
}

}  // namespace talpa::topo
