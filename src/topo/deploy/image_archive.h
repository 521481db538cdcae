// A docker archive (what `docker save` and `podman save` write), looked into without unpacking: which images, which
// layers, where their bytes lie. And small tar streams, written.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/host/file.h"

namespace talpa::topo {

struct TarEntry {
    std::uint64_t offset = 0, size = 0;
    std::string link;  ///< of a link: where it points, as written
};

/// Names without "./"; ustar, GNU and pax long names. Errors name the offset.
[[nodiscard]] host::Result<std::map<std::string, TarEntry>> index_tar(std::string_view archive);

struct ArchivedLayer {
    std::string diff_id;  ///< "sha256:…": of the uncompressed bytes, which these are
    std::string_view bytes;
};

struct ArchivedImage {
    std::string config;  ///< the JSON; its SHA-256 is the image's ID
    std::vector<std::string> names;
    std::vector<ArchivedLayer> layers;
};

/// Views into the mapping; it must outlive them.
[[nodiscard]] host::Result<std::vector<ArchivedImage>> read_image_archive(std::string_view archive);

/// A tar stream of small files.
class TarWriter {
  public:
    void add(const std::string& name, std::string_view bytes);
    [[nodiscard]] std::string finish();

  private:
    std::string out_;
};

}  // namespace talpa::topo
