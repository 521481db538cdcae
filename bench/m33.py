#!/usr/bin/env python3
"""The simulated Cortex-M33 against qemu-system-arm (TCG, machine mps2-an505) on the same CoreMark-like binary.

usage: bench/m33.py [ITERATIONS] [ROUNDS]      (after ./run build; qemu-system-arm must be installed)

The two run in turn, ROUNDS times; what counts is processor time (user + system), the least of the rounds, so that other
load on the machine matters little. qemu's start-up is measured with one iteration and taken off, ours likewise. Goal: ratio
at most 1.0; required: at most 3.
"""
import os
import pathlib
import resource
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).parent.parent
BUILD = pathlib.Path(os.environ.get("TALPA_BUILD", ROOT / "build" / "release"))


def ours(elf, iterations, *options):
    return [str(BUILD / "bin" / "m33_run"), *options, str(elf), str(iterations)]


def qemu(elf, iterations):
    return ["qemu-system-arm", "-M", "mps2-an505", "-display", "none", "-serial", "none", "-monitor", "none",
            "-semihosting-config", f"enable=on,target=native,arg=program,arg={iterations}", "-kernel", str(elf)]


def measure(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    answer = next((line for line in run.stdout.splitlines() if line.startswith("checksum")), None)
    if run.returncode != 0 or answer is None:
        sys.exit(f"m33 bench: {' '.join(command)} failed:\n{run.stdout}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, answer


def main():
    iterations = int(sys.argv[1]) if len(sys.argv) > 1 else 20000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    if shutil.which("qemu-system-arm") is None:
        sys.exit("m33 bench: qemu-system-arm is missing: apt-get install qemu-system-arm")
    print(f"Cortex-M33, CoreMark-like program, {iterations} iterations: seconds of processor time, least of {rounds}")
    print(f"{'build':8}{'qemu':>9}{'talpa':>9}{'ratio':>8}{'interpreted':>13}{'ratio':>8}")
    worst = 0.0
    for level in ("O0", "Os", "O3"):
        elf = BUILD / "tests" / "m33" / f"workload_{level}.elf"
        commands = {"qemu": lambda n: qemu(elf, n), "talpa": lambda n: ours(elf, n), "interpreted": lambda n: ours(elf, n, "--interpret")}
        best = {}
        answers = set()
        for _ in range(rounds):
            for name, command in commands.items():
                seconds, answer = measure(command(iterations))
                start, _ = measure(command(1))
                answers.add(answer)
                best[name] = min(best.get(name, 1e9), seconds - start)
        if len(answers) != 1:
            sys.exit(f"m33 bench: -{level}: answers differ: {answers}")
        ratio = best["talpa"] / best["qemu"]
        worst = max(worst, ratio)
        print(f"-{level:7}{best['qemu']:9.2f}{best['talpa']:9.2f}{ratio:8.2f}{best['interpreted']:13.2f}{best['interpreted'] / best['qemu']:8.2f}")
        print(f"figure: Cortex-M33 simulator, -{level} (peer: qemu) | {best['talpa']:.2f} s | {best['qemu']:.2f} s | {ratio:.2f}")
    print(f"worst ratio {worst:.2f} (goal 1.0, required 3)")
    return 0 if worst <= 3 else 1


sys.exit(main())
