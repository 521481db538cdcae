#!/usr/bin/env python3
"""topo's start-up, memory and commands, beside the original where its path is given, alternating in one run.

  bench/topo.py [--original PATH] [--target USER@HOST --project FOLDER] [--runs N]

Without a target only what needs none is measured. With one, the project must be deployed there already: `health`, `ps` and an
unchanged `deploy` are timed."""
import argparse
import os
import pathlib
import statistics
import subprocess
import time

OURS = pathlib.Path(__file__).parent.parent / "build/release/bin/topo"


def memory(program, words, folder):
    """KiB, by time(1): a child of this Python would be charged with Python's own."""
    ran = subprocess.run(["/usr/bin/time", "-f", "%M", program, *words], capture_output=True, text=True, cwd=folder)
    return int(ran.stderr.split()[-1])


def run(program, words, folder):
    """Seconds of the wall clock and of the processor."""
    null = os.open(os.devnull, os.O_RDWR)
    actions = [(os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)]
    here = os.getcwd()
    os.chdir(folder)
    started = time.monotonic()
    pid = os.posix_spawn(program, [program, *words], os.environ, file_actions=actions)
    _, status, usage = os.wait4(pid, 0)
    wall = time.monotonic() - started
    os.chdir(here)
    os.close(null)
    return wall, usage.ru_utime + usage.ru_stime, os.waitstatus_to_exitcode(status)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--original", default=os.environ.get("TOPO_ORIGINAL"))
    parser.add_argument("--target", default=os.environ.get("TOPO_TARGET"))
    parser.add_argument("--project", default=".")
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    programs = {"topo": str(OURS.resolve())} | ({"original": options.original} if options.original else {})
    commands = {"--version": (["--version"], options.runs), "deploy --help": (["deploy", "--help"], options.runs)}
    if options.target:
        few = max(3, options.runs // 4)
        for name, words in {"health": ["health"], "ps": ["ps"], "deploy, unchanged": ["deploy"]}.items():
            commands[name] = ([*words, "--target", options.target], few)
    print(f"{'command':<20} {'program':<10} {'wall ms':>9} {'best':>8} {'CPU ms':>8} {'MiB':>6}  status")
    for name, (words, runs) in commands.items():
        results = {program: [] for program in programs}
        for _ in range(runs):  # alternating, so that both see the same machine
            for program, path in programs.items():
                results[program].append(run(path, words, options.project))
        for program, rows in results.items():
            walls = [r[0] * 1000 for r in rows]
            print(f"{name:<20} {program:<10} {statistics.median(walls):>9.2f} {min(walls):>8.2f} {statistics.median(r[1] * 1000 for r in rows):>8.2f} "
                  f"{memory(programs[program], words, options.project) / 1024:>6.1f}  {rows[-1][2]}")


main()
