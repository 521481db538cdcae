#!/usr/bin/env python3
"""Real engines boot firmware through our runtime and shim: containerd (Debian's, or another version's programs with
--containerd DIR or TALPA_CONTAINERD=DIR), its CRI plugin over gRPC as a kubelet drives it, podman and Docker. Each runs in a namespace of its own
with remote processors at their real paths; engines that are not installed are skipped. Scenarios 8, 9, 10, 25 to 31.
Arguments: [--bin DIR] [--containerd DIR] [CASE…]"""
import argparse
import ctypes
import importlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).parent / "remoteproc"
sys.path.insert(0, str(HERE))
import board as boards  # noqa: E402
import engines  # noqa: E402
import scenarios  # noqa: E402

RUNTIME = ["--runtime", "io.containerd.remoteproc.v1", "--annotation", "remoteproc.name=imx-rproc"]
IMAGE = "localhost/fw:latest"


class Skip(Exception):
    pass


def clean(here, daemon=None):
    """Nothing of a container is left: firmware, mounts, sockets, processes."""
    engines.wait_for("offline", lambda: here.state() == "offline", 3)
    assert os.listdir("/lib/firmware") == [], os.listdir("/lib/firmware")
    engines.wait_for("no shim", lambda: not engines.processes("containerd-shim-remoteproc-v1"), 5)
    assert not engines.processes("remoteproc-runtime"), "a proxy is left"
    if os.path.isdir("/run/containerd/s"):
        assert os.listdir("/run/containerd/s") == [], "a socket is left"
    with open("/proc/self/mounts") as file:
        assert "/rootfs " not in file.read(), "a mount is left"


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


def messages(name):
    if shutil.which("protoc") is None:
        raise Skip("no protoc")
    folder = tempfile.mkdtemp(prefix="rproc-proto-")
    try:
        subprocess.run(["protoc", f"-I{HERE}", f"--python_out={folder}", name + ".proto"], check=True)
        sys.path.insert(0, folder)
        return importlib.import_module(name + "_pb2")
    except ImportError as problem:
        raise Skip(str(problem)) from None
    finally:
        shutil.rmtree(folder)


def manifest():
    """The handler and the pod of docs/remoteproc/kubernetes.yaml, as a kubelet would take them from there."""
    try:
        import yaml
    except ImportError as problem:
        raise Skip(str(problem)) from None
    with open(os.path.join(engines.DOCS, "kubernetes.yaml")) as file:
        kinds = {document["kind"]: document for document in yaml.safe_load_all(file)}
    template, runtime_class = kinds["Deployment"]["spec"]["template"], kinds["RuntimeClass"]
    assert template["spec"]["runtimeClassName"] == runtime_class["metadata"]["name"]
    for key, value in kinds["Deployment"]["spec"]["selector"]["matchLabels"].items():
        assert template["metadata"]["labels"][key] == value
    return runtime_class["handler"], template


