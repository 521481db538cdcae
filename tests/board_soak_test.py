#!/usr/bin/env python3
"""Runs in a row, then stops and starts while runs are in flight, with and without each quirk: no reply lost or doubled, the
channels announced each time, no memory, files, mounts or processes leaked.   board_soak_test.py [RUNS CYCLES [QUIRK]]"""
import collections
import os
import pathlib
import random
import select
import subprocess
import sys
import termios
import time
import tty as terminal

import board_lib as lib
from board_lib import check, equal, shell_write, wait_for

RUNS, CYCLES = (int(sys.argv[1]), int(sys.argv[2])) if len(sys.argv) > 2 else (50, 10)
ONLY = sys.argv[3] if len(sys.argv) > 3 else None
GOLDEN = lib.SOURCE / "tests/golden/models/ds_cnn_random"
CHANNELS = 2  # that the runner announces at each start

# Quirk, what a run ends with (None: no tty can appear), node of the tty.
QUIRKS = [
    ("none", "OK RUN", 0),
    ("mu-survives-stop", "OK RUN", 0),
    ("nxp-tty", "OK RUN", 30),
    ("attached", "OK RUN", 0),
    ("fault-crashes", "OK RUN", 0),
    ("ecc-poison", "OK RUN", 0),
    ("trdc-deny", "ERR 12", 0),
    ("table-copy-only", None, 0),  # the firmware never sees DRIVER_OK: it stays silent, on this kernel as on silicon
]


class Tty:
    def __init__(self, path):
        self.fd = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        terminal.setraw(self.fd, termios.TCSANOW)
        termios.tcflush(self.fd, termios.TCIFLUSH)
        self.text = b""

    def close(self):
        os.close(self.fd)

    def send(self, line):
        os.write(self.fd, line.encode() + b"\n")

    def lines(self, seconds):
        """Whole lines that are there or come within that time; nothing more after a hang-up."""
        if select.select([self.fd], [], [], seconds)[0]:
            try:
                self.text += os.read(self.fd, 65536)
            except OSError:
                return []
        *whole, self.text = self.text.split(b"\n")
        return [line.decode() for line in whole]


