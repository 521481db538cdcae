// What one input gave, as a person and as a program want to read it.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "base/host/json.h"
#include "base/host/terminal.h"
#include "classifier/labels.h"
#include "classifier/latency.h"
#include "classifier/ranking.h"
#include "runtime/tensor.h"

namespace talpa::classifier {

struct OutputFile {
    std::vector<std::int32_t> shape;
    std::vector<std::uint8_t> dim_order;  ///< how the program stores it
    std::string dtype;
    std::vector<std::uint8_t> bytes;  ///< in C order of the shape, as they are written
    std::string file;                 ///< where they were written; empty: they were not
};

/// An output that is no tensor.
struct NumberOutput {
    std::uint32_t index = 0;  ///< among all outputs of the method
    runtime::Value::Kind kind = runtime::Value::Kind::Int;
    std::int64_t integer = 0;  ///< of Int and Bool
    double real = 0;           ///< of Double
};

struct RunResult {
    std::string image;  ///< empty: raw inputs
    std::string error;  ///< of a picture that has no result: what went wrong; the rest but `image` is empty then
    std::optional<host::Error> not_ranked;  ///< why there is no classification of an output that should have one
    std::optional<Classification> classification;
    std::vector<OutputFile> outputs;
    std::vector<NumberOutput> numbers;
    std::vector<double> runs_ms;
    std::uint64_t npu_cycles = 0;                           ///< of one run; 0: not known
    bool cycles_measured = false;                           ///< by the NPU's counter on the board, not estimated
    std::vector<std::pair<std::string, double>> phases_ms;  ///< of a run on the board; empty otherwise
};

/// The document of one input (`image` and `error` where there is no result, else): `image` if there is one, `top`,
/// `scores` (what `probability` is: "probability", or "raw"), `outputs`, `numbers` (outputs that are no tensors, where
/// there are any), `latency_ms`, `npu_cycles` (null when not known), and of a run on the board `time_ms`.
[[nodiscard]] host::Json to_json(const RunResult& result, const Labels& labels);

/// All results: the document itself for one, `results` around several. Text that is no UTF-8 is replaced.
[[nodiscard]] std::string document_of(const std::vector<RunResult>& results, bool several, const Labels& labels);

/// The same for a person.
void print(std::FILE* to, const RunResult& result, const Labels& labels, const host::Style& style);

}  // namespace talpa::classifier
