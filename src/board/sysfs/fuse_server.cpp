#include "board/sysfs/fuse_server.h"

#define FUSE_USE_VERSION 312
#include <fcntl.h>
#include <fuse3/fuse_lowlevel.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

namespace talpa::board {
namespace {

constexpr const char* kFuseHint =
    "the board's /sys is a FUSE file system: it needs /dev/fuse (modprobe fuse; in a container: --device /dev/fuse "
    "--cap-add SYS_ADMIN), and fusermount3 from the package fuse3 for users other than root";

/// An open file: its node as it was when opened, and the text of its first read.
struct Handle {
    FileNode file;
    std::string path;
    std::optional<std::string> text;
};

Handle& handle_of(const fuse_file_info* info) {
    return *reinterpret_cast<Handle*>(info->fh);
}

const FileNode* file_of(const Node& node) {
    return std::get_if<FileNode>(&node.is);
}
const FolderNode* folder_of_node(const Node& node) {
    const auto* const folder = std::get_if<std::shared_ptr<FolderNode>>(&node.is);
    return folder == nullptr ? nullptr : folder->get();
}

}  // namespace

struct FuseServer::Session {
    Session(const FileTree& t, Tracer* listener) : tree(t), tracer(listener) {}
    ~Session() {
        if (fuse != nullptr) fuse_session_destroy(fuse);
        if (wake >= 0) ::close(wake);
    }

    const FileTree& tree;
    Tracer* tracer;
    fuse_session* fuse = nullptr;
    int wake = -1;
    std::thread loop;
    std::timespec born{};

    // Inode numbers stand for paths, as long as the kernel knows them. Loop thread only.
    struct Inode {
        std::string path;
        std::uint64_t lookups = 0;
    };
    std::unordered_map<fuse_ino_t, Inode> inodes;
    std::unordered_map<std::string, fuse_ino_t> numbers;
    fuse_ino_t next = FUSE_ROOT_ID + 1;

    std::mutex mutex;
    std::condition_variable idle;
    unsigned writes = 0;  ///< under way

    [[nodiscard]] std::string path_of(fuse_ino_t ino) const {
        if (ino == FUSE_ROOT_ID) return {};
        const auto found = inodes.find(ino);
        return found == inodes.end() ? std::string("\1") : found->second.path;  // no such name
    }
    [[nodiscard]] std::shared_ptr<const Node> node(fuse_ino_t ino) const { return tree.find(path_of(ino)); }

