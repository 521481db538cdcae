#!/usr/bin/env python3
"""topo against a real sshd and real engines, offline: health, deploy, ps, logs, an unchanged deploy, a changed one, a sick one that
is rolled back, rollback, stop, down; with firmware through a stand-in runtime.

  topo_e2e_test.py [podman|docker]    the engine of both sides; Docker is Debian's 20.10 on the target, driven by the client that
                                      comes first in PATH and then, where there is another, by Debian's own"""
import json
import pathlib
import shutil
import subprocess
import sys
import urllib.request

from topo_board import Board, Checks, PORT, build_web, clean, need_root, private_machine, scratch_folder, sh, start_docker, topo

ENGINE = "docker" if "docker" in sys.argv else "podman"
TARGET = f"root@127.0.0.1:{PORT}"
COMPOSE = """# A web page, a firmware and what both are made of.
services:
  files:
    platform: linux/arm64
    scale: 0
    build: {context: files}
  web:
    platform: linux/arm64
    build:
      context: web
      additional_contexts: {files: "service:files"}
      args:
        NOTE: "one"
    ports: ["${WEB_PORT:-3001}:3000"]
    environment: {GREETING: "hello world"}
    volumes: ["/sys:/sys", "shared:/shared"]
    restart: unless-stopped
    depends_on: [runner]
    healthcheck: {test: ["CMD", "/web", "check"], interval: 1s}
  runner:
    build: {context: runner}
    runtime: io.containerd.remoteproc.v1
    annotations: {remoteproc.name: imx-rproc}
volumes: {shared: {}}
x-topo:
  name: e2e
  deployment_success_message: "page: http://${TOPO_TARGET_HOSTNAME}:${WEB_PORT:-3001} on ${TOPO_TARGET}"
  parameters:
    NOTE: {description: a note}
"""


def make_project(folder):
    for name in ("files", "web", "runner"):
        (folder / name).mkdir(parents=True)
    (folder / "compose.yaml").write_text(COMPOSE)
    (folder / "files" / "data.txt").write_text("data\n")
    (folder / "files" / "Dockerfile").write_text("FROM scratch\nCOPY data.txt /artifacts/data.txt\n")
    build_web(folder / "web", "v1")
    (folder / "web" / "Dockerfile").write_text("FROM scratch\nARG NOTE\nCOPY --from=files /artifacts/data.txt /data.txt\nCOPY web /web\nENTRYPOINT [\"/web\"]\n")
    subprocess.run(["cp", folder / "web" / "web", folder / "runner" / "firmware.elf"], check=True)
    (folder / "runner" / "Dockerfile").write_text("FROM scratch\nCOPY firmware.elf /firmware.elf\nENTRYPOINT [\"/firmware.elf\"]\n")


def page(port=3001):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
            return answer.read().decode().strip()
    except OSError as error:
        return f"no page: {error}"


