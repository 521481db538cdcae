"""Further scenarios of the table (scenarios.py): containers of the original implementation, callers that take the runtime for
runc, restarts of the machine, and what the processes of a container may do. With the path of another implementation also every
mixed pair of both."""
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import kernel_double
from board import LIBC
from scenarios import NEEDS_ROOT_FILES, elf, scenario

DEVICE = "/sys/class/remoteproc/remoteproc0"


def original(w, status, stored=None):
    """A container as the original leaves it (remoteproc-runtime, section 3; the text was taken from a run of it): state.json and
    nothing else, and its proxy, which knows the device's path only. Returns the proxy."""
    bundle = w.bundle()
    proxy = subprocess.Popen([w.runtime, "proxy", "--device-path", DEVICE], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, process_group=0)
    notes = f'    "remoteproc.driver-path": "{DEVICE}",\n    "remoteproc.firmware-path": "{bundle}/rootfs/hello.elf"'
    if stored:
        notes += f',\n    "remoteproc.stored-firmware-path": "{stored}"'
    os.makedirs(f"{NEEDS_ROOT_FILES}/o1", 0o755)
    with open(f"{NEEDS_ROOT_FILES}/o1/state.json", "w") as file:
        file.write('{\n  "ociVersion": "1.3.0",\n  "id": "o1",\n  "status": "%s",\n  "pid": %d,\n  "bundle": "%s",\n'
                   '  "annotations": {\n%s\n  }\n}' % (status, proxy.pid, bundle, notes))
    time.sleep(0.2)  # its signal handlers; the original's create does not wait for them either
    return proxy


@scenario("T1", "a container that the original created is started, stopped and deleted")
def created_by_original(w):
    proxy = original(w, "created")
    state = w.state("o1")
    assert (state["status"], state["pid"], state["id"]) == ("created", proxy.pid, "o1"), state
    w.ok("start", "o1")
    assert w.board.state() == "running" and w.status("o1") == "running"
    with open(f"{NEEDS_ROOT_FILES}/o1/state.json") as file:
        kept = json.load(file)  # what the original would read next
    assert list(kept) == ["ociVersion", "id", "status", "pid", "bundle", "annotations"] and kept["status"] == "running"
    assert kept["annotations"]["remoteproc.stored-firmware-path"] == "/lib/firmware/" + w.stored()[0]
    w.ok("kill", "o1")
    assert proxy.wait(timeout=5) == 0
    w.offline()
    w.ok("delete", "o1")
    assert w.stored() == [] and not os.path.exists(f"{NEEDS_ROOT_FILES}/o1")


@scenario("T2", "a container that the original started is killed by force, or found dead with its core, and deleted")
def started_by_original(w):
    for how in ("KILL", "delete", "dead"):
        stored = "/lib/firmware/hello_20261130_175353_e11d0fd3.elf"
        with open(stored, "wb") as file:
            file.write(elf())
        with open(DEVICE + "/firmware", "w") as file:
            file.write(os.path.basename(stored))
        proxy = original(w, "running", stored)
        proxy.send_signal(signal.SIGUSR1)
        assert w.board.wait_state("running") and w.status("o1") == "running"
        if how == "KILL":
            w.ok("kill", "o1", "KILL")
        elif how == "dead":  # its core runs on, as with the original
            proxy.kill()
            proxy.wait()
            assert w.status("o1") == "stopped" and w.board.state() == "running"
        w.ok("delete", "--force", "o1")
        proxy.wait(timeout=5)
        w.offline()
        assert w.stored() == [] and not os.path.exists(f"{NEEDS_ROOT_FILES}/o1"), how


def same_as_ps(told, pid):
    """runc's `ps` is the system's."""
    head, line = told.splitlines()
    wanted = subprocess.run(["ps", "-f", "-ww", "-p", str(pid)], capture_output=True, text=True, check=True).stdout.splitlines()
    assert head.split() == wanted[0].split(), (head, wanted)
    ours, theirs = line.split(None, 7), wanted[1].split(None, 7)
    assert ours[:3] + ours[5:6] + ours[7:] == theirs[:3] + theirs[5:6] + [theirs[7].strip()], (line, wanted)


