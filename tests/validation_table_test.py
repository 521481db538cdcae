#!/usr/bin/env python3
"""Every check of docs/formats/pte.md (V1 to V38) names tests, and those tests exist."""
import os
import pathlib
import re
import sys

SOURCE = pathlib.Path(os.environ.get("TALPA_SOURCE", pathlib.Path(__file__).resolve().parent.parent))
CHECKS = 38


def main():
    tests = set()
    for folder in ("src/pte", "src/runtime"):
        for path in (SOURCE / folder).rglob("*_test.cpp"):
            tests |= {f"{a}.{b}" for a, b in re.findall(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", path.read_text(), re.M)}
    bad, seen = [], set()
    for line in (SOURCE / "docs/formats/pte.md").read_text().splitlines():
        row = re.match(r"\| V(\d+) \|.*\|(.*)\|$", line)
        if not row:
            continue
        seen.add(int(row.group(1)))
        names = re.findall(r"`([^`]+)`", row.group(2))
        if not names:
            bad.append(f"V{row.group(1)} names no test")
        bad += [f"V{row.group(1)} names {name}, which is no test" for name in names if name not in tests]
    bad += [f"V{n} is missing from the table" for n in range(1, CHECKS + 1) if n not in seen]
    print("\n".join(bad) or f"{len(seen)} checks have their tests")
    return 1 if bad else 0


sys.exit(main())