def check_deploy(check, board, project):
    ran = topo("health", "--target", TARGET)
    check.equal(ran.returncode, 0, "health")
    # A Docker that is installed and does not run is named beside the Podman that is taken.
    stopped = ENGINE == "podman" and board.run("command -v docker && { command -v dockerd || ls /usr/sbin/dockerd; }", check=False).returncode == 0
    check.has(ran.stdout, "Container Engine: ⚠️ (podman; docker is installed but does not answer)" if stopped else f"Container Engine: ✅ ({ENGINE})", "health")
    if stopped:
        said = topo("ps", "--target", TARGET, cwd=project)
        check.that("Podman is used" in said.stderr and f"ssh ssh://{TARGET} 'systemctl start docker'" in said.stderr, f"and so it is by who finds nothing: {said.stderr}")
        check.that("Podman is used" not in topo("ps", "--engine", "podman", "--target", TARGET, cwd=project).stderr, "unless it was chosen")
    for row in ("Connectivity: ✅", "Remoteproc Runtime: ✅ (remoteproc-runtime)", "Hardware Info: ✅ (lscpu)",
                "Processing Domain Driver (remoteproc): ✅ (imx-rproc)"):
        check.has(ran.stdout, row, "health")

    plan = json.loads(topo("deploy", "--target", TARGET, "--plan", "--json", cwd=project).stdout)
    check.equal([(c["name"], c["action"]) for c in plan["containers"]], [("e2e-runner-1", "create"), ("e2e-web-1", "create")], "plan of a first deployment")
    check.that(board.run(f"{ENGINE} images -q").stdout == "", "a plan changes nothing")

    ran = topo("deploy", "--target", TARGET, cwd=project)
    check.equal(ran.returncode, 0, f"deploy: {ran.stdout}{ran.stderr}")
    order = [ran.stdout.find(f"┌─ {title} ") for title in ("Check target", "Build images", "Transfer images", "Start services", "Deployment Success")]
    check.that(-1 not in order and order == sorted(order), f"stages in order: {ran.stdout}")
    check.has(ran.stdout, f"page: http://127.0.0.1:3001 on ssh://{TARGET}", "success message")
    check.equal(page(), "v1 hello world", "the page")
    if ENGINE == "docker":
        check.has(ran.stdout + ran.stderr, "knows no annotations", "what Docker 20.10 cannot do is said")
    images = board.run(f"{ENGINE} images --format '{{{{.Repository}}}}'").stdout
    check.that("e2e-web" in images and "e2e-files" not in images, f"artifact images stay here: {images}")

    ps = json.loads(topo("ps", "--target", TARGET, "-o", "json", cwd=project).stdout)["containers"]
    check.equal([(c["names"], c["image"], c["state"], c["processingDomain"], c["address"]) for c in ps],
                [("e2e-runner-1", "e2e-runner", "running", "imx-rproc", ""), ("e2e-web-1", "e2e-web", "running", "Linux Host", "127.0.0.1:3001")], "ps")
    ran = topo("ps", "--target", TARGET, cwd=project)
    check.has(ran.stdout, "Container ID   Names", "ps, plain")
    check.that("Podman is used" not in ran.stderr, f"what is found needs no warning: {ran.stderr}")
    logs = topo("logs", "--target", TARGET, "web", cwd=project).stdout
    check.has(logs, "serving hello world", "logs")
    # Firmware has no standard output: what it says is in the trace of its remote processor.
    board.run("mount -t tmpfs tmpfs /sys/kernel/debug; mkdir -p /sys/kernel/debug/remoteproc/remoteproc0; echo up and running > /sys/kernel/debug/remoteproc/remoteproc0/trace0")
    check.has(topo("logs", "--target", TARGET, cwd=project).stdout, "imx-rproc  | up and running", "the firmware's trace")
    said = [json.loads(line) for line in topo("logs", "--target", TARGET, "--json", "runner", cwd=project).stdout.splitlines()]
    check.that({"container": "e2e-runner-1", "source": "trace", "line": "up and running"} in said, f"the firmware's trace: {said}")
    board.run("umount /sys/kernel/debug")
    labels = json.loads(board.run(f"{ENGINE} inspect e2e-web-1").stdout)[0]["Config"]["Labels"]
    check.equal({k: labels.get(f"com.docker.compose.{k}") for k in ("project", "service", "container-number", "oneoff")},
                {"project": "e2e", "service": "web", "container-number": "1", "oneoff": "False"}, "labels as Compose sets them")


