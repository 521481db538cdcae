"""The scenario table of remoteproc-runtime, section 19, as far as the command line of the runtime goes. Each takes a World
and raises AssertionError. The numbers are the table's."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import zlib

import board as boards

SCENARIOS = []
NEEDS_ROOT_FILES = "/root/.local/run/remoteproc-runtime"


def scenario(number, text):
    def add(function):
        SCENARIOS.append((str(number), text, function))
        return function
    return add


def elf(payload=b"", machine=40):
    """A little ELF32 with one segment in the data TCM."""
    import struct
    header = b"\x7fELF\x01\x01\x01" + bytes(9) + struct.pack("<HHIIIIIHHHHHH", 2, machine, 1, 0x20003001, 52, 0, 0, 52, 32, 1,
                                                            40, 0, 0)
    data = b"firmware" + payload
    segment = struct.pack("<8I", 1, 84, 0x20003000, 0x20003000, len(data), len(data), 5, 4)
    return header + segment + data


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err


class World:
    """A board, the implementation under test, and bundles."""

    def __init__(self, board, runtime, shim=None):
        self.board, self.runtime, self.shim, self.count = board, runtime, shim, 0
        self.bundles = "/run/bundles"
        os.makedirs(self.bundles, exist_ok=True)

    def call(self, *arguments, timeout=30, env=None, cwd=None, user=None):
        extra, runtime = {}, self.runtime
        if user is not None:
            extra = {"user": user, "group": user, "extra_groups": []}
            # The tree may lie where no other user may look, as in root's home.
            runtime = f"/run/for-all-{zlib.crc32(str(runtime).encode())}"
            if not os.path.exists(runtime):
                shutil.copy(self.runtime, runtime)
        done = subprocess.run([runtime, *arguments], capture_output=True, text=True, timeout=timeout, env=env, cwd=cwd,
                              stdin=subprocess.DEVNULL, errors="replace", **extra)
        return Result(done.returncode, done.stdout, done.stderr)

    def ok(self, *arguments, **extra):
        result = self.call(*arguments, **extra)
        assert result.code == 0, f"{arguments}: rc {result.code}: {result.err}"
        return result

    def fails(self, text, *arguments, **extra):
        result = self.call(*arguments, **extra)
        assert result.code == 1, f"{arguments}: rc {result.code}, 1 was wanted; {result.out}{result.err}"
        assert text in result.err, f"{arguments}: {text!r} is not in {result.err!r}"
        return result

    def bundle(self, file="hello.elf", args=None, content=None, name="imx-rproc", namespaces=(), annotations=None, **more):
        self.count += 1
        folder = f"{self.bundles}/b{self.count}"
        os.makedirs(folder + "/rootfs", exist_ok=True)
        if content is not False:
            path = os.path.join(folder, "rootfs", file)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as out:
                out.write(elf() if content is None else content)
        notes = dict(annotations or {})
        if name is not None:
            notes["remoteproc.name"] = name
        config = {"ociVersion": "1.0.2", "process": {"args": [file] if args is None else args, "cwd": "/"},
                  "root": {"path": "rootfs"}, "annotations": notes,
                  "linux": {"namespaces": [{"type": n} for n in namespaces]}}
        config.update(more)
        with open(folder + "/config.json", "w") as out:
            json.dump({k: v for k, v in config.items() if v is not None}, out)
        return folder

    def create(self, bundle=None, **options):
        self.count += 1
        name = f"c{self.count}"
        self.ok("create", "--bundle", bundle or self.bundle(**options), name)
        return name

    def running(self, **options):
        name = self.create(**options)
        self.ok("start", name)
        assert self.board.wait_state("running"), "the core does not run"
        return name

    def state(self, name):
        return json.loads(self.ok("state", name).out)

    def status(self, name):
        return self.state(name)["status"]

    def wait_status(self, name, status, timeout=3.0):
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            if self.status(name) == status:
                return
            time.sleep(0.01)
        raise AssertionError(f"{name} is {self.status(name)}, {status} was wanted")

    def stored(self):
        return sorted(f for f in os.listdir("/lib/firmware"))

    def proxies(self):
        out = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
                with open(f"/proc/{pid}/stat") as file:
                    zombie = file.read().rpartition(")")[2].split()[0] == "Z"
            except OSError:
                continue
            if words[0].endswith(b"qemu-aarch64-static"):  # scripts/emulated.sh
                words = words[1:]
            if len(words) > 1 and words[1] in (b"proxy", b"guard", b"pause-container") and not zombie:
                if boards.is_ours(pid):
                    out.append(int(pid))
        return out

    def no_processes(self, timeout=3.0):
        """The guard sees the proxy's end a moment after delete does."""
        until = time.monotonic() + timeout
        while self.proxies():
            assert time.monotonic() < until, self.proxies()
            time.sleep(0.01)

    def offline(self, timeout=2.0):
        assert self.board.wait_state("offline", timeout), f"the core is {self.board.state()}"

    def reset(self):
        """As it was before a scenario, whatever that left."""
        for pid in self.proxies():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for index in range(3):
            self.board.ctl(f"{index} state offline", f"{index} recovery enabled", f"{index} boot-ms 30", f"{index} fail ",
                           f"{index} recover-ms 20", f"{index} loader elf", f"{index} profile counted")
        subprocess.run("rm -rf /root/.local/* /lib/firmware/* /run/bundles/* /run/remoteproc-runtime /run/custom", shell=True)
        with open("/sys/module/firmware_class/parameters/path", "w"):
            pass


