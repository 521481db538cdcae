#!/usr/bin/env python3
"""Include lines may point only down the ladder of docs/design.md (and sideways only where it is listed here)."""
import os
import pathlib
import re
import sys

# Layer of each folder; a file may include its own folder and any folder of a lower layer.
LAYERS = {
    "base/core": 0, "base/host": 0.5,
    "npu": 1, "pte": 1, "image": 1, "link": 1,
    "runtime": 2, "npu_model": 2,
    "compiler": 3, "inspect": 3, "firmware": 3, "classifier": 3,
    "topo": 4, "remoteproc": 4, "webapp": 4, "board": 4,
    "cli": 5,
}
# Freestanding code may not reach for the host's half of base; link/host is the part of link that may.
FREESTANDING = ("base/core", "npu", "pte", "runtime", "link", "firmware")
HOST_ONLY = ("_test.cpp", "_bench.cpp", "_fuzz.cpp", "_for_test.h", "_for_test.cpp")


def folder_of(path):
    parts = path.split("/")
    two = "/".join(parts[:2])
    return two if two in LAYERS else parts[0]


def violations(path, text):
    own = folder_of(path)
    if own not in LAYERS:
        yield f"{path}: folder {own} is not in the ladder"
        return
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
        if not match:
            continue
        target = folder_of(match.group(1))
        where = f"{path}:{number}: includes {match.group(1)}"
        if target not in LAYERS:
            yield f"{where}, which is not a path from src/"
        elif target != own and LAYERS[target] >= LAYERS[own]:
            yield f"{where}: {own} (layer {LAYERS[own]}) may not use {target} (layer {LAYERS[target]})"
        elif (target == "base/host" and own in FREESTANDING and not path.endswith(HOST_ONLY)
              and "/host/" not in path):
            yield f"{where}: {own} is freestanding"


def self_check():
    bad = list(violations("npu/x.cpp", '#include "runtime/tensor.h"\n#include "base/host/file.h"\n#include "x.h"\n'))
    assert len(bad) == 3, bad
    assert not list(violations("runtime/x.cpp", '#include "npu/device.h"\n#include "base/core/error.h"\n'))


def main():
    self_check()
    source = pathlib.Path(os.environ.get("TALPA_SOURCE", pathlib.Path(__file__).parent.parent)) / "src"
    files = [p for p in source.rglob("*") if p.suffix in (".cpp", ".h", ".c")]
    bad = [v for p in files for v in violations(p.relative_to(source).as_posix(), p.read_text())]
    print("\n".join(bad) or f"{len(files)} files keep to the ladder")
    return 1 if bad or not files else 0


sys.exit(main())
