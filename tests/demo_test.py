#!/usr/bin/env python3
"""./run demo from a trained model to the page, with Podman: compile, project, board, deploy, classify; what topo ps and logs say,
board checks, the page in Chromium; a second time; topo down and --down leave nothing. tests/end_to_end_test.py has other forms."""
import json
import os
import shutil
import subprocess

import board_lib as lib
import end_to_end_lib as whole
from board_lib import skip
from talpa_test import REFERENCE, SOURCE

BOARD = "demo-test"  # a board of its own: somebody's demo may be up
TARGET = ("--target", f"board://{BOARD}", "--file", SOURCE / "build/projects/imx93-npu-classifier/compose.yaml")


def demo(*arguments, status=0):
    done = subprocess.run([SOURCE / "scripts" / "demo.sh", *map(str, arguments)], capture_output=True, text=True, timeout=900,
                          env=dict(os.environ, TALPA_DEMO_BOARD=BOARD))
    print(done.stdout + done.stderr)
    assert done.returncode == status, f"demo {arguments}: status {done.returncode}"
    return done.stdout if status == 0 else done.stderr


def check(condition, what):
    assert condition, what
    print(f"ok: {what}")


if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
    skip("a board with namespaces needs root and /dev/fuse here")
if not shutil.which("podman"):
    skip("podman is not installed")
if not (REFERENCE / "models").exists():
    skip("the reference set is absent")
if not (SOURCE / "build" / "firmware" / "executorch_runner_cm33.elf").exists():
    skip("the firmware is not built")

def on_the_board(*words):
    return lib.talpa("board", "exec", "--name", BOARD, "--", *words, timeout=600).stdout


port = whole.free_port()
chromium = whole.Chromium()
try:
    said = demo("--port", port)
    check("285 Egyptian cat" in said.split("Classify")[1].split("\n")[1], "the photo's first class is the cat's")
    answer = json.load(open(SOURCE / "build" / "demo" / "answer.json"))
    check(answer["npu_cycles"] > 100_000, "the NPU counted its cycles")
    site = whole.Site(port)
    # What the board answers is what the NPU model says of the same program and picture, on the page too.
    expected = whole.expected_top(SOURCE / "build/demo/mv2_ethosu65_256.pte", REFERENCE / "imagenet_labels.txt")
    check(whole.top_of(answer) == expected, "the same five classes as talpa run, to six places")
    whole.fine(site, expected, chromium)
    check(True, "all checks are ok, the page answers")
    looked = [site.checks()[name]["looked_at"] for name in ("program", "labels")]
    check(looked == ["/opt/mv2-imx93/mv2_ethosu65_256.pte", "/opt/mv2-imx93/imagenet_classes.txt"], f"where the image has them: {looked}")

    ps = json.loads(whole.topo("ps", *TARGET, "--json").stdout)["containers"]
    check([(c["names"], c["state"], c["processingDomain"], c["address"]) for c in ps] ==
          [("imx93-npu-classifier-cm33-runner-1", "running", "imx-rproc", ""),
           ("imx93-npu-classifier-webapp-1", "running", "Linux Host", f"127.0.0.1:{port}")], f"topo ps shows both processing domains: {ps}")
    logs = [json.loads(line) for line in whole.topo("logs", *TARGET, "--json").stdout.splitlines()]
    for container, line in (("cm33-runner", "talpa runner"), ("cm33-runner", "inferences finished"), ("webapp", "serving on"), ("webapp", "check ok: Firmware answers")):
        check(any(container in entry["container"] and line in entry["line"] for entry in logs), f"the log of {container} has '{line}'")

    again = demo("--port", port)
    check("285 Egyptian cat" in again, "a second run")
    refused = demo("--port", port, "--image", SOURCE / "README.md", status=1)
    check("the file begins with" in refused, f"what is no picture is refused in the page's words: {refused}")
    check(whole.topo("down", *TARGET).returncode == 0, "topo down")
    check(on_the_board("sh", "-c", "podman ps -aq; cat /sys/class/remoteproc/remoteproc0/state; ls /lib/firmware") == "offline\n",
          "no container, no running core, no copy of the firmware after topo down")
    state = json.loads(lib.talpa("board", "status", "--name", BOARD, "--json").stdout)
    inside = lib.namespace_processes(state["pid"])
    check(len(inside) > 1, f"processes on the board: {len(inside)}")
finally:
    demo("--down")
    chromium.close()
status = lib.talpa("board", "status", "--name", BOARD)
check(status.returncode != 0, "the board is gone")
lib.wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in inside), "end of all that ran on it")
with open("/proc/self/mounts", encoding="utf-8") as mounts:
    check(BOARD not in mounts.read(), "no mount of it is left")
