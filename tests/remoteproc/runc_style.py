"""Those that call a runtime as they call runc: containerd's shim for runc, and CRI-O through conmon. Cases for
tests/remoteproc_engines_test.py."""
import json
import os
import subprocess

import engines
import scenarios
from engines import IMAGE, RUNTIME, Skip, clean, read


def runc_shim(here, options):
    """containerd's shim for runc with our runtime in runc's place, as Docker's --add-runtime has it."""
    if options.containerd or not engines.have("containerd", "ctr", "containerd-shim-runc-v2"):
        raise Skip("containerd with its shim for runc is not installed")
    c = engines.Containerd(options.bin, name="ctrd-runc")
    run = ["run", "-d", "--runc-binary", options.bin + "/remoteproc-runtime", "--runc-root", "/run/runc-root"]
    try:
        c.import_image("/run/fw.tar", IMAGE, scenarios.elf())
        c.call(*run, *RUNTIME[2:], "--log-uri", "file:///run/runc.log", IMAGE, "r1")
        assert here.state() == "running" and c.status("r1")[0] == "RUNNING"
        assert os.path.exists("/run/runc-root/default/r1/state.json"), "--root holds the state"
        here.ctl("0 trace by the shim of runc\\n")
        engines.wait_for("the log", lambda: "by the shim of runc" in read("/run/runc.log"), 5)
        taken = c.call(*run, *RUNTIME[2:], IMAGE, "r2", check=False)
        assert "busy: used by container r1" in taken.stderr, taken.stderr
        c.call("tasks", "rm", "-f", "r2", check=False)
        c.call("containers", "rm", "r2")
        refused = c.call("tasks", "exec", "--exec-id", "e", "r1", "ls", check=False)
        assert refused.returncode != 0 and here.state() == "running", "exec"
        assert c.call("tasks", "pause", "r1", check=False).returncode != 0 and here.state() == "running"
        c.call("tasks", "kill", "-s", "SIGTERM", "r1")
        engines.wait_for("stopped", lambda: c.status("r1")[0] == "STOPPED")
        assert here.state() == "offline"
        c.call("tasks", "rm", "r1")
        c.call("containers", "rm", "r1")
        # by force, and all at once
        for words in (["rm", "-f"], ["kill", "-a", "-s", "SIGKILL"]):
            c.call(*run, *RUNTIME[2:], IMAGE, "r1")
            c.call("tasks", *words, "r1")
            engines.wait_for("offline", lambda: here.state() == "offline", 3)
            engines.wait_for("ended", lambda: c.status("r1")[0] in ("STOPPED", None))
            c.call("tasks", "rm", "r1", check=False)
            c.call("containers", "rm", "r1")
        unknown = c.call(*run, "--annotation", "remoteproc.name=nobody", IMAGE, "r3", check=False)
        assert "remote processor nobody does not exist, available remote processors: imx-rproc" in unknown.stderr, unknown.stderr
        c.call("containers", "rm", "r3", check=False)
        clean(here)
    finally:
        c.stop()


def crio(here, options):
    """CRI-O's way: conmon creates, the runtime is called with --root and --systemd-cgroup, the end is a file that conmon writes."""
    if not engines.have("conmon"):
        raise Skip("conmon is not installed")
    runtime, root = options.bin + "/remoteproc-runtime", "/run/crio-root"
    world = scenarios.World(here, runtime)
    for folder in ("/run/crio-exits", "/run/crio-attach"):
        os.makedirs(folder)

    def conmon(name, bundle):
        """The pid that conmon tells, or its complaint."""
        told, teller = os.pipe()
        started, starter = os.pipe()
        words = ["conmon", "--syslog", "-s", "-c", name, "-n", "k8s_" + name, "-u", name, "-r", runtime, "-b", bundle, "-p",
                 f"/run/{name}.pid", "-P", f"/run/{name}.conmon.pid", "-l", f"/run/{name}.log", "--exit-dir", "/run/crio-exits",
                 "--persist-dir", bundle, "--socket-dir-path", "/run/crio-attach", "--log-level", "info", "--no-pivot",
                 "--runtime-arg", "--root=" + root]
        env = {"PATH": os.environ["PATH"], "_OCI_SYNCPIPE": str(teller), "_OCI_STARTPIPE": str(started)}
        process = subprocess.Popen(words, env=env, pass_fds=(teller, started), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        os.close(teller)
        os.close(started)
        os.write(starter, b"\0")
        os.close(starter)
        with os.fdopen(told) as pipe:
            answer = json.loads(pipe.readline())
        process.wait(timeout=30)
        return answer.get("pid", answer.get("data")), answer.get("message", "")

    def call(*words, code=0):
        done = subprocess.run([runtime, "--root", root, "--systemd-cgroup", *words], capture_output=True, text=True, timeout=30,
                              stdin=subprocess.DEVNULL)
        assert done.returncode == code, (words, done.returncode, done.stderr)
        return done

    def exit_code(name):
        return int(engines.wait_for("conmon's exit file", lambda: read("/run/crio-exits/" + name), 10))

    kind, pod = "io.kubernetes.cri-o.ContainerType", "io.kubernetes.cri-o.SandboxID"
    sandbox = world.bundle(annotations={kind: "sandbox", pod: "pod1"}, args=["/pause"], namespaces=["network", "ipc", "uts"])
    pause, why = conmon("pod1", sandbox)
    assert pause > 0, why
    call("start", "pod1")
    assert json.loads(call("state", "pod1").stdout)["status"] == "running" and here.log() == [], "the sandbox touched the core"
    assert os.readlink(f"/proc/{pause}/ns/net") != os.readlink("/proc/self/ns/net")
    member = {kind: "container", pod: "pod1"}
    spaces = {"namespaces": [{"type": "network", "path": f"/proc/{pause}/ns/net"}, {"type": "mount"}]}
    for name, end, code in (("fw1", lambda: call("kill", "fw1", "15"), 0), ("fw2", lambda: here.ctl("0 crash"), 139),
                            ("fw3", lambda: call("kill", "--all", "fw3", "KILL"), 137)):
        pid, why = conmon(name, world.bundle(annotations=member, linux=spaces))
        assert pid > 0 and read(f"/run/{name}.pid") == str(pid), why
        state = json.loads(call("state", name).stdout)
        assert (state["status"], state["pid"], state["annotations"][pod]) == ("created", pid, "pod1"), state
        call("start", name)
        assert here.state() == "running"
        here.ctl("0 recovery disabled", f"0 trace words of {name}\\n")
        engines.wait_for("the log", lambda: f"stdout F words of {name}" in read(f"/run/{name}.log"), 5)
        end()
        assert exit_code(name) == code, name
        assert json.loads(call("state", name).stdout)["status"] == "stopped"
        call("delete", "--force", name)
        assert "does not exist" in call("state", name, code=1).stderr
    pid, why = conmon("fw4", world.bundle(annotations=member, file="sh", content=open("/bin/sh", "rb").read(4096)))
    assert pid < 0 and "give it a pod of its own" in why, (pid, why)
    call("kill", "pod1", "TERM")
    assert exit_code("pod1") == 0
    call("delete", "pod1")
    assert os.listdir(root) == []
    clean(here)


CASES = [runc_shim, crio]
