// For tests only: the picture path as a program, so that Python can hold it against Pillow. Reads jobs from standard
// input, one a line, and answers each with one line:
//   decode IN OUT                     -> "ok WIDTH HEIGHT", and OUT holds the RGB bytes; or "error TEXT"
//   resize IN WIDTH HEIGHT OUT        -> the same, resized
//   fit IN SHORTER WIDTH HEIGHT OUT   -> the same, scaled and cropped as for a network
#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>

#include "base/host/file.h"
#include "image/decode.h"
#include "image/preprocess.h"

namespace {

using talpa::host::Result;
using talpa::image::Picture;

Result<Picture> run(std::istringstream& words, std::string& out) {
    std::string job, in;
    words >> job >> in;
    TRY_ASSIGN(const auto file, talpa::host::MappedFile::open(in));
    TRY_ASSIGN(Picture picture, talpa::image::decode(file.bytes()));
    std::uint32_t shorter = 0, width = 0, height = 0;
    if (job == "fit") words >> shorter;
    if (job == "fit" || job == "resize") words >> width >> height;
    words >> out;
    if (!words) return talpa::host::failure(talpa::ErrorCode::InvalidArgument, "bad job line");
    if (job == "resize") return talpa::image::resize_bilinear(picture, width, height);
    if (job == "fit") return talpa::image::fit(picture, {.width = width, .height = height, .shorter_side = shorter});
    return picture;
}

}  // namespace

int main() {
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream words(line);
        std::string out;
        auto picture = run(words, out);
        if (picture) {
            const auto written = talpa::host::write_file(out, picture->rgb);
            if (!written) picture = std::unexpected(written.error());
        }
        std::string answer =
            picture ? fmt::format("ok {} {}", picture->width, picture->height) : "error " + picture.error().describe();
        for (char& c : answer)
            if (c == '\n') c = ' ';
        std::cout << answer << std::endl;
    }
}
