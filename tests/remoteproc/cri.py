"""containerd's CRI plugin driven over gRPC in the order in which a kubelet calls it, with the handler and the pod of
docs/remoteproc/kubernetes.yaml. Cases for tests/remoteproc_engines_test.py; each gets a board with the cores imx-rproc and second."""
import importlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import engines
import scenarios
from engines import IMAGE, Skip, clean, read, wait_for

HERE = pathlib.Path(__file__).parent
CREATED, RUNNING, EXITED = 0, 1, 2  # ContainerState
READY, NOT_READY = 0, 1  # PodSandboxState
LINUX_IMAGE = "localhost/linux:latest"


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


class Cri:
    """A containerd with its CRI plugin, as a kubelet sees it."""

    def __init__(self, options):
        if not (options.containerd or engines.have("containerd", "ctr")):
            raise Skip("containerd is not installed")
        try:
            import grpc
        except ImportError as problem:
            raise Skip(str(problem)) from None
        self.grpc, self.pb = grpc, messages("cri")
        self.handler, self.template = manifest()
        self.engine = engines.Containerd(options.bin, options.containerd, name="ctrd-cri")
        try:
            self.prepare()
        except BaseException:
            self.engine.stop()
            raise

    def prepare(self):
        self.engine.import_image("/run/fw.tar", IMAGE, scenarios.elf(), namespace="k8s.io")
        self.engine.import_image("/run/pause.tar", "localhost/pause:latest", b"\x7fELF pause", namespace="k8s.io", file="pause")
        with open("/bin/true", "rb") as file:
            self.engine.import_image("/run/linux.tar", LINUX_IMAGE, file.read(), namespace="k8s.io", file="true")
        os.makedirs("/run/pods", exist_ok=True)
        self.channel = self.grpc.insecure_channel("unix://" + self.engine.socket)
        problem = []

        def ready():
            try:
                return self.call("Version", self.pb.Empty()) is not None
            except Exception as why:  # not listening yet
                problem[:] = [why]
                return False

        try:
            wait_for("CRI", ready)
        except AssertionError:
            raise AssertionError(f"CRI: {problem}") from None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.engine.stop()

    def call(self, method, request, reply=None, timeout=60):
        reply = reply or self.pb.Empty
        return self.channel.unary_unary("/runtime.v1.RuntimeService/" + method, lambda m: m.SerializeToString(),
                                        reply.FromString)(request, timeout=timeout)

    def refused(self, text, method, request):
        try:
            self.call(method, request)
        except self.grpc.RpcError as error:
            assert text in error.details(), error.details()
            return error
        raise AssertionError(f"{method} succeeded, {text!r} was wanted")

    def pod(self, name="pod", annotations=None):
        config = self.pb.PodSandboxConfig(metadata=self.pb.PodMetadata(name=name, uid="u-" + name, namespace="default"),
                                          log_directory="/run/pods",
                                          annotations=self.template["metadata"]["annotations"] if annotations is None else annotations)
        config.linux.security_context.namespace_options.network = 2  # the node's: no CNI here
        pod = self.call("RunPodSandbox", self.pb.RunPodSandboxRequest(config=config, runtime_handler=self.handler), self.pb.SandboxId)
        return pod, config

    def make(self, pod, config, name, image=IMAGE, attempt=0, **more):
        request = self.pb.CreateContainerRequest(pod_sandbox_id=pod.pod_sandbox_id, sandbox_config=config)
        request.config.MergeFrom(self.pb.ContainerConfig(**more))
        request.config.metadata.name, request.config.metadata.attempt = name, attempt
        request.config.image.image = image
        request.config.log_path = f"{name}-{attempt}.log"
        return self.call("CreateContainer", request, self.pb.ContainerId)

    def status(self, container):
        return self.call("ContainerStatus", container, self.pb.ContainerStatusReply).status

    def pod_status(self, pod):
        return self.call("PodSandboxStatus", pod, self.pb.SandboxStatusReply).status

    def stop(self, container, grace=5):
        self.call("StopContainer", self.pb.StopContainerRequest(container_id=container.container_id, timeout=grace))

    def containers(self):
        return {c.id: c for c in self.call("ListContainers", self.pb.Empty(), self.pb.ContainerList).containers}

    def finish(self, pod):
        self.call("StopPodSandbox", pod)
        self.call("RemovePodSandbox", pod)