    void fill(struct stat& st, const Node& node, fuse_ino_t ino) const {
        st = {};
        st.st_ino = ino;
        st.st_nlink = 1;
        st.st_uid = ::geteuid();
        st.st_gid = ::getegid();
        st.st_blksize = kSysfsPage;
        st.st_atim = st.st_mtim = st.st_ctim = born;
        if (const FileNode* const file = file_of(node)) {
            st.st_mode = S_IFREG | file->mode;
            switch (file->rules) {
                case FileRules::Sysfs:
                    st.st_size = kSysfsPage;
                    break;
                case FileRules::Debugfs:
                    break;
                case FileRules::Bytes:
                    st.st_size = static_cast<off_t>(file->read().size());
                    break;
            }
        } else if (const FolderNode* const folder = folder_of_node(node)) {
            st.st_mode = S_IFDIR | folder->mode;
            st.st_nlink = 2;
        } else {
            st.st_mode = S_IFLNK | 0777;
            st.st_size = static_cast<off_t>(std::get<LinkNode>(node.is).target.size());
        }
    }
    fuse_ino_t number(const std::string& path) {
        const auto [at, fresh] = numbers.try_emplace(path, next);
        if (fresh) inodes[next++].path = path;
        ++inodes[at->second].lookups;
        return at->second;
    }
    void forget(fuse_ino_t ino, std::uint64_t count) {
        const auto found = inodes.find(ino);
        if (found == inodes.end()) return;
        found->second.lookups -= std::min(count, found->second.lookups);
        if (found->second.lookups > 0) return;
        numbers.erase(found->second.path);
        inodes.erase(found);
    }
    template <typename... Args>
    void trace(fmt::format_string<Args...> format, Args&&... args) const {
        if (tracer != nullptr) tracer->line(TraceSource::Sysfs, format, std::forward<Args>(args)...);
    }
    void run();
};

namespace {

template <typename S>
S& session(fuse_req_t request) {
    return *static_cast<S*>(fuse_req_userdata(request));
}

}  // namespace

// The operations are a template so that they may name the private Session.
template <typename S>
struct FuseOperations {
    static void lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
        S& s = session<S>(request);
        const std::string folder = s.path_of(parent);
        const std::string path = folder.empty() ? name : folder + "/" + name;
        const auto node = s.tree.find(path);
        if (!node) {
            fuse_reply_err(request, ENOENT);
            return;
        }
        fuse_entry_param entry{};
        entry.ino = s.number(path);
        s.fill(entry.attr, *node, entry.ino);
        if (fuse_reply_entry(request, &entry) != 0) s.forget(entry.ino, 1);
    }
    static void forget(fuse_req_t request, fuse_ino_t ino, std::uint64_t count) {
        session<S>(request).forget(ino, count);
        fuse_reply_none(request);
    }
    static void reply_attr(fuse_req_t request, fuse_ino_t ino) {
        S& s = session<S>(request);
        const auto node = s.node(ino);
        if (!node) {
            fuse_reply_err(request, ENOENT);
            return;
        }
        struct stat st;
        s.fill(st, *node, ino);
        fuse_reply_attr(request, &st, 0);
    }
    static void getattr(fuse_req_t request, fuse_ino_t ino, fuse_file_info*) { reply_attr(request, ino); }
    /// A shell's `>` truncates: that means nothing here. Owner and mode stay.
    static void setattr(fuse_req_t request, fuse_ino_t ino, struct stat*, int what, fuse_file_info*) {
        if ((what & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) != 0)
            fuse_reply_err(request, EPERM);
        else
            reply_attr(request, ino);
    }
    static void readlink(fuse_req_t request, fuse_ino_t ino) {
        const auto node = session<S>(request).node(ino);
        const auto* const link = node ? std::get_if<LinkNode>(&node->is) : nullptr;
        if (link == nullptr)
            fuse_reply_err(request, node ? EINVAL : ENOENT);
        else
            fuse_reply_readlink(request, link->target.c_str());
    }
    static void open(fuse_req_t request, fuse_ino_t ino, fuse_file_info* info) {
        const auto node = session<S>(request).node(ino);
        const FileNode* const file = node ? file_of(*node) : nullptr;
        if (file == nullptr) {
            fuse_reply_err(request, node ? EISDIR : ENOENT);
            return;
        }
        if (file->open_error != 0) {
            fuse_reply_err(request, file->open_error);
            return;
        }
        const int access = info->flags & O_ACCMODE;
        const bool reads = access != O_WRONLY, writes = access != O_RDONLY;
        // kernfs looks at the mode bits itself, and so refuses root as well.
        if (file->rules != FileRules::Debugfs && ((reads && ((file->mode & 0444) == 0 || !file->read)) ||
                                                  (writes && ((file->mode & 0222) == 0 || !file->write)))) {
            fuse_reply_err(request, EACCES);
            return;
        }
        info->fh = reinterpret_cast<std::uint64_t>(new Handle{*file, session<S>(request).path_of(ino), std::nullopt});
        info->direct_io = 1;
        if (fuse_reply_open(request, info) != 0) delete &handle_of(info);
    }
    static void release(fuse_req_t request, fuse_ino_t, fuse_file_info* info) {
        delete &handle_of(info);
        fuse_reply_err(request, 0);
    }
    static void read(fuse_req_t request, fuse_ino_t, std::size_t size, off_t offset, fuse_file_info* info) {
        Handle& handle = handle_of(info);
        if (!handle.file.read) {
            fuse_reply_err(request, EINVAL);
            return;
        }
        if (!handle.text || offset == 0 || handle.file.rules == FileRules::Debugfs) handle.text = handle.file.read();
        const std::string& text = *handle.text;
        if (offset == 0) session<S>(request).trace("read {} = {}", handle.path, show_bytes(text));
        const std::size_t from = std::min(static_cast<std::size_t>(offset), text.size());
        fuse_reply_buf(request, text.data() + from, std::min(size, text.size() - from));
    }
    static void write(fuse_req_t request, fuse_ino_t, const char* data, std::size_t size, off_t, fuse_file_info* info) {
        S& s = session<S>(request);
        const Handle& handle = handle_of(info);
        const FileNode& file = handle.file;
        if (!file.write) {
            fuse_reply_err(request, EINVAL);
            return;
        }
        {
            const std::lock_guard lock(s.mutex);
            ++s.writes;
        }
        // Released no earlier than this write is answered, so the handle lives.
        std::thread([&s, request, &handle, &file, text = std::string(data, std::min(size, kSysfsPage))] {
            const int error = file.write(text);
            s.trace("write {} {} = {}", handle.path, show_bytes(text), error < 0 ? std::strerror(-error) : "ok");
            if (error < 0)
                fuse_reply_err(request, -error);
            else
                fuse_reply_write(request, text.size());
            const std::lock_guard lock(s.mutex);
            if (--s.writes == 0) s.idle.notify_all();
        }).detach();
    }
    static void opendir(fuse_req_t request, fuse_ino_t ino, fuse_file_info* info) {
        S& s = session<S>(request);
        const auto node = s.node(ino);
        const FolderNode* const folder = node ? folder_of_node(*node) : nullptr;
        if (folder == nullptr) {
            fuse_reply_err(request, node ? ENOTDIR : ENOENT);
            return;
        }
        // The listing is made once an open folder, as text for readdir to cut from.
        std::string listing;
        const auto put = [&](const char* name, const struct stat& st) {
            const std::size_t at = listing.size(), bytes = fuse_add_direntry(request, nullptr, 0, name, nullptr, 0);
            listing.resize(at + bytes);
            fuse_add_direntry(request, listing.data() + at, bytes, name, &st, static_cast<off_t>(listing.size()));
        };
        struct stat st{};
        st.st_ino = ino;
        st.st_mode = S_IFDIR;
        put(".", st);
        put("..", st);
        for (const auto& [name, child] : FileTree::list(*folder)) {
            st = {};
            st.st_mode = file_of(child) != nullptr ? S_IFREG : folder_of_node(child) != nullptr ? S_IFDIR : S_IFLNK;
            st.st_ino = std::hash<std::string>{}(s.path_of(ino) + "/" + name) | 1;  // a hint only; lookup tells
            put(name.c_str(), st);
        }
        info->fh = reinterpret_cast<std::uint64_t>(new std::string(std::move(listing)));
        if (fuse_reply_open(request, info) != 0) delete reinterpret_cast<std::string*>(info->fh);
    }
    static void readdir(fuse_req_t request, fuse_ino_t, std::size_t size, off_t offset, fuse_file_info* info) {
        const auto& listing = *reinterpret_cast<const std::string*>(info->fh);
        std::size_t from = std::min(static_cast<std::size_t>(offset), listing.size()), end = from;
        // Whole entries only: each is as long as its name makes it, and the header tells that length.
        while (end < listing.size()) {
            std::uint32_t name_length = 0;
            std::memcpy(&name_length, listing.data() + end + 16, sizeof name_length);  // fuse_dirent.namelen
            const std::size_t bytes = (24 + name_length + 7) / 8 * 8;
            if (end + bytes - from > size) break;
            end += bytes;
        }
        fuse_reply_buf(request, listing.data() + from, end - from);
    }
    static void releasedir(fuse_req_t request, fuse_ino_t, fuse_file_info* info) {
        delete reinterpret_cast<std::string*>(info->fh);
        fuse_reply_err(request, 0);
    }
    static void statfs(fuse_req_t request, fuse_ino_t) {
        struct statvfs st{};
        st.f_bsize = kSysfsPage;
        st.f_namemax = 255;
        fuse_reply_statfs(request, &st);
    }
    // What kernfs refuses.
    static void create(fuse_req_t request, fuse_ino_t, const char*, mode_t, fuse_file_info*) {
        fuse_reply_err(request, EACCES);
    }
    static void mknod(fuse_req_t request, fuse_ino_t, const char*, mode_t, dev_t) { fuse_reply_err(request, EPERM); }
    static void mkdir(fuse_req_t request, fuse_ino_t, const char*, mode_t) { fuse_reply_err(request, EPERM); }
    static void remove(fuse_req_t request, fuse_ino_t, const char*) { fuse_reply_err(request, EPERM); }
    static void symlink(fuse_req_t request, const char*, fuse_ino_t, const char*) { fuse_reply_err(request, EPERM); }
    static void rename(fuse_req_t request, fuse_ino_t, const char*, fuse_ino_t, const char*, unsigned) {
        fuse_reply_err(request, EPERM);
    }

