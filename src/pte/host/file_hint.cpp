#include "pte/host/file_hint.h"

#include <algorithm>

namespace talpa::pte::host {
namespace {

enum class Use { Compile, Picture, Fetch, Nothing };

struct Format {
    std::size_t at;          // of the bytes that tell it
    std::string_view bytes;  // literals, NUL bytes included
    const char* what;
    Use use;
};

using namespace std::string_view_literals;
constexpr Format kFormats[] = {
    {4, "TFL3"sv, "a TensorFlow Lite model (.tflite)", Use::Compile},
    {0, "PK\3\4"sv, "a ZIP archive, as torch.export.save (.pt2) and torch.save (.pth) write them", Use::Compile},
    {0, "\x89HDF\r\n\x1A\n"sv, "an HDF5 file, as Keras writes them", Use::Nothing},
    {0, "\x80\2"sv, "a Python pickle, as old versions of torch.save wrote them", Use::Nothing},
    {0,
     "\x7F"
     "ELF"sv,
     "an ELF file: a compiled program or firmware for a processor", Use::Nothing},
    {0, "\xFF\xD8\xFF"sv, "a JPEG picture", Use::Picture},
    {0, "\x89PNG\r\n\x1A\n"sv, "a PNG picture", Use::Picture},
    {8, "WEBP"sv, "a WebP picture", Use::Picture},
    {0, "GIF8"sv, "a GIF picture", Use::Picture},
    {0, "\x1F\x8B"sv, "compressed with gzip: unpack it first", Use::Nothing},
    {0, "version https://git-lfs"sv, "the pointer that Git LFS left in place of the file: git lfs pull", Use::Nothing},
    {0, "<!DOCTYPE"sv, "a web page", Use::Fetch},
    {0, "<!doctype"sv, "a web page", Use::Fetch},
    {0, "<html"sv, "a web page", Use::Fetch},
};

bool has(Bytes file, std::size_t at, std::string_view bytes) {
    return file.size() >= at + bytes.size() &&
           std::equal(bytes.begin(), bytes.end(), file.begin() + static_cast<std::ptrdiff_t>(at),
                      [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; });
}

constexpr const char* kPart =
    "only a part of the file is here: copy or download it again, and compare its size with the original's";

/// ONNX has no identifier: a protobuf message of field 1, the version (a small number), and then field 2, 7 or 8: the
/// producer's name, the graph, the operator sets.
bool is_onnx(Bytes file) {
    return file.size() > 8 && file[0] == 0x08 && file[1] > 0 && file[1] < 0x20 &&
           (file[2] == 0x12 || file[2] == 0x3A || file[2] == 0x42);
}

/// "BM" alone may be any text; behind the file's size stand two words of 0.
bool is_bmp(Bytes file) {
    return has(file, 0, "BM"sv) && has(file, 6, "\0\0\0\0"sv);
}

std::string advice(const char* what, Use use) {
    std::string text = std::string("it is ") + what;
    if (use == Use::Compile) text += "; talpa compile makes a program of it";
    if (use == Use::Picture) text += "; talpa run PROGRAM.pte --image FILE takes it as input";
    if (use == Use::Fetch) text += ", as a server answers instead of a file; download it again";
    return text;
}

}  // namespace

std::string file_hint(Bytes file, std::string_view message) {
    for (const Format& format : kFormats)
        if (has(file, format.at, format.bytes)) return advice(format.what, format.use);
    if (is_bmp(file)) return advice("a BMP picture", Use::Picture);
    if (is_onnx(file)) return advice("an ONNX model (.onnx)", Use::Compile);
    if (message.starts_with("cut short")) return kPart;
    // Programs without a header do not say how long they are.
    std::string hint;
    if (has(file, 4, "ET12"sv) && message.find("outside the") != std::string_view::npos)
        hint.append("unless it was damaged, ").append(kPart);
    return hint;
}

}  // namespace talpa::pte::host