def cri(here, options):
    """A pod's life: the sandbox leaves the core alone, firmware runs, logs, crashes, stops; Linux programs are refused."""
    with Cri(options) as k:
        pb = k.pb
        pod, config = k.pod()
        assert here.state() == "offline" and here.log() == [], "the sandbox touched the core"
        shown = k.pod_status(pod)
        assert shown.state == READY and shown.annotations["remoteproc.name"] == "imx-rproc" and shown.runtime_handler == k.handler
        firmware = k.make(pod, config, k.template["spec"]["containers"][0]["name"])
        assert k.status(firmware).state == CREATED and here.state() == "offline", "create touched the core"
        k.call("StartContainer", firmware)
        assert here.state() == "running" and k.status(firmware).state == RUNNING
        assert len(k.engine.shims()) == 1, "one shim a pod"
        assert k.call("ContainerStats", firmware, pb.ContainerStatsReply).stats.memory.working_set_bytes.value > 0
        update = pb.UpdateResourcesRequest(container_id=firmware.container_id)
        update.linux.cpu_shares = 512
        k.call("UpdateContainerResources", update)
        # kubectl logs: the CRI's form, "TIME STREAM TAG text"; and what a log rotation does
        here.ctl("0 trace from the core\\n")
        wait_for("the log", lambda: re.search(r"^\S+ stdout F from the core$", read("/run/pods/firmware-0.log"), re.M), 5)
        os.rename("/run/pods/firmware-0.log", "/run/pods/firmware-0.log.1")
        k.call("ReopenContainerLog", firmware)
        here.ctl("0 trace after the rotation\\n")
        wait_for("the new log", lambda: "stdout F after the rotation" in read("/run/pods/firmware-0.log"), 5)
        # kubectl exec, and a probe that is a command
        k.refused("firmware on a remote processor cannot do that", "ExecSync",
                  pb.ExecSyncRequest(container_id=firmware.container_id, cmd=["ls"], timeout=5))
        assert here.state() == "running" and k.status(firmware).state == RUNNING, "exec disturbed the firmware"
        # a program for Linux does not belong here, nor does a command beside the firmware, nor a terminal
        k.refused("give it a pod of its own", "StartContainer", k.make(pod, config, "linux", LINUX_IMAGE))
        k.refused("expected exactly one process argument", "StartContainer", k.make(pod, config, "two", args=["-v"]))
        k.refused("firmware has no terminal", "StartContainer", k.make(pod, config, "tty", tty=True))
        assert here.state() == "running"
        # crash, and the restart that a kubelet would make
        here.ctl("0 recovery disabled", "0 crash")
        wait_for("exited", lambda: k.status(firmware).state == EXITED, 5)
        ended = k.status(firmware)
        assert ended.exit_code == 139 and ended.finished_at > ended.started_at > 0, ended
        k.call("RemoveContainer", firmware)
        again = k.make(pod, config, "firmware", attempt=1)
        k.call("StartContainer", again)
        assert here.state() == "running"
        k.stop(again, k.template["spec"]["terminationGracePeriodSeconds"])
        assert here.state() == "offline" and k.status(again).exit_code == 0
        k.finish(pod)
        clean(here)


def kubelet_restarts(here, k, policy, how, limit=3):
    """What a kubelet does with the containers of a pod: dead ones are made anew with the next attempt where the policy says so.
    Returns the attempts' exit codes."""
    pod, config = k.pod("restart-" + policy.lower())
    codes = []
    while True:
        here.ctl("0 recovery disabled")
        container = k.make(pod, config, "firmware", attempt=len(codes))
        k.call("StartContainer", container)
        assert here.state() == "running", f"attempt {len(codes)}"
        how(container)
        wait_for("exited", lambda: k.status(container).state == EXITED, 10)
        codes.append(k.status(container).exit_code)
        again = policy == "Always" or (policy == "OnFailure" and codes[-1] != 0)
        k.call("RemoveContainer", container)
        if not again or len(codes) == limit:
            break
    k.finish(pod)
    clean(here)
    return codes


