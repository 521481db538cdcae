#!/usr/bin/env python3
"""Code of reader + executor + Ethos-U delegate (with the scan of its stream) + quantize/dequantize on the Cortex-M33: at
most 40 KiB, everything counted that is linked: the C library's few functions and the compiler's support as well. The texts
of the error messages and the tables have a budget of their own.

--print ELF shows the table, --renew writes it to tests/golden/firmware_size.txt; as a test it compares the probe of the
firmware build with the budgets and says which part grew since the committed table.
"""
import collections
import os
import pathlib
import shutil
import subprocess
import sys

CODE_BUDGET = 40 * 1024
CONSTANTS_BUDGET = 20 * 1024
SOURCE = pathlib.Path(os.environ.get("TALPA_SOURCE", pathlib.Path(__file__).resolve().parent.parent))
TABLE = SOURCE / "tests/golden/firmware_size.txt"
ELF = SOURCE / "build/firmware/bin/talpa_size_probe.elf"
NM = "arm-none-eabi-nm"


def part_of(name):
    """The part of talpa that a demangled function belongs to; link-time inlining moves small ones into their callers."""
    for part in ("npu", "pte", "runtime::operators", "runtime"):
        if f"talpa::{part}::" in name.split("(")[0] or name.startswith(f"talpa::{part}::"):
            return f"code: {part}"
    return "code: base, C library, compiler support, and what was inlined into the probe"


def sections(elf):
    out = subprocess.run([NM.replace("nm", "size"), "-A", elf], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in out.splitlines()]
    return {row[0]: int(row[1]) for row in rows if len(row) == 3 and row[0].startswith(".")}


def measure(elf):
    """Bytes of every part, in a table that adds up."""
    loaded = sections(elf)
    out = subprocess.run([NM, "-S", "-C", "--defined-only", elf], check=True, capture_output=True, text=True).stdout
    sizes = collections.Counter()
    seen = set()
    for line in out.splitlines():
        fields = line.split(maxsplit=3)
        if len(fields) == 4 and fields[2].lower() in "tw" and fields[0] not in seen:  # aliases share an address
            seen.add(fields[0])
            sizes[part_of(fields[3])] += int(fields[1], 16)
    sizes["code: literals and padding"] = loaded[".text"] - sum(sizes.values())
    sizes["constants: message texts and tables"] = loaded.get(".rodata", 0)
    return loaded, sizes


def table(loaded, sizes):
    rows = [f"{size:7} {name}" for name, size in sorted(sizes.items(), key=lambda item: -item[1])]
    return "\n".join(rows + [f"{loaded['.text']:7} all code"]) + "\n"


def main():
    if "--print" in sys.argv:
        loaded, sizes = measure(sys.argv[-1])
        print(f"reader, executor, delegate and quantize on the M33: {loaded['.text']} bytes of code, budget {CODE_BUDGET}:")
        print(table(loaded, sizes), end="")
        return 0
    if not shutil.which(NM):
        print("skipped: arm-none-eabi-gcc is not installed")
        return 77
    if not ELF.exists():
        print(f"{ELF} is missing: build it with 'cmake --preset firmware && cmake --build --preset firmware'")
        return 1
    loaded, sizes = measure(ELF)
    if "--renew" in sys.argv:
        TABLE.write_text(table(loaded, sizes))
    print(table(loaded, sizes), end="")
    before = {name: int(size) for size, name in (line.split(maxsplit=1) for line in TABLE.read_text().splitlines())}
    for name, size in sizes.items():
        if size > before.get(name, 0):
            print(f"  grew: {name} {before.get(name, 0)} -> {size}")
    bad = [f"{name} has {loaded[name]} bytes: no static constructors, no initialised data"
           for name in (".data", ".init_array", ".ctors") if loaded.get(name, 0)]
    for what, size, budget in (("code", loaded[".text"], CODE_BUDGET), ("constants", sizes["constants: message texts and tables"], CONSTANTS_BUDGET)):
        if size > budget:
            bad.append(f"{size} bytes of {what} are {size - budget} more than the budget of {budget}")
    print("\n".join(bad) or "within the budgets")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
