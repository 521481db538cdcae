#include "remoteproc/oci/namespaces.h"

#include <fcntl.h>
#include <sched.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

namespace talpa::remoteproc {
namespace {

constexpr std::array<std::pair<std::string_view, int>, 8> kTypes{{
    {"cgroup", CLONE_NEWCGROUP},
    {"ipc", CLONE_NEWIPC},
    {"mount", CLONE_NEWNS},
    {"network", CLONE_NEWNET},
    {"pid", CLONE_NEWPID},
    {"time", CLONE_NEWTIME},
    {"user", CLONE_NEWUSER},
    {"uts", CLONE_NEWUTS},
}};

}  // namespace

Result<NamespacePlan> plan_namespaces(const std::vector<NamespaceWish>& wishes, bool join_paths) {
    NamespacePlan plan;
    for (const NamespaceWish& wish : wishes) {
        int flag = 0;
        for (const auto& [name, value] : kTypes)
            if (wish.type == name) flag = value;
        if (flag == 0)
            return host::failure(ErrorCode::InvalidArgument, "unknown namespace type \"{}\"", printable(wish.type));
        if (wish.path.empty()) {
            plan.clone_flags |= static_cast<std::uint64_t>(flag);
        } else if (join_paths && flag != CLONE_NEWPID && flag != CLONE_NEWUSER && flag != CLONE_NEWTIME) {
            Fd file(::open(wish.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
            if (!file) return os_failure("open", wish.path, errno);
            plan.join.push_back({std::move(file), flag});
        }
    }
    return plan;
}

}  // namespace talpa::remoteproc