@scenario(1, "life cycle: created, running, stopped, deleted")
def life(w):
    c = w.create()
    assert w.status(c) == "created" and w.board.state() == "offline"
    w.ok("start", c)
    assert w.board.wait_state("running", 0.5) and w.status(c) == "running"
    w.ok("kill", c)
    assert w.board.wait_state("offline", 0.5)
    w.wait_status(c, "stopped", 0.5)
    w.ok("delete", c)
    assert w.call("state", c).code == 1 and w.stored() == []


@scenario(2, "unknown processor: the error names it and those there are")
def unknown(w):
    w.fails("remote processor nobody does not exist, available remote processors: imx-rproc, second", "create", "--bundle",
            w.bundle(name="nobody"), "x")


@scenario(3, "TERM to the process: offline within 500 ms")
def term(w):
    c = w.running()
    os.kill(w.state(c)["pid"], signal.SIGTERM)
    assert w.board.wait_state("offline", 0.5)
    w.wait_status(c, "stopped", 0.5)


@scenario(4, "--pid-file is the state's pid, without newline")
def pid_file(w):
    w.ok("create", "--bundle", w.bundle(), "--pid-file", "/run/pid", "c")
    with open("/run/pid") as file:
        assert file.read() == str(w.state("c")["pid"])


@scenario(5, "namespaces asked for are made; the start works in them")
def namespaces(w):
    c = w.create(namespaces=["mount", "network", "ipc", "uts", "pid"])
    pid = w.state(c)["pid"]
    for space in ("mnt", "net", "ipc", "uts", "pid"):
        assert os.readlink(f"/proc/{pid}/ns/{space}") != os.readlink(f"/proc/self/ns/{space}"), space
    assert os.readlink(f"/proc/{pid}/ns/cgroup") == os.readlink("/proc/self/ns/cgroup")
    w.ok("start", c)
    assert w.board.wait_state("running")
    w.ok("kill", c)
    w.offline()


@scenario(6, "the same without root: no namespaces, a warning, and it works")
def rootless(w):
    for file in ("state", "firmware"):
        os.chmod(f"/sys/class/remoteproc/remoteproc0/{file}", 0o666)
    os.makedirs("/run/custom", exist_ok=True)
    os.makedirs("/run/user1000", exist_ok=True)
    for folder in ("/run/custom", "/run/user1000"):
        os.chown(folder, 1000, 1000)
    with open("/sys/module/firmware_class/parameters/path", "w") as file:
        file.write("/run/custom")
    env = {"XDG_RUNTIME_DIR": "/run/user1000", "PATH": "/usr/bin:/bin", "HOME": "/run/user1000"}
    bundle = w.bundle(namespaces=["mount"])
    result = w.call("create", "--bundle", bundle, "u", env=env, user=1000)
    assert result.code == 0 and "running non-root; namespace isolation disabled" in result.err, result.err
    pid = json.loads(w.ok("state", "u", env=env, user=1000).out)["pid"]
    assert os.readlink(f"/proc/{pid}/ns/mnt") == os.readlink("/proc/self/ns/mnt")
    w.ok("start", "u", env=env, user=1000)
    assert w.board.wait_state("running")
    w.ok("kill", "u", env=env, user=1000)
    w.offline()
    w.ok("delete", "u", env=env, user=1000)


@scenario(7, "a firmware path set between create and start is used")
def custom_path(w):
    c = w.create()
    os.makedirs("/run/custom")
    with open("/sys/module/firmware_class/parameters/path", "w") as file:
        file.write("/run/custom\n")
    w.ok("start", c)
    assert len(os.listdir("/run/custom")) == 1 and w.stored() == []


@scenario(12, "no annotation: the error that engines know")
def no_annotation(w):
    w.fails("failed to read container specification: invalid container specification: missing remoteproc.name in "
            "annotations", "create", "--bundle", w.bundle(name=None), "x")