class Measure:
    """What may grow while a board works."""

    def __init__(self, b):
        pid = b.pid()
        # What most of several looks see: the last request's thread may still be on its way out, or a tty that was closed on its
        # way back.
        looks = collections.Counter()
        for _ in range(25):
            looks[len(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task"))] += 1
            time.sleep(0.02)
        (self.files, self.threads), _ = looks.most_common(1)[0]
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        self.anonymous = int(next(line.split()[1] for line in status.splitlines() if line.startswith("RssAnon")))
        self.mounts = pathlib.Path("/proc/self/mounts").read_text().count(str(b.root))  # others may mount what they like

    def __str__(self):
        return f"{self.files} files, {self.threads} threads, {self.anonymous} KiB, {self.mounts} mounts"


def announcements(b):
    log = next(f for f in lib.boards().glob("*/log") if b.root.as_posix() in (f.parent / "board.json").read_text())
    return sum(f.read_text(errors="replace").count("creating channel") for f in log.parent.glob("log*"))


def runs_in_a_row(tty, count, ending):
    endings = {}
    for i in range(count):
        tty.send(f"@{i} RUN")
        until = time.monotonic() + 60
        while f"@{i}" not in endings:
            check(time.monotonic() < until, f"no reply to run {i}")
            for line in tty.lines(1):
                tag, _, rest = line.partition(" ")
                if rest.startswith(("OK ", "ERR ")):
                    check(tag not in endings, f"doubled: {line}")
                    endings[tag] = rest
    late = [line for line in tty.lines(0.1) if line]
    equal(late, [], "lines that nobody asked for")
    wrong = [rest for rest in endings.values() if not rest.startswith(ending)]
    equal((len(endings), wrong), (count, []), "replies")


def stop_and_start(b, number, ending, cycles, chance):
    tty_path = b.dev / f"ttyRPMSG{number}"
    for i in range(cycles):
        if ending:
            wait_for(tty_path.is_symlink, f"tty in cycle {i}")
            tty = Tty(tty_path)
            for run in range(1 + chance.randrange(4)):
                tty.send(f"@{run} RUN")
            time.sleep(chance.random() * 0.03)
        equal(shell_write("stop", b.remoteproc() / "state"), "", f"stop {i}")
        if ending:
            check(not tty_path.is_symlink(), "the tty is gone")
            tty.close()
        before = announcements(b)
        equal(shell_write("start", b.remoteproc() / "state"), "", f"start {i}")
        if ending:
            try:
                wait_for(lambda: announcements(b) == before + CHANNELS, f"announcement in cycle {i}")
            except AssertionError as error:
                raise AssertionError(f"{error}; trace: {(b.debug() / 'trace0').read_text()}; log: "
                                     f"{lib.talpa('board', 'logs', '--root', b.root, '--lines', 30).stdout}") from error


def soak(quirk, ending, number):
    chance = random.Random(quirk)
    options = [] if quirk == "none" else ["--quirk", quirk]
    if quirk == "attached":
        options += ["--boot", lib.FIRMWARE]
    started = time.monotonic()
    with lib.board("--startup-delay", 0, *options) as b:
        if quirk == "attached":
            equal((b.remoteproc() / "state").read_text(), "attached\n", "state")
            (b.root / "lib/firmware").joinpath("rproc-imx-rproc-fw").write_bytes(lib.FIRMWARE.read_bytes())
        else:
            b.install()
            b.start()
        with open(b.dev / "mem", "r+b", buffering=0) as memory:
            for name, offset in (("ds_cnn_random.pte", 0), ("in0.bin", 0x36D000)):
                memory.seek(0xC0000000 + offset)
                memory.write((GOLDEN / name).read_bytes())
        tty_path = b.dev / f"ttyRPMSG{number}"
        if ending:
            wait_for(tty_path.is_symlink, "tty")
            tty = Tty(tty_path)
            tty.send("PING")
            runs_in_a_row(tty, 5, ending)
            tty.close()
        else:
            time.sleep(0.2)
            check(not tty_path.is_symlink() and announcements(b) == 0, "nothing can be announced")
        stop_and_start(b, number, ending, 5, chance)  # warm
        before = Measure(b)
        if ending:
            wait_for(tty_path.is_symlink, "tty")
            tty = Tty(tty_path)
            tty.send("PING")
            runs_in_a_row(tty, RUNS, ending)
            tty.close()
        between = time.monotonic()
        stop_and_start(b, number, ending, CYCLES, chance)
        if ending:
            wait_for(tty_path.is_symlink, "tty")
            tty = Tty(tty_path)
            tty.send("PING")
            runs_in_a_row(tty, 3, ending)
            tty.close()
        after = Measure(b)
        print(f"  {quirk}: {RUNS if ending else 0} runs in {between - started:.1f} s, {CYCLES} cycles in "
              f"{time.monotonic() - between:.1f} s; before: {before}; after: {after}", flush=True)
        equal((after.files, after.threads, after.mounts), (before.files, before.threads, before.mounts),
              "files, threads, mounts after")
        check(after.anonymous < before.anonymous + 2048 or not lib.MEMORY_TELLS, f"memory grew from {before.anonymous} to {after.anonymous} KiB")
        root = b.root
    check(str(root) not in pathlib.Path("/proc/self/mounts").read_text(), "mounts after the board")


def named(quirk, ending, number):
    test = lambda: soak(quirk, ending, number)
    test.__name__ = quirk
    return test


if not lib.FIRMWARE.exists():
    lib.skip("the firmware is not built (./run build)")
sys.exit(lib.run_all([named(*row) for row in QUIRKS if ONLY in (None, row[0])]))
