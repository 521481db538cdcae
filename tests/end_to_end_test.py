#!/usr/bin/env python3
"""The whole system in the forms that ./run demo does not take (tests/demo_test.py has that one): the runner under containerd 1.6
with ctr and our shim; Docker 20.10 as the board's engine; a deployment with a program that is no program, mended by the next one; the firmware killed under a
client's hands; a second project, made by topo new, whose network takes no photos but features of speech. Arguments: names of forms."""
import json
import math
import os
import pathlib
import shutil
import struct
import sys
import tempfile
import threading

import board_lib as lib
import end_to_end_lib as whole
from board_lib import check, equal, wait_for
from talpa_test import GOLDEN

SLOW = 600  # an engine's call on a busy machine
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]


def left_behind(b, inside):
    """A board that went down: nothing of it runs, its folders are gone."""
    wait_for(lambda: not any(os.path.exists(f"/proc/{p}") for p in inside), "end of all that ran on the board")
    check(not (lib.boards() / b.name).exists(), "the board's state is gone")
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        check(b.name not in mounts.read(), "no mount of it is left")


def containerd_with_ctr_and_our_shim(folder, chromium):
    if not all(map(shutil.which, ("containerd", "ctr", "runc", "podman"))):
        print("  containerd, ctr, runc or podman are not installed: not tried")
        return
    labels = whole.labels_file(folder)
    project = whole.assemble(folder, whole.PROGRAM, labels)
    port = whole.free_port()
    with lib.namespace_board("ctr-form", "--startup-delay", 0, "--publish", f"{port}:3000") as b:
        inside = lib.namespace_processes(b.pid())
        b.sh(f"install {lib.BUILD}/bin/remoteproc-runtime {lib.BUILD}/bin/containerd-shim-remoteproc-v1 /usr/local/bin/; "
             "setsid containerd > /var/log/containerd.log 2>&1 < /dev/null &")
        # The project's own Dockerfiles; podman only builds here.
        b.sh(f"""set -e; cd {project}; program=PROGRAM={whole.PROGRAM.name}
podman build -q --target webapp --build-arg $program -t webapp webapp
podman build -q --target runner-runtime -t runner runner
podman save -q -m -o /run/images.tar webapp runner""", timeout=SLOW)
        wait_for(lambda: b.exec("ctr", "version").returncode == 0, "containerd", 120)
        b.sh("ctr image import /run/images.tar", timeout=SLOW)
        b.sh("ctr run -d --log-uri file:///run/runner.log --runtime io.containerd.remoteproc.v1 --annotation remoteproc.name=imx-rproc "
             "localhost/runner:latest runner", timeout=SLOW)
        equal(b.sh("cat /sys/class/remoteproc/remoteproc0/state"), "running\n", "the core")
        b.sh("ctr run -d --log-uri file:///run/webapp.log --privileged --net-host --mount type=bind,src=/sys,dst=/sys,options=rbind "
             "--mount type=bind,src=/dev,dst=/dev,options=rbind localhost/webapp:latest webapp", timeout=SLOW)
        tasks = {line.split()[0]: line.split()[2] for line in b.sh("ctr tasks ls").splitlines()[1:]}
        equal(tasks, {"runner": "RUNNING", "webapp": "RUNNING"}, "ctr tasks ls")
        site = whole.Site(port)
        site.wait()
        whole.fine(site, whole.expected_top(whole.PROGRAM, labels), chromium)
        wait_for(lambda: "waits for Linux" in b.sh("cat /run/runner.log"), "log of the firmware")
        check("serving on" in b.sh("cat /run/webapp.log"), "log of the page")

        for name in ("webapp", "runner"):
            b.sh(f"ctr task kill {name}")
            wait_for(lambda name=name: "STOPPED" in b.sh(f"ctr tasks ls | grep ^{name}"), f"end of {name}", 60)
            b.sh(f"ctr task rm {name}; ctr container rm {name}")
        equal(b.sh("cat /sys/class/remoteproc/remoteproc0/state; ls /lib/firmware"), "offline\n", "the core, and no copy of the firmware")
        equal(b.exec("pgrep", "-f", "containerd-shim").stdout, "", "shims")
        inside += lib.namespace_processes(b.pid())
    left_behind(b, inside)


