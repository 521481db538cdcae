"""Docker boots firmware: 20.10 with our runtime added to it, 24 and later with our shim by its name. Cases for
tests/remoteproc_engines_test.py."""
import ctypes
import functools
import json
import os
import shutil
import signal
import subprocess

import engines
import scenarios
from engines import IMAGE, RUNTIME, Skip, clean, read


def docker_call(client, *words, check=True):
    done = subprocess.run([client, "-H", "unix:///run/dock.sock", *words], capture_output=True, text=True, timeout=90,
                          stdin=subprocess.DEVNULL)
    assert not check or done.returncode == 0, f"docker {' '.join(words)}: {done.stderr}"
    return done


def have_image(daemon, call):
    """Waits for the daemon, which then has the image of a firmware."""
    engines.wait_for("dockerd", lambda: daemon.poll() is not None or call("info", check=False).returncode == 0, 40)
    assert daemon.poll() is None, "dockerd: " + read("/run/dockerd.log")[-800:]
    os.makedirs("/run/dock/image", exist_ok=True)
    with open("/run/dock/image/hello.elf", "wb") as file:
        file.write(scenarios.elf())
    subprocess.run(["tar", "-C", "/run/dock/image", "-cf", "/run/dock/fw.tar", "hello.elf"], check=True)
    call("import", "-c", 'ENTRYPOINT ["hello.elf"]', "/run/dock/fw.tar", IMAGE)


def docker(here, options):
    dockerd, client = "/usr/sbin/dockerd", "/usr/bin/docker"
    if not os.access(dockerd, os.X_OK):
        raise Skip("Docker is not installed")
    if ctypes.CDLL(None, use_errno=True).unshare(0x40000000) != 0:  # CLONE_NEWNET: its bridge is not the machine's
        raise Skip("no network namespace")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=False)
    log = open("/run/dockerd.log", "ab")
    env = dict(os.environ, PATH="/usr/sbin:/usr/bin:/sbin:/bin")
    env.pop("XDG_RUNTIME_DIR", None)
    daemon = subprocess.Popen([dockerd, "--data-root", "/run/dock/root", "--exec-root", "/run/dock/exec", "--pidfile",
                               "/run/dock.pid", "--host", "unix:///run/dock.sock", "--storage-driver", "vfs", "--add-runtime",
                               f"io.containerd.remoteproc.v1={options.bin}/remoteproc-runtime", "--iptables=false",
                               "--ip6tables=false", "--userland-proxy=false"], stdout=log, stderr=log, env=env,
                              start_new_session=True)

    call = functools.partial(docker_call, client)

    def inspect(name):
        return json.loads(call("inspect", name).stdout)[0]["State"]

    try:
        have_image(daemon, call)
        run = ["run", "-d", "--runtime", "io.containerd.remoteproc.v1"]
        # 20.10 cannot pass annotations: the environment names the processor; two processors here
        call(*run, "-e", "REMOTEPROC_NAME=imx-rproc", "--name", "d1", IMAGE)
        assert here.state() == "running"
        pid = inspect("d1")["Pid"]
        assert os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net"), "its own network"
        assert "eth0" in subprocess.run(["nsenter", "-t", str(pid), "-n", "ip", "link"], capture_output=True, text=True).stdout, \
            "the bridge's end is in the container's namespace"
        ours = len(engines.processes("remoteproc-runtime"))
        busy = call(*run, "-e", "REMOTEPROC_NAME=imx-rproc", "--name", "d1b", IMAGE, check=False)
        assert "busy: used by container" in busy.stderr, busy.stderr
        call("rm", "-f", "d1b")
        engines.wait_for("its processes end", lambda: len(engines.processes("remoteproc-runtime")) == ours, 60)
        here.ctl("0 trace hello from the core\\n")
        engines.wait_for("the log", lambda: "hello from the core" in call("logs", "d1").stdout, 10)
        for step, wanted in (("stop", "offline"), ("start", "running"), ("stop", "offline")):
            call(step, "d1")
            engines.wait_for(f"{wanted} after {step}", lambda: here.state() == wanted, 20)
        state = inspect("d1")
        assert state["ExitCode"] == 0 and not state["FinishedAt"].startswith("0001"), state
        call("rm", "d1")
        unknown = call(*run, "-e", "REMOTEPROC_NAME=nobody", "--name", "d2", IMAGE, check=False)
        assert "remote processor nobody does not exist" in unknown.stderr, unknown.stderr
        unnamed = call(*run, "--name", "d2n", IMAGE, check=False)
        assert "this machine has 2" in unnamed.stderr, unnamed.stderr
        call("rm", "-f", "d2", "d2n", check=False)
        call(*run, "-e", "REMOTEPROC_NAME=imx-rproc", "--name", "d3", IMAGE)
        os.kill(inspect("d3")["Pid"], signal.SIGTERM)
        engines.wait_for("exited", lambda: inspect("d3")["Status"] == "exited", 20)
        assert inspect("d3")["ExitCode"] == 0
        call("rm", "d3")
        call(*run, "-e", "REMOTEPROC_NAME=imx-rproc", "--name", "d4", IMAGE)
        call("rm", "-f", "d4")
        engines.wait_for("offline after rm -f", lambda: here.state() == "offline", 20)
        here.ctl("0 recovery disabled")
        call(*run, "-e", "REMOTEPROC_NAME=imx-rproc", "--name", "d5", "--restart", "on-failure:1", IMAGE)
        engines.restart_after_crash(here)
        here.ctl("0 crash")
        engines.wait_for("the end", lambda: inspect("d5")["Status"] == "exited", 40)
        assert inspect("d5")["ExitCode"] == 139 and json.loads(call("inspect", "d5").stdout)[0]["RestartCount"] == 1
        call("rm", "-f", "d5")
        # The shim of containerd 1.6 sometimes misses the end of a container that was refused, and stays, socket and all.
        engines.kill_all("containerd-shim-runc-v2")
        shutil.rmtree("/run/containerd/s", ignore_errors=True)
        clean(here)
    finally:
        daemon.terminate()
        try:
            daemon.wait(timeout=20)
        except subprocess.TimeoutExpired:
            daemon.kill()
        engines.kill_all("containerd-shim-runc-v2")


