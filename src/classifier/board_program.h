// A program for the board's NPU, opened on the Linux side: its bytes to be staged, what its input wants of a picture,
// and what its outputs mean. It is not run here. (imx93-remoteproc, sections 10 and 11)
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/host/file.h"
#include "classifier/labels.h"
#include "classifier/picture_input.h"
#include "classifier/run_result.h"
#include "image/picture.h"
#include "link/host/runner_client.h"

namespace talpa::classifier {

class BoardProgram {
  public:
    std::string name;            ///< the path, or what an upload was called
    std::uint32_t crc = 0;       ///< CRC-32 of the file
    PictureInput input;          ///< means something when `takes_pictures`
    bool takes_pictures = true;  ///< else raw features only (feature_input.h), which every program takes
    runtime::host::PortInfo input_port;
    std::vector<runtime::host::PortInfo> outputs;  ///< the tensors among them, in order
    /// "aten::flip.out (instruction 3)": what it calls and the firmware as it is built does not carry; empty: nothing.
    std::string firmware_lacks;
    std::size_t classes = 0;  ///< of the first output that scores classes; 0: none does

    /// Reads and checks the whole program, and finds its only input. Errors name the file: what is wrong with it,
    /// OutOfResources when it wants more memory than the board reserves.
    [[nodiscard]] static host::Result<BoardProgram> open(const std::filesystem::path& path,
                                                         const NormalisationFlags& flags = {});
    [[nodiscard]] static host::Result<BoardProgram> of_bytes(std::vector<std::uint8_t> bytes, std::string name,
                                                             const NormalisationFlags& flags = {});
    [[nodiscard]] Bytes bytes() const { return mapped_ ? mapped_->bytes() : Bytes(owned_); }

  private:
    [[nodiscard]] host::Result<void> read(const NormalisationFlags& flags);
    std::optional<host::MappedFile> mapped_;
    std::vector<std::uint8_t> owned_;
};

/// A picture, or features, made ready for a program's input.
struct PreparedPicture {
    image::Picture fitted;  ///< scaled and cropped: what the network sees; empty of features
    std::vector<std::uint8_t> tensor;
    std::uint32_t width = 0, height = 0;  ///< of the picture as it came, upright; 0 of features
    double decode_ms = 0, resize_ms = 0;
};
[[nodiscard]] host::Result<PreparedPicture> prepare_picture(Bytes file, const image::PreprocessSpec& spec,
                                                            const image::Limits& limits = {});
/// The same for whatever file the program takes: a picture, or features.
[[nodiscard]] host::Result<PreparedPicture> prepare_input(Bytes file, const BoardProgram& program,
                                                          const image::Limits& limits = {});

struct BoardRunOptions {
    std::size_t top = 5;
    std::chrono::milliseconds timeout{10'000};
    std::optional<std::filesystem::path> output_folder;
};

/// Runs the program on the board; the result has the phases of the time, `decode` and `resize` among them.
[[nodiscard]] link::host::BoardResult<RunResult> run_on_board(link::host::RunnerClient& client,
                                                              const BoardProgram& program,
                                                              const PreparedPicture& picture, const Labels& labels,
                                                              const BoardRunOptions& options,
                                                              const link::host::RunCallbacks& callbacks = {});

}  // namespace talpa::classifier
