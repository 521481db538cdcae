"""A fleet for the tests: several virtual boards, each a Kubernetes node of its own with Debian's containerd, driven over its CRI socket
as a kubelet drives it; and a client that asks the next board when one does not answer."""
import http.client
import pathlib
import subprocess
import sys
import threading
import time

import board_lib as lib
import end_to_end_lib as whole
from board_lib import check, wait_for

sys.path.insert(0, str(pathlib.Path(__file__).parent / "remoteproc"))
NODE_NETWORK = 2  # of CRI's namespace modes: no CNI plugin here
RUNNING = 1  # CONTAINER_RUNNING

# What docs/remoteproc/containerd-config.toml sets, and what a board without CAP_SYS_RESOURCE and without a registry needs beside it.
CONFIG = """version = 2
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:latest"
  restrict_oom_score_adj = true
  disable_tcp_service = true
  disable_apparmor = true
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.remoteproc]
  runtime_type = "io.containerd.remoteproc.v1"
  pod_annotations = ["remoteproc.*"]
  container_annotations = ["remoteproc.*"]
"""

PAUSE_C = "#include <unistd.h>\n#include <signal.h>\nstatic void bye(int s) { (void)s; _exit(0); }\nint main(void) { signal(SIGTERM, bye); for (;;) pause(); }\n"


class Node:
    """A board with containerd on it. Pods are what the manifests of docs/fleet make of them."""

    def __init__(self, name, folder, pb, grpc):
        self.name, self.pb = name, pb
        self.port = whole.free_port()
        self.board = lib.NamespaceBoard(name, "--startup-delay", 0, "--publish", f"{self.port}:3000")
        self.socket = folder / f"{name}.sock"
        config = folder / f"{name}.toml"
        config.write_text(CONFIG.format(socket=self.socket))
        self.board.sh(f"install {lib.BUILD}/bin/remoteproc-runtime {lib.BUILD}/bin/containerd-shim-remoteproc-v1 /usr/local/bin/; mkdir -p /run/pods; "
                      f"setsid containerd --config {config} > /var/log/containerd.log 2>&1 < /dev/null &")
        self.channel = grpc.insecure_channel(f"unix://{self.socket}")
        self.site = whole.Site(self.port)
        self.serving = False  # what the Service's endpoints would say
        self.pods = {}

    def call(self, method, request, reply=None, timeout=300):
        reply = reply or self.pb.Empty
        return self.channel.unary_unary("/runtime.v1.RuntimeService/" + method, lambda m: m.SerializeToString(),
                                        reply.FromString)(request, timeout=timeout)

    def up(self):
        def answers():
            try:
                self.call("Version", self.pb.Empty(), timeout=5)
                return True
            except Exception as error:  # not listening yet; kept for the message
                self.problem = error
                return False
        wait_for(answers, f"CRI on {self.name}", 180)

    def load(self, archive):
        self.board.sh(f"ctr --address {self.socket} --namespace k8s.io images import {archive}", timeout=600)

    def run(self, app, image, firmware=False):
        """A pod: sandbox and one container, the firmware's under the RuntimeClass's handler."""
        pb = self.pb
        config = pb.PodSandboxConfig(metadata=pb.PodMetadata(name=app, uid=f"{app}-{time.monotonic_ns()}", namespace="default"),
                                     log_directory="/run/pods", labels={"app": app})
        config.linux.security_context.namespace_options.network = NODE_NETWORK
        if firmware:
            config.annotations["remoteproc.name"] = "imx-rproc"
        else:
            config.linux.security_context.privileged = True
        pod = self.call("RunPodSandbox", pb.RunPodSandboxRequest(config=config, runtime_handler="remoteproc" if firmware else ""), pb.SandboxId)
        request = pb.CreateContainerRequest(pod_sandbox_id=pod.pod_sandbox_id, sandbox_config=config)
        request.config.metadata.name = app
        request.config.image.image = image
        request.config.log_path = f"{app}.log"
        if not firmware:
            request.config.linux.security_context.privileged = True
            request.config.linux.security_context.namespace_options.network = NODE_NETWORK
            for path in ("/sys", "/dev"):
                request.config.mounts.append(pb.Mount(container_path=path, host_path=path))
        container = self.call("CreateContainer", request, pb.ContainerId)
        self.call("StartContainer", container)
        status = self.call("ContainerStatus", container, pb.ContainerStatusReply).status
        check(status.state == RUNNING, f"{app} on {self.name}: {status}")
        self.pods[app] = (pod, container)

    def end(self, app):
        """As the kubelet ends a pod: TERM, and KILL after the grace period."""
        pod, container = self.pods.pop(app)
        self.call("StopContainer", self.pb.StopContainerRequest(container_id=container.container_id, timeout=10))
        self.call("StopPodSandbox", pod)
        self.call("RemovePodSandbox", pod)

    def ready(self):
        """The readiness probe of the manifest."""
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            connection.request("GET", "/readyz")
            status = connection.getresponse().status
            connection.close()
            return status == 200
        except (OSError, http.client.HTTPException):
            return False

    def down(self):
        for app in list(self.pods):
            self.end(app)
        self.channel.close()
        self.board.down()


def pause_image(folder):
    """An image for sandboxes: a program that waits for TERM."""
    import engines
    source, program = folder / "pause.c", folder / "pause"
    source.write_text(PAUSE_C)
    subprocess.run(["gcc", "-O1", "-static", "-o", program, source], check=True)
    engines.image_archive(folder / "pause.tar", "localhost/pause:latest", program.read_bytes(), file="pause", program=True)
    return folder / "pause.tar"


class Client:
    """Posts the photo again and again, in turn to the boards that serve; when one does not answer, to the next one. Every answer is
    compared with what its own model must say."""

    def __init__(self, nodes, expected):
        self.nodes, self.expected = nodes, expected  # by the model's id
        self.answers, self.retries, self.lost, self.wrong = {}, 0, [], []
        self.slowest = 0.0
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.work)

    def work(self):
        data, turn = whole.PHOTO.read_bytes(), 0
        while not self.stop.is_set():
            turn += 1
            began, told = time.monotonic(), []
            while time.monotonic() - began < 120:
                serving = [node for node in self.nodes if node.serving] or self.nodes
                node = serving[(turn + len(told)) % len(serving)]
                try:
                    status, answer = node.site.classify(data)
                except (OSError, ValueError, http.client.HTTPException) as error:
                    status, answer = 0, {"error": repr(error)}
                if status == 200:
                    self.answers[answer["model"]] = self.answers.get(answer["model"], 0) + 1
                    if whole.top_of(answer) != self.expected.get(answer["model"]):
                        self.wrong.append(answer)
                    break
                self.retries += 1
                told.append((node.name, status, answer.get("code", answer)))
                time.sleep(0.02)
            else:
                self.lost.append(told[-3:])
            self.slowest = max(self.slowest, time.monotonic() - began)

    def count(self):
        return sum(self.answers.values())

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()


def model_id(site):
    return site.json("GET", "/api/models")[1]["models"][0]["id"]


def probe(node, seconds=180):
    """Waits until the board is ready, then lets it serve."""
    wait_for(node.ready, f"readiness of {node.name}", seconds)
    node.serving = True