@scenario(13, "the stored copy: name, content, folder made")
def stored(w):
    c = w.create(file="example.bin", content=b"raw image", annotations={"remoteproc.check": "off"})
    w.board.ctl("0 loader raw")
    with open("/sys/module/firmware_class/parameters/path", "w") as file:
        file.write("/run/custom/deep")
    w.ok("start", c)
    (name,) = os.listdir("/run/custom/deep")
    assert re.fullmatch(r"example_\d{8}_\d{6}_[0-9a-f]{8}\.bin", name), name
    with open("/run/custom/deep/" + name, "rb") as file:
        assert file.read() == b"raw image"
    assert w.state(c)["annotations"]["remoteproc.stored-firmware-path"] == "/run/custom/deep/" + name
    w.ok("kill", c)
    w.ok("delete", c)
    assert os.listdir("/run/custom/deep") == []


@scenario(14, "an unknown namespace type is an error")
def bad_namespace(w):
    w.fails('failed to start proxy process: unknown namespace type "moon"', "create", "--bundle",
            w.bundle(namespaces=["moon"]), "x")
    assert w.proxies() == []


@scenario(15, "order of writes: firmware, state=start; none at create")
def order(w):
    before = len(w.board.log())
    c = w.create()
    assert len(w.board.log()) == before
    w.ok("start", c)
    w.board.wait_state("running")
    writes = [line.split()[1] for line in w.board.log()[before:]]
    assert len(writes) == 2 and re.fullmatch(r"firmware=hello_\S+\.elf", writes[0]) and writes[1] == "state=start", writes


@scenario(16, "a second start fails, makes no second copy and disturbs nothing")
def second_start(w):
    c = w.running()
    assert w.call("start", c).code == 1
    assert len(w.stored()) == 1 and w.board.state() == "running" and w.status(c) == "running"


@scenario(17, "two containers, one core: the second is refused until the first has stopped")
def two(w):
    a = w.running()
    b = w.create()
    w.fails("failed to set firmware: remote processor is already running", "start", b)
    assert len(w.stored()) == 1
    w.ok("kill", a)
    w.offline()
    w.ok("start", b)
    assert w.board.wait_state("running")


@scenario(18, "two cores are independent")
def cores(w):
    a, b = w.running(), w.create(name="second")
    w.ok("start", b)
    assert w.board.wait_state("running", index=1)
    w.ok("kill", a)
    w.offline()
    assert w.board.state(1) == "running"


@scenario(19, "a read-only firmware folder: still created, and a later start works")
def read_only(w):
    c = w.create()
    subprocess.run(["mount", "-o", "remount,ro", "/lib/firmware"], check=True)
    try:
        w.fails("failed to store firmware file", "start", c)
    finally:
        subprocess.run(["mount", "-o", "remount,rw", "/lib/firmware"], check=True)
    assert w.status(c) == "created"
    w.ok("start", c)
    assert w.board.wait_state("running")


@scenario(20, "kill before start, then delete")
def kill_created(w):
    c = w.create()
    w.ok("kill", c)
    w.wait_status(c, "stopped")
    w.ok("delete", c)
    assert w.board.state() == "offline"


@scenario(21, "signals by name and number; others are refused")
def signals(w):
    for word in ("TERM", "15", "sigterm", "INT", "2"):
        c = w.running()
        w.ok("kill", c, word)
        w.offline()
    c = w.running()
    for word in ("HUP", "1", "USR1", "0"):
        w.fails(f"unsupported signal: {word} (supported: TERM (15), KILL (9), INT (2))", "kill", c, word)
    assert w.board.state() == "running"


@scenario(22, "a crash ends the process within 2 s; a quick recovery does not")
def crash(w):
    c = w.running()
    w.board.ctl("0 crash")
    time.sleep(0.4)
    assert w.status(c) == "running" and w.board.state() == "running"
    w.board.ctl("0 recovery disabled", "0 crash")
    w.wait_status(c, "stopped", 2.0)


@scenario(32, "40 times create and start on busy processors: none is lost")
def busy(w):
    load = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
    try:
        w.board.ctl("0 boot-ms 1")
        for _ in range(40):
            c = w.create()
            w.ok("start", c)
            assert w.board.wait_state("running", 2.0), "a start was lost"
            w.ok("kill", c)
            w.offline()
            w.call("delete", c)
    finally:
        for process in load:
            process.kill()
            process.wait()


@scenario(33, "two starts at once, 15 times: one succeeds, and the core is offline after both kills")
def race(w):
    for _ in range(15):
        pair = [w.create(), w.create()]
        codes = {}
        threads = [threading.Thread(target=lambda c=c: codes.__setitem__(c, w.call("start", c).code)) for c in pair]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(codes.values()) == [0, 1], codes
        for c in pair:
            w.call("kill", c)
        w.offline()
        for c in pair:
            w.call("delete", "--force", c)


