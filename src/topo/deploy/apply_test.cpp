// What is done to containers, and what is there when that goes wrong: with an engine of files (fake_engine.h).
#include "topo/deploy/apply.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "topo/deploy/fake_engine.h"
#include "topo/deploy/pipeline.h"
#include "topo/deploy/record.h"

namespace talpa::topo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Quiet : public DeployEvents {
  public:
    void stage(std::string_view) override {}
    void note(std::string_view text) override { notes += text; }
    void method(const Method&) override {}
    void said(std::string_view) override {}
    void container(const std::string&, std::string_view) override {}
    void transfer(const TransferProgress&) override {}
    void transfer_done(const TransferPlan&) override {}
    std::string notes;
};

class Apply : public FakeEngine {
  protected:
    void SetUp() override {
        FakeEngine::SetUp();
        options_.wait = Milliseconds(0);  // whether they are good is not the question here
    }
    [[nodiscard]] std::vector<Desired> desired(const std::string& text,
                                               const std::map<std::string, std::string>& images) {
        write("p/compose.yaml", text);
        const auto project = load_project({.file = folder_ / "p/compose.yaml", .profiles = {}, .variables = {}});
        EXPECT_TRUE(project) << project.error().describe();
        project_ = project.value_or(Project{});
        std::map<std::string, Image> all;
        for (const auto& [service, id] : images) {
            all[service].id = id;
            const Service* one = project_.find(service);
            if (one != nullptr) write(("tags/localhost+" + project_.image_of(*one)).c_str(), id + "\n");
        }
        return desired_containers(project_, all, {.kind = EngineKind::Podman, .info = {}, .remoteproc_runtime = {}})
            .value();
    }
    /// On the target as what was deployed last, or before that.
    void recorded(const char* file, const std::string& text) const {
        std::filesystem::create_directories(folder_ / "state/topo/p");
        write((std::string("state/topo/p/") + file).c_str(), text);
    }

    ApplyOptions options_;
    Project project_;
    const ApplyEvents ignore_ = [](const std::string&, std::string_view) {};
};

constexpr const char* kThree = "services:\n  web: {image: w, depends_on: [db]}\n  db: {image: d}\n  side: {image: s}\n";

// Those that need none of each other start at the same time, after a rollback too; who depends on another waits.
TEST_F(Apply, ARollbackStartsInTheOrderOfDependsOn) {
    Record record{.time = "then", .containers = desired(kThree, {{"web", "w1"}, {"db", "d1"}, {"side", "s1"}})};
    recorded("current.json", record_json({.time = "now", .containers = {}}));
    recorded("previous.json", record_json(record));
    write("meet", "p-db-1\np-side-1\n");  // each waits for the other
    Quiet quiet;
    const auto done = rollback(project_, engine_, options_, quiet);
    ASSERT_TRUE(done) << done.error().describe();
    EXPECT_THAT(now(), ElementsAre("p-db-1 d1 running", "p-side-1 s1 running", "p-web-1 w1 running"));
    const std::string log = read("log");
    EXPECT_LT(log.find("--name p-db-1"), log.find("--name p-web-1"));
    EXPECT_LT(log.find("--name p-side-1"), log.find("--name p-web-1"));
}

// Of records without it nobody knows who depends on whom: one after the other, as they stand there.
TEST_F(Apply, ARecordWithoutTheOrderIsFollowedOneByOne) {
    Record record{.time = "then", .containers = desired(kThree, {{"web", "w1"}, {"db", "d1"}, {"side", "s1"}})};
    std::string text = record_json(record);
    for (std::size_t at; (at = text.find("\"dependsOn\"")) != std::string::npos;) text.replace(at, 11, "\"formerly\"");
    ASSERT_TRUE(parse_record(text));
    EXPECT_FALSE(parse_record(text)->knows_order);
    recorded("current.json", record_json({.time = "now", .containers = {}}));
    recorded("previous.json", text);
    Quiet quiet;
    write("refuse", "run *p-db-1*\n");
    EXPECT_FALSE(rollback(project_, engine_, options_, quiet));
    EXPECT_EQ(read("log").find("--name p-side-1"), std::string::npos) << "not beside the first";
}

class Cut : public Apply {
  protected:
    // Returns what apply() said.
    [[nodiscard]] host::Result<void> apply_now(const std::vector<Desired>& all) {
        const ApplyPlan plan = plan_apply(all, containers(), {}, options_);
        return apply(engine_, plan, options_, ignore_, as_before_);
    }
    bool as_before_ = false;
};

constexpr const char* kWeb = "services:\n  web: {image: w}\n";

