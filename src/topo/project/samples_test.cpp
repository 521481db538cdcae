// Every sample project gives its outcome: lint's findings by kind and line, what configure says, and what deploy says
// before it touches an engine. The outcomes were measured on the original tool; where the wanted one differs (required
// values, projects without services) the row says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/host/file.h"
#include "base/host/testing.h"
#include "topo/project/edit.h"
#include "topo/project/project_checks.h"

namespace talpa::topo {
namespace {

struct Sample {
    const char* file;
    std::vector<std::string> lint;  // "kind@line", errors and warnings
    const char* configure;          // empty: accepted
    const char* deploy;             // empty: accepted
};

const std::vector<Sample>& samples() {
    static const std::vector<Sample> kSamples = {
        {"valid/01-minimal.yaml", {}, "", ""},
        {"valid/02-all-fields.yaml", {"parameter.missing@24"}, "SENSOR_MODEL", ""},
        {"valid/03-args-as-list.yaml", {"parameter.missing@13"}, "OWNER", ""},
        {"valid/04-remoteproc.yaml", {}, "", ""},
        {"valid/05-artifact-scale0.yaml", {}, "", ""},
        {"valid/06-platform-variant.yaml", {}, "", ""},
        {"valid/07-deprecated-args.yaml", {"xtopo.args.deprecated@9"}, "", ""},
        {"valid/08-shared-parameter.yaml", {}, "", ""},
        {"valid/09-no-x-topo.yaml", {}, "", ""},
        {"valid/10-unknown-x-topo-key.yaml", {}, "", ""},
        {"valid/11-anchors.yaml", {}, "", ""},
        {"valid/12-extends.yaml", {}, "", ""},
        {"invalid/01-empty.yaml", {"compose.empty@0"}, "empty compose file", "empty compose file"},
        {"invalid/02-comment-only.yaml", {"compose.empty@0"}, "empty compose file", "empty compose file"},
        {"invalid/03-broken-yaml.yaml", {"yaml.syntax@3"}, "line 2", "line 2"},
        {"invalid/04-name-missing.yaml", {"xtopo.name.missing@4"}, "", ""},
        {"invalid/05-name-not-string.yaml", {"xtopo.type@4"}, ":4:", ""},
        {"invalid/06-features-not-list.yaml", {"xtopo.type@5"}, ":5:", ""},
        {"invalid/07-parameters-as-list.yaml", {"xtopo.type@6"}, ":6:", ""},
        {"invalid/08-parameter-unknown-key.yaml", {"xtopo.parameter.unknown-key@6"}, "", ""},
        {"invalid/09-required-not-bool.yaml", {"xtopo.type@6"}, ":6:", ""},
        {"invalid/10-hint-key-undotted.yaml", {"xtopo.hint.key@6"}, "", ""},
        {"invalid/11-platform-missing.yaml", {"service.platform.missing@2"}, "", "service \"a\" is missing platform"},
        {"invalid/12-platform-wrong.yaml",
         {"service.platform.wrong@2", "service.platform.missing@3"},
         "",
         "service \"b\" is missing platform"},
        {"invalid/13-x-topo-under-services.yaml", {"compose.schema@3"}, "", "services.x-topo"},
        {"invalid/14-x-topo-not-mapping.yaml", {"xtopo.type@3"}, ":3:", ""},
        {"invalid/15-required-unset.yaml", {"parameter.missing@10"}, "TOKEN_NAME", ""},
        {"invalid/16-parameter-unused.yaml", {"parameter.unwired@6"}, "NOWHERE", ""},
        {"invalid/17-unset-required-interpolation.yaml", {"compose.interpolation@2"}, "", "TAG"},
        {"invalid/18-args-scalar.yaml", {"compose.schema@2", "parameter.unwired@6"}, "P:", "build.args"},
        {"invalid/19-extends-missing-file.yaml", {"compose.extends@2"}, "", "nowhere.yaml"},
        // The original passes the check and fails in the engine; we say it first.
        {"invalid/20-no-services.yaml", {"compose.no-services@1"}, "", "no services"},
        {"invalid/21-duplicate-key.yaml",
         {"yaml.duplicate-key@4"},
         "already defined at line 3",
         "already defined at line 3"},
        {"invalid/22-message-not-string.yaml", {"xtopo.type@5"}, "", ""},
    };
    return kSamples;
}

std::filesystem::path folder() {
    return testing::golden_folder() / "topo";
}

std::string configure(const std::filesystem::path& path) {
    const auto text = host::read_text(path);
    const auto root = yaml::parse_first(*text, path.filename());
    if (!root) return root.error().describe();
    const auto x_topo = read_x_topo(**root, path.filename());
    if (!x_topo) return x_topo.error().describe();
    const auto values = resolve_values(**root, *x_topo, {}, {});
    if (!values) return values.error().message;
    const auto edited = apply_values(*text, path.filename(), *values);
    if (!edited) return edited.error().describe();
    EXPECT_FALSE(edited->changed) << path;
    return "";
}

std::string deploy(const std::filesystem::path& path) {
    const auto project = load_project({.file = path, .profiles = {}, .variables = {}});
    if (!project) return project.error().describe();
    const auto findings = check_project(*project, path.filename());
    return findings.empty() ? "" : project_message(findings);
}

TEST(Samples, EveryProjectGivesItsOutcome) {
    ASSERT_EQ(samples().size(), 34U);
    for (const Sample& sample : samples()) {
        SCOPED_TRACE(sample.file);
        const std::filesystem::path path = folder() / sample.file;
        ASSERT_TRUE(std::filesystem::exists(path));
        std::vector<std::string> kinds;
        for (const Finding& f : lint(path))
            if (f.severity != Severity::Note && f.code != "build.context.missing")  // only the Compose files are here
                kinds.push_back(fmt::format("{}@{}", f.code, f.mark.line));
        EXPECT_THAT(kinds, ::testing::ElementsAreArray(sample.lint));
        for (const auto& [said, wanted] :
             {std::pair(configure(path), sample.configure), std::pair(deploy(path), sample.deploy)}) {
            if (*wanted == '\0')
                EXPECT_EQ(said, "");
            else
                EXPECT_THAT(said, ::testing::HasSubstr(wanted));
        }
    }
}

TEST(Samples, EveryFileOfTheFolderIsInTheTable) {
    for (const char* part : {"valid", "invalid"})
        for (const auto& entry : std::filesystem::directory_iterator(folder() / part)) {
            if (entry.path().extension() != ".yaml") continue;
            const std::string name = std::string(part) + "/" + entry.path().filename().string();
            EXPECT_TRUE(std::any_of(samples().begin(), samples().end(), [&](const Sample& s) {
                return name == s.file;
            })) << name;
        }
}

std::string edited(const char* sample, const std::vector<std::string>& words) {
    const std::filesystem::path path = folder() / sample;
    const std::string text = *host::read_text(path);
    const auto root = *yaml::parse_first(text, "compose.yaml");
    const auto values = resolve_values(*root, *read_x_topo(*root, "compose.yaml"), words, {});
    if (!values) return values.error().message;
    const auto result = apply_values(text, "compose.yaml", *values);
    return result ? result->text : result.error().describe();
}

// The sample with one line replaced.
std::string sample_with(const char* sample, std::string_view from, std::string_view to) {
    std::string text = *host::read_text(folder() / sample);
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
        text.replace(at, from.size(), to);
    return text;
}

TEST(Samples, RewritingChangesTheValuesOnly) {
    EXPECT_EQ(edited("valid/02-all-fields.yaml", {"SENSOR_MODEL=A=B"}),
              sample_with("valid/02-all-fields.yaml", "SENSOR_MODEL: \"\"", "SENSOR_MODEL: \"A=B\""));
    EXPECT_EQ(edited("valid/03-args-as-list.yaml", {"OWNER=me", "CHANNELS=8"}), [] {
        std::string text = sample_with("valid/03-args-as-list.yaml", "- CHANNELS=4", "- CHANNELS=8");
        return text.replace(text.find("- OWNER"), 7, "- OWNER=me");
    }());
    EXPECT_EQ(edited("valid/08-shared-parameter.yaml", {"REGION=asia"}), [] {
        std::string text = sample_with("valid/08-shared-parameter.yaml", "{REGION: eu}}", "{REGION: asia}}");
        return text.replace(text.find("{REGION: us}}"), 13, "{REGION: asia}}");
    }());
    EXPECT_EQ(edited("valid/11-anchors.yaml", {"ZONE=south"}),
              sample_with("valid/11-anchors.yaml", "args: *common", "args: {ZONE: south}"));
    EXPECT_EQ(edited("invalid/15-required-unset.yaml", {"TOKEN_NAME=t9"}),
              sample_with("invalid/15-required-unset.yaml", "[TOKEN_NAME]", "[TOKEN_NAME=t9]"));
}

}  // namespace
}  // namespace talpa::topo