@scenario("R1", "the words of CRI-O and of shims for runc: each flag is taken, each answer is what runc's would be")
def runc_words(w):
    head = ["--root", "/run/r1", "--log", "/run/r1.log", "--log-format", "json", "--systemd-cgroup"]
    out = open("/run/r1.out", "w+")  # such callers hand over the container's output as their own

    def call(*words, code=0):
        done = subprocess.run([w.runtime, *head, *words], stdout=out, stderr=out, stdin=subprocess.DEVNULL, timeout=30)
        assert done.returncode == code, (words, done.returncode, open("/run/r1.out").read())

    def last_error():
        with open("/run/r1.log") as file:
            line = json.loads(file.read().splitlines()[-1])
        assert line["level"] == "error" and "time" in line, line
        return line["msg"]

    for words in (["state", "nobody"], ["kill", "nobody", "KILL"], ["delete", "nobody"], ["start", "nobody"], ["ps", "nobody"]):
        call(*words, code=1)
        assert "does not exist" in last_error(), (words, last_error())
    call("delete", "--force", "nobody")
    create = ["create", "--bundle", w.bundle(), "--pid-file", "/run/r1.pid", "--no-pivot", "--no-new-keyring", "--preserve-fds", "0"]
    call(*create, "--console-socket", "/run/r1.tty", "r1", code=1)
    assert "firmware has no terminal" in last_error()
    call(*create, "r1")
    with open("/run/r1.pid") as file:
        assert os.readlink(f"/proc/{file.read()}/exe") == os.path.realpath(w.runtime)
    state = json.loads(w.ok(*head, "state", "r1").out)
    assert (state["id"], state["status"]) == ("r1", "created") and state["bundle"].startswith("/")
    call("start", "r1")
    call("start", "r1", code=1)
    call("exec", "--process", "/run/p.json", "--detach", "--pid-file", "/run/x.pid", "r1", code=1)
    assert "exec is not supported: firmware" in last_error()
    for words in (["pause", "r1"], ["resume", "r1"], ["checkpoint", "--image-path", "/run/i", "r1"]):
        call(*words, code=1)
    call("update", "--resources", "-", "r1")
    assert w.board.state() == "running", "a refusal disturbed the firmware"
    assert w.ok(*head, "list").out.split("\n")[0].split() == ["ID", "PID", "STATUS", "BUNDLE", "CREATED", "OWNER", "CORE"]
    (listed,) = json.loads(w.ok(*head, "list", "--format", "json").out)
    assert {"ociVersion", "id", "pid", "status", "bundle", "rootfs", "created", "owner"} <= set(listed), listed
    assert listed["rootfs"] == state["bundle"] + "/rootfs" and listed["owner"] == "root" and listed["status"] == "running"
    if shutil.which("ps"):
        same_as_ps(w.ok(*head, "ps", "r1").out, listed["pid"])
    stats = json.loads(w.ok(*head, "events", "--stats", "r1").out)
    assert stats["type"] == "stats" and stats["id"] == "r1" and stats["data"]["memory"]["usage"]["usage"] > 0
    call("kill", "--all", "r1", "KILL")
    w.offline()
    call("kill", "--all", "r1", "KILL", code=1)
    assert "process already finished" in last_error()
    call("delete", "--force", "r1")
    call("delete", "--force", "r1")
    assert os.listdir("/run/r1") == [] and w.stored() == []


def of_another_boot(folder):
    with open(folder + "/details.json") as file:
        details = json.load(file)
    details["boot"] = "another-boot"
    with open(folder + "/details.json", "w") as file:
        json.dump(details, file)


