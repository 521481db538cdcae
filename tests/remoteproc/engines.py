"""Container engines inside a board's namespace (remoteproc/board.py): containerd, podman and Docker with folders, sockets and
state of their own, and firmware images made without a registry. Settings: topo.md, section 18."""
import contextlib
import hashlib
import io
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import tarfile
import time

import board as boards


def have(*programs):
    return all(shutil.which(p) for p in programs)


def image_archive(path, name, firmware, file="hello.elf", program=False):
    """An OCI layout in a tar with one layer that holds the firmware; the entry point is the firmware alone. Or a program for Linux."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        info = tarfile.TarInfo(file)
        info.size, info.mode = len(firmware), 0o755 if program else 0o644
        tar.addfile(info, io.BytesIO(firmware))
    layer = layer.getvalue()
    blobs = {}

    def blob(data, kind):
        if not isinstance(data, bytes):
            data = json.dumps(data).encode()
        digest = hashlib.sha256(data).hexdigest()
        blobs["blobs/sha256/" + digest] = data
        return {"mediaType": kind, "digest": "sha256:" + digest, "size": len(data)}

    arch = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    config = blob({"architecture": arch, "os": "linux", "config": {"Entrypoint": ["/" + file if program else file]},
                   "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]}},
                  "application/vnd.oci.image.config.v1+json")
    manifest = blob({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config,
                     "layers": [blob(layer, "application/vnd.oci.image.layer.v1.tar")]},
                    "application/vnd.oci.image.manifest.v1+json")
    manifest["annotations"] = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
    manifest["platform"] = {"architecture": arch, "os": "linux"}
    files = dict(blobs)
    files["oci-layout"] = b'{"imageLayoutVersion":"1.0.0"}'
    files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [manifest]}).encode()
    with tarfile.open(path, "w") as tar:
        for entry, data in files.items():
            info = tarfile.TarInfo(entry)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


def wait_for(what, condition, timeout=20.0):
    until = time.monotonic() + timeout
    while time.monotonic() < until:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within {timeout} s")


DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "remoteproc")


def version_of(containerd):
    """(2, 1): of `containerd github.com/containerd/containerd/v2 v2.1.0 …`; a build from source may name none."""
    text = subprocess.run([containerd, "--version"], capture_output=True, text=True).stdout
    found = re.search(r" v?(\d+)\.(\d+)", text)
    major = 2 if "/containerd/v2" in text else int(found.group(1)) if found else 1
    return major, int(found.group(2)) if found else 0


def documented_runtime(major):
    """The tables of docs/remoteproc/containerd-config.toml, for 2.x changed as its first comment says."""
    with open(os.path.join(DOCS, "containerd-config.toml")) as file:
        text = "".join(line for line in file if not line.startswith(("#", "version")))
    return text.replace("io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime") if major >= 2 else text


class Containerd:
    """containerd with its own folders below /run/ctrd. `bin`: folder of another version's programs."""

    def __init__(self, programs, bin_folder=None, name="ctrd"):
        self.folder, self.programs = f"/run/{name}", programs
        prefix = bin_folder + "/" if bin_folder else ""
        self.containerd, self.ctr_program = prefix + "containerd", prefix + "ctr"
        self.socket = self.folder + "/containerd.sock"
        self.major = version_of(self.containerd)[0]
        os.makedirs(self.folder, exist_ok=True)
        image = self.folder + "/pause.tar"
        if self.major >= 2:
            images, cri, number = """[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "localhost/pause:latest"
""", "io.containerd.cri.v1.runtime", 3
        else:
            images, cri, number = """[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:latest"
""", "io.containerd.grpc.v1.cri", 2
        head = "" if self.major < 2 else f'[plugins."{cri}"]\n'
        with open(self.folder + "/config.toml", "w") as file:
            file.write(f"""version = {number}
root = "{self.folder}/root"
state = "{self.folder}/state"
[grpc]
  address = "{self.socket}"
{images}{head}  restrict_oom_score_adj = true
  disable_apparmor = true
[plugins."{cri}".cni]
  bin_dir = "{self.folder}/cni/bin"
  conf_dir = "{self.folder}/cni/conf"
[plugins."{cri}".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
{documented_runtime(self.major)}""")
        self.pause_image = image
        self.process = None
        self.start()

    def start(self):
        env = dict(os.environ, PATH=self.programs + ":" + os.environ["PATH"])
        env.pop("XDG_RUNTIME_DIR", None)
        self.log = open(self.folder + "/log", "ab")
        self.process = subprocess.Popen([self.containerd, "--config", self.folder + "/config.toml", "--log-level", "debug"],
                                        stdout=self.log, stderr=self.log, env=env, start_new_session=True)
        wait_for("containerd", lambda: self.call("version", check=False).returncode == 0, 30)

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.wait(timeout=20)

    def call(self, *words, check=True, timeout=30, namespace="default"):
        done = subprocess.run([self.ctr_program, "--address", self.socket, "--namespace", namespace, *words],
                              capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
        if check and done.returncode != 0:
            raise AssertionError(f"ctr {' '.join(words)}: {done.stderr.strip()}")
        return done

    def import_image(self, path, name, firmware, namespace="default", **more):
        image_archive(path, name, firmware, **more)
        self.call("images", "import", path, namespace=namespace)

    def annotation(self, key, value):
        """ctr of 1.6 has no --annotation: the label that it knows goes another way, so the spec is given there."""
        return ["--annotation", f"{key}={value}"]

    def status(self, task):
        return self.status_in("default", task)

    def status_in(self, namespace, task):
        """(status, pid) of a task."""
        for line in self.call("tasks", "ls", namespace=namespace).stdout.splitlines()[1:]:
            words = line.split()
            if words and words[0] == task:
                return words[2], int(words[1])
        return None, 0

    def shims(self):
        return processes("containerd-shim-remoteproc-v1")


def processes(name):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            if words and os.path.basename(words[0].decode(errors="replace")) == name and boards.is_ours(pid):
                found.append(int(pid))
        except OSError:
            pass
    return found


def kill_all(*names):
    """Those that end by themselves meanwhile are no fault."""
    for name in names:
        for pid in processes(name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def limits():
    """What podman may ask for here: topo.md, section 18.3."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    tasks = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    return files, min(tasks if tasks > 0 else 32768, 32768)


IMAGE = "localhost/fw:latest"
RUNTIME = ["--runtime", "io.containerd.remoteproc.v1", "--annotation", "remoteproc.name=imx-rproc"]


class Skip(Exception):
    """Why a case cannot run here."""


def clean(here):
    """Nothing of a container is left: firmware, mounts, sockets, processes."""
    wait_for("offline", lambda: here.state() == "offline", 20)
    assert os.listdir("/lib/firmware") == [], os.listdir("/lib/firmware")
    wait_for("no shim", lambda: not processes("containerd-shim-remoteproc-v1"), 5)
    assert not processes("remoteproc-runtime"), "a proxy is left"
    if os.path.isdir("/run/containerd/s"):
        assert os.listdir("/run/containerd/s") == [], "a socket is left"
    with open("/proc/self/mounts") as file:
        assert "/rootfs " not in file.read(), "a mount is left"


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
    wait_for("the restart", lambda: here.attribute("firmware") != before and here.state() == "running", 20)
    time.sleep(0.3)
