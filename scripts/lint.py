#!/usr/bin/env python3
"""clang-tidy over the sources, every finding an error (.clang-tidy): ./run lint [--changed] [FILE…]

A file that was clean is not looked at again until it, a header of ours that it includes, or the checks change: build/lint
holds a stamp a file, named after the content of all of these. --changed takes only the sources that differ from the branch
they go to (the merge base with origin/main or main, else the last commit), and those beside a header that does: at most 40
files, so that it stays cheap."""
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
STAMPS = ROOT / "build" / "lint"
TIDY = "clang-tidy-19"
MOST_CHANGED = 40


def git(*arguments):
    ran = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return ran.stdout.split() if ran.returncode == 0 else []


@functools.cache
def includes(path):
    """Our headers that a file names: paths below src/."""
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(errors="replace"), re.MULTILINE)


def closure(path, seen):
    for name in includes(path):
        header = ROOT / "src" / name
        if header not in seen and header.exists():
            seen.add(header)
            closure(header, seen)
    return seen


def prefix(path):
    return str(path.relative_to(ROOT)).replace("/", "+") + "-"


def stamp(path, command, version):
    state = hashlib.sha256(f"{version}\n{command}\n".encode())
    for part in (ROOT / ".clang-tidy", path, *sorted(closure(path, set()))):
        state.update(part.read_bytes())
    return STAMPS / f"{prefix(path)}{state.hexdigest()[:32]}"


def changed():
    head = git("rev-parse", "HEAD")
    for base in ("origin/main", "main"):
        fork = git("merge-base", "HEAD", base)
        if fork and fork != head:
            break
    else:
        fork = git("rev-parse", "HEAD~1")
    names = git("diff", "--name-only", *fork) if fork else []
    wanted = set()
    for name in names:
        path = pathlib.Path(name)
        if path.parts[:1] == ("src",) and path.suffix in (".cpp", ".h"):
            wanted.add(str(path.with_suffix(".cpp")))
    return wanted


def look_at(path):
    ran = subprocess.run([TIDY, "-quiet", "-p", "build/release", "--extra-arg=-Wno-unknown-warning-option", str(path)], cwd=ROOT,
                         capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout + (ran.stderr if ran.returncode else "")


def main():
    database = json.loads((ROOT / "build/release/compile_commands.json").read_text())
    commands = {pathlib.Path(entry["file"]): entry["command"] for entry in database}
    sources = sorted(path for path in commands if ROOT / "src" in path.parents and path.exists())
    arguments = [a for a in sys.argv[1:] if a != "--changed"]
    if arguments:
        wanted = {(pathlib.Path.cwd() / a).resolve() for a in arguments}
        if unknown := sorted(str(path) for path in wanted - set(sources)):
            sys.exit(f"lint: no source of this build: {', '.join(unknown)}")
        sources = [path for path in sources if path in wanted]
    left_out = 0
    if "--changed" in sys.argv:
        names = changed()
        sources = [path for path in sources if str(path.relative_to(ROOT)) in names]
        left_out, sources = max(0, len(sources) - MOST_CHANGED), sources[:MOST_CHANGED]
    if not shutil.which(TIDY):
        sys.exit(f"lint: {TIDY} is not installed; ./run setup installs it")
    version = subprocess.run([TIDY, "--version"], capture_output=True, text=True, check=True).stdout
    STAMPS.mkdir(parents=True, exist_ok=True)
    stamps = {path: stamp(path, commands[path], version) for path in sources}
    todo = [path for path in sources if not stamps[path].exists()]
    started, bad = time.monotonic(), 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, (status, text) in zip(todo, pool.map(look_at, todo)):
            if status == 0:
                for old in STAMPS.glob(f"{prefix(path)}*"):
                    old.unlink()
                stamps[path].touch()
            else:
                bad += 1
                print(text.strip(), flush=True)
    print(f"lint: {len(todo)} of {len(sources)} files looked at in {time.monotonic() - started:.0f} s, the others are as they were when"
          f" they were clean; {bad} with findings" + (f"; {left_out} changed files left out" if left_out else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
