#!/usr/bin/env python3
"""docs/board-evidence.md is the table of tests/board_evidence.txt, every test that it names exists, every block of the board has
a row, and each row something that was broken on purpose (tests/mutations.toml, which must still fit the sources; scripts/mutate.py
breaks it); --write makes the page."""
import os
import pathlib
import re
import sys

SOURCE = pathlib.Path(os.environ.get("TALPA_SOURCE", pathlib.Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(SOURCE / "scripts"))
import mutate  # noqa: E402

DATA = SOURCE / "tests/board_evidence.txt"
PAGE = SOURCE / "docs/board-evidence.md"
BLOCKS = ("Cortex-M33", "SysTick, DWT, sleep", "NVIC", "MPU", "Bus", "Messaging Unit", "Vrings", "remoteproc", "Resource table", "tty",
          "NPU registers", "NPU", "Firmware", "GDB stub", "Files of /sys", "/dev/mem", "Quirks", "Namespaces")
HEAD = """# What is proven about the virtual board

Made from `tests/board_evidence.txt` (`tests/board_evidence_test.py --write`). Of the Cortex-M33, [board-cpu.md](board-cpu.md)
has the instruction groups one by one. The last column says what was broken on purpose to see a test of the row fail: it is made
from `tests/mutations.toml`, and `scripts/mutate.py` (`./run soak mutations`) breaks it again.

| block | what is proven | by | seen to fail when |
| --- | --- | --- | --- |
"""


def rows():
    for line in DATA.read_text().splitlines():
        if line and not line.startswith("#"):
            cells = [cell.strip() for cell in line.split("|")]
            assert len(cells) == 4, f"four cells: {line}"
            yield cells


def known_tests():
    """Suite.Name of every gtest in the tree, and the names of the programs that tests/ runs."""
    found = set()
    for folder in ("src", "tests"):
        for file in (SOURCE / folder).rglob("*_test.cpp"):
            found |= {f"{s}.{n}" for s, n in re.findall(r"^TEST(?:_F|_P)?\((\w+), (\w+)\)", file.read_text(), re.M)}
    cmake = "".join(f.read_text() for f in (SOURCE / "tests").rglob("CMakeLists.txt"))
    found |= set(re.findall(r"talpa_python_test\((\w+)", cmake)) | set(re.findall(r"add_executable\((\w+)", cmake))
    return found | {f.stem for f in (SOURCE / "src").rglob("*_fuzz.cpp")}


def main():
    known, complaints, page = known_tests(), [], HEAD
    blocks, shown = set(), set()
    changes = mutate.mutations()
    for change in changes:
        if (why := mutate.mutated(change)[1]) is not None:
            complaints.append(f"tests/mutations.toml: {why}")
        elif not change["file"].endswith(".cpp") or change["old"] == change["new"]:
            complaints.append(f"tests/mutations.toml: '{change['says']}' cannot be done")
    for block, what, tests, broken in rows():
        blocks.add(block)
        mine = [i for i, change in enumerate(changes) if change["block"] == block and change["test"] in tests.split()]
        shown.update(mine)
        broken = "; ".join([broken] * bool(broken) + [changes[i]["says"] for i in mine])
        complaints += [f"{block}: '{what}' was never seen to fail"] * (not broken)
        complaints += [f"{block}: there is no test '{name}'" for name in tests.split() if name not in known]
        page += f"| {block} | {what} | {', '.join(f'`{name}`' for name in tests.split())} | {broken} |\n"
    complaints += [f"tests/mutations.toml: no row of block '{c['block']}' has the test '{c['test']}'"
                   for i, c in enumerate(changes) if i not in shown]
    complaints += [f"no evidence for '{block}'" for block in BLOCKS if block not in blocks]
    if "--write" in sys.argv:
        PAGE.write_text(page)
    elif not PAGE.exists() or PAGE.read_text() != page:
        complaints.append("docs/board-evidence.md is stale: tests/board_evidence_test.py --write")
    print("\n".join(complaints) or "the evidence is there")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
