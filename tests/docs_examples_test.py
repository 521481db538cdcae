#!/usr/bin/env python3
"""The examples in README.md and docs/: every line that begins with "$ " in a block marked `console` is run by a shell in an
empty folder that has links to tests/ and docs/. What the page shows after it must be what comes out; "…" stands for anything.
A comment "# status N" says that the command ends with N. Every other block is in tests/docs_examples.txt: run on a board, or not
run with the reason; of those the flags that they give to our programs must be in the programs' own help."""
import functools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from talpa_test import BUILD, SOURCE


PROGRAMS = ("talpa", "topo", "talpa-webapp", "remoteproc-runtime")


def examples(text):
    """(command, expected status, expected output) of each command in a page."""
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, output = part.partition("\n")
            status = re.search(r"\s+# status (\d+)$", line)
            yield re.sub(r"\s+# status \d+$", "", line), int(status[1]) if status else 0, output


def fits(expected, got):
    pattern = "".join(".*" if part == "…" else re.escape(part) for part in re.split("(…)", expected))
    return re.fullmatch(pattern, got, re.DOTALL) is not None


def other_blocks(text):
    """Fenced blocks that are not marked console, and indented ones."""
    yield from (body for kind, body in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL) if kind != "console")
    bare = re.sub(r"^```\w*\n.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for block in re.findall(r"(?<=\n\n)((?:    .*\n)+)", bare):
        yield re.sub("^    ", "", block, flags=re.MULTILINE)


@functools.cache
def help_of(words):
    ran = subprocess.run([BUILD / "bin" / words[0], *words[1:], "--help"], capture_output=True, text=True, check=False)
    return ran.stdout + ran.stderr


def unknown_flags(block):
    """(command, flag) that the program's help does not have. Commands go on in indented or bracketed lines."""
    for line in re.sub(r"\n +(?=[\[(-])", " ", block).splitlines():
        words = line.partition("#")[0].split()
        if not words or words[0] not in PROGRAMS or not (BUILD / "bin" / words[0]).exists():
            continue
        depth = 1
        while depth < min(3, len(words)) and re.fullmatch(r"[a-z][a-z-]+", words[depth]) and words[0] != "talpa-webapp":
            depth += 1
        helps = "".join(help_of(tuple(words[:d])) for d in range(1, depth + 1))
        for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]+", " ".join(words).partition(" -- ")[0]):
            if not re.search(re.escape(flag) + r"(?![\w-])", helps):
                yield " ".join(words[:depth]), flag


def run_on_a_board(page, block):
    """A block of commands as a reader pastes it. None when it did what it should, else what came."""
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse") or not (SOURCE / "build/firmware/executorch_runner_cm33.elf").exists():
        print(f"{page}: a block was not run: it wants root, /dev/fuse and the firmware")
        return None
    with tempfile.TemporaryDirectory(prefix="docs-boards-") as boards:
        environment = {**os.environ, "PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}", "TALPA_BOARDS": boards}
        ran = subprocess.run(["bash", "-e", "-c", block], cwd=SOURCE, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, timeout=240, check=False)
        if ran.returncode != 0:
            subprocess.run([BUILD / "bin/talpa", "board", "down", "--all"], env=environment, capture_output=True, check=False)
        return None if ran.returncode == 0 else f"status {ran.returncode}\n{ran.stdout}"


def check_other_blocks(pages):
    """(blocks, failures) of all that is not `console`."""
    listed = [line.split("|", 2) for line in (SOURCE / "tests/docs_examples.txt").read_text().splitlines() if line and not line.startswith("#")]
    count, failed, used = 0, 0, set()
    for page in pages:
        name = str(page.relative_to(SOURCE))
        for block in other_blocks(page.read_text()):
            count += 1
            rows = [i for i, (where, start, _) in enumerate(listed) if where == name and block.startswith(start)]
            if not rows:
                failed += 1
                print(f"{name}: a block that is neither `console` nor in tests/docs_examples.txt:\n{block}")
                continue
            used.update(rows)
            problems = [f"{command} has no {flag}" for command, flag in unknown_flags(block)]
            if listed[rows[0]][2] == "run" and (came := run_on_a_board(name, block)):
                problems.append(came)
            failed += len(problems)
            for problem in problems:
                print(f"{name}: {problem}")
    for i, row in enumerate(listed):
        if i not in used:
            failed += 1
            print(f"tests/docs_examples.txt: no block of {row[0]} begins with '{row[1]}'")
    return count, failed


def main():
    assert fits("a …\nc\n", "a b\nc\n") and not fits("a …\nc\n", "a b\nd\n")
    assert list(unknown_flags("talpa run x.pte --no-such-flag 3\n")) == [("talpa run", "--no-such-flag")]
    pages = [SOURCE / "README.md", *sorted((SOURCE / "docs").rglob("*.md"))]
    count, failed = 0, 0
    with tempfile.TemporaryDirectory() as name:
        for link in ("tests", "docs"):
            (pathlib.Path(name) / link).symlink_to(SOURCE / link)
        environment = {**os.environ, "PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
        for page in pages:
            for command, status, expected in examples(page.read_text()):
                ran = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=name, env=environment, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, text=True, check=False)
                count += 1
                if ran.returncode != status or not fits(expected, ran.stdout):
                    failed += 1
                    print(f"{page.relative_to(SOURCE)}: $ {command}\n  status {ran.returncode}, wanted {status}\n--- shown\n{expected}--- came\n{ran.stdout}")
    blocks, bad = check_other_blocks(pages)
    failed += bad
    print(f"{count} examples and {blocks} other blocks, {failed} failed")
    return 1 if failed or count == 0 else 0


sys.exit(main())