def cri_restarts(here, options):
    """Restart policies, and every way in which a pod's parts end."""
    with Cri(options) as k:
        pid_of = lambda container: k.engine.status_in("k8s.io", container.container_id)[1]  # noqa: E731
        crash = lambda _: here.ctl("0 crash")  # noqa: E731
        assert kubelet_restarts(here, k, "Always", lambda c: os.kill(pid_of(c), signal.SIGTERM)) == [0, 0, 0]
        assert kubelet_restarts(here, k, "OnFailure", crash) == [139, 139, 139]
        assert kubelet_restarts(here, k, "OnFailure", lambda c: os.kill(pid_of(c), signal.SIGTERM)) == [0]
        assert kubelet_restarts(here, k, "Never", crash) == [139]
        here.ctl("0 recovery enabled")
        # no grace, the process killed, the pod stopped or the container removed under running firmware, containerd away
        for number, how in enumerate(("no grace", "kill -9", "pod stopped", "removed", "restart")):
            pod, config = k.pod(f"end{number}")
            container = k.make(pod, config, "firmware")
            k.call("StartContainer", container)
            if how == "no grace":
                k.stop(container, 0)
                assert k.status(container).exit_code in (0, 137)
            elif how == "kill -9":
                os.kill(pid_of(container), signal.SIGKILL)
                wait_for("exited", lambda: k.status(container).state == EXITED, 5)
                assert k.status(container).exit_code == 137
            elif how == "removed":
                k.call("RemoveContainer", container)
                assert container.container_id not in k.containers()
            elif how == "restart":  # containerd is upgraded: pod and firmware go on, and still obey
                k.engine.stop()
                k.engine.start()
                wait_for("the pod", lambda: answers(k, pod), 20)
                assert here.state() == "running" and k.status(container).state == RUNNING
                k.stop(container)
            if how != "pod stopped":
                wait_for("offline after " + how, lambda: here.state() == "offline", 3)
            k.finish(pod)
            assert k.containers() == {}, "a container is left"
            clean(here)
        # the pause process dies: the kubelet sees a pod that is not ready, and makes another
        pod, config = k.pod("dead")
        container = k.make(pod, config, "firmware")
        k.call("StartContainer", container)
        os.kill(k.engine.status_in("k8s.io", pod.pod_sandbox_id)[1], signal.SIGKILL)
        wait_for("not ready", lambda: k.pod_status(pod).state == NOT_READY, 5)
        k.finish(pod)
        clean(here)


def answers(k, pod):
    try:
        return k.pod_status(pod).state == READY
    except k.grpc.RpcError:
        return False


def cri_two(here, options):
    """Two firmware containers: on two cores of one pod, and for one core."""
    with Cri(options) as k:
        pod, config = k.pod("two")
        first = k.make(pod, config, "first")
        # What a device plugin says for one container goes before what the pod says.
        second = k.make(pod, config, "second", annotations={"remoteproc.name": "second"})
        for container in (first, second):
            k.call("StartContainer", container)
        assert here.state(0) == here.state(1) == "running" and len(k.engine.shims()) == 1
        here.ctl("0 trace of one\\n", "1 trace of two\\n")
        for name, text in (("first", "of one"), ("second", "of two")):
            wait_for("the log of " + name, lambda: f"stdout F {text}" in read(f"/run/pods/{name}-0.log"), 5)
        # a third wants a core that is taken, from this pod and from another
        busy = k.refused("busy: used by container " + first.container_id, "StartContainer", k.make(pod, config, "third"))
        assert "already running" in busy.details()
        other, other_config = k.pod("other")
        k.refused("busy: used by container " + first.container_id, "StartContainer", k.make(other, other_config, "fourth"))
        nobody = k.make(other, other_config, "fifth", annotations={"remoteproc.name": "nobody"})
        k.refused("remote processor nobody does not exist, available remote processors: imx-rproc, second", "StartContainer", nobody)
        assert here.state(0) == here.state(1) == "running", "the refused ones disturbed the others"
        k.stop(first)
        assert (here.state(0), here.state(1)) == ("offline", "running"), "one container's stop is its own"
        here.ctl("1 recovery disabled", "1 crash")
        wait_for("exited", lambda: k.status(second).state == EXITED, 5)
        assert (k.status(first).exit_code, k.status(second).exit_code) == (0, 139)
        assert k.pod_status(pod).state == READY, "the pod outlives its containers"
        # the core is free again: the pod that waited gets it
        late = k.make(other, other_config, "fourth", attempt=1)
        k.call("StartContainer", late)
        assert here.state() == "running"
        k.finish(other)
        k.finish(pod)
        assert here.state(1) == "offline"
        clean(here)


CASES = [cri, cri_restarts, cri_two]
