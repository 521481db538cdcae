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

}  // namespace
}  // namespace talpa::topo