// Killed while it waited for the new one, which nobody has seen to be good: if the next one is bad the last good one
// comes back, not that.
TEST_F(Cut, ASecondBadDeploymentDoesNotDestroyTheLastGoodContainer) {
    there("topo-old-p-web-1", "web", "a", "good", "exited");
    there("p-web-1", "web", "b", "unproven");
    options_.cut = true;
    const auto all = desired(kWeb, {{"web", "bad"}});
    const auto done = apply_now(all);
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().message, HasSubstr("the old containers run again: p-web-1"));
    EXPECT_THAT(now(), ElementsAre("p-web-1 good running"));
    EXPECT_TRUE(as_before_);
}

TEST_F(Cut, NorDoesOneThatKeepsWhatWasBegun) {
    there("topo-old-p-web-1", "web", "a", "good", "exited");
    const auto all = desired("services:\n  web: {image: w}\n  x: {image: y}\n", {{"web", "unproven"}, {"x", "bad"}});
    there("p-web-1", "web", all[0].hash, "unproven");
    options_.cut = true;
    ASSERT_FALSE(apply_now(all));
    EXPECT_THAT(now(), ElementsAre("p-web-1 good running"));
    // And if all is well it goes.
    std::filesystem::remove_all(folder_ / "c");
    std::filesystem::create_directories(folder_ / "c");
    write("tags/localhost+y", "well\n");
    there("topo-old-p-web-1", "web", "a", "good", "exited");
    there("p-web-1", "web", all[0].hash, "unproven");
    ASSERT_TRUE(apply_now(all));
    EXPECT_THAT(now(), ElementsAre("p-web-1 unproven running", "p-x-1 well running"));
}

// Killed between putting the old one aside and starting the new one.
TEST_F(Cut, WhatIsThereOnlyUnderTheOtherNameComesBackUnderItsOwn) {
    there("topo-old-p-web-1", "web", "a", "good", "exited");
    options_.cut = true;
    const auto done = apply_now(desired(kWeb, {{"web", "bad"}}));
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().message, HasSubstr("the old containers run again: p-web-1"));
    EXPECT_THAT(now(), ElementsAre("p-web-1 good running"));
}

TEST_F(Cut, OnlyThoseThatWereStartedAreSaidToRun) {
    there("p-web-1", "web", "a", "good", "exited");
    auto done = apply_now(desired(kWeb, {{"web", "bad"}}));
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().message, HasSubstr("put back, not running, as before: p-web-1"));
    EXPECT_EQ(done.error().message.find("run again"), std::string::npos);
    there("p-web-1", "web", "a", "good");
    write("refuse", "start *\n");
    done = apply_now(desired(kWeb, {{"web", "bad"}}));
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().message, HasSubstr("NOT undone on this machine: p-web-1 (old) did not start again"));
    EXPECT_FALSE(as_before_);
}

TEST_F(Cut, WhatAGoodDeploymentCannotRemoveIsNamed) {
    there("p-web-1", "web", "a", "old");
    write("refuse", "rm --force c-p-web-1\n");
    ::testing::internal::CaptureStderr();
    const auto done = apply_now(desired(kWeb, {{"web", "new"}}));
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_TRUE(done);
    EXPECT_THAT(said, HasSubstr("topo-old-p-web-1 could not be removed (refused: rm --force c-p-web-1)"));
    EXPECT_THAT(said, HasSubstr("topo prune"));
    EXPECT_THAT(now(), ElementsAre("p-web-1 new running", "topo-old-p-web-1 old exited"));
}

