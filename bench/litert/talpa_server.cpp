// Runs one program over and over at the request of bench/litert/compare.py, so that both sides stay warm while they
// take turns.
//   talpa_bench_server PROGRAM.pte INPUT.bin EXPECTED.bin THREADS
// First line out: "ready ISA". Then for each line "N" on standard input N runs and one line with their times in
// nanoseconds; ends at the end of the input. Every output is compared with the expected one; a difference ends the
// program with 1.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "base/host/file.h"
#include "npu_model/fast/isa.h"
#include "npu_model/model.h"
#include "runtime/host/session.h"
#include "runtime/operators/all.h"

namespace {

using talpa::Bytes;

[[noreturn]] void fail(const std::string& why) {
    std::cerr << "talpa_bench_server: " << why << "\n";
    std::exit(1);
}

template <typename T>
T value_of(talpa::host::Result<T> result) {
    if (!result) fail(result.error().describe());
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) fail("usage: talpa_bench_server PROGRAM.pte INPUT.bin EXPECTED.bin THREADS");
    const auto input = value_of(talpa::host::read_file(argv[2])), expected = value_of(talpa::host::read_file(argv[3]));
    talpa::npu_model::ModelOptions model_options;
    model_options.threads = static_cast<unsigned>(std::atoi(argv[4]));
    talpa::npu_model::Model model(model_options);
    talpa::runtime::host::SessionOptions options;
    options.operators = talpa::runtime::all_operators();
    options.device = &model;
    auto session = value_of(talpa::runtime::host::Session::open(argv[1], options));

    const auto run = [&] {
        const auto start = std::chrono::steady_clock::now();
        value_of(session.set_input(0, input));
        value_of(session.run());
        const auto time = std::chrono::steady_clock::now() - start;
        const Bytes output = value_of(session.output_bytes(0));
        if (!std::ranges::equal(output, expected)) fail("the output differs from the expected one");
        return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
    };
    run();
    std::cout << "ready " << talpa::npu_model::fast::isa_name(talpa::npu_model::fast::current_isa()) << std::endl;
    for (int count = 0; std::cin >> count;) {
        std::string line;
        for (int i = 0; i < count; ++i) line += std::to_string(run()) + " ";
        std::cout << line << std::endl;
    }
    return 0;
}