def cri(here, options):
    if not (options.containerd or engines.have("containerd", "ctr")):
        raise Skip("containerd is not installed")
    try:
        import grpc
    except ImportError as problem:
        raise Skip(str(problem)) from None
    pb = messages("cri")
    handler, template = manifest()
    c = engines.Containerd(options.bin, options.containerd, name="ctrd-cri")
    try:
        c.import_image("/run/fw.tar", IMAGE, scenarios.elf(), namespace="k8s.io")
        c.import_image("/run/pause.tar", "localhost/pause:latest", b"\x7fELF pause", namespace="k8s.io", file="pause")
        with open("/bin/true", "rb") as file:
            c.import_image("/run/linux.tar", "localhost/linux:latest", file.read(), namespace="k8s.io", file="true")
        channel = grpc.insecure_channel("unix://" + c.socket)

        def call(method, request, reply=pb.Empty, timeout=60):
            return channel.unary_unary("/runtime.v1.RuntimeService/" + method, lambda m: m.SerializeToString(),
                                       reply.FromString)(request, timeout=timeout)

        config = pb.PodSandboxConfig(metadata=pb.PodMetadata(name="pod", uid="u1", namespace="default"),
                                     log_directory="/run/pods", annotations=template["metadata"]["annotations"])
        config.linux.security_context.namespace_options.network = 2  # the node's: no CNI here
        os.makedirs("/run/pods", exist_ok=True)
        try:
            engines.wait_for("CRI", lambda: ready(call, pb))
        except AssertionError:
            raise AssertionError(f"CRI: {ready.problem}") from None
        pod = call("RunPodSandbox", pb.RunPodSandboxRequest(config=config, runtime_handler=handler), pb.SandboxId)
        assert here.state() == "offline" and here.log() == [], "the sandbox touched the core"

        def make(name, image):
            request = pb.CreateContainerRequest(pod_sandbox_id=pod.pod_sandbox_id, sandbox_config=config)
            request.config.metadata.name = name
            request.config.image.image = image
            request.config.log_path = name + ".log"
            return call("CreateContainer", request, pb.ContainerId)

        def status(container):
            return call("ContainerStatus", container, pb.ContainerStatusReply).status

        firmware = make(template["spec"]["containers"][0]["name"], IMAGE)
        call("StartContainer", firmware)
        assert here.state() == "running" and status(firmware).state == 1  # CONTAINER_RUNNING
        assert len(c.shims()) == 1, "one shim a pod"
        assert call("ContainerStats", firmware, pb.ContainerStatsReply).stats.memory.working_set_bytes.value > 0
        update = pb.UpdateResourcesRequest(container_id=firmware.container_id)
        update.linux.cpu_shares = 512
        call("UpdateContainerResources", update)
        here.ctl("0 trace from the core\\n")
        engines.wait_for("the log", lambda: "from the core" in read("/run/pods/firmware.log"), 5)
        # a program for Linux does not belong here
        try:
            call("StartContainer", make("linux", "localhost/linux:latest"))
            raise AssertionError("a Linux program was started on the core")
        except grpc.RpcError as error:
            assert "give it a pod of its own" in error.details(), error.details()
        # crash, and the restart that a kubelet would make
        here.ctl("0 recovery disabled", "0 crash")
        engines.wait_for("exited", lambda: status(firmware).state == 2, 5)
        ended = status(firmware)
        assert ended.exit_code == 139 and ended.finished_at > ended.started_at > 0, ended
        call("RemoveContainer", firmware)
        again = make("fw2", IMAGE)
        call("StartContainer", again)
        assert here.state() == "running"
        call("StopContainer", pb.StopContainerRequest(container_id=again.container_id,
                                                     timeout=template["spec"]["terminationGracePeriodSeconds"]))
        assert here.state() == "offline" and status(again).exit_code == 0
        call("StopPodSandbox", pod)
        call("RemovePodSandbox", pod)
        clean(here)
    finally:
        c.stop()


def ready(call, pb):
    try:
        return call("Version", pb.Empty()) is not None
    except Exception as problem:  # not listening yet
        ready.problem = problem
        return False


