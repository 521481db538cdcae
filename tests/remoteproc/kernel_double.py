#!/usr/bin/env python3
"""Linux's remoteproc class for N cores, served by FUSE with the kernel's semantics: synchronous start and stop that carry
an errno, counted starts, crash and recovery, trace buffers. Facts: remoteproc-runtime, section 5; imx93-remoteproc,
section 7. Speaks the FUSE protocol itself (fuse(4)), so it needs no package.

Mounted on DIR it shows  DIR/class/remoteprocN/…  DIR/debug/remoteprocN/…  DIR/ctl (commands, one a line)  DIR/log
(what was written to which attribute, and the errno).  Commands:  N crash | N boot-ms 800 | N recover-ms 2500 |
N fail EIO,ENOMEM (of the next starts) | N trace TEXT | N state detached | N stop-ms 50 | N loader raw | N profile legacy |
N remove"""
import ctypes
import errno
import os
import stat
import struct
import sys
import threading
import time

LIBC = ctypes.CDLL(None, use_errno=True)


def mount(source, target, kind, flags=0, data=None):
    if LIBC.mount(source.encode() if source else None, target.encode(), kind.encode() if kind else None, flags,
                  data.encode() if data else None) != 0:
        raise OSError(ctypes.get_errno(), f"mount {kind} on {target}: {os.strerror(ctypes.get_errno())}")


class Core:
    """One remote processor."""

    def __init__(self, index, name, firmware_folders):
        self.index, self.name, self.folders = index, name, firmware_folders
        self.lock = threading.Lock()
        self.state, self.firmware, self.recovery, self.coredump = "offline", "rproc-%s-fw" % name, "enabled", "disabled"
        self.power, self.boot_ms, self.stop_ms, self.recover_ms = 0, 100, 5, 20
        self.failures, self.trace, self.loader, self.profile = [], "", "elf", "counted"
        self.present, self.writes = True, []

    def find(self):
        for folder in self.folders():
            path = os.path.join(folder, self.firmware)
            if os.path.isfile(path):
                return path
        return None

    def load(self):
        path = self.find()
        if path is None:
            return errno.ENOENT
        if self.failures:
            return getattr(errno, self.failures.pop(0))
        with open(path, "rb") as file:
            magic = file.read(4)
        return 0 if self.loader == "raw" or magic == b"\x7fELF" else errno.EINVAL

    def start(self):
        with self.lock:
            if self.state == "detached":
                self.state, self.power = "attached", 1
                return 0
            if self.state != "offline" or self.power > 0:
                if self.profile == "legacy":
                    return errno.EBUSY
                self.power += 1
                return 0
            error = self.load()
            if error:
                return error
            time.sleep(self.boot_ms / 1000)
            self.state, self.power, self.trace = "running", 1, ""
            return 0

    def stop(self):
        with self.lock:
            if self.state not in ("running", "attached"):
                return errno.EINVAL
            self.power -= 1
            if self.power > 0 and self.profile == "counted":
                return 0
            time.sleep(self.stop_ms / 1000)
            self.state, self.power = "offline", 0
            return 0

    def recover(self):
        with self.lock:
            if self.state != "crashed":
                return 0
            self.state = "offline"
            time.sleep(self.recover_ms / 1000)
            error = self.load()
            if error == 0:
                self.state, self.trace = "running", ""
            return error

    def crash(self):
        with self.lock:
            if self.state not in ("running", "attached"):
                return
            self.state = "crashed"
        if self.recovery == "enabled":
            threading.Thread(target=lambda: (time.sleep(self.recover_ms / 1000), self.recover()), daemon=True).start()

    def write(self, attribute, text):
        word = text[:-1] if text.endswith("\n") else text
        if attribute == "state":
            return {"start": self.start, "stop": self.stop}.get(word, lambda: errno.EINVAL)()
        if attribute == "firmware":
            if self.state != "offline":
                return errno.EBUSY
            name = text.split("\n")[0]
            if not name:
                return errno.EINVAL
            self.firmware = name
            return 0
        if attribute == "recovery":
            if word == "recover":
                return self.recover()
            if word not in ("enabled", "disabled"):
                return errno.EINVAL
            self.recovery = word
            return 0
        return errno.EINVAL

    def read(self, attribute):
        if attribute == "firmware" and self.state == "attached":
            return "unknown\n"
        return getattr(self, attribute) + "\n"

    def command(self, word, rest):
        if word == "crash":
            self.crash()
        elif word == "fail":
            self.failures = rest.split(",") if rest else []
        elif word == "trace":
            self.trace += rest.replace("\\n", "\n")
        elif word == "set-trace":
            self.trace = rest.replace("\\n", "\n")
        elif word == "remove":
            self.present = False
        elif word == "state":
            self.state, self.power = rest, 1 if rest in ("running", "attached") else 0
        else:
            setattr(self, word.replace("-", "_"), int(rest) if rest.isdigit() else rest)