@scenario("B1", "after the machine's restart nothing of before is left: the first create and gc clear it away")
def restarted(w):
    gone, kept = w.create(), w.create(name="second")
    w.ok("start", gone)
    firmware = w.stored()
    assert len(firmware) == 1
    for pid in w.proxies():  # the power fails; the second container stands for one of after the restart
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            if b"remoteproc0" in file.read():
                os.kill(pid, signal.SIGKILL)
    w.board.ctl("0 state offline")
    of_another_boot(f"{NEEDS_ROOT_FILES}/{gone}")
    for file in os.listdir("/run/remoteproc-runtime"):  # a new /run, as every boot has
        os.unlink("/run/remoteproc-runtime/" + file)
    w.ok("create", "--bundle", w.bundle(), "fresh")
    assert sorted(os.listdir(NEEDS_ROOT_FILES)) == sorted([kept, "fresh"]) and w.stored() == []
    assert w.status(kept) == "created"
    # gc looks at any time
    of_another_boot(f"{NEEDS_ROOT_FILES}/{kept}")
    assert f"removed container {kept} of before the machine's restart" in w.ok("gc").out
    assert os.listdir(NEEDS_ROOT_FILES) == ["fresh"]


@scenario("S1", "proxy and guard have no capability and gain none; the proxy's system calls are filtered")
def privileges(w):
    c = w.running(namespaces=["mount", "network"])
    seen = {}
    for pid in w.proxies():
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            role = file.read().split(b"\0")[1].decode()
        with open(f"/proc/{pid}/status") as file:
            seen[role] = dict(line.rstrip("\n").split(":\t", 1) for line in file)
    assert sorted(seen) == ["guard", "proxy"], seen
    for role, status in seen.items():
        for which in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
            assert int(status[which], 16) == 0, (role, which, status[which])
        assert status["NoNewPrivs"] == "1", role
    if os.environ.get("TALPA_SANITIZED") is None:
        assert seen["proxy"]["Seccomp"] == "2"
    os.kill(w.state(c)["pid"], signal.SIGKILL)  # a guard without rights still does its work
    w.offline()


@scenario("S2", "an administrator's list says who may take a core")
def allowed(w):
    folder = "/etc/remoteproc-runtime"
    there = os.path.isdir(folder)
    os.makedirs(folder, exist_ok=True)
    kernel_double.mount("tmpfs", folder, "tmpfs", 0, "mode=755")
    try:
        def rules(text, mode=0o644):
            with open(folder + "/allow", "w") as file:
                file.write(text)
            os.chmod(folder + "/allow", mode)

        rules("imx-rproc uid:0\nsecond namespace:k8s.io uid:1000\n")
        w.ok("delete", w.create())
        w.fails("remote processor second is not allowed for uid:0 by /etc/remoteproc-runtime/allow", "create", "--bundle",
                w.bundle(name="second"), "x")
        w.ok("create", "--bundle", w.bundle(name="second"), "y", env={"PATH": "/usr/bin", "REMOTEPROC_NAMESPACE": "k8s.io"})
        w.ok("delete", "y")
        rules("imx-rproc anybody\n")
        w.fails("line 1: anybody is none of *, uid:N, namespace:NAME", "create", "--bundle", w.bundle(), "x")
        rules("* *\n", 0o666)
        w.fails("not trusted", "create", "--bundle", w.bundle(), "x")
        rules("* *\n")
        w.ok("delete", w.create())
    finally:
        LIBC.umount2(folder.encode(), 2)
        if not there:
            os.rmdir(folder)


def damage(how, path):
    if how == "gone":
        os.unlink(path)
    elif how == "folder":
        os.unlink(path)
        os.mkdir(path)
    elif how == "link":
        os.unlink(path)
        os.symlink("/etc/hostname", path)
    else:
        with open(path, "w") as file:
            file.write({"empty": "", "cut": '{"ociVersion": "1.3', "foreign": "{}"}[how])


