#!/usr/bin/env python3
"""The web application and talpa classify on the whole virtual board (talpa board up --root): with everything there all checks are
ok and a picture gives what talpa run gives; with each prerequisite taken away the right check says the right fix, in the API's
answer and on the page in Chromium. --shots DIR makes the README's pictures of the page: light, dark, phone."""
import base64
import json
import os
import pathlib
import shutil
import sys
import tempfile
import time

import end_to_end_lib as whole_system
from board_tree import FIRMWARE, need_firmware
from end_to_end_lib import PHOTO, PROGRAM, REAL
from talpa_test import REFERENCE, SKIPPED, Checks, talpa
from webapp_tool import Server


# What is missing: the check that tells it, its state, and words of the fix.
MISSING = {
    "reserved-memory": ("reserved-model", "failed", "reg = <0x0 0xc0000000 0x0 0x400000>;"),
    "ethosu-region": ("reserved-ethosu", "failed", "without reusable"),
    "ethosu-device": ("ethosu-device", "failed", "modprobe ethosu"),
    "devmem": ("memory", "failed", "CONFIG_DEVMEM"),
    "iomem-relaxed": ("memory", "failed", "iomem=relaxed"),
    "power-domain": ("remoteproc", "warning", "Add power-domains"),
    "mcore-booted": ("firmware", "failed", "clk-imx93.mcore_booted"),
    "rpmsg": ("tty", "failed", "modprobe rpmsg_tty"),
}


class Board:
    def __init__(self, root, *arguments):
        self.root, self.name = root, f"web-test-{os.getpid()}"
        ran = talpa("board", "up", "--root", root, "--name", self.name, "--startup-delay", 0, *arguments)
        assert ran.status == 0, ran.err

    def start(self):
        shutil.copy(FIRMWARE, self.root / "lib/firmware/")
        remoteproc = self.root / "sys/class/remoteproc/remoteproc0"
        (remoteproc / "firmware").write_text(FIRMWARE.name)
        (remoteproc / "state").write_text("start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        talpa("board", "down", "--name", self.name)


def states_of(server):
    return whole_system.Site(server.port).checks()


def shots(page, folder):
    """The page with its answer, as PNG of 256 colours."""
    from PIL import Image
    page.shots = folder
    wide = {"width": 1200, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    for name, metrics, scheme in (("page-light", wide, "light"), ("page-dark", wide, "dark"), ("page-phone", phone, "light")):
        page.devtools("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        page.devtools("Emulation.setDeviceMetricsOverride", metrics)
        path = folder / f"{name}.png"
        path.write_bytes(base64.b64decode(page.devtools("Page.captureScreenshot", {})["data"]))
        Image.open(path).convert("RGB").quantize(256).save(path, optimize=True)
        page.devtools("Emulation.clearDeviceMetricsOverride", {})
    page.devtools("Emulation.setEmulatedMedia", {"features": []})


def whole(check, root, chromium):
    with Board(root) as board:
        board.start()
        labels = ("--labels", REFERENCE / "imagenet_labels.txt") if REAL else ()
        with Server("--root", root, "--program", PROGRAM, *labels) as server:
            expected = json.loads(talpa("run", PROGRAM, "--image", PHOTO, *labels, "--json").out)["top"]
            status, answer = server.classify(("a.jpg", PHOTO.read_bytes()))
            check.equal((status, answer.get("top")), (200, expected), f"a picture on the board: {answer}")
            classified = talpa("classify", PHOTO, "--program", PROGRAM, *labels, "--root", root, "--json")
            check.equal(json.loads(classified.out or "{}").get("top"), expected, f"talpa classify: {classified.err}")
            states = {i: c["state"] for i, c in states_of(server).items()}
            wrong = {i: s for i, s in states.items() if s != "ok" and not (i == "labels" and not REAL)}
            check.equal(wrong, {}, "all checks are ok")
            if chromium.there:
                page = chromium.open(server)
                page.choose(PHOTO)
                page.classify()
                page.settled()
                check.that(expected[0]["label"] is None or expected[0]["label"] in page.text(".top1"), f"on the page: {page.text('.top1')}")
                if sys.argv[1:2] == ["--shots"]:
                    shots(page, pathlib.Path(sys.argv[2]))


def without(check, root, word, chromium):
    wanted, state, fix = MISSING[word]
    with Board(root, "--without", word) as board:
        if word == "rpmsg":
            board.start()
        with Server("--root", root, "--program", PROGRAM) as server:
            names(check, server, chromium, {wanted: (state, fix)})


def nothing_given(check, root, chromium):
    """A page of nothing: no such core, so no firmware, no tty and no answer; no program, no labels."""
    fixes = {"remoteproc": ("failed", "CONFIG_IMX_REMOTEPROC"), "firmware": ("failed", "See the check of the remote processor"),
             "tty": ("failed", "See the check of the firmware"), "runner": ("failed", "--remoteproc NAME"),
             "program": ("failed", "--program FILE.pte"), "labels": ("warning", "--labels FILE")}
    with Board(root), Server("--root", root, "--remoteproc", "no-such-core") as server:
        names(check, server, chromium, fixes)
    with Board(root), Server("--root", root) as server:
        names(check, server, chromium, {"firmware": ("failed", "echo start > /sys/class/remoteproc/remoteproc0/state"), "runner": ("failed", "start it")})


def names(check, server, chromium, fixes):
    for wanted, (state, fix) in fixes.items():
        try:
            whole_system.page_names(server, chromium, wanted, state, fix)
            check.that(True, wanted)
        except AssertionError as error:
            check.that(False, f"{wanted}: {error}")


def unclocked(check, root, chromium):
    with Board(root, "--without", "npu-clock") as board:
        board.start()
        with Server("--root", root, "--program", PROGRAM) as server:
            started = time.monotonic()
            status, problem = server.classify(("a.jpg", PHOTO.read_bytes()))
            check.equal((status, problem["code"]), (502, "firmware-fault"), f"an NPU without a clock: {problem}")
            check.that(time.monotonic() - started < 10 and any("bfar 0x4A900" in k for k in problem.get("known", [])), f"{problem}")
            names(check, server, chromium, {"runner": ("failed", "modprobe ethosu")})
            if chromium.there:
                page = chromium.open(server)
                page.choose(PHOTO)
                page.classify()
                page.settled()
                check.that("firmware-fault" in page.text(".answer .problem") and "modprobe ethosu" in page.text(".answer .problem"),
                           f"an NPU without a clock, on the page: {page.text('.answer')}")


def main():
    need_firmware()
    if os.geteuid() != 0 and not os.access("/dev/fuse", os.W_OK):
        print("skipped: the board wants /dev/fuse")
        sys.exit(SKIPPED)
    check = Checks()
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / "board"
        chromium = whole_system.Chromium()
        try:
            whole(check, root, chromium)
            unclocked(check, root, chromium)
            nothing_given(check, root, chromium)
            for word in MISSING:
                without(check, root, word, chromium)
        finally:
            chromium.close()
    check.finish()


if __name__ == "__main__":
    main()
