#!/usr/bin/env python3
"""kill -9 at every step of create, start, kill and delete: of the runtime's commands, the proxy, the guard and the board that
the core is on; with containerd also of the shim, of the client and of containerd itself. After each round the same name must
work again, and at the end nothing may be left. Then the same on 40 cores at once.
Arguments: [COUNT [SEED]] (default 12 rounds; ./run soak does 200 of each kind)"""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent / "remoteproc"))
import board  # noqa: E402
import engines  # noqa: E402
import scenarios  # noqa: E402

BUILD = pathlib.Path(os.environ.get("TALPA_BUILD", pathlib.Path(__file__).parent.parent / "build" / "release")).resolve()
CORES = 40
STATES = "/root/.local/run/remoteproc-runtime"


def nothing_left(w, what):
    until = time.monotonic() + 5
    while time.monotonic() < until and (w.proxies() or engines.processes("containerd-shim-remoteproc-v1")):
        time.sleep(0.02)
    assert not w.proxies(), f"{what}: processes {w.proxies()}"
    assert not engines.processes("containerd-shim-remoteproc-v1"), f"{what}: shims"
    states = os.listdir(STATES) if os.path.isdir(STATES) else []
    assert not states, f"{what}: states {states}"
    assert not w.stored(), f"{what}: firmware {w.stored()}"
    assert not os.listdir("/var/lib/remoteproc-runtime/firmware"), f"{what}: index"
    with open("/proc/self/mounts") as file:
        assert "/rootfs " not in file.read(), f"{what}: a mount"
    if os.path.isdir("/run/containerd/s"):
        assert not os.listdir("/run/containerd/s"), f"{what}: a socket"
    for index in range(CORES):
        assert w.board.state(index) == "offline", f"{what}: core {index} is {w.board.state(index)}"


def killed_after(rng, words, at_most_s):
    """Starts a command and kills it some time later, or lets it end."""
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    time.sleep(rng.random() * at_most_s)
    process.kill()
    process.wait()


STEPS = ("create", "start", "kill", "delete")
# What is killed: the command of a step while it runs, or what lives while the core runs.
VICTIMS = STEPS + ("proxy", "guard", "both", "board", "board while it boots")