def a_program_that_is_none_then_a_good_one_then_the_firmware_killed(folder, chromium):
    if not shutil.which("podman"):
        print("  podman is not installed: not tried")
        return
    labels = whole.labels_file(folder)
    bad = folder / "bad"
    bad.mkdir()
    (bad / "model.pte").write_bytes(whole.PROGRAM.read_bytes()[:20000])
    project = whole.assemble(folder, bad / "model.pte", labels)
    port = whole.free_port()
    with lib.namespace_board("podman-form", "--startup-delay", 0, "--publish", f"{port}:3001", "--ssh", 0) as b:
        inside = lib.namespace_processes(b.pid())
        target = ("--target", f"board://{b.name}")
        done = whole.topo("install", "remoteproc-runtime", *target)
        equal(done.returncode, 0, f"topo install: {done.stderr}")
        done = whole.topo("deploy", *target, cwd=project)
        equal(done.returncode, 0, f"deploy of a bad program: {done.stdout}{done.stderr}")
        site = whole.Site(port)
        site.wait()
        whole.page_names(site, chromium, "program", "failed", "talpa inspect FILE.pte")
        found = site.checks()["program"]["found"]
        check("model.pte" in found, f"what is wrong with which file: {found}")
        status, problem = site.classify(whole.PHOTO.read_bytes())
        equal((status, problem["code"]), (404, "no-such-model"), f"classify without a program: {problem}")
        check("model.pte" in problem["detail"] and "/api/checks" in problem["fix"], f"the file, and where to look: {problem}")

        # The same project with a good program: only the page's container is replaced.
        shutil.copy(whole.PROGRAM, project / "webapp/artifacts/model.pte")
        done = whole.topo("deploy", *target, cwd=project)
        equal(done.returncode, 0, f"deploy of the good one: {done.stdout}{done.stderr}")
        check("cm33-runner-1  Running" in done.stdout and "webapp-1  Recreated" in done.stdout, f"what was replaced: {done.stdout}")
        site.wait()
        expected = whole.expected_top(whole.PROGRAM, labels)
        whole.fine(site, expected, chromium)

        kill_the_firmware(b, site, expected, chromium)

        done = whole.topo("down", *target, cwd=project)
        equal(done.returncode, 0, f"topo down: {done.stderr}")
        equal(b.sh("podman ps -aq; cat /sys/class/remoteproc/remoteproc0/state; ls /lib/firmware", timeout=SLOW), "offline\n", "after topo down")
        inside += lib.namespace_processes(b.pid())
    left_behind(b, inside)


def kill_the_firmware(b, site, expected, chromium):
    """Under a client that never pauses: each answer is right or a problem with a fix, and the page comes back by itself."""
    name = f"{whole.PROJECT}-cm33-runner-1"
    proxy = int(json.loads(b.sh(f"podman inspect {name}", timeout=SLOW))[0]["State"]["Pid"])
    answers, stop = [], threading.Event()

    def client():
        data = whole.PHOTO.read_bytes()
        while not stop.is_set():
            answers.append(site.classify(data))

    thread = threading.Thread(target=client)
    thread.start()
    try:
        wait_for(lambda: len(answers) >= 2, "answers before the kill", 120)
        b.sh(f"kill -9 {proxy}")
        wait_for(lambda: b.sh("cat /sys/class/remoteproc/remoteproc0/state") == "offline\n", "end of the core", 30)
        wait_for(lambda: answers[-1][0] != 200, "a problem", 120)
    finally:
        stop.set()
        thread.join()
    for status, answer in answers:
        if status == 200:
            equal(whole.top_of(answer), expected, "an answer around the kill")
        else:
            check(status in (502, 503) and answer["code"] and answer["fix"], f"{status} {answer}")
    equal((answers[0][0], answers[-1][0], answers[-1][1]["code"]), (200, 503, "firmware-not-running"), "before and after")
    whole.page_names(site, chromium, "firmware", "failed", "Start the container of the firmware")
    b.sh(f"podman start {name}", timeout=SLOW)
    wait_for(lambda: site.checks()["runner"]["state"] == "ok", "the firmware's answer", 60)
    whole.fine(site, expected, chromium)