@scenario(34, "start reports the kernel's reason")
def kernel_errors(w):
    for word, text in (("EIO", "input/output error"), ("ENOMEM", "cannot allocate memory"), ("EINVAL", "invalid argument")):
        c = w.create()
        w.board.ctl("0 fail " + word)
        w.fails(text, "start", c)
        w.board.ctl("0 fail ")
        w.wait_status(c, "stopped")
        w.ok("delete", c)
    assert w.stored() == [] and w.board.state() == "offline"


@scenario(35, "a crashed core can be started again")
def after_crash(w):
    w.board.ctl("0 recovery disabled")
    c = w.running()
    w.board.ctl("0 crash")
    w.wait_status(c, "stopped", 2.0)
    d = w.create()
    w.ok("start", d)
    assert w.board.wait_state("running")
    w.ok("kill", d)
    w.offline()
    w.call("delete", c)
    w.call("delete", d)
    e = w.running()
    w.board.ctl("0 crash")
    w.wait_status(e, "stopped", 2.0)
    w.ok("delete", e)
    w.board.ctl("0 recovery disabled")
    f = w.running()
    assert w.status(f) == "running"


@scenario("37a", "firmware paths that lead out of the root")
def attacks_path(w):
    with open("/run/secret", "wb") as file:
        file.write(elf(b"secret"))
    os.chmod("/run/secret", 0o600)
    for bad in ("../../../secret", "x/../../../../run/secret", "../" * 40 + "run/secret"):
        assert w.call("create", "--bundle", w.bundle(args=[bad]), "x").code == 1, bad
    for target in ("/run/secret", "../../../run/secret", "../" * 30 + "run/secret"):
        bundle = w.bundle(content=False, file="l.elf")
        os.symlink(target, bundle + "/rootfs/l.elf")
        assert w.call("create", "--bundle", bundle, "x").code == 1, target
    bundle = w.bundle(content=False, file="dir/secret")
    os.symlink("/run", bundle + "/rootfs/dir")
    assert w.call("create", "--bundle", bundle, "x").code == 1
    bundle = w.bundle(content=False, file="p.elf")
    os.symlink("/proc/1/root/run/secret", bundle + "/rootfs/p.elf")
    assert w.call("create", "--bundle", bundle, "x").code == 1
    assert w.call("create", "--bundle", w.bundle(file="secret", content=False, root={"path": "../../"}), "x").code == 1
    assert w.stored() == [] and w.proxies() == []


@scenario("37b", "a link inside the root is followed as the container would")
def good_link(w):
    bundle = w.bundle(file="real/fw.elf", args=["l.elf"])
    os.symlink("/real/fw.elf", bundle + "/rootfs/l.elf")
    c = w.create(bundle)
    w.ok("start", c)
    assert w.board.wait_state("running") and w.stored()[0].startswith("l_")


@scenario("37c", "the firmware is swapped between create and start")
def swapped(w):
    bundle = w.bundle()
    c = w.create(bundle)
    os.remove(bundle + "/rootfs/hello.elf")
    os.symlink("/etc/hostname", bundle + "/rootfs/hello.elf")
    assert w.call("start", c).code == 1
    assert w.stored() == []


@scenario("37d", "FIFO, device, directory, huge and empty firmware")
def attacks_file(w):
    bundle = w.bundle(content=False, file="f")
    os.mkfifo(bundle + "/rootfs/f")
    assert w.call("create", "--bundle", bundle, "x", timeout=5).code == 1
    bundle = w.bundle(content=False, file="z")
    os.mknod(bundle + "/rootfs/z", 0o600 | 0o20000, os.makedev(1, 5))
    assert w.call("create", "--bundle", bundle, "x", timeout=5).code == 1
    for args in ([""], ["."], ["/"], ["dir/"], ["dir"]):
        bundle = w.bundle(args=args)
        os.makedirs(bundle + "/rootfs/dir")
        assert w.call("create", "--bundle", bundle, "x").code == 1, args
    bundle = w.bundle(file="big.elf")
    with open(bundle + "/rootfs/big.elf", "ab") as file:
        file.truncate(1 << 30)
    assert w.call("create", "--bundle", bundle, "x", timeout=5).code == 1
    assert w.proxies() == []


@scenario("37e", "a newline in the name does not boot another file")
def newline(w):
    with open("/lib/firmware/vendor.bin", "wb") as file:
        file.write(elf())
    name = "vendor.bin\nx.elf"
    assert w.call("create", "--bundle", w.bundle(file=name), "x").code == 1
    assert w.board.state() == "offline"


@scenario("37f", "container ids that are paths")
def attacks_id(w):
    os.makedirs("/root/.local/run/evil", exist_ok=True)
    for bad in ("../evil", "..", ".", "", "a/b", "x\ny", "-x", "a" * 300):
        assert w.call("create", "--bundle", w.bundle(), "--", bad).code != 0, bad
        w.call("delete", "--force", "--", bad)
    assert os.path.isdir("/root/.local/run/evil"), "delete removed a foreign folder"