class Server:
    ATTRIBUTES = {"name": 0o444, "state": 0o644, "firmware": 0o644, "recovery": 0o644, "coredump": 0o644}

    def __init__(self, cores):
        self.cores, self.nodes, self.paths, self.log, self.lock = cores, {"": 1}, {1: ""}, [], threading.Lock()
        self.modes = {}  # by chmod

    def core_of(self, path):
        part = path.split("/")[1] if "/" in path else ""
        if part.startswith("remoteproc") and part[10:].isdigit() and int(part[10:]) < len(self.cores):
            core = self.cores[int(part[10:])]
            return core if core.present else None
        return None

    def children(self, path):
        if path == "":
            return ["class", "debug", "ctl", "log"]
        if path in ("class", "debug"):
            return ["remoteproc%d" % c.index for c in self.cores if c.present]
        core = self.core_of(path)
        if core is None:
            return None
        parts = path.split("/")
        if parts[0] == "class" and len(parts) == 2:
            return list(self.ATTRIBUTES) + ["device"]
        if parts[0] == "class" and parts[2:] in (["device"], ["device", "of_node"]):
            return ["of_node"] if len(parts) == 3 else ["compatible"]
        if parts[0] == "debug" and len(parts) == 2:
            return ["trace0", "crash"] if core.state in ("running", "attached", "crashed") else ["crash"]
        return None

    def mode(self, path):
        parent, _, name = path.rpartition("/")
        if path and name not in (self.children(parent) or []):
            return None
        if self.children(path) is not None:
            return stat.S_IFDIR | 0o755
        if path.startswith("class/") and path.count("/") == 2:
            return stat.S_IFREG | self.modes.get(path, self.ATTRIBUTES[name])
        return stat.S_IFREG | {"trace0": 0o400, "crash": 0o200, "ctl": 0o222, "log": 0o444, "compatible": 0o444}[name]

    def text(self, path):
        if path == "log":
            return "".join(self.log)
        core, name = self.core_of(path), path.rpartition("/")[2]
        if core is None:
            return None
        if name == "compatible":
            return "vendor,%s\0vendor,core\0" % core.name
        return core.trace if name == "trace0" else core.read(name)

    def write(self, path, text):
        if path == "ctl":
            for line in text.splitlines():
                number, word, *rest = line.split(" ", 2)
                self.cores[int(number)].command(word, rest[0] if rest else "")
            return 0
        core, name = self.core_of(path), path.rpartition("/")[2]
        if core is None:
            return errno.ENODEV
        if name == "crash":
            core.crash()
            return 0
        error = core.write(name, text)
        self.log.append("%d %s=%s %s\n" % (core.index, name, text.strip("\n"), errno.errorcode.get(error, "0")))
        return error

    # The FUSE side
    def node(self, path):
        with self.lock:
            if path not in self.nodes:
                self.nodes[path] = len(self.nodes) + 1
                self.paths[self.nodes[path]] = path
            return self.nodes[path]

    def attr(self, path):
        mode = self.mode(path)
        if mode is None:
            return None
        size = 4096 if stat.S_ISREG(mode) else 0
        return struct.pack("<QQQQQQIIIIIIIIII", self.node(path), size, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def handle_request(self, opcode, nodeid, body):
        path = self.paths.get(nodeid, "")
        if opcode == 26:  # INIT
            major, minor, readahead, _ = struct.unpack_from("<IIII", body)
            return 0, struct.pack("<IIIIHHIIHH8I", 7, 31, readahead, 0, 64, 48, 65536, 1, 0, 0, *[0] * 8)
        if opcode == 1:  # LOOKUP
            child = (path + "/" if path else "") + body.rstrip(b"\0").decode()
            attr = self.attr(child)
            return (errno.ENOENT, b"") if attr is None else (0, struct.pack("<QQQQII", self.node(child), 0, 0, 0, 0, 0) + attr)
        if opcode in (3, 4):  # GETATTR, SETATTR (chmod, or a truncating open)
            if opcode == 4 and struct.unpack_from("<I", body)[0] & 1:
                self.modes[path] = struct.unpack_from("<I", body, 68)[0] & 0o777
            attr = self.attr(path)
            return (errno.ENOENT, b"") if attr is None else (0, struct.pack("<QII", 0, 0, 0) + attr)
        if opcode == 14:  # OPEN
            mode, flags = self.mode(path), struct.unpack_from("<I", body)[0] & 3
            if mode is None:
                return errno.ENOENT, b""
            if flags != os.O_RDONLY and not mode & 0o222:  # sysfs refuses root as well
                return errno.EACCES, b""
            return 0, struct.pack("<QII", 0, 1, 0)  # FOPEN_DIRECT_IO
        if opcode == 15:  # READ
            offset, size = struct.unpack_from("<QI", body, 8)
            text = self.text(path)
            return (errno.ENODEV, b"") if text is None else (0, text.encode()[offset:offset + size])
        if opcode == 16:  # WRITE
            size = struct.unpack_from("<I", body, 16)[0]
            error = self.write(path, body[40:40 + size].decode(errors="replace"))
            return (error, b"") if error else (0, struct.pack("<II", size, 0))
        if opcode == 27:  # OPENDIR
            return 0, struct.pack("<QII", 0, 0, 0)
        if opcode == 28:  # READDIR
            offset, size = struct.unpack_from("<QI", body, 8)
            out = b""
            for i, name in enumerate((self.children(path) or [])[offset:], offset + 1):
                entry = struct.pack("<QQII", i + 1000, i, len(name), 0) + name.encode()
                entry += b"\0" * (-len(entry) % 8)
                if len(out) + len(entry) > size:
                    break
                out += entry
            return 0, out
        if opcode == 17:  # STATFS
            return 0, struct.pack("<QQQQQIIII6I", 0, 0, 0, 0, 0, 4096, 255, 4096, 0, *[0] * 6)
        if opcode in (18, 20, 25, 29):  # RELEASE, FSYNC, FLUSH, RELEASEDIR
            return 0, b""
        return errno.ENOSYS, b""

    def serve(self, fd):
        def answer(unique, opcode, nodeid, body):
            try:
                error, data = self.handle_request(opcode, nodeid, body)
            except Exception as problem:  # a fault here must not hang the caller
                print("kernel_double:", repr(problem), file=sys.stderr)
                error, data = errno.EIO, b""
            try:
                os.write(fd, struct.pack("<IiQ", 16 + len(data), -error, unique) + data)
            except OSError:
                pass  # the caller was killed meanwhile

        while True:
            try:
                request = os.read(fd, 1 << 17)
            except OSError as problem:
                if problem.errno == errno.ENODEV:
                    return  # unmounted
                if problem.errno in (errno.EINTR, errno.ENOENT):
                    continue
                raise
            _, opcode, unique, nodeid = struct.unpack_from("<IIQQ", request)
            if opcode in (2, 36, 42):  # FORGET, INTERRUPT, BATCH_FORGET: no answer
                continue
            if opcode == 16 or (opcode == 26):
                threading.Thread(target=answer, args=(unique, opcode, nodeid, request[40:]), daemon=True).start()
            else:
                answer(unique, opcode, nodeid, request[40:])


def serve(folder, names, firmware_folders, ready=None):
    """Mounts on `folder` and serves until it is unmounted."""
    os.makedirs(folder, exist_ok=True)
    fd = os.open("/dev/fuse", os.O_RDWR)
    mount("kernel_double", folder, "fuse.kernel_double", 0,
          f"fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions")
    server = Server([Core(i, name, firmware_folders) for i, name in enumerate(names)])
    if ready is not None:
        os.write(ready, b"r")
        os.close(ready)
    server.serve(fd)


def main():
    folder, *names = sys.argv[1:]
    serve(folder, names or ["imx-rproc"], lambda: ["/lib/firmware"])


if __name__ == "__main__":
    main()