# runc without CAP_SYS_RESOURCE: Docker gives privileged containers all there is, and a machine may have it not to give.
RUNC_HERE = """#!/usr/bin/python3
import json, os, sys
for i, word in enumerate(sys.argv):
    if word == "--bundle":
        path = os.path.join(sys.argv[i + 1], "config.json")
        with open(path) as file:
            config = json.load(file)
        for names in config["process"].get("capabilities", {}).values():
            if "CAP_SYS_RESOURCE" in names:
                names.remove("CAP_SYS_RESOURCE")
        with open(path, "w") as file:
            json.dump(config, file)
os.execvp("runc", ["runc", *sys.argv[1:]])
"""


def docker_20_10_on_the_board(folder, chromium):
    if not all(shutil.which(p, path=os.environ["PATH"] + ":/usr/sbin") for p in ("dockerd", "docker", "runc", "podman")):
        print("  dockerd, docker, runc or podman are not installed: not tried")
        return
    labels = whole.labels_file(folder)
    project = whole.assemble(folder, whole.PROGRAM, labels)
    (folder / "runc-here").write_text(RUNC_HERE)
    port = whole.free_port()
    with lib.namespace_board("docker-form", "--startup-delay", 0, "--publish", f"{port}:3001", "--ssh", 0) as b:
        inside = lib.namespace_processes(b.pid())
        target = ("--target", f"board://{b.name}")
        b.sh(f"install -m755 {folder}/runc-here {lib.BUILD}/bin/remoteproc-runtime {lib.BUILD}/bin/containerd-shim-remoteproc-v1 /usr/local/bin/; "
             "PATH=$PATH:/usr/sbin setsid dockerd --add-runtime io.containerd.remoteproc.v1=/usr/local/bin/remoteproc-runtime "
             "--add-runtime here=/usr/local/bin/runc-here --default-runtime here --host unix:///run/docker.sock > /var/log/dockerd.log 2>&1 < /dev/null &")
        wait_for(lambda: b.exec("docker", "info").returncode == 0, "dockerd", 180)
        done = whole.topo("deploy", "--engine", "docker", *target, cwd=project)
        equal(done.returncode, 0, f"deploy: {done.stdout}{done.stderr}")
        site = whole.Site(port)
        site.wait()
        whole.fine(site, whole.expected_top(whole.PROGRAM, labels), chromium)
        ps = json.loads(whole.topo("ps", "--engine", "docker", *target, "--json", cwd=project).stdout)["containers"]
        equal([(c["names"].rpartition("classifier-")[2], c["state"], c["processingDomain"]) for c in ps],
              [("cm33-runner-1", "running", "imx-rproc"), ("webapp-1", "running", "Linux Host")], "topo ps")
        said = whole.topo("logs", "--engine", "docker", *target, cwd=project).stdout
        check("inferences finished" in said and "serving on" in said, f"logs of both services: {said}")
        equal(whole.topo("down", "--engine", "docker", *target, cwd=project).returncode, 0, "topo down")
        equal(b.sh("docker ps -aq; cat /sys/class/remoteproc/remoteproc0/state; ls /lib/firmware", timeout=SLOW), "offline\n", "after topo down")
        plain_docker_compose(b, project, site, whole.expected_top(whole.PROGRAM, labels), chromium)
        inside += lib.namespace_processes(b.pid())
    left_behind(b, inside)


def plain_docker_compose(b, project, site, expected, chromium):
    """The project without topo, by the Compose plugin, which Debian 12 does not have."""
    if b.exec("docker", "compose", "version").returncode != 0:
        print("  docker compose is not installed: not tried")
        return
    # The project is for arm64; the virtual board's Linux is this machine's, which runs its own program whatever the image says.
    if ARCHITECTURE != "arm64":
        shutil.copytree(project / "webapp/artifacts" / ARCHITECTURE, project / "webapp/artifacts/arm64", dirs_exist_ok=True)
    b.sh(f"cd {project} && docker compose up --build --detach", timeout=SLOW)
    site.wait()
    whole.fine(site, expected, chromium)
    b.sh(f"cd {project} && docker compose down", timeout=SLOW)
    equal(b.sh("docker ps -aq; cat /sys/class/remoteproc/remoteproc0/state; ls /lib/firmware", timeout=SLOW), "offline\n", "after docker compose down")


KEYWORDS = ["silence", "unknown", "yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go"]
DS_CNN = GOLDEN / "models/ds_cnn_random"


