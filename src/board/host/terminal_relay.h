// A terminal of the board for a program that runs on it: the user's own lies in another devpts, where the board's
// programs cannot find it by name.
#pragma once

namespace talpa::board {

/// Are standard input and output a terminal?
[[nodiscard]] bool at_terminal();

class TerminalRelay {
  public:
    /// In the board's mount namespace. Invalid (`fd` < 0) when there is no /dev/ptmx.
    TerminalRelay();
    ~TerminalRelay();
    TerminalRelay(const TerminalRelay&) = delete;
    TerminalRelay& operator=(const TerminalRelay&) = delete;

    [[nodiscard]] bool valid() const { return slave_ >= 0; }
    /// In the child: makes the terminal its controlling one and its standard streams.
    void adopt();
    /// In the parent: the user's terminal becomes raw, its keys and its size go to the child's, until the child has
    /// closed its side or `child` has ended. Puts the terminal back.
    void run(int child);

  private:
    int master_ = -1, slave_ = -1;
};

}  // namespace talpa::board
