#!/usr/bin/env python3
"""./run demo from a trained model to the page: compile, project, board, deploy, classify; then a second time, and --down."""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import urllib.request

SOURCE = pathlib.Path(os.environ["TALPA_SOURCE"])
REFERENCE = pathlib.Path(os.environ.get("TALPA_REFERENCE", SOURCE / ".." / "shared" / "reference"))
BIN = pathlib.Path(os.environ["TALPA_BUILD"]) / "bin"


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def demo(*arguments):
    # A board of its own: somebody's demo may be up.
    done = subprocess.run([SOURCE / "scripts" / "demo.sh", *map(str, arguments)], capture_output=True, text=True, timeout=600,
                          env=dict(os.environ, TALPA_DEMO_BOARD="demo-test"))
    print(done.stdout + done.stderr)
    assert done.returncode == 0, f"demo {arguments}: status {done.returncode}"
    return done.stdout


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

port = free_port()
try:
    said = demo("--port", port)
    check("285 Egyptian cat" in said.split("Classify")[1].split("\n")[1], "the photo's first class is the cat's")
    check("imx-rproc" in said and "Linux Host" in said, "topo ps shows both processing domains")
    answer = json.load(open(SOURCE / "build" / "demo" / "answer.json"))
    check(answer["npu_cycles"] > 100_000, "the NPU counted its cycles")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as page:
        check(b"<html" in page.read().lower(), "the page is served")
    # What the board answered is what the NPU model says of the same program and picture.
    same = json.loads(subprocess.run([BIN / "talpa", "run", SOURCE / "build/demo/mv2_ethosu65_256.pte", "--image",
                                      SOURCE / "docs/pictures/chelsea.jpg", "--json"], capture_output=True, text=True,
                                     check=True).stdout)
    check([(c["class"], round(c["probability"], 6)) for c in same["top"]] ==
          [(c["class"], round(c["probability"], 6)) for c in answer["top"]], "the same classes as talpa run, to six places")
    again = demo("--port", port)
    check("285 Egyptian cat" in again, "a second run")
finally:
    demo("--down")
status = subprocess.run([BIN / "talpa", "board", "status", "--name", "demo-test"], capture_output=True, text=True)
check(status.returncode != 0, "the board is gone")