@scenario("D1", "a container whose state.json is lost or damaged can still be named and ended")
def damaged(w):
    for number, how in enumerate(("gone", "folder", "link", "empty", "cut", "foreign")):
        c = w.running()
        pid, folder = w.state(c)["pid"], f"{NEEDS_ROOT_FILES}/{c}"
        damage(how, folder + "/state.json")
        assert w.ok("list", "-q").out == c + "\n" and w.state(c)["pid"] == pid and w.status(c) == "running", how
        d = w.create()
        w.fails(f"busy: used by container {c}", "start", d)
        w.ok("delete", d)
        if number % 3 == 0:
            os.kill(pid, signal.SIGKILL)
            w.offline()
            w.no_processes()
            assert f"removed container {c}, which was damaged" in w.ok("gc").out, how
        if number % 3 == 1:
            w.fails("cannot delete running container", "delete", c)
        if number % 3 == 2:  # what only the core's record knows
            os.unlink(folder + "/details.json")
            assert w.status(c) == "running"
        w.ok("delete", "--force", c)
        w.offline()
        w.no_processes()
        assert w.stored() == [] and not os.path.exists(folder), how
    # nothing at all that says what it was: the name is free again
    os.makedirs(f"{NEEDS_ROOT_FILES}/z1/state.json")
    w.ok("delete", "--force", "z1")
    assert not os.path.exists(f"{NEEDS_ROOT_FILES}/z1")
    # a create over remnants of which the state was taken away
    c = w.running()
    os.unlink(f"{NEEDS_ROOT_FILES}/{c}/state.json")
    w.ok("create", "--bundle", w.bundle(), c)
    assert w.status(c) == "created" and w.board.state() == "offline"
    w.ok("start", c)
    assert w.status(c) == "running"


@scenario("D2", "the state's folder is gone while the core runs: gc ends the process, and until then busy says so")
def folder_gone(w):
    c = w.running()
    pid = w.state(c)["pid"]
    shutil.rmtree(f"{NEEDS_ROOT_FILES}/{c}")
    d = w.create()
    w.fails(f"busy: used by container {c} (its folder {NEEDS_ROOT_FILES}/{c} is gone; `remoteproc-runtime gc` ends its process {pid})",
            "start", d)
    assert f"ended process {pid} of container {c}" in w.ok("gc").out
    w.offline()
    assert w.stored() == []
    w.ok("start", d)
    assert w.status(d) == "running"


@scenario("N1", "one id in two namespaces of containerd, and by hand: each has its own container, and none ends another's")
def namespaces_of_containerd(w):
    def env(name):
        return {"PATH": "/usr/bin:/bin", "REMOTEPROC_NAMESPACE": name}

    w.ok("create", "--bundle", w.bundle(), "one")  # by hand
    w.ok("create", "--bundle", w.bundle(name="second"), "one", env=env("default"))
    w.ok("create", "--bundle", w.bundle(name="third"), "one", env=env("k8s.io"))
    for index, extra in enumerate(({}, {"env": env("default")}, {"env": env("k8s.io")})):
        w.ok("start", "one", **extra)
        assert w.board.wait_state("running", index=index)
    pids = {json.loads(w.ok("state", "one", **extra).out)["pid"] for extra in ({}, {"env": env("default")}, {"env": env("k8s.io")})}
    assert len(pids) == 3
    w.fails("does not exist", "state", "one", env=env("moby"))
    w.ok("delete", "--force", "one", env=env("moby"))
    w.fails("already exists", "create", "--bundle", w.bundle(), "one", env=env("default"))
    assert [w.board.state(index) for index in range(3)] == ["running"] * 3, "somebody else's was touched"
    assert sorted(w.ok("list", "-q").out.split()) == ["one", "one+default", "one+k8s.io"]
    w.ok("kill", "one", "KILL", env=env("default"))
    assert [w.board.state(index) for index in range(3)] == ["running", "offline", "running"]
    w.ok("delete", "one", env=env("default"))
    w.ok("kill", "one+k8s.io", "KILL")  # by hand, whoever's it is
    assert [w.board.state(index) for index in range(3)] == ["running", "offline", "offline"]
    w.ok("delete", "one+k8s.io")
    w.ok("kill", "one")
    w.ok("delete", "one")
    assert w.stored() == [] and os.listdir(NEEDS_ROOT_FILES) == []