    [[nodiscard]] static fuse_lowlevel_ops table() {
        fuse_lowlevel_ops ops{};
        ops.lookup = lookup;
        ops.forget = forget;
        ops.getattr = getattr;
        ops.setattr = setattr;
        ops.readlink = readlink;
        ops.open = open;
        ops.read = read;
        ops.write = write;
        ops.release = release;
        ops.opendir = opendir;
        ops.readdir = readdir;
        ops.releasedir = releasedir;
        ops.statfs = statfs;
        ops.create = create;
        ops.mknod = mknod;
        ops.mkdir = mkdir;
        ops.unlink = remove;
        ops.rmdir = remove;
        ops.symlink = symlink;
        ops.rename = rename;
        return ops;
    }
};

void FuseServer::Session::run() {
    fuse_buf buffer{};
    const int fd = fuse_session_fd(fuse);
    while (fuse_session_exited(fuse) == 0) {
        pollfd fds[] = {{fd, POLLIN, 0}, {wake, POLLIN, 0}};
        if (::poll(fds, 2, -1) < 0 && errno != EINTR) break;
        if (fds[1].revents != 0) break;
        if (fds[0].revents == 0) continue;
        const int got = fuse_session_receive_buf(fuse, &buffer);
        if (got == -EINTR || got == -EAGAIN) continue;
        if (got <= 0) break;  // unmounted by somebody else
        fuse_session_process_buf(fuse, &buffer);
    }
    std::free(buffer.mem);
}

