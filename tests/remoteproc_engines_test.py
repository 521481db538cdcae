#!/usr/bin/env python3
"""Real engines boot firmware through our runtime and shim: containerd (Debian's, or another version's programs with
--containerd DIR or TALPA_CONTAINERD=DIR), its CRI plugin over gRPC as a kubelet drives it (remoteproc/cri.py), its runc shim
with our runtime as its runc, conmon as CRI-O calls it, podman and Docker. Each runs in a namespace of its own with remote
processors at their real paths; engines that are not installed are skipped. Scenarios 8, 9, 10, 25 to 31.
Arguments: [--bin DIR] [--containerd DIR] [--peer DIR] [CASE…]; --peer: Arm's pair, each of ours is then run with one of theirs"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import traceback

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).parent / "remoteproc"
sys.path.insert(0, str(HERE))
import board as boards  # noqa: E402
import cri  # noqa: E402
import docker_cases  # noqa: E402
import engines  # noqa: E402
import runc_style  # noqa: E402
import scenarios  # noqa: E402
from engines import IMAGE, RUNTIME, Skip, clean, read  # noqa: E402

def containerd(here, options):
    if not (options.containerd or engines.have("containerd", "ctr")):
        raise Skip("containerd is not installed")
    c = engines.Containerd(options.bin, options.containerd)
    try:
        c.import_image("/run/fw.tar", IMAGE, scenarios.elf())
        # life cycle, one core for one container, the id again
        c.call("run", "-d", *RUNTIME, IMAGE, "c1")
        assert here.state() == "running" and c.status("c1")[0] == "RUNNING"
        busy = c.call("run", "-d", *RUNTIME, IMAGE, "c2", check=False)
        assert "remote processor is already running: busy: used by container c1" in busy.stderr, busy.stderr
        c.call("tasks", "rm", "-f", "c2", check=False)
        c.call("containers", "rm", "c2")
        # a restart of containerd finds the container again
        pid = c.status("c1")[1]
        c.stop()
        c.start()
        assert c.status("c1") == ("RUNNING", pid), c.status("c1")
        c.call("tasks", "kill", "-s", "SIGTERM", "c1")
        engines.wait_for("stopped", lambda: c.status("c1")[0] == "STOPPED")
        assert here.state() == "offline"
        c.call("tasks", "rm", "c1")
        c.call("containers", "rm", "c1")
        clean(here)
        # ended while containerd was away
        c.call("run", "-d", *RUNTIME, IMAGE, "c1")
        pid = c.status("c1")[1]
        c.stop(signal.SIGKILL)
        os.kill(pid, signal.SIGTERM)
        engines.wait_for("offline", lambda: here.state() == "offline")
        c.start()
        engines.wait_for("stopped", lambda: c.status("c1")[0] in ("STOPPED", None))
        c.call("tasks", "rm", "c1", check=False)
        c.call("containers", "rm", "c1")
        clean(here)
        # foreground: the firmware's trace is the output
        front = subprocess.Popen([c.ctr_program, "--address", c.socket, "run", "--rm", *RUNTIME, IMAGE, "f1"],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL)
        engines.wait_for("running", lambda: here.state() == "running")
        here.ctl("0 trace hello from the core\\n")
        time.sleep(0.3)
        c.call("tasks", "kill", "f1")
        output, _ = front.communicate(timeout=20)
        assert "hello from the core" in output and front.returncode == 0, (front.returncode, output)
        clean(here)
        # unknown processor
        unknown = c.call("run", "-d", *RUNTIME[:3], "remoteproc.name=nobody", IMAGE, "u1", check=False)
        assert "remote processor nobody does not exist, available remote processors: imx-rproc" in unknown.stderr
        c.call("containers", "rm", "u1", check=False)
        # crash: a telling status, and four events in order
        here.ctl("0 recovery disabled")
        with open("/run/events", "w") as out:
            listener = subprocess.Popen([c.ctr_program, "--address", c.socket, "events"], stdout=out, stdin=subprocess.DEVNULL)
        time.sleep(1)
        c.call("run", "-d", *RUNTIME, IMAGE, "x1")
        if c.major >= 2:
            bootstrap = json.loads(read(c.folder + "/state/io.containerd.runtime.v2.task/default/x1/bootstrap.json"))
            assert bootstrap["version"] == 3 and bootstrap["protocol"] == "ttrpc", bootstrap
        here.ctl("0 crash")
        engines.wait_for("stopped", lambda: c.status("x1")[0] == "STOPPED", 3)
        gone = c.call("tasks", "rm", "x1", check=False)
        assert "139" in gone.stderr, gone.stderr
        c.call("containers", "rm", "x1")
        told = engines.wait_for("the events", lambda: events_of("x1", 4))
        listener.terminate()
        listener.wait()
        assert [topic for topic, _ in told] == ["/tasks/" + word for word in ("create", "start", "exit", "delete")], told
        ended, deleted = told[2][1], told[3][1]
        assert ended["exit_status"] == deleted["exit_status"] == 139 and ended["id"] == "x1", told
        assert ended["pid"] == told[0][1]["pid"] and ended["exited_at"] == deleted["exited_at"], told
        clean(here)
        here.ctl("0 recovery enabled")
        # one id in two namespaces, and one that somebody has by hand: neither ends the other's
        world = scenarios.World(here, options.bin + "/remoteproc-runtime")
        c.call("run", "-d", *RUNTIME, IMAGE, "n1")
        second = [*RUNTIME[:3], "remoteproc.name=second", IMAGE]
        c.import_image("/run/fw.tar", IMAGE, scenarios.elf(), namespace="other")
        c.call("run", "-d", *second, "n1", namespace="other")
        assert here.state(0) == here.state(1) == "running"
        refused = c.call("run", "-d", *second, "n1", namespace="other", check=False)
        assert refused.returncode != 0 and here.state(0) == here.state(1) == "running"
        c.call("tasks", "rm", "-f", "n1", namespace="other")
        c.call("containers", "rm", "n1", namespace="other")
        assert (here.state(0), here.state(1)) == ("running", "offline") and c.status("n1")[0] == "RUNNING"
        c.call("tasks", "rm", "-f", "n1")
        c.call("containers", "rm", "n1")
        world.ok("create", "--bundle", world.bundle(), "hand")
        world.ok("start", "hand")
        c.call("run", "-d", *second, "hand")
        c.call("tasks", "rm", "-f", "hand")
        c.call("containers", "rm", "hand")
        assert here.state() == "running" and world.status("hand") == "running"
        world.ok("kill", "hand")
        world.ok("delete", "hand")
        clean(here)
        # kill -9 of the shim, of the proxy, and by force
        for how in ("shim", "proxy", "rm", "kill"):
            c.call("run", "-d", *RUNTIME, IMAGE, "k1")
            if how == "shim":
                os.kill(c.shims()[0], signal.SIGKILL)
            elif how == "proxy":
                os.kill(c.status("k1")[1], signal.SIGKILL)
            elif how == "kill":
                c.call("tasks", "kill", "-s", "SIGKILL", "k1")
            else:
                c.call("tasks", "rm", "-f", "k1")
            engines.wait_for(f"offline after {how}", lambda: here.state() == "offline", 2.5)
            engines.wait_for("ended", lambda: c.status("k1")[0] in ("STOPPED", None))
            c.call("tasks", "rm", "k1", check=False)
            c.call("containers", "rm", "k1")
            clean(here)
    finally:
        c.stop()


def events_of(container, count):
    """(topic, event) of a container from `ctr events`, once there are that many."""
    found = []
    for line in read("/run/events").splitlines():
        topic = next((word for word in line.split() if word.startswith("/tasks/")), None)
        if topic and "{" in line:
            event = json.loads(line[line.index("{"):])
            if event.get("container_id") == container:
                found.append((topic, event))
    return found if len(found) >= count else None


def unit(here, options):
    """docs/remoteproc/firmware@.service: systemd reads it without complaint, and its commands do what it says."""
    with open(os.path.join(engines.DOCS, "firmware@.service")) as file:
        text = file.read()
    assert "/usr/local/bin/remoteproc-runtime" in text
    text = text.replace("/usr/local/bin/remoteproc-runtime", options.bin + "/remoteproc-runtime")
    if shutil.which("systemd-analyze"):
        os.makedirs("/run/unit", exist_ok=True)
        with open("/run/unit/firmware@.service", "w") as file:
            file.write(text)
        shutil.copy("/run/unit/firmware@.service", "/run/unit/firmware@engine.service")
        verified = subprocess.run(["systemd-analyze", "verify", "/run/unit/firmware@engine.service"], capture_output=True, text=True,
                                  timeout=60)
        assert verified.returncode == 0 and "firmware@" not in verified.stderr, verified.stderr
    commands = dict(line.split("=", 1) for line in text.splitlines() if line.startswith("Exec"))
    world = scenarios.World(here, options.bin + "/remoteproc-runtime")
    bundle = world.bundle()
    main, after = (commands[key].lstrip("-").replace("/etc/remoteproc/%i", bundle).replace("%i", "engine").split()
                   for key in ("ExecStart", "ExecStopPost"))
    for how, status in ((lambda p: p.terminate(), 0), (lambda p: here.ctl("0 recovery disabled", "0 crash"), 139),
                        (lambda p: p.kill(), -signal.SIGKILL)):
        process = subprocess.Popen(main, stdin=subprocess.DEVNULL)
        engines.wait_for("running", lambda: here.state() == "running", 10)
        time.sleep(0.2)
        how(process)
        assert process.wait(timeout=20) == status, f"{process.returncode}, {status} was wanted"
        subprocess.run(after, check=True, timeout=20)
        here.ctl("0 recovery enabled")
        clean(here)


def mixed(here, options):
    """Our shim over Arm's runtime and Arm's shim over ours: a life, which is all that both know."""
    if not options.peer or not options.containerd:
        raise Skip("wants --peer and --containerd (1.7 or later, which the original needs)")

    def life(c, name):
        c.call("run", "-d", *RUNTIME, IMAGE, name)
        engines.wait_for("running", lambda: here.state() == "running", 5)
        engines.wait_for("RUNNING", lambda: c.status(name)[0] == "RUNNING", 5)  # their State fails now and then
        c.call("tasks", "kill", "-s", "SIGTERM", name)
        engines.wait_for("offline", lambda: here.state() == "offline", 5)
        engines.wait_for("stopped", lambda: c.status(name)[0] == "STOPPED", 5)
        c.call("tasks", "rm", name)
        c.call("containers", "rm", name)
        engines.wait_for("no firmware left", lambda: os.listdir("/lib/firmware") == [], 5)

    for shim, runtime in ((options.bin, options.peer), (options.peer, options.bin)):
        folder, world = "/run/mixed", scenarios.World(here, options.bin + "/remoteproc-runtime")
        os.makedirs(folder, exist_ok=True)
        shutil.copy(shim + "/containerd-shim-remoteproc-v1", folder)
        shutil.copy(runtime + "/remoteproc-runtime", folder)
        c = engines.Containerd(folder, options.containerd, name="ctrd-mixed")
        try:
            c.import_image("/run/fw.tar", IMAGE, scenarios.elf())
            whole = 0
            for number in range(30):
                try:
                    life(c, f"x{number}")
                    whole += 1
                except AssertionError as problem:
                    # Their shim loses the status of a child now and then (remoteproc-runtime, section 9.2).
                    if "waitid: no child processes" not in str(problem):
                        raise
                    world.call("delete", "--force", f"x{number}")
                    engines.kill_all("containerd-shim-remoteproc-v1")
                    engines.wait_for("offline", lambda: here.state() == "offline", 5)
                if whole == 3:
                    break
            assert whole == 3, f"{whole} whole lives of 30"
            print(f"     shim of {shim}, runtime of {runtime}: well ({number + 1} tries)")
        finally:
            c.stop()
            engines.kill_all("containerd-shim-remoteproc-v1")


def podman(here, options):
    if not engines.have("podman", "conmon"):
        raise Skip("podman is not installed")
    files, tasks = engines.limits()
    with open("/run/containers.conf", "w") as file:
        file.write(f'[containers]\ndefault_ulimits = ["nofile={files}:{files}", "nproc={tasks}:{tasks}"]\n'
                   f'[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n'
                   f'[engine.runtimes]\n"io.containerd.remoteproc.v1" = ["{options.bin}/remoteproc-runtime"]\n')
    env = dict(os.environ, CONTAINERS_CONF="/run/containers.conf")
    env.pop("XDG_RUNTIME_DIR", None)

    def call(*words, check=True):
        done = subprocess.run(["podman", "--root", "/run/pod/root", "--runroot", "/run/pod/run", "--storage-driver", "vfs",
                               *words], capture_output=True, text=True, env=env, timeout=90, stdin=subprocess.DEVNULL)
        assert not check or done.returncode == 0, f"podman {' '.join(words)}: {done.stderr}"
        return done

    engines.image_archive("/run/fw.tar", IMAGE, scenarios.elf())
    call("pull", "-q", "oci-archive:/run/fw.tar")
    run = ["--runtime", "io.containerd.remoteproc.v1", "run", "-d", "--network", "none", "--annotation",
           "remoteproc.name=imx-rproc"]
    call(*run, "--name", "p1", IMAGE)
    assert here.state() == "running"
    here.ctl("0 trace hello from the core\\n")
    engines.wait_for("the log", lambda: "hello from the core" in call("logs", "p1").stdout, 10)
    for step, wanted in (("stop", "offline"), ("start", "running"), ("stop", "offline")):
        call(step, "p1")
        engines.wait_for(f"{wanted} after {step}", lambda: here.state() == wanted, 3)
    assert call("inspect", "-f", "{{.State.ExitCode}}", "p1").stdout.strip() == "0"
    call("rm", "p1")
    unknown = call(*run[:-1], "remoteproc.name=nobody", "--name", "p2", IMAGE, check=False)
    assert "remote processor nobody does not exist" in unknown.stderr, unknown.stderr
    call("rm", "-f", "p2", check=False)
    for how in ("kill", "rm"):
        call(*run, "--name", "p3", IMAGE)
        call(*(["kill", "-s", "KILL", "p3"] if how == "kill" else ["rm", "-f", "-t", "0", "p3"]))
        engines.wait_for(f"offline after {how}", lambda: here.state() == "offline", 3)
        call("rm", "-f", "p3", check=False)
    here.ctl("0 recovery disabled")
    call(*run, "--name", "p4", "--restart", "on-failure:1", IMAGE)
    engines.restart_after_crash(here)
    here.ctl("0 crash")
    engines.wait_for("the end", lambda: call("inspect", "-f", "{{.State.Status}} {{.State.ExitCode}}", "p4").stdout.strip() ==
                     "exited 139", 15)
    call("rm", "-f", "p4")
    clean(here)


CASES = [containerd, *cri.CASES, *runc_style.CASES, unit, podman, *docker_cases.CASES, mixed]


def run_case(case, options):
    """In a process of its own: each needs a fresh namespace. Returns its exit status."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status, began, here = 1, time.monotonic(), None
    try:
        here = boards.Board(["imx-rproc", "second"], private=("/run", "/var/lib/remoteproc-runtime", "/root/.local", "/dev/shm",
                                                              "/var/lib/cni", "/var/lib/containers"))
        here.ctl("0 boot-ms 50")
        case(here, options)
        print(f"ok   {case.__name__} ({time.monotonic() - began:.1f} s)", flush=True)
        status = 0
    except Skip as why:
        print(f"skip {case.__name__}: {why}", flush=True)
        status = 77
    except Exception as problem:  # reported, and the next case is run
        lines = [(os.path.basename(f.filename), f.lineno) for f in traceback.extract_tb(problem.__traceback__)]
        where = [f"{file}:{line}" for file, line in lines if file in ("cri.py", "docker_cases.py", "runc_style.py", os.path.basename(__file__))]
        print(f"FAIL {case.__name__} at {' '.join(where[1:])}: {problem!r}", flush=True)
        if options.verbose:
            for log in ("/run/ctrd/log", "/run/ctrd-cri/log", "/run/ctrd-runc/log", "/run/ctrd-mixed/log", "/run/dockerd.log"):
                print(read(log)[-6000:])
    finally:
        engines.kill_all("containerd-shim-remoteproc-v1", "remoteproc-runtime", "conmon", "containerd")
        if here is not None:
            here.close()
        sys.stdout.flush()
        os._exit(status)


def main():
    parser = argparse.ArgumentParser()
    build = pathlib.Path(os.environ.get("TALPA_BUILD", pathlib.Path(__file__).parent.parent / "build" / "release"))
    parser.add_argument("--bin", default=str(build / "bin"))
    parser.add_argument("--containerd", default=os.environ.get("TALPA_CONTAINERD"))
    parser.add_argument("--dockerd", default=os.environ.get("TALPA_DOCKERD"), help="a dockerd of 24 or later")
    parser.add_argument("--docker", default=os.environ.get("TALPA_DOCKER", "docker"), help="the client for it, 23 or later")
    parser.add_argument("--peer", default=os.environ.get("REMOTEPROC_PEER"))
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("case", nargs="*")
    options = parser.parse_args()
    options.bin = os.path.realpath(options.bin)
    if (why := boards.possible()) is not None:
        print("skipped:", why)
        return 77
    results = [run_case(case, options) for case in CASES if not options.case or case.__name__ in options.case]
    print(f"{results.count(0)} passed, {sum(r not in (0, 77) for r in results)} failed, {results.count(77)} skipped")
    return 1 if any(r not in (0, 77) for r in results) else 77 if results.count(0) == 0 else 0


sys.exit(main())