@scenario("N2", "a create whose shim is killed ends with it; one that came through is replaced when containerd creates the id anew")
def killed_shim(w):
    env = {"PATH": "/usr/bin:/bin", "REMOTEPROC_NAMESPACE": "default", "REMOTEPROC_GUARD": "caller"}
    hook = {"path": "/bin/sleep", "args": ["sleep", "3"]}
    slow = w.bundle(hooks={"prestart": [hook]})
    code = "import subprocess, sys; subprocess.Popen(sys.argv[1:]).wait()"
    shim = subprocess.Popen([sys.executable, "-c", code, w.runtime, "create", "--bundle", slow, "k"], env=env)
    until = time.monotonic() + 10
    while not w.proxies():
        assert time.monotonic() < until
        time.sleep(0.02)
    shim.kill()
    shim.wait()
    w.no_processes(2.0)  # long before the hook's end
    bundle = w.bundle()
    w.ok("create", "--bundle", bundle, "k", env=env)
    w.ok("start", "k", env=env)
    w.fails("already exists", "create", "--bundle", w.bundle(), "k", env=env)
    w.ok("create", "--bundle", bundle, "k", env=env)
    assert w.status("k+default" if os.path.isdir(f"{NEEDS_ROOT_FILES}/k+default") else "k") == "created"
    assert w.board.state() == "offline" and len(w.proxies()) == 1 and w.stored() == []


@scenario("F1", "a stopped container whose bundle is gone: gc clears it away, and a create after a while")
def forgotten(w):
    for how in ("gc", "create"):
        bundle = w.bundle()
        c = w.running(bundle=bundle)
        shutil.rmtree(bundle)
        assert "bundle is gone" not in w.ok("gc").out and w.status(c) == "running", "it still runs"
        w.ok("kill", c)
        w.offline()
        if how == "gc":
            assert f"removed container {c} whose bundle is gone" in w.ok("gc").out
        else:
            for stamp in os.listdir("/run/remoteproc-runtime"):
                if stamp.startswith("swept-"):
                    os.utime("/run/remoteproc-runtime/" + stamp, (1, 1))
            w.ok("delete", w.create())
        assert w.stored() == [] and os.listdir(NEEDS_ROOT_FILES) == [], how


@scenario("R2", "called as runc is, a start that fails ends the container's process, for which Docker waits; else it may be tried again")
def failed_start(w):
    out = open("/run/r2.out", "w+")
    taken = w.running()
    head = ["--root", "/run/r2", "--log", "/run/r2.log"]
    for words, code in ((["create", "--bundle", w.bundle(), "r2"], 0), (["start", "r2"], 1)):
        done = subprocess.run([w.runtime, *head, *words], stdout=out, stderr=out, stdin=subprocess.DEVNULL, timeout=30)
        assert done.returncode == code, words
    until = time.monotonic() + 5
    while json.loads(w.ok(*head, "state", "r2").out)["status"] != "stopped":
        assert time.monotonic() < until
        time.sleep(0.02)
    w.ok(*head, "delete", "r2")
    other = w.create()
    w.fails("busy", "start", other)
    assert w.status(other) == "created"
    w.ok("kill", taken)
    w.offline()
    w.ok("start", other)


def as_user(uid):
    """Arguments for a call as that user, who may write to the core."""
    for file in ("state", "firmware"):
        os.chmod(f"/sys/class/remoteproc/remoteproc0/{file}", 0o666)
    with open("/sys/module/firmware_class/parameters/path", "w") as file:
        file.write("/run/custom")
    for folder, mode in (("/run/custom", 0o1777), (f"/run/user{uid}", 0o755)):
        os.makedirs(folder, exist_ok=True)
        os.chmod(folder, mode)
    os.chown(f"/run/user{uid}", uid, uid)
    return {"env": {"XDG_RUNTIME_DIR": f"/run/user{uid}", "PATH": "/usr/bin:/bin"}, "user": uid}


