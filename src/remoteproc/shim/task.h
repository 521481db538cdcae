// The Task service: what containerd asks of a container. Each operation is a call of the runtime; what can be answered
// from memory is. (remoteproc-runtime, sections 11 and 12)
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "remoteproc/shim/children.h"
#include "remoteproc/shim/events.h"
#include "remoteproc/shim/mounts.h"
#include "remoteproc/shim/stdio.h"
#include "remoteproc/shim/ttrpc.h"

namespace talpa::remoteproc::shim {

class TaskService {
  public:
    using Respond = std::function<void(Reply)>;

    TaskService(Loop& loop, Children& children, EventPublisher& events, std::string namespace_name);

    /// Answers one call, now or later; `respond` is called exactly once.
    void call(const std::string& method, const std::string& payload, Respond respond);

    [[nodiscard]] bool empty() const { return containers_.empty(); }
    /// Asked to end, and nothing is left to look after.
    std::function<void()> on_shutdown;
    /// Stops everything that runs, then calls back.
    void stop_all(std::function<void()> done);

  private:
    enum class TaskStatus : std::uint8_t { Unknown = 0, Created = 1, Running = 2, Stopped = 3 };  // containerd.v1.types

    struct Task {
        std::string id, bundle, in, out, err;
        bool terminal = false;
        bool mounted = false;
        TaskStatus status = TaskStatus::Unknown;
        pid_t pid = 0;
        int exit_status = 0;
        std::uint64_t exited_ns = 0;
        bool starting = false, deleting = false;
        bool last = false;  ///< the caller gave up on it and asked for Shutdown: this server ends with it
        int kills = 0;      ///< calls of Kill that are not answered yet
        std::vector<Respond> waiters;
        std::vector<std::function<void()>> after_exit;  ///< what waits for the end to be known and told
        std::vector<std::function<void()>> deletes;     ///< that came while it was being made or deleted
    };
    using TaskPtr = std::shared_ptr<Task>;
    using Handler = void (TaskService::*)(const std::string&, const Respond&);
    struct Method {
        std::string_view name;
        Handler handler;
    };
    static const Method kMethods[];

    void create(const std::string& payload, const Respond& respond);
    void start(const std::string& payload, const Respond& respond);
    void state(const std::string& payload, const Respond& respond);
    void kill(const std::string& payload, const Respond& respond);
    void remove(const std::string& payload, const Respond& respond);
    void wait(const std::string& payload, const Respond& respond);
    void pids(const std::string& payload, const Respond& respond);
    void stats(const std::string& payload, const Respond& respond);
    void connect(const std::string& payload, const Respond& respond);
    void shutdown(const std::string& payload, const Respond& respond);
    void accept_silently(const std::string& payload, const Respond& respond);

    /// The task of a request, or the answer that there is none.
    TaskPtr find(const std::string& payload, const Respond& respond);
    [[nodiscard]] static TaskPtr read_create(const std::string& payload, std::vector<Mount>& mounts,
                                             std::string& rootfs);
    void created(const TaskPtr& task, const std::string& rootfs, const Respond& respond);
    void try_again(const TaskPtr& task);
    void forget(const TaskPtr& task);
    void exited(const TaskPtr& task, int status);
    void tell_exit(const TaskPtr& task);
    void run(std::vector<std::string> words, const std::vector<int>& extra_fds,
             std::function<void(const CommandResult&)> done);
    void watch(const TaskPtr& task);

    Loop& loop_;
    Children& children_;
    EventPublisher& events_;
    std::string namespace_;
    std::map<std::string, TaskPtr> containers_;
};

}  // namespace talpa::remoteproc::shim
