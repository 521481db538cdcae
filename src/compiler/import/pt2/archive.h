// The container of a .pt2 (model-formats, sections 1.1 to 1.3): finds the root folder, the program's JSON and the raw
// weights, whatever the file is called now.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "compiler/import/json_tree.h"
#include "compiler/import/stored_tensor.h"
#include "compiler/import/zip.h"

namespace talpa::compiler::import::pt2 {

/// What the JSON says about a tensor.
struct TensorMeta {
    RawType type = RawType::Float32;
    Shape sizes;
    std::vector<std::int64_t> strides;
    std::int64_t offset = 0;
};
/// Errors carry the JSON path; symbolic sizes, sparse layouts, complex and float8 types are NotSupported.
[[nodiscard]] host::Result<TensorMeta> read_tensor_meta(Json meta);
[[nodiscard]] host::Result<RawType> read_dtype(Json code);

class Archive {
  public:
    /// `program`: which, if there are several. `file` must outlive the archive.
    [[nodiscard]] static host::Result<Archive> open(talpa::Bytes file, const std::string& program);

    [[nodiscard]] Json model() const { return model_->root(); }
    [[nodiscard]] const std::string& name() const { return name_; }

    enum class Kind { Weight, Constant };
    /// A parameter, buffer or constant by its dotted name, gathered into a contiguous constant.
    [[nodiscard]] host::Result<Value> load(Kind kind, const std::string& fqn, const std::string& value_name,
                                           Finite finite) const;

  private:
    struct Payload {
        std::string entry;
        TensorMeta meta;
    };
    using Payloads = std::unordered_map<std::string, Payload>;

    explicit Archive(Zip zip) : zip_(std::move(zip)) {}
    [[nodiscard]] host::Result<std::unique_ptr<JsonTree>> read_json(const std::string& entry) const;
    [[nodiscard]] host::Result<Payloads> read_config(const std::string& folder, const char* suffix) const;

    Zip zip_;
    std::string root_, name_;
    std::unique_ptr<JsonTree> model_;
    Payloads weights_, constants_;
};

}  // namespace talpa::compiler::import::pt2