// What lies beside the records decides where a rollback goes to.
TEST_F(Cut, TheMarkerSaysWhetherADeploymentWasCut) {
    const auto record = [&](const char* time, const char* image) {
        return record_json({.time = time, .containers = desired(kWeb, {{"web", image}})});
    };
    const auto goes_to = [&](const std::string& begun, const std::string& now_image, const std::string& aside,
                             const char* old_text = nullptr) {
        std::filesystem::remove_all(folder_ / "c");
        std::filesystem::create_directories(folder_ / "c");
        recorded("previous.json", record("PREVIOUS", "one"));
        std::string current = record("CURRENT", "two");
        if (old_text != nullptr) current.replace(current.find("\"marked\""), 8, old_text);
        recorded("current.json", current);
        std::filesystem::remove(folder_ / "state/topo/p/begun");
        if (!begun.empty()) recorded("begun", begun);
        there("p-web-1", "web", "h", now_image);
        if (!aside.empty()) there("topo-old-p-web-1", "web", "h", aside, "exited");
        Quiet quiet;
        const auto done = rollback(project_, engine_, options_, quiet);
        EXPECT_TRUE(done) << done.error().describe();
        EXPECT_FALSE(std::filesystem::exists(folder_ / "state/topo/p/begun")) << begun;
        return quiet.notes + " | " + now()[0];
    };
    EXPECT_EQ(goes_to("", "two", ""), "going back to the deployment of PREVIOUS | p-web-1 one running");
    // A good one that could not remove the old container; with an older topo's record that means that it was cut.
    EXPECT_EQ(goes_to("", "two", "one"), "going back to the deployment of PREVIOUS | p-web-1 one running");
    const std::string cut = "the last deployment did not come to its end; going back to the deployment of CURRENT | ";
    EXPECT_EQ(goes_to("", "two", "one", "\"mark\""), cut + "p-web-1 two running");
    EXPECT_EQ(goes_to("", "three", "", "\"mark\""), cut + "p-web-1 two running");
    // Only a setting had changed, or a service was new: the images are those of the record, and nothing is aside.
    EXPECT_EQ(goes_to("deploy\n", "two", ""), cut + "p-web-1 two running");
    EXPECT_EQ(goes_to("\x1b[2Jgarbage", "two", ""), cut + "p-web-1 two running");
    EXPECT_EQ(goes_to("", "two", ""), "going back to the deployment of PREVIOUS | p-web-1 one running");
    EXPECT_EQ(goes_to("rollback\n", "two", ""),
              "the last rollback did not come to its end; going back to the deployment of PREVIOUS | p-web-1 one "
              "running");
    EXPECT_EQ(goes_to("unrecorded\n", "three", ""),
              "the last deployment is in no record (keys that only the Compose plugin honours); going back to the "
              "deployment of CURRENT | p-web-1 two running");
}

TEST_F(Cut, AFailedRollbackLeavesTheMarkerAsItWas) {
    recorded("current.json", record_json({.time = "now", .containers = desired(kWeb, {{"web", "good"}})}));
    recorded("previous.json", record_json({.time = "then", .containers = desired(kWeb, {{"web", "bad"}})}));
    there("p-web-1", "web", "h", "good");
    write("tags/localhost+w", "good\n");
    Quiet quiet;
    EXPECT_FALSE(rollback(project_, engine_, options_, quiet));
    EXPECT_EQ(read_records(engine_.target(), "p")->begun, Begun::No);
    EXPECT_THAT(now(), ElementsAre("p-web-1 good running"));
    EXPECT_EQ(read("tags/localhost+w"), "good\n") << "the name of the image is that of the one that runs";
    // After one that was cut, what came back is what the record says.
    std::filesystem::remove_all(folder_ / "c");
    std::filesystem::create_directories(folder_ / "c");
    recorded("begun", "rollback\n");
    const std::string hash = read_records(engine_.target(), "p")->current->containers[0].hash;
    there("topo-old-p-web-1", "web", hash, "good", "exited");
    there("p-web-1", "web", "b", "unproven");
    EXPECT_FALSE(rollback(project_, engine_, options_, quiet));
    EXPECT_EQ(read_records(engine_.target(), "p")->begun, Begun::No);
    EXPECT_THAT(now(), ElementsAre("p-web-1 good running"));
    // What cannot be undone leaves it.
    write("refuse", "start *\n");
    EXPECT_FALSE(rollback(project_, engine_, options_, quiet));
    EXPECT_EQ(read_records(engine_.target(), "p")->begun, Begun::Rollback);
}

