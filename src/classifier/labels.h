// Names of classes, from a text file of one name a line.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/host/error.h"

namespace talpa::classifier {

class Labels {
  public:
    Labels() = default;
    /// Reads a file: UTF-8, one label a line, a byte order mark and carriage returns dropped, empty lines at the end
    /// too. `offset`: class c is named by line c + offset, counted from 0 (-1 for a network whose class 0 is a
    /// background without a line). Errors: the file's own; InvalidArgument when it has no lines or is no text.
    [[nodiscard]] static host::Result<Labels> read(const std::filesystem::path& path, std::int64_t offset);

    /// The same for text that was read already; `name` is for messages.
    [[nodiscard]] static host::Result<Labels> of_text(std::string_view text, const std::filesystem::path& name,
                                                      std::int64_t offset);

    /// InvalidArgument, with what may be done, when a class of `classes` has no line (classes before line 0 need none).
    [[nodiscard]] host::Result<void> check_enough_for(std::size_t classes) const;

    /// Is there a line for each of the classes, and none beside? Then the file may be taken for theirs without asking.
    [[nodiscard]] bool one_for_each(std::size_t classes) const {
        return std::cmp_equal(static_cast<std::int64_t>(classes) + offset_, lines_.size());
    }

    /// What to tell when there are more lines than `classes`, or no classes at all (0): the file may be another
    /// network's. Empty when there is nothing to tell.
    [[nodiscard]] std::string doubt(std::size_t classes) const;

    [[nodiscard]] bool empty() const { return lines_.empty(); }
    [[nodiscard]] std::size_t size() const { return lines_.size(); }
    /// The label, or nothing (an empty text).
    [[nodiscard]] const std::string& of(std::size_t class_index) const;

  private:
    std::filesystem::path path_;
    std::vector<std::string> lines_;
    std::int64_t offset_ = 0;
};

}  // namespace talpa::classifier
