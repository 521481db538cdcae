#!/usr/bin/env python3
"""The evidence table in docs/board-cpu.md is the one that m33_differential prints; --write puts it there."""
import os
import pathlib
import subprocess
import sys

source = pathlib.Path(os.environ.get("TALPA_SOURCE", pathlib.Path(__file__).parent.parent))
build = pathlib.Path(os.environ.get("TALPA_BUILD", source / "build" / "release"))
program = build / "bin" / "m33_differential"
if not program.exists():
    print("m33_differential is not built (no unicorn)")
    sys.exit(77)
table = subprocess.run([program, "--table"], check=True, stdout=subprocess.PIPE, text=True).stdout
page = source / "docs" / "board-cpu.md"
text = page.read_text()
begin, end = "<!-- generated: m33_differential --table -->\n", "<!-- end -->\n"
head, rest = text.split(begin)
_, tail = rest.split(end)
fresh = head + begin + table + end + tail
if "--write" in sys.argv:
    page.write_text(fresh)
elif fresh != text:
    print("docs/board-cpu.md: the evidence table is stale; tests/m33_evidence_test.py --write")
    sys.exit(1)
print("the evidence table is up to date")
