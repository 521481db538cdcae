// Ctrl-C without a trace: a program that is interrupted ends with status 130, its half-written temporary files removed.
#pragma once

#include <atomic>
#include <filesystem>

namespace talpa::host {

/// From now on SIGINT removes the files of all living TemporaryFileGuards and ends the process with kExitInterrupted;
/// SIGTERM and SIGHUP remove them and end it as they always do. For main(), once.
void clean_up_on_interrupt();

/// While it lives, an interrupt removes this file. Any thread; more than 16 at a time are not looked after.
class TemporaryFileGuard {
  public:
    explicit TemporaryFileGuard(const std::filesystem::path& path);
    ~TemporaryFileGuard();
    TemporaryFileGuard(const TemporaryFileGuard&) = delete;
    TemporaryFileGuard& operator=(const TemporaryFileGuard&) = delete;

  private:
    int slot_ = -1;
};

}  // namespace talpa::host