@scenario("U1", "a user and root start on one core at the same moment: never do both have it")
def users(w):
    user, both_failed = as_user(1000), 0
    for number in range(12):
        names = ("r", "u")
        w.ok("create", "--bundle", w.bundle(), "r")
        w.ok("create", "--bundle", w.bundle(), "u", **user)
        results = {}
        threads = [threading.Thread(target=lambda n=n, o=o: results.__setitem__(n, w.call("start", n, **o)))
                   for n, o in zip(names, ({}, user))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        won = [name for name in names if results[name].code == 0]
        assert len(won) < 2, "both have it"
        both_failed += not won
        assert w.board.state() == ("running" if won else "offline"), (won, w.board.state(), results["r"].err, results["u"].err)
        for name in set(names) - set(won):
            told = results[name].err
            assert "already running" in told or "another start took the core" in told, told
        w.ok("delete", "--force", "r")
        w.ok("delete", "--force", "u", **user)
        w.offline()
    assert both_failed < 12, "nobody ever had it"


@scenario("U2", "a core that another user's container has is busy, not ownerless; a user needs no home")
def other_user(w):
    user = as_user(65534)  # nobody's home does not exist
    w.ok("create", "--bundle", w.bundle(), "u", **user)
    w.ok("start", "u", **user)
    pid = json.loads(w.ok("state", "u", **user).out)["pid"]
    c = w.create()
    w.fails(f"remote processor is already running: busy: used by process {pid} of user 65534", "start", c)
    w.ok("kill", "u", **user)
    w.ok("delete", "u", **user)
    assert os.listdir("/run/custom") == []
    w.ok("start", c)
    w.ok("create", "--bundle", w.bundle(), "v", **user)
    w.fails(f"busy: used by container {c} of user 0", "start", "v", **user)
    assert w.board.state() == "running"
    w.ok("delete", "--force", "v", **user)


def pairs(w, peer):
    """Every mixed life of ours and another implementation. Returns what went wrong."""
    ours, problems = w.runtime, []
    for makers in itertools.product((ours, peer), repeat=4):
        w.reset()
        what = " ".join(f"{step}:{'ours' if maker == ours else 'theirs'}" for step, maker in
                        zip(("create", "start", "kill", "delete"), makers))
        try:
            create, start, kill, delete = makers
            name = "pair"
            call(w, create, "create", "--bundle", w.bundle(), name)
            assert both(w, ours, peer, name) == {"created"}, "after create"
            time.sleep(0.1)  # the original loses a start that comes before its proxy listens
            call(w, start, "start", name)
            assert w.board.wait_state("running"), "the core does not run"
            assert both(w, ours, peer, name) == {"running"}, "after start"
            call(w, kill, "kill", name)
            w.offline()
            wait_stopped(w, ours, name)
            assert both(w, ours, peer, name) == {"stopped"}, "after kill"
            call(w, delete, "delete", name)
            assert w.stored() == [] and os.listdir(NEEDS_ROOT_FILES) == [], "left behind"
            w.no_processes()
        except AssertionError as problem:
            problems.append(f"{what}: {problem}")
        print(f"{'FAIL' if problems and problems[-1].startswith(what) else 'ok  '} {what}", flush=True)
    by_force = (["kill", "pair", "KILL"], ["delete", "--force", "pair"])
    for create, start, force in itertools.product((ours, peer), (ours, peer), by_force):  # ours by force, whoever made and started it
        w.reset()
        try:
            call(w, create, "create", "--bundle", w.bundle(), "pair")
            time.sleep(0.1)
            call(w, start, "start", "pair")
            assert w.board.wait_state("running"), "the core does not run"
            call(w, ours, *force)
            w.offline()
            call(w, ours, "delete", "--force", "pair")
            w.no_processes()
            assert w.stored() == [], "left behind"
        except AssertionError as problem:
            who = ["ours" if maker == ours else "theirs" for maker in (create, start)]
            problems.append(f"create:{who[0]} start:{who[1]} {' '.join(force)}: {problem}")
            print("FAIL", problems[-1], flush=True)
    w.runtime = ours
    w.reset()
    return problems


def call(w, runtime, *words):
    w.runtime = runtime
    return w.ok(*words)


def both(w, ours, peer, name):
    return {json.loads(call(w, runtime, "state", name).out)["status"] for runtime in (ours, peer)}


def wait_stopped(w, ours, name):
    w.runtime = ours
    w.wait_status(name, "stopped")