def kill_them(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def role(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().split(b"\0")[1].decode()
    except (OSError, IndexError):
        return ""


def on_core(w, index, role_wanted=None):
    """Pids of the proxies and guards of one core."""
    device = f"/sys/class/remoteproc/remoteproc{index}".encode()
    found = []
    for pid in w.proxies():
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if device in words and role_wanted in (None, words[1].decode()):
            found.append(pid)
    return found


def status(w, name):
    result = w.call("state", name)
    return json.loads(result.out)["status"] if result.code == 0 else None


def life(w, name, bundle, index):
    """A whole life that must go well."""
    w.ok("create", "--bundle", bundle, name, timeout=90)
    w.ok("start", name, timeout=90)
    assert w.board.state(index) == "running", f"{name} does not run"
    w.ok("kill", name, timeout=90)
    engines.wait_for(name + " stops", lambda: status(w, name) == "stopped", 30)  # kill itself waits for one second only
    w.ok("delete", name, timeout=90)


def disturbed_life(w, rng, name, bundle, victim, index=0):
    for step in STEPS:
        words = [step, "--bundle", bundle, name] if step == "create" else [step, name]
        if step == victim:
            killed_after(rng, [w.runtime, *words], 0.08)
        elif victim == "board while it boots" and step == "start":
            process = subprocess.Popen([w.runtime, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       stdin=subprocess.DEVNULL)
            time.sleep(rng.random() * 0.2)
            w.board.die()
            process.wait(timeout=30)
        elif step == "kill" and victim == "board":
            w.board.die()
        elif step == "kill" and victim in ("proxy", "guard", "both"):
            kill_them(on_core(w, index, None if victim == "both" else victim))
            if victim != "guard" and rng.random() < 0.5:
                w.call("kill", name)
        elif step == "kill" and victim == "board while it boots":
            pass
        elif step != "delete" or "board" not in victim:
            w.call(*words, timeout=90)


def runtime_round(w, rng, number):
    name, victim = "chaos", VICTIMS[number % len(VICTIMS)]
    disturbed_life(w, rng, name, w.bundle(), victim)
    if "board" in victim:
        # Those that are left notice by themselves that their core is gone, with no help from anybody. Only one that was not
        # told to start yet goes on waiting for that.
        engines.wait_for(f"round {number}: the container of a dead board ends",
                         lambda: not w.proxies() or status(w, name) == "created", 10)
        if rng.random() < 0.5:
            w.ok("delete", "--force", name)
            assert not os.path.isdir(f"{STATES}/{name}"), "delete while the board is away"
        w.board.come_back()
    # Whatever that left: the next user of this name and this core gets a working container.
    w.ok("delete", "--force", name)
    life(w, name, w.bundle(), 0)
    w.ok("gc")
    nothing_left(w, f"round {number}, victim {victim}")


CTR_RUN = ["run", "-d", "--runtime", "io.containerd.remoteproc.v1", "--annotation", "remoteproc.name=imx-rproc",
           "localhost/fw:latest", "chaos"]
CTR_STEPS = ("run", "kill", "rm")
CTR_VICTIMS = ("shim", "proxy", "runtime", "ctr", "containerd", "board")


def containerd_step(c, w, rng, step, victim):
    """One command of ctr, and kill -9 of the victim while it runs or right after it."""
    words = {"run": CTR_RUN,
             "kill": ["tasks", "kill", "-s", rng.choice(["SIGTERM", "SIGKILL"]), "chaos"],
             "rm": ["tasks", "rm", "-f", "chaos"]}[step]
    process = subprocess.Popen([c.ctr_program, "--address", c.socket, *words], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    if victim is None or (victim != "ctr" and rng.random() < 0.5):
        process.wait(timeout=60)
    else:
        time.sleep(rng.random() * 0.3)
    if victim == "ctr":
        process.kill()
    elif victim == "containerd":
        c.stop(signal.SIGKILL)
        process.wait(timeout=60)
        c.start()
    elif victim == "board":
        w.board.die()
    elif victim == "shim":
        kill_them(c.shims()[:1])
    elif victim == "proxy":
        kill_them(p for p in w.proxies() if role(p) == "proxy")
    elif victim == "runtime":  # a command that is under way, by choice
        kill_them([p for p in engines.processes("remoteproc-runtime") if role(p) in STEPS][:1])
    process.wait(timeout=60)


def containerd_round(c, w, rng, number, at, victim):
    what = f"containerd round {number}, {victim} at {at}"
    for step in CTR_STEPS:
        containerd_step(c, w, rng, step, victim if step == at else None)
        if victim == "board" and step == at:
            engines.wait_for(what + ": the container ends", lambda: not w.proxies() or c.status("chaos")[0] == "CREATED", 10)
            w.board.come_back()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        c.call("tasks", "kill", "-s", "SIGKILL", "chaos", check=False)
        c.call("tasks", "rm", "-f", "chaos", check=False)
        c.call("containers", "rm", "chaos", check=False)
        if "chaos" not in c.call("containers", "ls", "-q").stdout and not c.status("chaos")[0]:
            break
        time.sleep(0.1)
    c.call("snapshots", "rm", "chaos", check=False)
    # A client that gave up may have left a state; the next create of the name must not mind. For a moment containerd itself may
    # still list what such a client did not let it finish.
    deadline = time.monotonic() + 20
    again = c.call(*CTR_RUN, check=False, timeout=90)
    while "task chaos: already exists" in again.stderr and time.monotonic() < deadline:
        time.sleep(0.2)
        c.call("containers", "rm", "chaos", check=False)
        c.call("snapshots", "rm", "chaos", check=False)
        again = c.call(*CTR_RUN, check=False, timeout=90)
    assert again.returncode == 0, f"{what}: the next one does not run: {again.stderr}"
    assert c.status("chaos")[0] == "RUNNING" and w.board.state() == "running", what
    c.call("tasks", "kill", "chaos")
    engines.wait_for(what + ": stopped", lambda: c.status("chaos")[0] == "STOPPED", 10)
    c.call("tasks", "rm", "chaos")
    c.call("containers", "rm", "chaos")
    w.ok("gc")
    nothing_left(w, what)


def at_once(w, seed, rounds):
    """On each core a thread that disturbs one life and then wants a whole one, `rounds` times."""
    failed = []
    bundles = [w.bundle(name=f"core{index}" if index else "imx-rproc") for index in range(CORES)]

    def one(index):
        name, rng = f"many{index}", random.Random(seed * 1000 + index)
        try:
            for number in range(rounds):
                disturbed_life(w, rng, name, bundles[index], rng.choice([v for v in VICTIMS if "board" not in v] + [""]), index)
                w.ok("delete", "--force", name, timeout=90)
                life(w, name, bundles[index], index)
        except Exception as problem:  # told by the main thread
            failed.append((name, number, repr(problem)))

    threads = [threading.Thread(target=one, args=(index,)) for index in range(CORES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed[:3]
    w.ok("gc")
    nothing_left(w, "40 at once")


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    if (why := board.possible()) is not None:
        print("skipped:", why)
        return 77
    here = board.Board(["imx-rproc"] + [f"core{index}" for index in range(1, CORES)])
    w = scenarios.World(here, str(BUILD / "bin" / "remoteproc-runtime"))
    w.reset()
    rng, c = random.Random(seed), None
    try:
        for number in range(count):
            runtime_round(w, rng, number)
        print(f"{count} rounds of the runtime, nothing left", flush=True)
        times = max(count // CORES, 1)
        at_once(w, seed, times)
        print(f"{CORES} at once on {CORES} cores, {times} times each, nothing left", flush=True)
        if os.environ.get("TALPA_CONTAINERD") or engines.have("containerd", "ctr"):
            c = engines.Containerd(str(BUILD / "bin"), os.environ.get("TALPA_CONTAINERD"), name="ctrd-chaos")
            c.import_image("/run/fw.tar", "localhost/fw:latest", scenarios.elf())
            rounds = count if count >= 100 else max(count // 3, 2)
            pairs = [(step, victim) for step in CTR_STEPS for victim in CTR_VICTIMS]
            rng.shuffle(pairs)
            for number in range(rounds):
                containerd_round(c, w, rng, number, *pairs[number % len(pairs)])
            print(f"{rounds} rounds of containerd, nothing left", flush=True)
    finally:
        if c is not None:
            c.stop(signal.SIGKILL)
        engines.kill_all("containerd-shim-remoteproc-v1", "remoteproc-runtime")
        here.close()
    print("1 passed, 0 failed")
    return 0


sys.exit(main())
