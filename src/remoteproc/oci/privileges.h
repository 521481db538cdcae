// What the proxy gives up once its files are open: all capabilities, gaining new ones, and most system calls.
// (remoteproc-runtime, section 15)
#pragma once

namespace talpa::remoteproc {

/// Best effort: a kernel without seccomp, or a user without the right, leaves the process as it was. Returns whether
/// the filter is in place.
bool drop_privileges();

/// Gives the program's own pages back that only its start-up needed: what is used again comes from the page cache. A
/// proxy waits for days, and there may be fifty of them.
void release_startup_pages();

}  // namespace talpa::remoteproc
