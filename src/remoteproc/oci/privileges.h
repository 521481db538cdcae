// What the proxy gives up once its files are open: all capabilities, gaining new ones, and most system calls.
// (remoteproc-runtime, section 15)
#pragma once

namespace talpa::remoteproc {

/// All capabilities, and gaining any: what the guard does, which still has a lock to take and a record to remove.
/// Returns whether the second is in force.
bool drop_capabilities();

/// That and a filter of system calls. Best effort: a kernel without seccomp, or a user without the right, leaves the
/// process as it was. Returns whether the filter is in place.
bool drop_privileges();

/// Gives back the program's own pages that what was just done needed: what is used again comes from the page cache. A
/// proxy waits for days, and there may be fifty of them. (Which code stays: cmake/remoteproc_resident.ld)
void release_idle_pages();

}  // namespace talpa::remoteproc
