#!/usr/bin/env python3
"""Thousands of pictures one after the other: after a warm-up no file is opened and no memory mapped anew for a picture, memory and
the slowest hundredth stay flat. webapp_soak.py [PICTURES]"""
import sys
import time

from board_tree import BoardTree, need_firmware
from talpa_test import GOLDEN, REFERENCE, SOURCE, Checks
from webapp_tool import Server

MOBILENET = REFERENCE / "models/mobilenet_v2/mobilenet_v2.pte"
PROGRAM = MOBILENET if MOBILENET.exists() else GOLDEN / "models/resnet8_random/resnet8_random.pte"


def mappings(server):
    """Mappings of files and devices: what a picture must not add to."""
    with open(f"/proc/{server.process.pid}/maps") as maps:
        return sum(1 for line in maps if len(line.split()) > 5 and "[" not in line.split()[5])


def main():
    need_firmware()
    pictures = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    check = Checks()
    data = (SOURCE / "docs/pictures/chelsea.jpg").read_bytes()
    with BoardTree() as board, Server("--root", board.root, "--program", PROGRAM) as server:
        first, seconds, snapshots = None, [], []
        for i in range(pictures):
            started = time.monotonic()
            status, answer = server.classify(("cat.jpg", data))
            seconds.append(time.monotonic() - started)
            first = first or answer.get("top")
            check.that(status == 200 and answer["top"] == first, f"picture {i}: {answer}")
            if i % max(1, pictures // 10) == pictures // 20:
                snapshots.append((server.resident_kib(), server.open_files(), mappings(server)))
        warm = snapshots[1:]
        memory = [s[0] for s in warm]
        check.that(max(memory) - min(memory) < 4096, f"memory is flat: {memory} KiB")
        check.that(len({s[1] for s in warm}) <= 2, f"open files: {[s[1] for s in warm]}")
        check.that(len({s[2] for s in warm}) == 1, f"mappings: {[s[2] for s in warm]}")
        quarter = pictures // 4
        p99 = [sorted(seconds[q * quarter:(q + 1) * quarter])[int(quarter * .99)] * 1000 for q in range(4)]
        print(f"{pictures} pictures; memory {memory[0] / 1024:.1f} to {memory[-1] / 1024:.1f} MiB; p99 by quarter {', '.join(f'{p:.1f}' for p in p99)} ms")
        check.that(p99[3] < 2 * min(p99[1:]) + 20, f"the slowest hundredth: {p99} ms")
    check.finish()


if __name__ == "__main__":
    main()