@scenario("37g", "a file that is no firmware: refused at create or by start, with the reason")
def not_elf(w):
    c = w.call("create", "--bundle", w.bundle(content=b"#!/bin/sh\n"), "x")
    if c.code == 0:
        w.fails("invalid argument", "start", "x")
        w.wait_status("x", "stopped")
    assert w.stored() == []


@scenario("37h", "annotations of the bundle do not become the runtime's own")
def annotations(w):
    c = w.create(annotations={"remoteproc.driver-path": "/etc", "remoteproc.stored-firmware-path": "/etc/passwd"})
    notes = w.state(c)["annotations"]
    assert notes["remoteproc.driver-path"] == "/sys/class/remoteproc/remoteproc0" and \
        "remoteproc.stored-firmware-path" not in notes
    w.ok("kill", c)
    w.ok("delete", c)
    assert os.path.exists("/etc/passwd")


@scenario("37i", "a state that was tampered with removes and kills nothing foreign")
def tampered(w):
    c = w.running()
    w.ok("kill", c)
    w.offline()
    path = f"{NEEDS_ROOT_FILES}/{c}/state.json"
    victim = subprocess.Popen(["sleep", "60"])
    with open("/run/precious", "w") as file:
        file.write("x")
    with open(path) as file:
        state = json.load(file)
    state.update(pid=victim.pid, status="running")
    state["annotations"]["remoteproc.stored-firmware-path"] = "/run/precious"
    with open(path, "w") as file:
        json.dump(state, file)
    w.call("kill", c)
    w.call("delete", "--force", c)
    assert victim.poll() is None, "a foreign process was killed"
    assert os.path.exists("/run/precious"), "a foreign file was removed"
    victim.kill()
    victim.wait()


@scenario("37j", "malformed config.json: an error, no crash")
def bad_config(w):
    for text in ("", "[]", "{", '{"process":5}', '{"annotations":{"remoteproc.name":5}}', "{" * 100000, "null",
                 '{"annotations":{"remoteproc.name":"imx-rproc"}}',
                 '{"annotations":{"remoteproc.name":"imx-rproc"},"process":{"args":["a"]}}', '{"ociVersion":"9.9.9"}'):
        folder = w.bundle()
        with open(folder + "/config.json", "w") as file:
            file.write(text)
        result = w.call("create", "--bundle", folder, "x")
        assert result.code == 1 and result.err.startswith("Error: "), (text[:40], result.code, result.err)
    assert w.call("create", "--bundle", "/run/none", "x").code == 1


@scenario(38, "a stale pid is not signalled; after a reboot the container is stopped and its id free")
def stale(w):
    c = w.running()
    folder = f"{NEEDS_ROOT_FILES}/{c}"
    pid = w.state(c)["pid"]
    os.kill(pid, signal.SIGTERM)
    w.wait_status(c, "stopped")
    victim = subprocess.Popen(["sleep", "60"])
    with open(folder + "/state.json") as file:
        state = json.load(file)
    state["pid"] = victim.pid
    with open(folder + "/state.json", "w") as file:
        json.dump(state, file)
    w.call("kill", c)
    w.call("kill", c, "KILL")
    assert victim.poll() is None, "an unrelated process was killed"
    victim.kill()
    victim.wait()
    with open(folder + "/details.json") as file:
        details = json.load(file)
    details["boot"] = "another-boot"
    with open(folder + "/details.json", "w") as file:
        json.dump(details, file)
    assert w.status(c) == "stopped"
    w.ok("create", "--bundle", w.bundle(), c)
    assert w.status(c) == "created"


@scenario(39, "hooks: order, state on stdin, failure ends the create; network hooks see the container's namespace")
def hooks(w):
    script = "/run/hook.sh"
    with open(script, "w") as file:
        file.write("#!/bin/sh\nread -r line\npid=$(echo \"$line\" | sed 's/.*\"pid\":\\([0-9]*\\).*/\\1/')\n"
                   "echo \"$1 $(readlink /proc/$pid/ns/net 2>/dev/null) $line\" >> /run/hooks.log\n[ \"$1\" != fail ]\n")
    os.chmod(script, 0o755)
    def hook(name):
        return [{"path": script, "args": ["hook", name], "env": ["PATH=/usr/bin:/bin"]}]
    kinds = ["prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"]
    c = w.create(hooks={kind: hook(kind) for kind in kinds}, namespaces=["network"])
    net = os.readlink(f"/proc/{w.state(c)['pid']}/ns/net")
    w.ok("start", c)
    w.ok("kill", c)
    w.offline()
    w.ok("delete", c)
    with open("/run/hooks.log") as file:
        lines = [line.split(" ", 2) for line in file.read().splitlines()]
    assert [line[0] for line in lines] == kinds, lines
    assert lines[0][1] == net and net != os.readlink("/proc/self/ns/net")
    assert json.loads(lines[0][2])["id"] == c
    os.remove("/run/hooks.log")
    w.fails("prestart", "create", "--bundle", w.bundle(hooks={"prestart": hook("fail")}), "f")
    assert w.call("state", "f").code == 1 and w.proxies() == []