def npy(numbers, shape):
    """A .npy array of float32 as NumPy's format version 1.0 has it."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    header = header.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(numbers)}f", *numbers)


def keyword_spotting_made_by_topo_new(folder, chromium):
    if not shutil.which("podman"):
        print("  podman is not installed: not tried")
        return
    done = whole.topo("new", "keyword-spotting", "--template", "npu-classifier", cwd=folder)
    equal(done.returncode, 0, f"topo new: {done.stderr}")
    project = folder / "keyword-spotting"
    for source, place in ((lib.BUILD / "bin/talpa-webapp", f"webapp/artifacts/{ARCHITECTURE}/talpa-webapp"), (lib.FIRMWARE, f"runner/artifacts/{lib.FIRMWARE.name}"),
                          (DS_CNN / "ds_cnn_random.pte", "webapp/artifacts/model.pte")):
        (project / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, project / place)
    (project / "webapp/artifacts/labels.txt").write_text("\n".join(KEYWORDS) + "\n")
    done = whole.topo("lint", cwd=project)
    equal(done.returncode, 0, f"topo lint: {done.stdout}{done.stderr}")
    raw = (DS_CNN / "in0.bin").read_bytes()
    numbers = struct.unpack(f"<{len(raw) // 4}f", raw)
    recorded = struct.unpack("<12f", (DS_CNN / "out0.bin").read_bytes())
    port = whole.free_port()
    with lib.namespace_board("keywords", "--startup-delay", 0, "--publish", f"{port}:3001", "--ssh", 0) as b:
        inside = lib.namespace_processes(b.pid())
        target = ("--target", f"board://{b.name}")
        equal(whole.topo("install", "remoteproc-runtime", *target).returncode, 0, "topo install")
        done = whole.topo("deploy", *target, cwd=project)
        equal(done.returncode, 0, f"deploy: {done.stdout}{done.stderr}")
        site = whole.Site(port)
        site.wait()
        model = site.json("GET", "/api/models")[1]["models"][0]
        equal((model["classes"], model["input"]["type"]), (12, "float32 [1, 1, 49, 10]"), "the model")
        best = recorded.index(max(recorded))
        for name, data in (("features.npy", npy(numbers, (49, 10))), ("in0.bin", raw)):
            status, answer = site.classify(data, name)
            equal((status, answer.get("top", [{}])[0].get("label")), (200, KEYWORDS[best]), f"{name}: {answer}")
            shares = [math.exp(x - max(recorded)) for x in recorded]
            check(abs(answer["top"][0]["probability"] - shares[best] / sum(shares)) < 1e-4, f"{name}: the recorded output's share: {answer['top']}")
        status, problem = site.classify(npy(numbers[:100], (10, 10)), "short.npy")
        check(status == 400 and "100 elements" in problem["detail"] and "[1, 1, 49, 10]" in problem["detail"], f"a short array: {status} {problem}")
        equal({i: c["state"] for i, c in site.checks().items() if c["state"] != "ok"}, {}, "checks that are not ok")
        if chromium.there:
            features = folder / "spoken.npy"
            features.write_bytes(npy(numbers, (49, 10)))
            page = chromium.open(site)
            page.choose(features)
            page.classify()
            page.settled()
            check(KEYWORDS[best] in page.text(".top1"), f"on the page: {page.text('.answer')}")
        equal(whole.topo("down", *target, cwd=project).returncode, 0, "topo down")
        inside += lib.namespace_processes(b.pid())
    left_behind(b, inside)


FORMS = [containerd_with_ctr_and_our_shim, docker_20_10_on_the_board, a_program_that_is_none_then_a_good_one_then_the_firmware_killed, keyword_spotting_made_by_topo_new]


def main():
    if not lib.FIRMWARE.exists():
        lib.skip("the firmware is not built (./run build)")
    if os.geteuid() != 0:
        lib.skip("engines on a board want root")
    with tempfile.TemporaryDirectory(prefix="end-to-end-") as name:
        chromium = whole.Chromium()

        def named(form):
            def run():
                folder = pathlib.Path(name) / form.__name__
                folder.mkdir()
                form(folder, chromium)
            run.__name__ = form.__name__
            return run
        try:
            return lib.run_all([named(f) for f in FORMS if not sys.argv[1:] or f.__name__ in sys.argv[1:]], namespaces=True)
        finally:
            chromium.close()


if __name__ == "__main__":
    sys.exit(main())
