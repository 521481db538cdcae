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
    here = board.Board(["imx-rproc", "second", "third"])
    try:
        world = scenarios.World(here, os.path.realpath(options.runtime))
        failed = scenarios.run(world, options.number)
        if options.peer:
            failed += scenarios_more.pairs(world, os.path.realpath(options.peer))
    finally:
        here.close()
    print(f"{len(scenarios.SCENARIOS) - len(failed)} passed, {len(failed)} failed" + (": " + " ".join(failed) if failed else ""))
    return 1 if failed else 0


sys.exit(main())