@scenario("O1", "OCI: an id is unique; start only from created; delete only when stopped")
def oci(w):
    c = w.create()
    pid = w.state(c)["pid"]
    w.fails("already exists", "create", "--bundle", w.bundle(), c)
    assert w.state(c)["pid"] == pid and w.proxies() == [pid]
    w.ok("start", c)
    w.fails("cannot delete running container", "delete", c)
    w.ok("kill", c)
    w.offline()
    w.fails("cannot start a container that is stopped", "start", c)
    w.fails("process already finished", "kill", c)
    w.ok("delete", c)
    w.fails("failed to read state", "state", c)
    w.fails("failed to read state", "delete", c)
    w.ok("delete", "--force", c)


@scenario("O2", "state has the bundle's annotations and an absolute bundle; changes of the bundle after create do not count")
def oci_state(w):
    bundle = w.bundle(annotations={"org.example": "x"})
    w.ok("create", "--bundle", "b" + bundle.rpartition("/b")[2], "r", cwd=w.bundles)
    state = w.state("r")
    assert state["bundle"] == bundle and state["annotations"]["org.example"] == "x" and state["ociVersion"].startswith("1.")
    with open(bundle + "/config.json", "w") as file:
        file.write("{}")
    w.ok("start", "r", cwd="/")
    assert w.board.wait_state("running")


@scenario("K1", "kill KILL, delete --force and the death of the proxy leave the core offline within 2 s")
def forced(w):
    c = w.running()
    w.ok("kill", c, "KILL")
    w.offline()
    w.wait_status(c, "stopped")
    w.ok("delete", c)
    c = w.running()
    w.ok("delete", "--force", c)
    w.offline()
    assert w.stored() == []
    w.no_processes()
    c = w.running()
    os.kill(w.state(c)["pid"], signal.SIGKILL)
    w.offline()
    w.wait_status(c, "stopped")
    w.ok("delete", c)
    c = w.create()
    w.ok("delete", "--force", c)
    w.no_processes()


@scenario("K2", "when everything was killed, the next start on the core stops what runs there")
def ownerless(w):
    c = w.running()
    for pid in w.proxies():
        os.kill(pid, signal.SIGSTOP)
    for pid in w.proxies():
        os.kill(pid, signal.SIGKILL)
    time.sleep(0.1)
    assert w.board.state() == "running", "nobody was left to stop it"
    d = w.create()
    w.ok("start", d)
    assert w.board.wait_state("running") and w.status(d) == "running" and w.status(c) == "stopped"
    w.ok("delete", c)
    assert w.board.state() == "running", "deleting the old container stopped the new one's core"
    w.ok("kill", d)
    w.offline()
    w.ok("delete", d)
    assert w.stored() == []


@scenario("K3", "a core that somebody started by hand is left alone")
def by_hand(w):
    with open("/lib/firmware/mine.elf", "wb") as file:
        file.write(elf())
    for attribute, word in (("firmware", "mine.elf"), ("state", "start")):
        with open(f"/sys/class/remoteproc/remoteproc0/{attribute}", "w") as file:
            file.write(word)
    c = w.create()
    w.fails("failed to set firmware: remote processor is already running", "start", c)
    w.ok("delete", "--force", c)
    assert w.board.state() == "running" and os.path.exists("/lib/firmware/mine.elf")


@scenario("K4", "starts that the kernel only counts are all taken back")
def counted(w):
    c = w.running()
    with open("/sys/class/remoteproc/remoteproc0/state", "w") as file:
        file.write("start")
    w.ok("kill", c)
    w.offline()


@scenario("K5", "TERM while the core boots: offline afterwards, the process gone")
def mid_boot(w):
    w.board.ctl("0 boot-ms 300")
    c = w.create()
    starter = subprocess.Popen([w.runtime, "start", c], stderr=subprocess.DEVNULL)
    time.sleep(0.2)
    w.ok("kill", c)
    starter.wait(timeout=5)
    w.offline()
    w.wait_status(c, "stopped")


@scenario("K6", "attached and detached cores are not taken silently")
def attached(w):
    for word in ("detached", "attached"):
        w.board.ctl(f"0 state {word}")
        c = w.create()
        w.fails("failed to set firmware", "start", c)
        assert w.board.state() == word
        w.ok("delete", "--force", c)