def docker_by_shim(here, options):
    """Docker 24 and later: the shim by its name, the processor by annotation, no runtime registered."""
    if not options.dockerd:
        raise Skip("no dockerd of 24 or later (--dockerd FILE)")
    if ctypes.CDLL(None, use_errno=True).unshare(0x40000000) != 0:  # CLONE_NEWNET
        raise Skip("no network namespace")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=False)
    c = engines.Containerd(options.bin, options.containerd, name="ctrd-dock")
    env = dict(os.environ, PATH=f"{options.bin}:/usr/sbin:/usr/bin:/sbin:/bin")
    env.pop("XDG_RUNTIME_DIR", None)
    with open("/run/dockerd.log", "ab") as log:
        daemon = subprocess.Popen([options.dockerd, "--data-root", "/run/dock/root", "--exec-root", "/run/dock/exec", "--pidfile",
                                   "/run/dock.pid", "--host", "unix:///run/dock.sock", "--storage-driver", "vfs", "--containerd",
                                   c.socket, "--bridge=none", "--iptables=false", "--ip6tables=false"], stdout=log, stderr=log,
                                  env=env, start_new_session=True)

    call = functools.partial(docker_call, options.docker)

    def inspect(name):
        return json.loads(call("inspect", name).stdout)[0]

    run = ["run", "-d", "--network", "none", *RUNTIME]  # as docs/remoteproc-runtime.md has it
    try:
        have_image(daemon, call)
        call(*run, "--name", "d1", IMAGE)
        assert here.state() == "running"
        here.ctl("0 trace hello from the core\\n")
        engines.wait_for("the log", lambda: "hello from the core" in call("logs", "d1").stdout, 10)
        for step, wanted in (("stop", "offline"), ("start", "running"), ("stop", "offline")):
            call(step, "d1")
            engines.wait_for(f"{wanted} after {step}", lambda: here.state() == wanted, 3)
        state = inspect("d1")["State"]
        assert state["ExitCode"] == 0 and not state["FinishedAt"].startswith("0001"), state
        call("rm", "d1")
        unknown = call(*run[:-1], "remoteproc.name=nobody", "--name", "d2", IMAGE, check=False)
        assert "remote processor nobody does not exist" in unknown.stderr, unknown.stderr
        call("rm", "-f", "d2", check=False)
        call(*run, "--name", "d3", IMAGE)
        os.kill(inspect("d3")["State"]["Pid"], signal.SIGTERM)
        engines.wait_for("exited", lambda: inspect("d3")["State"]["Status"] == "exited", 5)
        assert inspect("d3")["State"]["ExitCode"] == 0
        call("rm", "d3")
        for words in (["rm", "-f", "d4"], ["kill", "d4"]):
            call(*run, "--name", "d4", IMAGE)
            call(*words)
            engines.wait_for("offline after " + words[0], lambda: here.state() == "offline", 3)
        call("rm", "d4")
        here.ctl("0 recovery disabled")
        call(*run, "--name", "d5", "--restart", "on-failure:1", IMAGE)
        engines.restart_after_crash(here)
        here.ctl("0 crash")
        engines.wait_for("the end", lambda: inspect("d5")["State"]["Status"] == "exited", 15)
        assert inspect("d5")["State"]["ExitCode"] == 139 and inspect("d5")["RestartCount"] == 1
        call("rm", "-f", "d5")
        clean(here)
    finally:
        daemon.terminate()
        try:
            daemon.wait(timeout=20)
        except subprocess.TimeoutExpired:
            daemon.kill()
        c.stop()


CASES = [docker, docker_by_shim]
