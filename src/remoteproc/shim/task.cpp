#include "remoteproc/shim/task.h"

#include <charconv>
#include <csignal>
#include <cstdlib>

#include "remoteproc/oci/settings.h"
#include "remoteproc/shim/bootstrap.h"
#include "remoteproc/shim/metrics.h"
#include "remoteproc/shim/runtime_failure.h"
#include "remoteproc/shim/shim_log.h"
#include "remoteproc/shim/wire.h"

namespace talpa::remoteproc::shim {
namespace {

constexpr int kAloneMs = 3000;

Reply fail_with(Code code, std::string message) {
    return std::unexpected(Status{code, std::move(message)});
}

Mount parse_mount(std::string_view bytes) {
    Mount m;
    for (WireReader reader(bytes); reader.next();) {
        if (reader.field() == 1) m.type = reader.bytes();
        if (reader.field() == 2) m.source = reader.bytes();
        if (reader.field() == 3) m.target = reader.bytes();
        if (reader.field() == 4) m.options.emplace_back(reader.bytes());
    }
    return m;
}

std::uint64_t state_pid(std::string_view json) {
    const std::size_t at = json.find("\"pid\":");
    std::uint64_t pid = 0;
    if (at != std::string_view::npos) {
        const std::size_t begin = json.find_first_of("0123456789", at);
        if (begin != std::string_view::npos) std::from_chars(json.data() + begin, json.data() + json.size(), pid);
    }
    return pid;
}

}  // namespace

const TaskService::Method TaskService::kMethods[] = {
    {"Create", &TaskService::create},
    {"Start", &TaskService::start},
    {"State", &TaskService::state},
    {"Kill", &TaskService::kill},
    {"Delete", &TaskService::remove},
    {"Wait", &TaskService::wait},
    {"Pids", &TaskService::pids},
    {"Stats", &TaskService::stats},
    {"Connect", &TaskService::connect},
    {"Shutdown", &TaskService::shutdown},
    {"Update", &TaskService::accept_silently},  // kubelet sends it for every container
    {"CloseIO", &TaskService::accept_silently},
    {"ResizePty", &TaskService::accept_silently},
};

TaskService::TaskService(Loop& loop, Children& children, EventPublisher& events, std::string namespace_name)
    : loop_(loop), children_(children), events_(events), namespace_(std::move(namespace_name)) {}

void TaskService::call(const std::string& method, const std::string& payload, Respond respond) {
    if (!is_sound(payload))
        return respond(fail_with(Code::InvalidArgument, "malformed request of " + printable(method)));
    for (const Method& m : kMethods)
        if (method == m.name) return (this->*m.handler)(payload, respond);
    constexpr std::string_view kRefused[] = {"Exec", "Pause", "Resume", "Checkpoint"};
    for (const auto name : kRefused)
        if (method == name)
            return respond(
                fail_with(Code::Unimplemented, fmt::format("{} is not implemented: firmware on a remote processor "
                                                           "cannot do that",
                                                           name)));
    respond(fail_with(Code::Unimplemented, "method " + printable(method)));
}

TaskService::TaskPtr TaskService::find(const std::string& payload, const Respond& respond) {
    const std::string id(find_bytes(payload, 1));
    const auto found = containers_.find(id);
    if (found == containers_.end()) {
        respond(fail_with(Code::NotFound, fmt::format("container {}: not found", printable(id))));
        return nullptr;
    }
    return found->second;
}

void TaskService::run(std::vector<std::string> words, const std::vector<int>& extra_fds,
                      std::function<void(const CommandResult&)> done) {
    const std::string runtime = find_runtime();
    if (runtime.empty()) {
        loop_.after(0, [done = std::move(done)] {
            done({kNoRuntime, "exec: \"remoteproc-runtime\": executable file not found in $PATH", {}});
        });
        return;
    }
    std::vector<std::string> arguments{"remoteproc-runtime"};
    arguments.insert(arguments.end(), words.begin(), words.end());
    std::vector<std::string> environment{"REMOTEPROC_GUARD=caller", "REMOTEPROC_NAMESPACE=" + namespace_};
    if (!extra_fds.empty()) environment.emplace_back("REMOTEPROC_OUTPUT=3,4,5");
    for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
    children_.run(runtime, std::move(arguments), std::move(environment), extra_fds, std::move(done));
}

// What Create asks for; checkpoints and runc's options are left alone. `rootfs` takes the mounts as they came.
TaskService::TaskPtr TaskService::read_create(const std::string& payload, std::vector<Mount>& mounts,
                                              std::string& rootfs) {
    auto task = std::make_shared<Task>();
    for (WireReader reader(payload); reader.next();) {
        const unsigned field = reader.field();
        if (field == 1) task->id = reader.bytes();
        if (field == 2) task->bundle = reader.bytes();
        if (field == 3) {
            mounts.push_back(parse_mount(reader.bytes()));
            WireWriter w;
            w.message(3, reader.bytes());
            rootfs += w.bytes();
        }
        if (field == 4) task->terminal = reader.number() != 0;
        if (field == 5) task->in = reader.bytes();
        if (field == 6) task->out = reader.bytes();
        if (field == 7) task->err = reader.bytes();
    }
    return task;
}

void TaskService::create(const std::string& payload, const Respond& respond) {
    std::vector<Mount> mounts;
    std::string list;
    const TaskPtr task = read_create(payload, mounts, list);
    if (task->id.empty() || task->bundle.empty())
        return respond(fail_with(Code::InvalidArgument, "Create wants an id and a bundle"));
    if (containers_.contains(task->id))
        return respond(fail_with(Code::AlreadyExists, fmt::format("container {} already exists", task->id)));
    if (task->terminal) return respond(fail_with(Code::InvalidArgument, "firmware has no terminal; run without -t"));
    auto stdio = open_stdio(task->in, task->out, task->err, namespace_, task->id);
    if (!stdio) return respond(fail_with(Code::Unknown, error_line(stdio.error())));
    for (const pid_t logger : stdio->loggers) children_.claim_new(logger, [](int) {});
    if (auto mounted = mount_all(mounts, task->bundle + "/rootfs"); !mounted)
        return respond(fail_with(Code::Unknown, error_line(mounted.error())));
    task->mounted = !mounts.empty();
    containers_[task->id] = task;
    // The descriptors live until the command has them; the container's process is then their only holder.
    const auto held = std::make_shared<Stdio>(std::move(*stdio));
    run({"create", "--bundle", task->bundle, task->id}, {held->in.get(), held->out.get(), held->err.get()},
        [this, task, list = std::move(list), respond, held](const CommandResult& result) {
            if (result.status == 0) return created(task, list, respond);
            const std::string text = failed_text("create", result);
            if (task->mounted) unmount_all(task->bundle + "/rootfs");
            respond(fail_with(code_of(text), text));
            forget(task);
        });
}

// Deletes that had to wait. containerd sends one when its own caller gave up in the middle of Create, and has forgotten
// the container by the time that it is made.
void TaskService::try_again(const TaskPtr& task) {
    for (const auto& next : std::exchange(task->deletes, {})) next();
}

void TaskService::forget(const TaskPtr& task) {
    containers_.erase(task->id);
    for (const Respond& waiter : std::exchange(task->waiters, {}))
        waiter(fail_with(Code::NotFound, fmt::format("container {}: not found", task->id)));
    try_again(task);
    if (!containers_.empty() || !on_shutdown) return;
    if (task->last) return on_shutdown();
    // Shutdown follows at once. Where it does not, the caller of Delete gave up and containerd goes on listing a task
    // that nobody can name or delete; it takes it off its list when this server is gone.
    loop_.after(kAloneMs, [this] {
        if (containers_.empty()) on_shutdown();
    });
}

void TaskService::created(const TaskPtr& task, const std::string& rootfs, const Respond& respond) {
    run({"state", task->id}, {}, [this, task, rootfs, respond](const CommandResult& result) {
        const std::uint64_t pid = result.status == 0 ? state_pid(result.output) : 0;
        if (pid == 0) {
            run({"delete", "--force", task->id}, {}, [](const CommandResult&) {});
            if (task->mounted) unmount_all(task->bundle + "/rootfs");
            respond(fail_with(Code::Unknown, failed_text("state", result)));
            return forget(task);
        }
        task->pid = static_cast<pid_t>(pid);
        task->status = TaskStatus::Created;
        WireWriter io, event;
        io.text(1, task->in);
        io.text(2, task->out);
        io.text(3, task->err);
        WireWriter head;
        head.text(1, task->id);
        head.text(2, task->bundle);
        event.message(4, io.bytes());
        event.number(6, pid);
        events_.publish("/tasks/create", "containerd.events.TaskCreate", head.bytes() + rootfs + event.bytes());
        WireWriter reply;
        reply.number(1, pid);
        respond(reply.bytes());
        watch(task);
        try_again(task);
    });
}

void TaskService::watch(const TaskPtr& task) {
    children_.claim(task->pid, [this, task](int status) { exited(task, status); });
}

// The container's process has ended. Had it been killed, its core may still run: that comes first, then the news.
void TaskService::exited(const TaskPtr& task, int status) {
    if (WIFSIGNALED(status)) {
        shim_log(fmt::format("container {}: its process was killed by signal {}", task->id, WTERMSIG(status)));
        run({"kill", task->id, "KILL"}, {}, [this, task, status](const CommandResult&) {
            task->exit_status = exit_status(status);
            tell_exit(task);
        });
        return;
    }
    task->exit_status = exit_status(status);
    tell_exit(task);
}

void TaskService::tell_exit(const TaskPtr& task) {
    if (task->exited_ns == 0) task->exited_ns = unix_ns_now();
    // "start" is told before "exit", however quick the firmware was; and whoever asked for the end has its answer
    // before others act on it: they may delete the task, and containerd then drops the connection that the answer goes
    // to.
    if (task->starting || task->kills > 0 || task->status == TaskStatus::Stopped) return;
    task->status = TaskStatus::Stopped;
    write_exit_record(task->bundle, {static_cast<std::uint64_t>(task->pid),
                                     static_cast<std::uint64_t>(task->exit_status), task->exited_ns});
    WireWriter event;
    event.text(1, task->id);
    event.text(2, task->id);
    event.number(3, static_cast<std::uint64_t>(task->pid));
    event.number(4, static_cast<std::uint64_t>(task->exit_status));
    event.message(5, timestamp(task->exited_ns));
    events_.publish("/tasks/exit", "containerd.events.TaskExit", event.bytes());
    for (const Respond& waiter : std::exchange(task->waiters, {})) {
        WireWriter reply;
        reply.number(1, static_cast<std::uint64_t>(task->exit_status));
        reply.message(2, timestamp(task->exited_ns));
        waiter(reply.bytes());
    }
    for (const auto& next : std::exchange(task->after_exit, {})) next();
}

void TaskService::start(const std::string& payload, const Respond& respond) {
    const TaskPtr task = find(payload, respond);
    if (!task) return;
    if (!find_bytes(payload, 2).empty()) return respond(fail_with(Code::Unimplemented, "Exec is not implemented"));
    if (task->status != TaskStatus::Created || task->starting)
        return respond(
            fail_with(Code::FailedPrecondition, fmt::format("container {} is not in the state \"created\"", task->id)));
    task->starting = true;
    run({"start", task->id}, {}, [this, task, respond](const CommandResult& result) {
        task->starting = false;
        const bool ended = task->exited_ns != 0;
        if (result.status != 0) {
            const std::string text = failed_text("start", result);
            respond(fail_with(code_of(text), text));
        } else {
            task->status = TaskStatus::Running;
            WireWriter event;
            event.text(1, task->id);
            event.number(2, static_cast<std::uint64_t>(task->pid));
            events_.publish("/tasks/start", "containerd.events.TaskStart", event.bytes());
            WireWriter reply;
            reply.number(1, static_cast<std::uint64_t>(task->pid));
            respond(reply.bytes());
        }
        if (ended) tell_exit(task);
    });
}

void TaskService::state(const std::string& payload, const Respond& respond) {
    const TaskPtr task = find(payload, respond);
    if (!task) return;
    WireWriter w;
    w.text(1, task->id);
    w.text(2, task->bundle);
    w.number(3, static_cast<std::uint64_t>(task->pid));
    w.number(4, static_cast<std::uint64_t>(task->status));
    w.text(5, task->in);
    w.text(6, task->out);
    w.text(7, task->err);
    w.number(8, task->terminal ? 1 : 0);
    w.number(9, static_cast<std::uint64_t>(task->exit_status));
    if (task->exited_ns != 0) w.message(10, timestamp(task->exited_ns));
    respond(w.bytes());
}

void TaskService::kill(const std::string& payload, const Respond& respond) {
    const TaskPtr task = find(payload, respond);
    if (!task) return;
    const auto number = static_cast<int>(find_number(payload, 3));
    if (!find_bytes(payload, 2).empty()) return respond(fail_with(Code::NotFound, "firmware has no further processes"));
    if (task->status == TaskStatus::Stopped)
        return respond(fail_with(Code::NotFound, "os: process already finished: not found"));
    const char* word = nullptr;
    if (number == SIGKILL) word = "KILL";
    // 0 comes from callers that name no signal; the rest are the usual ways to ask a program to end.
    for (const int stop : {0, SIGTERM, SIGINT, SIGQUIT, SIGHUP})
        if (number == stop) word = "TERM";
    if (word == nullptr)
        return respond(
            fail_with(Code::InvalidArgument,
                      fmt::format("unsupported signal: {} (supported: TERM (15), KILL (9), INT (2))", number)));
    ++task->kills;
    run({"kill", task->id, word}, {}, [this, task, respond](const CommandResult& result) {
        --task->kills;
        if (result.status == 0) {
            respond(std::string());
        } else {
            const std::string text = failed_text("kill", result);
            respond(fail_with(code_of(text), text));
        }
        if (task->exited_ns != 0) tell_exit(task);
    });
}

void TaskService::remove(const std::string& payload, const Respond& respond) {
    const TaskPtr task = find(payload, respond);
    if (!task) return;
    if (task->status == TaskStatus::Running || task->starting)
        return respond(
            fail_with(Code::FailedPrecondition, fmt::format("cannot delete running container {}", task->id)));
    if (task->status == TaskStatus::Unknown || task->deleting) {
        task->deletes.emplace_back([this, payload, respond] { remove(payload, respond); });
        return;
    }
    task->deleting = true;
    const bool never_started = task->status == TaskStatus::Created;
    std::vector<std::string> words{"delete", task->id};
    if (never_started) words.insert(words.begin() + 1, "--force");
    run(std::move(words), {}, [this, task, respond](const CommandResult& result) {
        const std::string text = failed_text("delete", result);
        // What is gone already needs no deleting.
        if (result.status != 0 && code_of(text) != Code::NotFound) {
            task->deleting = false;
            respond(fail_with(code_of(text), text));
            return try_again(task);
        }
        const auto finish = [this, task, respond] {
            if (task->mounted) unmount_all(task->bundle + "/rootfs");
            WireWriter event, reply;
            event.text(1, task->id);
            event.number(2, static_cast<std::uint64_t>(task->pid));
            event.number(3, static_cast<std::uint64_t>(task->exit_status));
            event.message(4, timestamp(task->exited_ns));
            events_.publish("/tasks/delete", "containerd.events.TaskDelete", event.bytes());
            reply.number(1, static_cast<std::uint64_t>(task->pid));
            reply.number(2, static_cast<std::uint64_t>(task->exit_status));
            reply.message(3, timestamp(task->exited_ns));
            respond(reply.bytes());
            forget(task);
        };
        if (task->status == TaskStatus::Stopped)
            finish();
        else
            task->after_exit.emplace_back(finish);
    });
}

void TaskService::wait(const std::string& payload, const Respond& respond) {
    const TaskPtr task = find(payload, respond);
    if (!task) return;
    if (task->status != TaskStatus::Stopped) {
        task->waiters.push_back(respond);
        return;
    }
    WireWriter reply;
    reply.number(1, static_cast<std::uint64_t>(task->exit_status));
    reply.message(2, timestamp(task->exited_ns));
    respond(reply.bytes());
}

void TaskService::pids(const std::string& payload, const Respond& respond) {
    const TaskPtr task = find(payload, respond);
    if (!task) return;
    WireWriter process, reply;
    process.number(1, static_cast<std::uint64_t>(task->pid));
    reply.message(1, process.bytes());
    respond(reply.bytes());
}

void TaskService::stats(const std::string& payload, const Respond& respond) {
    const TaskPtr task = find(payload, respond);
    if (!task) return;
    WireWriter reply;
    reply.message(1, metrics(task->pid));
    respond(reply.bytes());
}

void TaskService::connect(const std::string& payload, const Respond& respond) {
    const TaskPtr task = find(payload, respond);
    if (!task) return;
    WireWriter reply;
    reply.number(1, static_cast<std::uint64_t>(::getpid()));
    reply.number(2, static_cast<std::uint64_t>(task->pid));
    respond(reply.bytes());
}

void TaskService::shutdown(const std::string& payload, const Respond& respond) {
    respond(std::string());
    // A pod's other containers still need this shim; their own Shutdown comes. But not for one that is on its way out:
    // whoever asked for its Delete could not wait for the answer.
    if (containers_.empty() && on_shutdown) return on_shutdown();
    if (const auto found = containers_.find(std::string(find_bytes(payload, 1))); found != containers_.end())
        found->second->last = found->second->deleting || !found->second->deletes.empty();
}

void TaskService::accept_silently(const std::string& payload, const Respond& respond) {
    if (find(payload, respond)) respond(std::string());
}

void TaskService::stop_all(std::function<void()> done) {
    const auto left = std::make_shared<std::size_t>(containers_.size() + 1);
    const auto one = [left, done = std::move(done)] {
        if (--*left == 0) done();
    };
    for (const auto& [id, task] : containers_)
        if (task->status == TaskStatus::Stopped)
            one();
        else
            run({"kill", id, "TERM"}, {}, [one](const CommandResult&) { one(); });
    one();
}

}  // namespace talpa::remoteproc::shim
