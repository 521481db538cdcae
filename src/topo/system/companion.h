// A command that runs beside what else is done, until it is let go or we end, however we end: its standard input stays
// open that long. It is in a process group of its own, so that Ctrl-C does not reach it while things are undone.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "topo/system/process.h"

namespace talpa::topo {

class Companion {
  public:
    /// Starts it and waits for the first line of its output, at most for the command's time limit. What went wrong is
    /// an Outcome in `failed`: it ended (or was late) without having said one.
    [[nodiscard]] static host::Result<std::unique_ptr<Companion>> start(const Command& command, Outcome& failed);
    Companion(const Companion&) = delete;
    Companion& operator=(const Companion&) = delete;
    /// Ends its input, gives it three seconds, then ends it.
    ~Companion();

    [[nodiscard]] const std::string& first_line() const;
    /// A line for it to read. False: it reads no more.
    [[nodiscard]] bool say(std::string_view line);
    /// Has it ended?
    [[nodiscard]] bool ended();

  private:
    struct Parts;
    explicit Companion(std::unique_ptr<Parts> parts);
    std::unique_ptr<Parts> parts_;
};

}  // namespace talpa::topo
