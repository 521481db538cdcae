#!/usr/bin/env python3
"""talpa inspect from the outside: the three views, what the JSON promises, and trouble. What the views show is tested where
they are made (src/inspect, inspect_html_test)."""
import json
import pathlib
import tempfile

from talpa_test import GOLDEN, Checks, talpa

PROGRAM = GOLDEN / "models" / "resnet8_random" / "resnet8_random.pte"


def main():
    check = Checks()
    text = talpa("inspect", PROGRAM)
    check.equal(text.status, 0, text.err)
    for word in ("Method forward", "scratch", "fast scratch", "Delegate 0", "cycles"):
        check.that(word in text.out, f"the text says {word}")
    ops = talpa("inspect", PROGRAM, "--ops")
    check.that(len(ops.out.splitlines()) > len(text.out.splitlines()), "--ops is longer")

    document = json.loads(talpa("inspect", PROGRAM, "--json").out)
    estimate = json.loads((PROGRAM.parent / "resnet8_random.json").read_text())["vela_estimate"]
    flat = json.dumps(document)
    for key in ("memory", "cycles_total", "sram_bytes", "dram_bytes", "operations"):
        check.that(f'"{key}"' in flat, f"the document has {key}")
    ran = json.loads(talpa("run", PROGRAM, "--input", PROGRAM.parent / "in0.bin", "--json").out)
    check.that(f'"cycles_total": {ran["npu_cycles"]}' in flat, "run and inspect tell the same cycles")
    check.that(abs(ran["npu_cycles"] / estimate["cycles_total"] - 1) < 0.1, f"{ran['npu_cycles']} cycles, Vela says {estimate['cycles_total']}")

    # The estimate is for the memory mode that the program was compiled for, in both.
    for mode in ("shared_sram", "sram_only"):
        program = GOLDEN / "ops" / mode / f"{mode}.pte"
        cycles = json.loads(talpa("run", program, "--input", program.parent / "in0.bin", "--json").out)["npu_cycles"]
        check.that(f'"cycles_total": {cycles}' in json.dumps(json.loads(talpa("inspect", program, "--json").out)), f"{mode}: {cycles} cycles")

    with tempfile.TemporaryDirectory() as name:
        page = pathlib.Path(name) / "report.html"
        html = talpa("inspect", PROGRAM, "--html", page)
        check.equal((html.status, html.out), (0, f"{page} written; open it in a browser\n"), html.err)
        check.that(page.read_text().lower().startswith("<!doctype html>"), "a page")
        both = talpa("inspect", PROGRAM, "--html", page, "--json")
        check.equal(json.loads(both.out), document, "JSON beside the page")
        check.equal(talpa("inspect", PROGRAM, "--html", pathlib.Path(name) / "none" / "x.html").status, 1, "no such folder")
        check.equal(talpa("inspect", pathlib.Path(name) / "none.pte").status, 1, "no such program")
        (pathlib.Path(name) / "cut.pte").write_bytes(PROGRAM.read_bytes()[:1000])
        cut = talpa("inspect", pathlib.Path(name) / "cut.pte")
        check.equal(cut.status, 1, "a program cut short")
        check.that("cut.pte" in cut.err, cut.err)

        # A machine that is not known: as of talpa compile, nothing is written.
        table, ini = pathlib.Path(name) / "costs.csv", pathlib.Path(name) / "none.ini"
        for option, value, text in (("--system-config", "nope", "with system 'nope'"), ("--memory-mode", "nope", "nope"), ("--config", ini, "none.ini")):
            for program in (PROGRAM, GOLDEN / "pte_variants" / "lin.pte"):  # one without a delegate too
                ran = talpa("inspect", program, option, value, "--csv", table, "--html", page.with_name("other.html"))
                check.equal((ran.status, ran.out), (2, ""), f"{option} {value}: {ran.err}")
                check.that(text in ran.err and "\\x0a" not in ran.err, ran.err)
        check.that(not table.exists() and not page.with_name("other.html").exists(), "nothing was written")

        # Programs of a U55 that say they lie in DRAM exist: what they would take is shown, though nothing is compiled for that any more.
        old = talpa("inspect", GOLDEN / "pte_variants" / "two_u55.pte", "--memory-mode", "dedicated-sram")
        check.equal((old.status, old.err), (0, ""), "a U55 with a U65's memories")
        check.that("cycles" in old.out, old.out)

        # What is read stays.
        mine = pathlib.Path(name) / "mine.pte"
        mine.write_bytes(PROGRAM.read_bytes())
        for option in ("--html", "--csv"):
            ran = talpa("inspect", mine, option, pathlib.Path(name) / "." / "mine.pte")
            check.equal(ran.status, 2, f"{option} over the program: {ran.out}")
            check.that("would overwrite an input (the program)" in ran.err, ran.err)
        check.equal(talpa("inspect", mine, "--html", table, "--csv", table).status, 2, "two reports in one file")
        check.that(mine.read_bytes() == PROGRAM.read_bytes() and not table.exists(), "the program is as it was")
        for option in ("--html", "--csv", "--debug-db"):
            check.equal(talpa("inspect", mine, option, "").status, 2, f"an empty {option}")
    check.equal(talpa("inspect").status, 2, "no program")
    check.finish()


if __name__ == "__main__":
    main()
