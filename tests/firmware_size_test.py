#!/usr/bin/env python3
"""Sizes on the Cortex-M33, which are budgets:
- executorch_runner_cm33.elf: code and constants at most 64 KiB; initialised data, zeroed data and stack (there is no heap) at
  most 48 KiB;
- of it reader + executor + Ethos-U delegate (with the scan of its stream) + quantize/dequantize, linked into a probe of their
  own with the C library's few functions and the compiler's support: 40 KiB of code, 20 KiB of message texts and tables.

--print ELF shows a table, --renew writes both to tests/golden/firmware_size.txt; as a test it compares the firmware build
with the budgets and says which part grew since the committed tables.
"""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(os.environ.get("TALPA_SOURCE", pathlib.Path(__file__).resolve().parent.parent))
TABLE = SOURCE / "tests/golden/firmware_size.txt"
BUILD = SOURCE / "build/firmware"
NM, SIZE = "arm-none-eabi-nm", "arm-none-eabi-size"

CODE = (".text",)
CONSTANTS = (".interrupts", ".resource_table", ".rodata")
RAM = (".data", ".bss", ".stack")
# program: file, then what is budgeted: name, sections, bytes
PROGRAMS = {
    "firmware": (BUILD / "executorch_runner_cm33.elf",
                 (("code and constants", CODE + CONSTANTS, 64 * 1024), ("data and stack", RAM, 48 * 1024))),
    "probe": (BUILD / "bin/talpa_size_probe.elf",
              (("code", CODE, 40 * 1024), ("constants", CONSTANTS, 20 * 1024))),
}
PARTS = ("firmware", "link", "npu", "pte", "runtime::operators", "runtime")


def part_of(name):
    """The part of talpa that a demangled function belongs to; link-time inlining moves small ones into their callers."""
    for part in PARTS:
        if f"talpa::{part}::" in name.split("(")[0] or name.startswith(f"talpa::{part}::"):
            return f"code: {part}"
    return "code: base, C library, compiler support, and what was inlined there"


def sections(elf):
    out = subprocess.run([SIZE, "-A", elf], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in out.splitlines()]
    return {row[0]: int(row[1]) for row in rows if len(row) == 3 and row[0].startswith(".")}


def measure(elf):
    """Bytes of every section and of every part; the parts add up to the sections."""
    loaded = sections(elf)
    out = subprocess.run([NM, "-S", "-C", "--defined-only", elf], check=True, capture_output=True, text=True).stdout
    sizes = collections.Counter()
    seen = set()
    sentences = 0
    for line in out.splitlines():
        fields = line.split(maxsplit=3)
        if len(fields) != 4 or fields[0] in seen:  # aliases share an address
            continue
        seen.add(fields[0])
        if "PackedSentence" in fields[3]:
            sentences += int(fields[1], 16)
        elif fields[2].lower() in "tw":
            sizes[part_of(fields[3])] += int(fields[1], 16)
    sizes["code: literals and padding"] = loaded[".text"] - sum(sizes.values())
    sizes["constants: messages, packed"] = sentences
    sizes["constants: tables, names and other texts"] = loaded.get(".rodata", 0) - sentences
    sizes["constants: vectors and resource table"] = sum(loaded.get(s, 0) for s in (".interrupts", ".resource_table"))
    for name in RAM:
        sizes[f"RAM: {name}"] = loaded.get(name, 0)
    return loaded, sizes


def total(loaded, names):
    return sum(loaded.get(name, 0) for name in names)


def table(program, loaded, sizes):
    rows = [f"{size:7} {program}: {name}" for name, size in sorted(sizes.items(), key=lambda item: -item[1]) if size]
    return "\n".join(rows) + "\n"


def self_check(loaded):
    """A part that grows, and a budget that is passed, are noticed."""
    assert grown({"x": 5}, {"x": 4}) == ["  grew: x 4 -> 5"] and grown({"x": 5}, {"x": 5}) == []
    assert over("p", loaded, (("all", CODE, 0),)) and not over("p", loaded, (("all", CODE, 1 << 30),))


def grown(now, before):
    return [f"  grew: {name} {before.get(name, 0)} -> {size}" for name, size in now.items() if size > before.get(name, 0)]


def over(program, loaded, budgets):
    return [f"{program}: {total(loaded, names)} bytes of {what} are {total(loaded, names) - most} more than the budget of {most}"
            for what, names, most in budgets if total(loaded, names) > most]


def told(loaded):
    """What docs/firmware.md says the firmware takes must be so within 1 KiB; else the line to correct."""
    page = (SOURCE / "docs/firmware.md").read_text()
    for row, names in (("code and constants", CODE + CONSTANTS), ("zeroed data and stack", RAM)):
        said = int(re.search(rf"^\| {row}[^|]*\| ([0-9,]+) \|", page, re.MULTILINE)[1].replace(",", ""))
        if abs(said - total(loaded, names)) > 1024:
            yield f"docs/firmware.md says {said} bytes of {row}; there are {total(loaded, names)}"


def main():
    if "--print" in sys.argv:
        print(table(pathlib.Path(sys.argv[-1]).stem, *measure(sys.argv[-1])), end="")
        return 0
    if not shutil.which(NM):
        print("skipped: arm-none-eabi-gcc is not installed")
        return 77
    before = {}
    if TABLE.exists():
        before = {name: int(size) for size, name in (line.split(maxsplit=1) for line in TABLE.read_text().splitlines())}
    fresh, bad = "", []
    for program, (elf, budgets) in PROGRAMS.items():
        if not elf.exists():
            print(f"{elf} is missing: build it with 'cmake --preset firmware && cmake --build --preset firmware'")
            return 1
        loaded, sizes = measure(elf)
        self_check(loaded)
        bad += told(loaded) if program == "firmware" else []
        fresh += table(program, loaded, sizes)
        for what, names, most in budgets:
            print(f"{program}: {total(loaded, names)} bytes of {what}, budget {most}")
        print(table(program, loaded, sizes), end="")
        print("\n".join(grown({f"{program}: {name}": size for name, size in sizes.items()}, before)))
        bad += over(program, loaded, budgets)
        bad += [f"{program}: {name} has {loaded[name]} bytes: no static constructors, no initialised data"
                for name in (".data", ".init_array", ".ctors") if loaded.get(name, 0)]
    if "--renew" in sys.argv:
        TABLE.write_text(fresh)
    print("\n".join(bad) or "within the budgets")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
