// How a board is asked to end: by SIGINT, SIGTERM or SIGHUP, or by one of its own threads. While it comes up the
// signals are held back, from before its first process is made until there is a board that can be ended in order.
#pragma once

#include <sys/types.h>

namespace talpa::board {

void hold_ending_signals(bool held);
/// Did one of them come while they were held back?
[[nodiscard]] bool asked_to_end();
/// They are passed on as SIGTERM from now on. Ctrl-C reaches the board by the terminal as well; being told twice does
/// it no harm.
void forward_ending_signals(pid_t board);

/// Waits until somebody asks. Meanwhile children are waited for: as the first process of a pid namespace the board
/// inherits every orphan. Make it before any thread.
class EndRequest {
  public:
    EndRequest();
    ~EndRequest();
    EndRequest(const EndRequest&) = delete;
    EndRequest& operator=(const EndRequest&) = delete;
    /// From any thread.
    void end();
    void wait();

  private:
    int signals_ = -1, event_ = -1;
};

}  // namespace talpa::board
