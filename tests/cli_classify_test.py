#!/usr/bin/env python3
"""talpa classify on the virtual hardware gives what talpa run gives for the same picture, bit for bit, and says what is wrong
with a board that cannot. With the reference set: real networks on real photographs too."""
import json
import pathlib
import subprocess
import tempfile
import time

from board_tree import BoardTree, need_firmware
from talpa_test import GOLDEN, REFERENCE, SOURCE, TALPA, Checks, talpa

RESNET = GOLDEN / "models/resnet8_random/resnet8_random.pte"
PHOTO = SOURCE / "docs/pictures/chelsea.jpg"


def same_as_run(check, board, program, pictures, labels=()):
    with tempfile.TemporaryDirectory() as name:
        here, there = pathlib.Path(name, "here"), pathlib.Path(name, "there")
        ran = talpa("run", program, "--image", *pictures, *labels, "--json", "--output-dir", here)
        classified = talpa("classify", *pictures, "--program", program, "--root", board.root, *labels, "--json", "--output-dir", there,
                           "--timeout", 120)
        check.equal((ran.status, classified.status), (0, 0), ran.err + classified.err)
        documents = [json.loads(r.out) for r in (ran, classified)]
        results = [d.get("results", [d]) for d in documents]
        for ours, theirs in zip(*results, strict=True):
            check.equal(theirs["top"], ours["top"], f"{program.name} on {ours['image']}")
            check.equal(set(theirs) - set(ours), {"time_ms"}, "the shape of the document")
            check.that(theirs["npu_cycles"] > 0 and theirs["time_ms"]["run"] > 0, "times of the board")
            files = [pathlib.Path(output["file"]).read_bytes() for result in (ours, theirs) for output in result["outputs"]]
            check.that(files[:len(files) // 2] == files[len(files) // 2:], "outputs, bit for bit")
        return documents[1]


def failures(check):
    with BoardTree(start=False) as board:
        arguments = ("classify", PHOTO, "--program", RESNET, "--root", board.root)
        offline = talpa(*arguments)
        check.equal(offline.status, 1, "a board whose firmware does not run")
        check.that("echo start > /sys/class/remoteproc/remoteproc0/state" in offline.err, offline.err)
        missing = talpa(*arguments[:-1], "/nonexistent")
        check.that(missing.status == 1 and "/dev/mem" in missing.err, missing.err)
        for bad in (("classify", "--program", RESNET), ("classify", PHOTO)):
            check.equal(talpa(*bad).status, 2, bad)
        board.start()
        text = talpa("classify", SOURCE / "README.md", *arguments[2:])
        check.that(text.status == 1 and "README.md" in text.err and "InvalidPicture" in text.err, text.err)
        human = talpa(*arguments, "--top", 2)
        check.that(human.status == 0 and "NPU" in human.out and "estimated" not in human.out, human.out + human.err)
    with BoardTree("--npu-hangs") as board:
        hung = talpa("classify", PHOTO, "--program", RESNET, "--root", board.root, "--timeout", 4)
        check.that(hung.status == 1 and "ERR 6" in hung.err and "imx-rproc" in hung.err, hung.err)
        # Stopped in the middle: it ends, and says so, long before its timeout.
        waiting = subprocess.Popen([TALPA, "classify", PHOTO, "--program", RESNET, "--root", board.root, "--timeout", "60"],
                                   stderr=subprocess.PIPE, text=True)
        time.sleep(0.5)
        board.stop()
        _, err = waiting.communicate(timeout=20)
        check.that(waiting.returncode == 1 and "stopped or restarted" in err and "dmesg | grep remoteproc" in err, err)


def main():
    need_firmware()
    check = Checks()
    with BoardTree() as board:
        same_as_run(check, board, RESNET, [PHOTO])
        same_as_run(check, board, RESNET, [PHOTO, PHOTO])
        if (REFERENCE / "models").exists():
            labels = ("--labels", REFERENCE / "imagenet_labels.txt")
            photos = [REFERENCE / "photos" / name for name in ("cat.bmp", "parrot.jpg", "hot_dog.jpg")]
            for model in ("mobilenet_v2", "mobilenet_v2_int8io", "efficientnet_lite0"):
                document = same_as_run(check, board, REFERENCE / "models" / model / f"{model}.pte", photos, labels)
                check.equal([r["top"][0]["class"] for r in document["results"]], [285, 88, 934], f"{model}: the reference's classes")
        else:
            print("the reference set is absent: only a random network was run")
    failures(check)
    check.finish()


if __name__ == "__main__":
    main()
