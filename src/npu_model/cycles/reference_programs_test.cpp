// The estimate beside the compiler's own, for every reference program. docs/cycle-model.md carries the table that these
// tests compute; TALPA_UPDATE_DOCS=1 writes it anew.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "npu_model/cycles/reference_programs_for_test.h"

namespace talpa::npu_model {
namespace {

using testing::reference_programs;
using testing::ReferenceProgram;

double deviation(double ours, double booked) {
    return booked == 0 ? 0 : 100 * (ours / booked - 1);
}

std::string against(double ours, double booked) {
    if (booked == 0) return fmt::format("{:.0f} | {:.0f} | ", ours, booked);
    return fmt::format("{:.0f} | {:.0f} | {:+.1f} %", ours, booked, deviation(ours, booked));
}

// "| name | total ours | theirs | % | …"
std::string table_row(const ReferenceProgram& p) {
    const NetworkCost cost = network_cost(p.operations, p.config);
    const auto bus = [&](MemoryArea area) { return static_cast<double>(cost.traffic[index(area)].bus_bytes()); };
    const auto copies = std::ranges::count_if(p.operations, is_transposing_copy);
    return fmt::format("| {} | {} | {} | {} | {} | {} |", p.name, copies,
                       against(static_cast<double>(cost.cycles_total), p.booked("cycles_total")),
                       against(static_cast<double>(cost.npu_cycles), p.booked("cycles_npu")),
                       against(bus(MemoryArea::Sram), p.booked("sram_total_bytes")),
                       against(bus(MemoryArea::Dram), p.booked("dram_total_bytes")));
}

class Programs : public ::testing::Test {
  protected:
    static void SetUpTestSuite() {
        models_ = reference_programs("models");
        ops_ = reference_programs("ops");
    }
    static void TearDownTestSuite() { models_.clear(), ops_.clear(); }

    static const ReferenceProgram* op(const std::string& name) {
        const auto found = std::ranges::find(ops_, name, &ReferenceProgram::name);
        return found == ops_.end() ? nullptr : &*found;
    }
    static inline std::vector<ReferenceProgram> models_, ops_;
};

TEST_F(Programs, TotalsOfNetworksAreWithinTenPercentOfTheCompilers) {
    ASSERT_GE(models_.size(), 2u);
    for (const auto& p : models_) {
        const NetworkCost cost = network_cost(p.operations, p.config);
        EXPECT_LT(std::abs(deviation(static_cast<double>(cost.cycles_total), p.booked("cycles_total"))), 10)
            << p.name << ": " << cost.cycles_total;
    }
}

TEST_F(Programs, MacsAreTheCompilers) {
    ASSERT_GE(ops_.size(), 37u);
    for (const auto* set : {&models_, &ops_})
        for (const auto& p : *set)
            EXPECT_EQ(static_cast<double>(network_cost(p.operations, p.config).macs), p.booked("nn_macs")) << p.name;
}

// Each operation alone, as the compiler books it. Programs with a transpose are left out: it is booked as one operation
// there. So are those in which a DMA is not hidden, which the compiler adds to the operation after it.
TEST_F(Programs, NpuCyclesOfProgramsWithoutTransposesAreTheCompilersToTheCycle) {
    for (const char* name :
         {"add_broadcast", "add_same", "linear", "linear_batch", "min_max_abs", "relu_clamp", "sub_mul"}) {
        const ReferenceProgram* p = op(name);
        ASSERT_NE(p, nullptr) << name;
        std::uint64_t sum = 0;
        for (const auto& o : p->operations) sum += estimate(o, p->config).npu_cycles;
        EXPECT_EQ(static_cast<double>(sum), p->booked("cycles_npu")) << name;
    }
}

TEST_F(Programs, BytesOnTheBusAreTheCompilers) {
    const auto bytes = [](const ReferenceProgram& p, MemoryArea area) {
        return static_cast<double>(network_cost(p.operations, p.config).traffic[index(area)].bus_bytes());
    };
    for (const char* name :
         {"add_same", "adaptive_avg_fc", "linear", "linear_batch", "min_max_abs", "relu_clamp", "sigmoid_tanh"})
        EXPECT_EQ(bytes(*op(name), MemoryArea::Sram), op(name)->booked("sram_total_bytes")) << name;
    for (const char* name : {"add_same", "adaptive_avg_fc", "linear", "linear_batch", "relu_clamp", "big_channels",
                             "maxpool_avgpool", "slice_split"})
        EXPECT_EQ(bytes(*op(name), MemoryArea::Dram), op(name)->booked("dram_total_bytes")) << name;
}

TEST_F(Programs, TableInTheDocsIsCurrent) {
    const std::filesystem::path path = std::filesystem::path(TALPA_SOURCE_DIR) / "docs" / "cycle-model.md";
    std::string text = host::read_text(path).value();
    const bool update = std::getenv("TALPA_UPDATE_DOCS") != nullptr;
    for (const auto* set : {&models_, &ops_}) {
        const std::string begin = set == &models_ ? "<!-- models: begin -->\n" : "<!-- ops: begin -->\n",
                          end = set == &models_ ? "<!-- models: end -->" : "<!-- ops: end -->";
        const auto from = text.find(begin), to = text.find(end);
        ASSERT_NE(from, std::string::npos);
        ASSERT_NE(to, std::string::npos);
        std::string rows =
            "| program | transposing copies | cycles | compiler | | NPU cycles | compiler | | SRAM bytes | compiler | "
            "| DRAM bytes | compiler | |\n"
            "| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |\n";
        for (const auto& p : *set) {
            const std::string row = table_row(p);
            fmt::print("{}\n", row);
            rows += row + "\n";
            EXPECT_TRUE(update || text.find(row) != std::string::npos)
                << "docs/cycle-model.md has another row for " << p.name << "; TALPA_UPDATE_DOCS=1 writes it anew";
        }
        if (update) text.replace(from + begin.size(), to - from - begin.size(), rows);
    }
    if (update) {
        ASSERT_TRUE(host::write_text(path, text));
    }
}

}  // namespace
}  // namespace talpa::npu_model