def check_changes(check, board, project):
    first = board.run(f"{ENGINE} inspect --format '{{{{.Id}}}}' e2e-web-1").stdout
    ran = topo("deploy", "--target", TARGET, cwd=project)
    check.equal(ran.returncode, 0, f"unchanged: {ran.stderr}")
    check.has(ran.stdout, "e2e-web  Unchanged", "an unchanged image is not sent")
    check.has(ran.stdout, "e2e-web-1  Running", "an unchanged container stays")
    check.equal(board.run(f"{ENGINE} inspect --format '{{{{.Id}}}}' e2e-web-1").stdout, first, "the same container")
    other = project.parent / "other" / project.name
    shutil.copytree(project, other)
    plan = json.loads(topo("deploy", "--target", TARGET, "--plan", "--json", cwd=other).stdout)
    check.equal({c["action"] for c in plan["containers"]}, {"keep"}, "the same project in another folder is the same project")

    # Docker's other client builds with BuildKit where the newer one, without its plugin, cannot.
    if ENGINE == "docker" and pathlib.Path("/usr/bin/docker").exists():
        pathlib.Path("/usr/local/bin/docker").unlink(missing_ok=True)
        ran = topo("deploy", "--target", TARGET, cwd=project)  # other builders make other images of the same files
        check.equal(ran.returncode, 0, f"the other client: {ran.stdout}{ran.stderr}")
    build_web(project / "web", "v2")
    plan = topo("deploy", "--target", TARGET, cwd=project)
    check.equal(plan.returncode, 0, f"changed: {plan.stdout}{plan.stderr}")
    check.has(plan.stdout, "e2e-web-1  Recreated", "a changed container is replaced")
    check.has(plan.stdout, "e2e-runner-1  Running", "the other stays")
    check.equal(page(), "v2 hello world", "the new page")
    check.that("topo-old" not in board.run(f"{ENGINE} ps -a --format '{{{{.Names}}}}'").stdout, "nothing kept aside stays")

    # A deployment whose container dies: the old one runs again, and the error says what it printed.
    compose = project / "compose.yaml"
    good = compose.read_text()
    compose.write_text(good.replace("    restart: unless-stopped\n", "    command: [fail]\n"))
    ran = topo("deploy", "--target", TARGET, cwd=project)
    check.equal(ran.returncode, 1, "a container that dies")
    for part in ("e2e-web-1 ended with status 3", "cannot go on", "the old containers run again: e2e-web-1"):
        check.has(ran.stderr, part, "a container that dies")
    check.equal(page(), "v2 hello world", "the old page")
    compose.write_text(good)

    ran = topo("rollback", "--target", TARGET, cwd=project)
    check.equal(ran.returncode, 0, f"rollback: {ran.stdout}{ran.stderr}")
    check.equal(page(), "v1 hello world", "the page before")
    shown = json.loads(topo("ps", "--target", TARGET, "--json", cwd=project).stdout)["containers"]
    check.equal([c["image"] for c in shown], ["e2e-runner", "e2e-web"], "images have their names after a rollback")
    ran = topo("rollback", "--target", TARGET, cwd=project)
    check.equal(ran.returncode, 0, f"rollback of the rollback: {ran.stderr}")
    check.equal(page(), "v2 hello world", "and forth again")


def check_end(check, board, project):
    ran = topo("stop", "--target", TARGET, cwd=project)
    check.equal(ran.returncode, 0, f"stop: {ran.stderr}")
    check.equal(json.loads(topo("ps", "--target", TARGET, "--json", cwd=project).stdout), {"containers": []}, "nothing runs")
    check.equal(len(json.loads(topo("ps", "--target", TARGET, "--json", "--all", cwd=project).stdout)["containers"]), 2, "containers stay")
    check.equal(topo("stop", "--target", TARGET, cwd=project).returncode, 0, "stop again")
    ran = topo("deploy", "--target", TARGET, cwd=project)
    check.has(ran.stdout, "e2e-web-1  Started", f"start again: {ran.stderr}")
    ran = topo("down", "--target", TARGET, "--volumes", cwd=project)
    check.equal(ran.returncode, 0, f"down: {ran.stderr}")
    check.equal(board.run(f"{ENGINE} ps -aq; {ENGINE} volume ls -q; {ENGINE} network ls -q --filter label=com.docker.compose.project").stdout, "", "nothing is left")


def engines(board, scratch):
    """A stand-in for the runtime: whatever the image holds is run by an ordinary one, the annotation is in the bundle."""
    board.run(f"printf '#!/bin/sh\\nexec {'runc' if ENGINE == 'docker' else 'crun'} \"$@\"\\n' > /usr/local/bin/remoteproc-runtime; "
              "cp /usr/local/bin/remoteproc-runtime /usr/local/bin/containerd-shim-remoteproc-v1; chmod 755 /usr/local/bin/*remoteproc*")
    if ENGINE == "docker":
        # Both are in one network namespace: the host's side only builds.
        start_docker(lambda script: sh(script, capture_output=True, text=True).stdout, scratch / "host" / "docker", "--bridge=none", "--iptables=false")
        start_docker(lambda script: board.run(script).stdout, scratch / "board" / "docker", "--add-runtime io.containerd.remoteproc.v1=/usr/local/bin/remoteproc-runtime")


def main():
    if ENGINE == "docker" and not (shutil.which("dockerd", path="/usr/sbin:/usr/bin") and shutil.which("docker")):
        print("skipped: dockerd is not installed (apt-get install docker.io)")
        sys.exit(77)
    need_root()
    check = Checks()
    scratch = scratch_folder()
    sh("ip link set lo up")
    private_machine(scratch / "host")
    board = Board(scratch / "board")
    try:
        board.authorize()
        engines(board, scratch)
        project = scratch / "e2e"
        make_project(project)
        check_deploy(check, board, project)
        check_changes(check, board, project)
        check_end(check, board, project)
    finally:
        board.stop()
        clean(scratch)
    check.finish()


main()