@scenario("K7", "somebody else's stop ends the container with status 1; the device's removal too")
def lost(w):
    c = w.running()
    with open("/sys/class/remoteproc/remoteproc0/state", "w") as file:
        file.write("stop")
    w.wait_status(c, "stopped", 2.0)
    w.ok("delete", c)


@scenario("K8", "a firmware copy that is gone already does not stop the delete")
def missing_copy(w):
    c = w.running()
    w.ok("kill", c)
    w.offline()
    os.remove("/lib/firmware/" + w.stored()[0])
    w.ok("delete", c)


@scenario("K9", "a create that is killed half-way leaves nothing that blocks the id")
def killed_create(w):
    hook = {"path": "/bin/sleep", "args": ["sleep", "5"]}
    creator = subprocess.Popen([w.runtime, "create", "--bundle", w.bundle(hooks={"prestart": [hook]}), "k"],
                               stderr=subprocess.DEVNULL)
    time.sleep(0.3)
    creator.kill()
    creator.wait()
    time.sleep(0.2)
    assert w.proxies() == [], "the proxy outlived its create"
    w.ok("create", "--bundle", w.bundle(), "k")
    w.ok("start", "k")


@scenario("K10", "a core without owner that runs the same firmware is adopted when the bundle asks for it")
def adopted(w):
    c = w.running()
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in w.proxies():
            os.kill(pid, number)
    time.sleep(0.1)
    starts = sum("state=start" in line for line in w.board.log())
    d = w.create(annotations={"remoteproc.ownerless": "adopt"})
    w.ok("start", d)
    assert w.status(d) == "running" and w.board.state() == "running"
    assert sum("state=start" in line for line in w.board.log()) == starts, "it was started again"
    w.ok("delete", c)
    assert w.board.state() == "running" and len(w.stored()) == 1
    w.ok("kill", d)
    w.offline()
    w.ok("delete", d)
    assert w.stored() == []


@scenario("K11", "gc stops a core whose container is gone, and leaves others alone")
def garbage(w):
    c, d = w.running(), w.create(name="second")
    w.ok("start", d)
    gone = w.state(c)["pid"]
    pids = [pid for pid in w.proxies() if b"remoteproc0" in open(f"/proc/{pid}/cmdline", "rb").read()]
    assert gone in pids
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            os.kill(pid, number)
    assert f"stopped imx-rproc, whose container {c} is gone" in w.ok("gc").out
    assert w.board.state() == "offline" and w.board.state(1) == "running"


@scenario("K12", "a digest that does not fit is refused before the core is touched; the right one starts")
def digest(w):
    import hashlib
    right = hashlib.sha256(elf()).hexdigest()
    c = w.create(annotations={"remoteproc.sha256": "0" * 64})
    w.fails("annotation remoteproc.sha256 wants", "start", c)
    assert w.stored() == [] and w.status(c) == "created"
    d = w.create(annotations={"remoteproc.sha256": right.upper()})
    w.ok("start", d)


@scenario("K13", "called as runc is: --root holds the state, --log FILE gets errors as JSON, the environment names the core")
def as_runc(w):
    # Such callers hand over the container's output as their own, so nobody waits for its end here.
    out = open("/run/output", "w+")

    def ok(*words):
        done = subprocess.run([w.runtime, *head, *words], stdout=out, stderr=out, stdin=subprocess.DEVNULL, timeout=30)
        out.seek(0)
        assert done.returncode == 0, out.read()

    head = ["--root", "/run/r", "--log", "/run/log.json", "--log-format", "json", "--systemd-cgroup"]
    bundle = w.bundle(name=None, process={"args": ["hello.elf"], "env": ["REMOTEPROC_NAME=imx-rproc"]})
    ok("create", "--bundle", bundle, "--pid-file", "/run/r.pid", "r1")
    assert os.path.exists("/run/r/r1/state.json")
    ok("start", "r1")
    assert w.board.state() == "running"
    assert json.loads(w.ok(*head, "ps", "--format", "json", "r1").out) == [w_state(w, head)["pid"]]
    w.fails("cannot delete running container", *head, "delete", "r1")
    with open("/run/log.json") as file:
        last = json.loads(file.read().splitlines()[-1])
    assert last["level"] == "error" and "cannot delete running container r1" in last["msg"]
    ok("kill", "r1", "15")
    ok("delete", "r1")
    w.fails("no remote processor was named and this machine has 3", *head, "create", "--bundle", w.bundle(name=None), "r2")
    w.fails("missing remoteproc.name", "create", "--bundle", w.bundle(name=None), "r2")


def w_state(w, head):
    return json.loads(w.ok(*head, "state", "r1").out)


