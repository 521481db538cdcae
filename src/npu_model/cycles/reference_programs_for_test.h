// For this folder's tests only: the reference programs with the estimate that the compiler recorded for them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/host/file.h"
#include "base/host/json.h"
#include "base/host/testing.h"
#include "npu_model/cycles/network_cost.h"
#include "npu_model/delegate_for_test.h"

namespace talpa::npu_model::testing {

struct ReferenceProgram {
    std::string name;
    std::vector<npu::Operation> operations;
    SystemConfig config;
    host::Json compiler;  ///< `vela_estimate`: cycles_total, cycles_npu, sram_total_bytes …

    [[nodiscard]] double booked(const char* key) const { return compiler.at(key).get<double>(); }
};

/// All programs of `kind` ("models", "ops") with one delegate and an estimate, by name: those in the repository and,
/// where the reference set is present, all of them.
inline std::vector<ReferenceProgram> reference_programs(const std::string& kind) {
    const auto reference = talpa::testing::reference_folder();
    const std::filesystem::path folder = (reference ? *reference : talpa::testing::golden_folder()) / kind;
    std::vector<ReferenceProgram> programs;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        if (!entry.is_directory()) continue;
        const std::string name = entry.path().filename().string();
        const auto json = host::Json::parse(host::read_text(entry.path() / (name + ".json")).value());
        if (!json.contains("vela_estimate") || json["vela_estimate"].is_null()) continue;
        const auto delegates = delegates_in(host::read_file(entry.path() / (name + ".pte")).value());
        ReferenceProgram p{name, decode_all(delegates.at(0).payload().stream).value(), {}, json["vela_estimate"]};
        p.config = system_config(json["target"].get<std::string>(), json["system_config"].get<std::string>(),
                                 json["memory_mode"].get<std::string>())
                       .value();
        programs.push_back(std::move(p));
    }
    std::ranges::sort(programs, {}, &ReferenceProgram::name);
    return programs;
}

}  // namespace talpa::npu_model::testing
