// Calibration and evaluation samples from files: a folder of pictures, .npy arrays, or raw .bin tensors.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "compiler/quantize/calibrate.h"
#include "image/preprocess.h"

namespace talpa::compiler {

struct NamedSample {
    std::string name;  ///< of the file
    Sample inputs;
};

struct LoadedSamples {
    std::vector<NamedSample> samples;  ///< in the order of the files' names
    std::vector<std::string> skipped;  ///< "FILE: why", for files that are no pictures or arrays
};

/// `path`: a folder (its files, not deeper) or one file. Pictures need a model of one picture-shaped input
/// (1 x 3 x H x W or 1 x H x W x 3; 1 channel is grey) and become what `preprocess` says, its size and layout taken
/// from the input; one that has the input's size already is neither scaled nor cropped. .bin holds all inputs one after
/// another, little-endian, float32. .npy (base/host/npy.h) holds the only input of the model, or many along its first
/// dimension. Errors: no such path; no usable file in it; a file that looks like an array but does not fit the inputs.
[[nodiscard]] host::Result<LoadedSamples> load_samples(const std::filesystem::path& path, const Graph& graph,
                                                       image::PreprocessSpec preprocess, std::size_t limit);

}  // namespace talpa::compiler