@scenario("K14", "features, list, ps, events, spec, logs and run tell what they should; exec and pause say why not")
def tools(w):
    assert json.loads(w.ok("features").out)["hooks"][0] == "prestart"
    c = w.running()
    assert [e["id"] for e in json.loads(w.ok("list", "-f", "json").out)] == [c] and w.ok("list", "-q").out == c + "\n"
    assert str(w.state(c)["pid"]) in w.ok("ps", c).out
    w.ok("update", "--resources", "-", c)
    w.board.ctl("0 trace one\\n")
    time.sleep(0.2)
    assert w.ok("logs", c).out == "one\n"
    with open("/dev/full", "w") as full:
        assert subprocess.run([w.runtime, "logs", c], stdout=full, stderr=subprocess.DEVNULL, timeout=30).returncode == 1
    assert json.loads(w.ok("events", "--stats", c).out)["data"]["pids"]["current"] == 1
    w.ok("kill", c)
    w.offline()
    assert [json.loads(line)["type"] for line in w.ok("events", c).out.splitlines()] == ["ready", "started", "exit"]
    w.ok("delete", c)
    for word in ("exec", "pause", "resume", "checkpoint"):
        w.fails(f"{word} is not supported", word, "--flag", c)
    w.fails("does not exist", "update", "--resources", "-", c)
    os.makedirs("/run/spec/rootfs")
    w.ok("spec", "--bundle", "/run/spec", "--name", "imx-rproc", "--firmware", "x.elf")
    with open("/run/spec/rootfs/x.elf", "wb") as file:
        file.write(elf())
    runner = subprocess.Popen([w.runtime, "run", "--bundle", "/run/spec", "r"], stdout=subprocess.DEVNULL)
    assert w.board.wait_state("running")
    runner.terminate()
    assert runner.wait(timeout=5) == 0 and w.call("state", "r").code == 1


@scenario("K15", "recovery by annotation for the container's life; a recovery that does not come ends it with 139")
def recovery(w):
    c = w.running(annotations={"remoteproc.recovery": "disabled"})
    assert w.board.attribute("recovery") == "disabled"
    w.ok("kill", c)
    w.offline()
    w.ok("delete", c)
    assert w.board.attribute("recovery") == "enabled"
    w.board.ctl("0 recover-ms 60000")
    d = w.running(annotations={"remoteproc.recovery-timeout": "1"})
    w.board.ctl("0 crash")
    time.sleep(0.5)
    assert w.status(d) == "running", "the kernel may still recover it"
    w.wait_status(d, "stopped", 3.0)
    assert '"exit"' in w.ok("events", d).out and "139" in w.ok("events", d).out


@scenario("K16", "a device that goes away ends the container")
def removed(w):
    d = w.create(name="third")
    w.ok("start", d)
    w.board.ctl("2 remove")
    try:
        w.wait_status(d, "stopped", 3.0)
        w.ok("delete", "--force", d)
    finally:
        w.board.ctl("2 present 1")


@scenario("K18", "a proxy that is killed while the core boots leaves no core running, whoever else is killed with it")
def killed_boot(w):
    w.board.ctl("0 boot-ms 800")
    for also_start in (False, True):
        c = w.create()
        process = subprocess.Popen([w.runtime, "start", c], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.4)
        assert w.board.state() == "offline", "still booting"
        victims = [w.state(c)["pid"]] + ([process.pid] if also_start else [])
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        assert process.wait(timeout=20) != 0
        time.sleep(1.0)
        w.offline(2.0)
        w.ok("delete", "--force", c)
    w.board.ctl("0 boot-ms 30")
    d = w.running()
    w.ok("kill", d)
    w.ok("delete", d)


@scenario("K17", "each implementation takes a container over from the other's state file")
def take_over(w):
    c = w.create()
    os.remove(f"{NEEDS_ROOT_FILES}/{c}/details.json")  # the original writes state.json only
    assert w.status(c) == "created"
    w.ok("start", c)
    assert w.board.wait_state("running")
    w.ok("kill", c)
    w.offline()
    w.wait_status(c, "stopped")
    w.ok("delete", c)
    assert w.stored() == []


def run(world, only=None, quiet=False):
    """Runs the table; returns the numbers that failed."""
    failed = []
    for number, text, function in SCENARIOS:
        if only and number not in only:
            continue
        world.reset()
        began = time.monotonic()
        try:
            function(world)
            problem = None
        except (AssertionError, OSError, subprocess.SubprocessError, ValueError, KeyError) as caught:
            problem = caught
            failed.append(number)
        if problem or not quiet:
            print(f"{'FAIL' if problem else 'ok  '} {number:>4} {text} ({time.monotonic() - began:.2f} s)"
                  + (f"\n          {problem!r}" if problem else ""), flush=True)
    world.reset()
    return failed