FuseServer::FuseServer(std::unique_ptr<Session> session) : session_(std::move(session)) {}

host::Result<std::unique_ptr<FuseServer>> FuseServer::mount(const FileTree& tree, const std::filesystem::path& at,
                                                            Tracer* tracer) {
    if (::access("/dev/fuse", R_OK | W_OK) != 0)
        return std::unexpected(host::Error(ErrorCode::AccessFailed,
                                           fmt::format("cannot open /dev/fuse: {}", std::strerror(errno)), kFuseHint));
    auto session = std::make_unique<Session>(tree, tracer);
    std::timespec_get(&session->born, TIME_UTC);
    static const fuse_lowlevel_ops ops = FuseOperations<Session>::table();
    std::string options = "default_permissions,fsname=talpa-board,subtype=sysfs";
    if (::geteuid() == 0) options += ",allow_other";
    std::string program = "talpa", flag = "-o";
    char* argv[] = {program.data(), flag.data(), options.data()};
    fuse_args args = FUSE_ARGS_INIT(3, argv);
    session->fuse = fuse_session_new(&args, &ops, sizeof ops, session.get());
    fuse_opt_free_args(&args);
    if (session->fuse == nullptr)
        return host::failure(ErrorCode::Internal, "libfuse does not take the options '{}'", options);
    session->wake = ::eventfd(0, EFD_CLOEXEC);
    if (session->wake < 0)
        return host::failure(ErrorCode::OutOfResources, "cannot make an eventfd: {}", std::strerror(errno));
    if (fuse_session_mount(session->fuse, at.c_str()) != 0)
        return std::unexpected(host::Error(
            ErrorCode::AccessFailed, fmt::format("cannot mount a FUSE file system on {}", at.string()), kFuseHint));
    ::fcntl(fuse_session_fd(session->fuse), F_SETFD, FD_CLOEXEC);
    // A request can be taken back between poll and read.
    ::fcntl(fuse_session_fd(session->fuse), F_SETFL, O_NONBLOCK);
    session->loop = std::thread([s = session.get()] { s->run(); });
    return std::unique_ptr<FuseServer>(new FuseServer(std::move(session)));
}

FuseServer::~FuseServer() {
    const std::uint64_t one = 1;
    (void)!::write(session_->wake, &one, sizeof one);
    session_->loop.join();
    {
        std::unique_lock lock(session_->mutex);
        session_->idle.wait(lock, [this] { return session_->writes == 0; });
    }
    fuse_session_unmount(session_->fuse);
}

}  // namespace talpa::board
