#!/usr/bin/env python3
"""Breaks the board on purpose, one change at a time, and demands that the test that is to notice it goes red.

    scripts/mutate.py [--build build/release] [--list] [WORD…]     only mutations that mention every WORD

tests/mutations.toml is the table. The sources stay as they are: the changed file is compiled beside the build, and the
test program (or talpa, for a test in Python) is linked anew with that object in front of the libraries, which then need
not give theirs. `./run soak mutations` runs all; tests/board_evidence_test.py checks that each still fits its file."""
import argparse
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time
import tomllib

SOURCE = pathlib.Path(__file__).resolve().parent.parent
TABLE = SOURCE / "tests/mutations.toml"
SECONDS = 240  # of one test; a mutation that makes it hang has been noticed
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
SKIPPED = 77


def mutations():
    return tomllib.loads(TABLE.read_text())["mutation"]


def mutated(mutation):
    """The changed text of the file, or why there is none."""
    file = SOURCE / mutation["file"]
    if not file.exists():
        return None, f"{mutation['file']} does not exist"
    text = file.read_text()
    if text.count(mutation["old"]) != 1:
        return None, f"{mutation['file']} has '{mutation['old']}' {text.count(mutation['old'])} times, not once"
    return text.replace(mutation["old"], mutation["new"]), None


class Builder:
    def __init__(self, build):
        self.build = build.resolve()
        self.scratch = self.build.parent / "mutations"
        (self.scratch / "bin").mkdir(parents=True, exist_ok=True)
        commands = json.loads((self.build / "compile_commands.json").read_text())
        self.compiles = {}
        for command in commands:  # the first of a file: its library's
            self.compiles.setdefault(command["file"], command["command"])
        self.ready = set()

    def program(self, target):
        return self.build / "bin" / target

    def prepare(self, target):
        if target not in self.ready:
            subprocess.run(["cmake", "--build", self.build, "--target", target, "-j2"], check=True, stdout=subprocess.DEVNULL)
            self.ready.add(target)

    def changed(self, mutation, text):
        """The program with the changed file in it."""
        source = self.scratch / pathlib.Path(mutation["file"]).name
        source.write_text(text)
        words = shlex.split(self.compiles[str(SOURCE / mutation["file"])])
        object_file = source.with_suffix(".o")
        words[words.index("-o") + 1] = str(object_file)
        words[words.index("-c") + 1] = str(source)
        words.append("-Wno-error")  # what is broken on purpose may well be warned of
        subprocess.run(words, check=True, cwd=self.build, stderr=subprocess.DEVNULL)
        out = subprocess.run(["ninja", "-C", self.build, "-t", "commands", f"bin/{mutation['target']}"], check=True,
                             capture_output=True, text=True).stdout
        link = next(part for part in reversed(out.splitlines()[-1].split(" && ")) if f"-o bin/{mutation['target']} " in part)
        words = shlex.split(link)
        at = words.index("-o")
        program = self.scratch / "bin" / mutation["target"]
        words[at + 1] = str(program)
        words.insert(at, str(object_file))
        subprocess.run(words, check=True, cwd=self.build)
        return program


def run(words, environment):
    """Exit status, or None after SECONDS; what it printed."""
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                             start_new_session=True, env={**os.environ, **environment})
    try:
        text, _ = child.communicate(timeout=SECONDS)
        return child.returncode, text
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        return None, child.communicate()[0]


def test(mutation, program, builder):
    """Exit status (None: it did not end) and output of the mutation's test on that program."""
    if "." in mutation["test"]:
        status, text = run([program, f"--gtest_filter={mutation['test']}", "--gtest_brief=1"],
                           {"TALPA_SOURCE": str(SOURCE)})
        if status == 0 and not re.search(r"\[  PASSED  \] [1-9]\d* test", text):
            status, text = SKIPPED, text or "no such test, or skipped"
    else:
        folder = program.parent.parent
        if folder != builder.build:  # the other programs are the build's
            for other in (builder.build / "bin").iterdir():
                link = program.parent / other.name
                if other.name != program.name and not link.exists():
                    link.symlink_to(other)
        status, text = run([PYTHON, SOURCE / "tests" / f"{mutation['test']}.py"],
                           {"TALPA_BUILD": str(folder), "TALPA_SOURCE": str(SOURCE), "TALPA_TEST": mutation["only"]})
    return status, text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build/release")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    chosen = [m for m in mutations() if all(word in " ".join(map(str, m.values())) for word in options.words)]
    if options.list:
        for m in chosen:
            print(f"{m['block']}: {m['says']} ({m['file']}) -> {m['test']}")
        return 0
    builder = Builder(options.build)
    green, bad = {}, []
    for m in chosen:
        began = time.monotonic()
        name = f"{m['block']}: {m['says']}"
        text, why = mutated(m)
        if why is None:
            builder.prepare(m["target"])
            key = (m["target"], m["test"], m.get("only"))
            if key not in green:
                green[key] = test(m, builder.program(m["target"]), builder)
            status, printed = green[key]
            if status != 0:
                why = f"{m['test']} is not green as it is ({status}): {printed[-1500:]}"
        if why is None:
            try:
                status, printed = test(m, builder.changed(m, text), builder)
            except subprocess.CalledProcessError as error:
                status, printed = SKIPPED, f"not built: {error}"
            if status == 0:
                why = f"{m['test']} stayed green"
            elif status == SKIPPED:
                why = f"{m['test']} was skipped: {printed[-500:]}"
        print(f"{'red ' if why is None else 'BAD '} {name} [{m['test']}] {time.monotonic() - began:.0f} s"
              f"{'' if why is None else ': ' + why}", flush=True)
        bad += [name] if why else []
    print(f"{len(chosen) - len(bad)} of {len(chosen)} mutations were noticed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
