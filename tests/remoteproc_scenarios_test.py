#!/usr/bin/env python3
"""The scenario table of the specification against an implementation of remoteproc-runtime, on a class of remote processors
with the kernel's semantics (tests/remoteproc/kernel_double.py) at its real paths.

  remoteproc_scenarios_test.py [--runtime PATH] [--peer PATH] [NUMBER…]

Without --runtime: the one of this build, and every scenario must pass. With another implementation the table shows how far
it goes; the exit status counts failures all the same. With --peer also every life in which both have a part: created by one,
started by the other, and so on."""
import argparse
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "remoteproc"))
import board  # noqa: E402
import scenarios  # noqa: E402
import scenarios_more  # noqa: E402

from talpa_test import EMULATED  # noqa: E402

# Under scripts/emulated.sh: why not.
NOT_EMULATED = {
    "5": "qemu 7.2 refuses clone with namespaces",
    "39": "qemu 7.2 refuses clone with namespaces",
    "6": "the user namespace has one user id",
    "37d": "no device can be made in a user namespace",
    "R1": "it asks /proc for the process's program, which is qemu",
    "S1": "qemu 7.2 refuses clone with namespaces",
    "U1": "the user namespace has one user id",
    "U2": "the user namespace has one user id",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    build = pathlib.Path(os.environ.get("TALPA_BUILD", pathlib.Path(__file__).parent.parent / "build" / "release"))
    parser.add_argument("--runtime", default=str(build / "bin" / "remoteproc-runtime"))
    parser.add_argument("--peer", help="another implementation's remoteproc-runtime, to be mixed with this one")
    parser.add_argument("number", nargs="*")
    options = parser.parse_args()
    if (why := board.possible()) is not None:
        print("skipped:", why)
        return 77
    numbers = options.number or [number for number, _, _ in scenarios.SCENARIOS]
    if EMULATED:
        for number in set(numbers) & set(NOT_EMULATED):
            print(f"not tried: {number}: {NOT_EMULATED[number]}")
        numbers = [number for number in numbers if number not in NOT_EMULATED]
    here = board.Board(["imx-rproc", "second", "third"])
    try:
        world = scenarios.World(here, os.path.realpath(options.runtime))
        failed = scenarios.run(world, numbers)
        if options.peer:
            failed += scenarios_more.pairs(world, os.path.realpath(options.peer))
    finally:
        here.close()
    print(f"{len(numbers) - len(failed)} passed, {len(failed)} failed" + (": " + " ".join(failed) if failed else ""))
    return 1 if failed else 0


sys.exit(main())
