// Files that hold weights by name and no graph: PyTorch's state dicts (.pth, .pt; zip and legacy) and .safetensors.
// (model-formats, sections 2 and 5)
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/core/byte_reader.h"
#include "base/host/error.h"
#include "compiler/import/stored_tensor.h"
#include "compiler/import/zip.h"

namespace talpa::compiler::import {

/// Views into the file, or into what was inflated from it.
struct WeightsFile {
    std::map<std::string, StoredTensor> tensors;
    std::vector<std::shared_ptr<EntryBytes>> owned;
};

/// `file` must outlive the result.
[[nodiscard]] host::Result<WeightsFile> read_state_dict(talpa::Bytes file);
[[nodiscard]] host::Result<WeightsFile> read_safetensors(talpa::Bytes file);

/// Is it a zip archive that torch.save has written?
[[nodiscard]] bool is_saved_by_torch(const Zip& zip);

}  // namespace talpa::compiler::import
