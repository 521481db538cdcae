// Any bytes as a .pt2: as the archive itself, or, when they begin with a brace, as the program of a sound archive
// (checksums would keep a fuzzer out of it).
#include <cstddef>
#include <cstdlib>

#include "compiler/graph/check.h"
#include "compiler/import/import.h"
#include "compiler/import/zip_for_test.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace talpa::compiler;
    talpa::Bytes file(data, size);
    std::vector<std::uint8_t> archive;
    if (size > 0 && data[0] == '{') {
        const std::string storage(16 * 27 * 4, '\1');
        const std::string config =
            R"({"config": {"0.weight": {"path_name": "weight_0", "is_param": true, "use_pickle": false, "tensor_meta": {"dtype": 7,
            "sizes": [{"as_int": 16}, {"as_int": 3}, {"as_int": 3}, {"as_int": 3}], "strides": [{"as_int": 27}, {"as_int": 9},
            {"as_int": 3}, {"as_int": 1}], "storage_offset": {"as_int": 0}, "layout": 7}}, "0.bias": {"path_name": "weight_0",
            "is_param": true, "use_pickle": false, "tensor_meta": {"dtype": 7, "sizes": [{"as_int": 16}], "strides": [{"as_int": 1}],
            "storage_offset": {"as_int": 0}, "layout": 7}}}})";
        archive = import::zip_for_test({{"m/archive_format", "pt2"},
                                        {"m/models/model.json", std::string(reinterpret_cast<const char*>(data), size)},
                                        {"m/data/weights/model_weights_config.json", config},
                                        {"m/data/weights/weight_0", storage}});
        file = archive;
    }
    const auto graph = import::import_bytes(file, "/nonexistent");
    if (graph && !check_graph(*graph)) std::abort();
    return 0;
}