def read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def restart_after_crash(here):
    """The engine's own restart: the same image under a new name. A core that merely recovers keeps the old one."""
    before = here.attribute("firmware")
    here.ctl("0 crash")
    engines.wait_for("the restart", lambda: here.attribute("firmware") != before and here.state() == "running", 20)
    time.sleep(0.3)


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
    restart_after_crash(here)
    here.ctl("0 crash")
    engines.wait_for("the end", lambda: call("inspect", "-f", "{{.State.Status}} {{.State.ExitCode}}", "p4").stdout.strip() ==
                     "exited 139", 15)
    call("rm", "-f", "p4")
    clean(here)


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

    def call(*words, check=True):
        done = subprocess.run([client, "-H", "unix:///run/dock.sock", *words], capture_output=True, text=True, timeout=90,
                              stdin=subprocess.DEVNULL)
        assert not check or done.returncode == 0, f"docker {' '.join(words)}: {done.stderr}"
        return done

    def inspect(name):
        return json.loads(call("inspect", name).stdout)[0]["State"]

    try:
        engines.wait_for("dockerd", lambda: daemon.poll() is not None or call("info", check=False).returncode == 0, 40)
        assert daemon.poll() is None, "dockerd: " + read("/run/dockerd.log")[-800:]
        os.makedirs("/run/dock/image", exist_ok=True)
        with open("/run/dock/image/hello.elf", "wb") as file:
            file.write(scenarios.elf())
        subprocess.run(["tar", "-C", "/run/dock/image", "-cf", "/run/dock/fw.tar", "hello.elf"], check=True)
        call("import", "-c", 'ENTRYPOINT ["hello.elf"]', "/run/dock/fw.tar", IMAGE)
        run = ["run", "-d", "--runtime", "io.containerd.remoteproc.v1"]
        # 20.10 cannot pass annotations: the environment names the processor; two processors here
        call(*run, "-e", "REMOTEPROC_NAME=imx-rproc", "--name", "d1", IMAGE)
        assert here.state() == "running"
        pid = inspect("d1")["Pid"]
        assert os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net"), "its own network"
        assert "eth0" in subprocess.run(["nsenter", "-t", str(pid), "-n", "ip", "link"], capture_output=True, text=True).stdout, \
            "the bridge's end is in the container's namespace"
        here.ctl("0 trace hello from the core\\n")
        engines.wait_for("the log", lambda: "hello from the core" in call("logs", "d1").stdout, 10)
        for step, wanted in (("stop", "offline"), ("start", "running"), ("stop", "offline")):
            call(step, "d1")
            engines.wait_for(f"{wanted} after {step}", lambda: here.state() == wanted, 3)
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
        engines.wait_for("exited", lambda: inspect("d3")["Status"] == "exited", 5)
        assert inspect("d3")["ExitCode"] == 0
        call("rm", "d3")
        call(*run, "-e", "REMOTEPROC_NAME=imx-rproc", "--name", "d4", IMAGE)
        call("rm", "-f", "d4")
        engines.wait_for("offline after rm -f", lambda: here.state() == "offline", 3)
        here.ctl("0 recovery disabled")
        call(*run, "-e", "REMOTEPROC_NAME=imx-rproc", "--name", "d5", "--restart", "on-failure:1", IMAGE)
        restart_after_crash(here)
        here.ctl("0 crash")
        engines.wait_for("the end", lambda: inspect("d5")["Status"] == "exited", 15)
        assert inspect("d5")["ExitCode"] == 139 and json.loads(call("inspect", "d5").stdout)[0]["RestartCount"] == 1
        call("rm", "-f", "d5")
        clean(here)
    finally:
        daemon.terminate()
        try:
            daemon.wait(timeout=20)
        except subprocess.TimeoutExpired:
            daemon.kill()


CASES = [containerd, cri, unit, podman, docker]


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
        line = problem.__traceback__
        while line.tb_next is not None and "engines_test" in line.tb_next.tb_frame.f_code.co_filename:
            line = line.tb_next
        print(f"FAIL {case.__name__} at line {line.tb_lineno}: {problem!r}", flush=True)
        if options.verbose:
            for log in ("/run/ctrd/log", "/run/ctrd-cri/log", "/run/dockerd.log"):
                print(read(log)[-6000:])
    finally:
        for name in ("containerd-shim-remoteproc-v1", "remoteproc-runtime", "conmon", "containerd"):
            for pid in engines.processes(name):
                os.kill(pid, signal.SIGKILL)
        if here is not None:
            here.close()
        sys.stdout.flush()
        os._exit(status)


def main():
    parser = argparse.ArgumentParser()
    build = pathlib.Path(os.environ.get("TALPA_BUILD", pathlib.Path(__file__).parent.parent / "build" / "release"))
    parser.add_argument("--bin", default=str(build / "bin"))
    parser.add_argument("--containerd", default=os.environ.get("TALPA_CONTAINERD"))
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
