#!/usr/bin/env python3
"""The firmware ELF against what the board's Linux accepts: every PT_LOAD by its physical address inside a TCM and strictly
below the window's end, none empty, the resource table well-formed and small enough to leave the trace buffer alone, the
vector table where the boot address says. (imx93-remoteproc, sections 1.2, 1.3 and 2.2)"""
import os
import pathlib
import struct
import sys

CODE_TCM = (0x0FFE0000, 0x10000000)
DATA_TCM = (0x20000000, 0x20020000)
VENDOR_DATA_END = 0x20003000  # up to there the data TCM is the vendor's suspend code's
LIVE_TABLE_BYTES = 0x200


def parse(data):
    assert data[:7] == b"\x7fELF\x01\x01\x01", "not a little-endian ELF32"
    kind, machine, _, entry, phoff, shoff = struct.unpack_from("<HHIIII", data, 16)
    phentsize, phnum, shentsize, shnum, shstrndx = struct.unpack_from("<HHHHH", data, 42)
    assert (kind, machine) == (2, 40), "not an Arm executable"
    segments = [struct.unpack_from("<8I", data, phoff + i * phentsize) for i in range(phnum)]
    headers = [struct.unpack_from("<10I", data, shoff + i * shentsize) for i in range(shnum)]
    names = headers[shstrndx][4]
    sections = {data[names + h[0]:data.index(b"\0", names + h[0])].decode(): h for h in headers}
    return entry, [s for s in segments if s[0] == 1], sections


def complaints(data):
    entry, loads, sections = parse(data)
    for _, offset, vaddr, paddr, filesz, memsz, _, _ in loads:
        where = f"segment at {paddr:#x}, {memsz:#x} bytes"
        if memsz == 0:
            yield f"{where}: empty; Linux refuses it"
        elif not any(low <= paddr and paddr + memsz < high for low, high in (CODE_TCM, DATA_TCM)):
            yield f"{where}: not strictly inside a TCM"
        elif DATA_TCM[0] <= paddr < VENDOR_DATA_END:
            yield f"{where}: in what is left to the vendor's suspend code"
        if vaddr != paddr:
            yield f"{where}: runs at {vaddr:#x}, and nothing copies it there"
        if paddr % 8 or offset % 8 or filesz % 4:
            yield f"{where}: not aligned to 8 bytes (file offset {offset:#x}, {filesz:#x} bytes)"
    interrupts = sections.get(".interrupts")
    if interrupts is None or interrupts[3] != CODE_TCM[0]:
        yield "no .interrupts at 0x0ffe0000"
    else:
        stack, reset = struct.unpack_from("<II", data, interrupts[4])
        if not DATA_TCM[0] < stack <= DATA_TCM[1] or stack % 8:
            yield f"initial stack pointer {stack:#x}"
        if reset != entry or not reset & 1:
            yield f"reset vector {reset:#x}, entry {entry:#x}"
    table = sections.get(".resource_table")
    if table is None:
        yield "no .resource_table"
    else:
        words = struct.unpack_from("<4I", data, table[4])
        if words != (1, 2, 0, 0) or table[5] > LIVE_TABLE_BYTES:
            yield f"resource table {words}, {table[5]} bytes"
    got = sections.get(".got")
    if got is not None and got[5]:
        yield ".got is not part of .data"


def self_check(data):
    broken = bytearray(data)
    phoff, = struct.unpack_from("<I", data, 28)
    struct.pack_into("<I", broken, phoff + 12, 0xC0000000)
    assert any("not strictly inside" in c for c in complaints(bytes(broken)))
    struct.pack_into("<I", broken, phoff + 12, DATA_TCM[0])
    struct.pack_into("<I", broken, phoff + 20, 16)
    assert any("vendor" in c for c in complaints(bytes(broken)))
    struct.pack_into("<I", broken, phoff + 20, 0)
    assert any("empty" in c for c in complaints(bytes(broken)))


def main():
    elf = pathlib.Path(os.environ["TALPA_SOURCE"]) / "build/firmware/executorch_runner_cm33.elf"
    if not elf.exists():
        print(f"skipped: {elf} is not built (./run build)")
        return 77
    data = elf.read_bytes()
    self_check(data)
    found = list(complaints(data))
    print("\n".join(found) or "the ELF is one that Linux loads")
    return 1 if found else 0


sys.exit(main())
