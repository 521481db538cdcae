#!/usr/bin/env python3
"""Firmware as a container: time and memory of our runtime and shim, side by side with another implementation of the same
names where its folder is given. Time: create until sysfs reads `running`, then kill until `offline`, then delete (the
original's `start` returns before the core runs). Memory: what the container's processes add, as PSS and as resident set.

  bench/remoteproc.py [--bin DIR] [--peer DIR] [--rounds N] [--containers N]"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "remoteproc"))
import board  # noqa: E402
import engines  # noqa: E402
import scenarios  # noqa: E402


def memory(pids):
    """(PSS, RSS) in KiB of some processes together."""
    pss = rss = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup") as file:
                for line in file:
                    pss += int(line.split()[1]) if line.startswith("Pss:") else 0
                    rss += int(line.split()[1]) if line.startswith("Rss:") else 0
        except OSError:
            pass
    return pss, rss


def cycle(w, index=0):
    name, bundle = f"b{index}", w.bundle(name=f"core{index}")
    began = time.monotonic()
    w.ok("create", "--bundle", bundle, name)
    w.ok("start", name)
    if not reached(w, index, "running"):  # the original loses a start now and then (remoteproc-runtime, section 6)
        w.call("kill", name)
        w.call("delete", "--force", name)
        return None
    w.ok("kill", name)
    assert reached(w, index, "offline")
    w.ok("delete", name)
    return 1000 * (time.monotonic() - began)


def reached(w, index, word, timeout=3):
    until = time.monotonic() + timeout
    while w.board.state(index) != word:
        if time.monotonic() > until:
            return False
        time.sleep(0.0005)
    return True


def cli_memory(w, count):
    for index in range(count):
        w.ok("create", "--bundle", w.bundle(name=f"core{index}"), f"m{index}")
        w.ok("start", f"m{index}")
        w.board.wait_state("running", 3, index)
    time.sleep(6)  # the quick polling after a start is over
    pids = [p for p in w.proxies()]
    sizes = memory(pids)
    for index in range(count):
        w.call("kill", f"m{index}")
    time.sleep(0.3)
    for index in range(count):
        w.call("delete", f"m{index}")
    return sizes


def shim_memory(w, folder, containerd, count):
    for index in range(count):
        containerd.call("run", "-d", "--runtime", "io.containerd.remoteproc.v1", "--annotation", f"remoteproc.name=core{index}",
                        "localhost/fw:latest", f"s{index}")
    time.sleep(6)
    shims = engines.processes("containerd-shim-remoteproc-v1")
    proxies = w.proxies()
    shim, proxy = memory(shims), memory(proxies)
    for index in range(count):
        containerd.call("tasks", "kill", f"s{index}", check=False)
    time.sleep(1)
    for index in range(count):
        containerd.call("tasks", "rm", "-f", f"s{index}", check=False)
        containerd.call("containers", "rm", f"s{index}", check=False)
    return shim, proxy


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=str(ROOT / "build/release/bin"))
    parser.add_argument("--peer")
    parser.add_argument("--containerd", help="folder of another containerd; the original needs 1.7 or later")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--containers", type=int, default=50)
    options = parser.parse_args()
    if (why := board.possible()) is not None:
        print("skipped:", why)
        return 77
    here = board.Board([f"core{index}" for index in range(max(options.containers, 1))])
    here.ctl(*[f"{index} boot-ms 20" for index in range(options.containers)])
    folders = {"talpa": options.bin}
    if options.peer:
        folders["peer"] = options.peer
    worlds = {name: scenarios.World(here, os.path.realpath(folder) + "/remoteproc-runtime") for name, folder in folders.items()}
    times = {name: [] for name in folders}
    for _ in range(options.rounds):  # interleaved, so that what else the machine does hits both
        for name, w in worlds.items():
            times[name].append(cycle(w))
    for name in folders:
        lost = times[name].count(None)
        times[name] = [t for t in times[name] if t is not None]
        if lost:
            print(f"{name}: {lost} of {options.rounds} starts were lost and do not count")
    print(f"{'':24}" + "".join(f"{name:>12}" for name in folders))
    print(f"{'cycle, median (ms)':24}" + "".join(f"{statistics.median(times[name]):12.1f}" for name in folders))
    print(f"{'cycle, best (ms)':24}" + "".join(f"{min(times[name]):12.1f}" for name in folders))
    for count in sorted({1, options.containers}):
        sizes = {name: cli_memory(w, count) for name, w in worlds.items()}
        for which, label in ((0, "PSS"), (1, "RSS")):
            print(f"{f'{count} by hand, {label} (KiB)':24}" + "".join(f"{sizes[name][which]:12}" for name in folders))
    if options.containerd or engines.have("containerd", "ctr"):
        for count in sorted({1, options.containers}):
            rows = {}
            for name, folder in folders.items():
                c = engines.Containerd(os.path.realpath(folder), options.containerd, name=f"ctrd-bench-{name}")
                try:
                    c.import_image("/run/fw.tar", "localhost/fw:latest", scenarios.elf())
                    rows[name] = shim_memory(worlds[name], folder, c, count)
                except AssertionError as problem:
                    rows[name] = None
                    print(f"{name}: {str(problem)[:200]}")
                finally:
                    c.stop()
            for part, label in ((0, "shim"), (1, "proxy")):
                for which, kind in ((0, "PSS"), (1, "RSS")):
                    print(f"{f'{count} {label}, {kind} (KiB)':24}" +
                          "".join(f"{rows[name][part][which] if rows[name] else '-':>12}" for name in folders))
    here.close()
    return 0


sys.exit(main())
