#!/usr/bin/env python3
"""The examples in README.md and docs/: every line that begins with "$ " in a block marked `console` is run by a shell in an
empty folder that has links to tests/ and docs/. What the page shows after it must be what comes out; "…" stands for anything.
A comment "# status N" says that the command ends with N."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from talpa_test import BUILD, SOURCE


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


def main():
    assert fits("a …\nc\n", "a b\nc\n") and not fits("a …\nc\n", "a b\nd\n")
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
    print(f"{count} examples, {failed} failed")
    return 1 if failed or count == 0 else 0


sys.exit(main())