// It would stay behind in what is left of the old one's network; and Podman does not remove that one before it.
TEST_F(Cut, WhoLivesInAnothersNetworkIsReplacedWithIt) {
    const char* text =
        "services:\n  a: {image: a, network_mode: \"service:b\"}\n  b: {image: b}\n"
        "  c: {image: c, network_mode: \"container:p-a-1\", depends_on: [a]}\n  d: {image: d}\n";
    std::map<std::string, std::string> images = {{"a", "a1"}, {"b", "b2"}, {"c", "c1"}, {"d", "d1"}};
    const auto all = desired(text, images);
    const auto hash = [&](const char* service) {
        return std::find_if(all.begin(), all.end(), [&](const Desired& d) { return d.service == service; })->hash;
    };
    there("p-b-1", "b", hash("b"), "b1");
    there("p-a-1", "a", hash("a"), "a1", "running", "c-p-b-1");
    there("p-c-1", "c", hash("c"), "c1", "exited", "c-p-a-1");
    there("p-d-1", "d", hash("d"), "d1");
    const auto plan = [&] {
        std::string out;
        for (const Step& step : plan_apply(all, containers(), {}, options_).steps)
            out += fmt::format("{} {} {}; ", name_of(step.act), step.desired.service, step.why);
        return out;
    };
    EXPECT_THAT(plan(), HasSubstr("replace b ; "));
    EXPECT_THAT(plan(), HasSubstr("replace a it lives in p-b-1, which this replaces; "));
    EXPECT_THAT(plan(), HasSubstr("replace c it lives in p-a-1, which this replaces; "));
    EXPECT_THAT(plan(), HasSubstr("keep d ; "));
    options_.recreate = Recreate::Never;
    EXPECT_EQ(plan().find("replace"), std::string::npos);
    options_.recreate = Recreate::Changed;
    // Nothing is left of the old ones, whatever the order in which they are to go; and all come back.
    write("refuse", "run *p-c-1*\n");
    ASSERT_FALSE(apply_now(all));
    EXPECT_THAT(now(), ElementsAre("p-a-1 a1 running", "p-b-1 b1 running", "p-c-1 c1 exited", "p-d-1 d1 running"));
    write("refuse", "none\n");
    ::testing::internal::CaptureStderr();
    const auto done = apply_now(all);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
    ASSERT_TRUE(done) << done.error().describe();
    EXPECT_THAT(now(), ElementsAre("p-a-1 a1 running", "p-b-1 b2 running", "p-c-1 c1 running", "p-d-1 d1 running"));
    auto down = containers();
    std::sort(down.begin(), down.end(), [](const auto& x, const auto& y) { return x.name > y.name; });
    std::iter_swap(down.begin() + 1, down.end() - 1);
    EXPECT_TRUE(remove_containers(engine_, down, ignore_));
    EXPECT_THAT(containers(), ::testing::IsEmpty());
    // One that starts has another network than the one that it had.
    there("p-b-1", "b", hash("b"), "b2", "exited");
    there("p-a-1", "a", hash("a"), "a1", "running", "c-p-b-1");
    there("p-d-1", "d", hash("d"), "d1");
    EXPECT_THAT(plan(), HasSubstr("replace a it lives in p-b-1, which this starts; "));
}

// Podman neither stops nor starts one.
TEST_F(Cut, APausedContainerIsReplacedAndComesBackPaused) {
    there("p-web-1", "web", "a", "good", "paused");
    auto done = apply_now(desired(kWeb, {{"web", "bad"}}));
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().message, HasSubstr("put back, not running, as before: p-web-1 (paused)"));
    EXPECT_THAT(now(), ElementsAre("p-web-1 good paused"));
    write("refuse", "unpause *\n");
    done = apply_now(desired(kWeb, {{"web", "new"}}));
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().message.find("NOT undone"), std::string::npos) << done.error().message;
    EXPECT_THAT(now(), ElementsAre("p-web-1 good paused"));
    write("refuse", "none\n");
    EXPECT_TRUE(stop_containers(engine_, containers(), ignore_));
    EXPECT_THAT(now(), ElementsAre("p-web-1 good exited"));
    there("p-web-1", "web", "a", "good", "paused");
    ASSERT_TRUE(apply_now(desired(kWeb, {{"web", "new"}})));
    EXPECT_THAT(now(), ElementsAre("p-web-1 new running"));
    there("p-web-2", "web", "a", "good", "paused");
    EXPECT_TRUE(remove_containers(engine_, containers(), ignore_));
    EXPECT_THAT(now(), ::testing::IsEmpty());
}

// Docker starts what has `restart: always` at a boot, even if somebody had stopped it.
TEST_F(Cut, WhatWasPutAsideAndRunsIsStoppedFirst) {
    const auto all = desired(kWeb, {{"web", "new"}});
    there("p-web-1", "web", all[0].hash, "new", "exited");
    there("topo-old-p-web-1", "web", "a", "good");
    there("topo-old-p-gone-1", "gone", "a", "gone");
    options_.cut = true;
    write("refuse", "start c-p-web-1\n");
    ASSERT_FALSE(apply_now(all));
    const std::string log = read("log");
    EXPECT_LT(log.find("stop c-topo-old-p-web-1"), log.find("start c-p-web-1")) << log;
    EXPECT_LT(log.find("stop c-topo-old-p-gone-1"), log.find("start c-p-web-1")) << log;
    EXPECT_THAT(now(), ElementsAre("p-web-1 good running", "topo-old-p-gone-1 gone running"));
}

}  // namespace
}  // namespace talpa::topo
