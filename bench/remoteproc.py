#!/usr/bin/env python3
"""Firmware as a container: time and memory of our runtime and shim, side by side with another implementation of the same
names where its folder is given. Time: create until sysfs reads `running`, then kill until `offline`, then delete (the
original's `start` returns before the core runs), of one container and of all cores' containers one after the other. Both take
turns, in changing order and on changing cores, so that what else the machine does hits both; the ratio is that of each turn's two
times, and its interval says whether the rounds were enough. Memory: what the container's processes add, as PSS and as resident set.

  bench/remoteproc.py [--bin DIR] [--peer DIR] [--containerd DIR] [--rounds N] [--containers N] [--no-memory]"""
import argparse
import os
import pathlib
import random
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
        time.sleep(0.002)  # a look costs the board time as well
    return True


def crowd(w, count, lost):
    """The same for containers on all cores, each step for all of them before the next; per container. Waiting for starts that
    were lost does not count."""
    bundles = [w.bundle(name=f"core{index}") for index in range(count)]
    began, in_vain = time.monotonic(), 0.0
    for index in range(count):
        w.ok("create", "--bundle", bundles[index], f"w{index}")
        w.ok("start", f"w{index}")
    for index in range(count):
        asked = time.monotonic()
        if not reached(w, index, "running"):
            in_vain += time.monotonic() - asked
            lost.append(index)
    for index in range(count):
        w.call("kill", f"w{index}")
    assert all(reached(w, index, "offline") for index in range(count))
    for index in range(count):
        w.call("delete", f"w{index}")
    took = 1000 * (time.monotonic() - began - in_vain) / count
    for index in range(count):
        w.call("delete", "--force", f"w{index}")
    return took


def take_turns(worlds, rounds, measure):
    """{name: [ms or None, …]}: one of each a round, the first to go changes."""
    times = {name: [] for name in worlds}
    for number in range(rounds):
        for name in sorted(worlds, reverse=number % 2 == 1):
            times[name].append(measure(worlds[name], number))
    return times


def show_times(what, times):
    for name, all_of in times.items():
        if lost := all_of.count(None):
            print(f"{name}: {lost} of {len(all_of)} times a start was lost; these do not count")
    known = {name: [t for t in all_of if t is not None] for name, all_of in times.items()}
    for word, figure in (("median", statistics.median), ("best", min)):
        print(f"{f'{what}, {word} (ms)':32}" + "".join(f"{figure(t) if t else float('nan'):12.1f}" for t in known.values()))
    if len(times) == 2:
        ratios = [a / b for a, b in zip(*times.values()) if a is not None and b is not None]
        if len(ratios) >= 5:
            rng = random.Random(1)
            means = sorted(statistics.median(rng.choices(ratios, k=len(ratios))) for _ in range(1000))
            ours, theirs = (statistics.median(t for t in all_of if t is not None) for all_of in times.values())
            print(f"figure: remoteproc-runtime, {what} (peer: Arm's) | {ours:.0f} ms | {theirs:.0f} ms | {statistics.median(ratios):.2f}")
            print(f"{f'{what}, ratio':32}{statistics.median(ratios):12.2f}   (95 % of resamplings: {means[25]:.2f} to {means[974]:.2f})")


def memory_figure(what, kib):
    """A row of ./run bench's last table: KiB of ours and, where it got there, of the peer's."""
    ours, theirs = kib["talpa"], kib.get("peer")
    if ours:
        print(f"figure: {what} (peer: Arm's) | {ours} KiB | " + (f"{theirs} KiB | {ours / theirs:.2f}" if theirs else "- | -"))


def turns_header(folders):
    print(f"{'':32}" + "".join(f"{name:>12}" for name in folders), flush=True)


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
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--containers", type=int, default=50)
    parser.add_argument("--no-memory", action="store_true", help="times only")
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
    turns_header(folders)
    show_times("cycle", take_turns(worlds, options.rounds, lambda w, number: cycle(w, number % options.containers)))
    if options.containers > 1:
        lost = {id(w): [] for w in worlds.values()}
        rounds = max(options.rounds // 25, 1)
        show_times(f"{options.containers} containers, each",
                   take_turns(worlds, rounds, lambda w, _: crowd(w, options.containers, lost[id(w)])))
        for name, w in worlds.items():
            if lost[id(w)]:
                print(f"{name}: {len(lost[id(w)])} of {rounds * options.containers} starts were lost")
    if options.no_memory:
        here.close()
        return 0
    for count in sorted({1, options.containers}):
        sizes = {name: cli_memory(w, count) for name, w in worlds.items()}
        for which, label in ((0, "PSS"), (1, "RSS")):
            print(f"{f'{count} by hand, {label} (KiB)':32}" + "".join(f"{sizes[name][which]:12}" for name in folders))
        memory_figure(f"container by hand, PSS of {count}", {name: size[0] for name, size in sizes.items()})
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
                    print(f"{f'{count} {label}, {kind} (KiB)':32}" +
                          "".join(f"{rows[name][part][which] if rows[name] else '-':>12}" for name in folders))
            memory_figure(f"shim and proxy, PSS of {count}", {name: row and row[0][0] + row[1][0] for name, row in rows.items()})
    here.close()
    return 0


sys.exit(main())
