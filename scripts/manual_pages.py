#!/usr/bin/env python3
"""Manual pages of all programs, made from what they say of themselves, so that none can fall behind:

    scripts/manual_pages.py BIN OUT VERSION [--emulator PROGRAM]

runs the programs in BIN (through the emulator, for another architecture) with --help and writes OUT/PROGRAM.SECTION, with a
page for each command of talpa and topo. topo makes its own (`topo man`). Programs that BIN has not are left out."""
import argparse
import pathlib
import re
import subprocess

PROGRAMS = {  # name: (section, what else belongs on its page)
    "talpa": (1, "topo(1), talpa-webapp(8)"),
    "topo": (1, "talpa(1), remoteproc-runtime(8)"),
    "talpa-webapp": (8, "talpa(1), remoteproc-runtime(8)"),
    "remoteproc-runtime": (8, "containerd-shim-remoteproc-v1(8), topo(1)"),
    "containerd-shim-remoteproc-v1": (8, "remoteproc-runtime(8)"),
}
ROW = re.compile(r"^(?: {2}| {6}(?=--))(\S.*?)(?: {2,}(\S.*))?$")


def roff(text):
    """The text as it is: no character of it means anything to roff."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga").replace("^", "\\(ha").replace("~", "\\(ti")
    return "\\&" + text if text.startswith(".") else text


class Page:
    def __init__(self, title, section, version):
        self.lines = [f'.TH "{roff(title.upper())}" {section} "" "talpa {version}"']

    def section(self, name):
        self.lines.append(f".SH {roff(name.upper())}")

    def paragraph(self, lines):
        self.lines += [".PP", *map(roff, lines)]

    def row(self, term, text):
        self.lines += [".TP", f"\\fB{roff(term)}\\fR", *([roff(text)] if text else [])]

    def literal(self, lines):
        self.lines += [".PP", ".nf", *map(roff, lines), ".fi"]

    def text(self):
        return "\n".join(self.lines) + "\n"


def blocks(text):
    """Paragraphs, each a list of lines."""
    return [block.split("\n") for block in re.split(r"\n\s*\n", text.strip("\n")) if block.strip()]


def write_rows(page, lines):
    """Lines `  term    what it is`; deeper lines go on with what stands before them."""
    term, words = None, []
    for line in [*lines, None]:
        row = ROW.match(line) if line is not None else None
        if line is None or row:
            if term is not None:
                page.row(term, " ".join(words))
            if row:
                term, words = row[1], [row[2]] if row[2] else []
        elif term is not None:
            words.append(line.strip())


def page_of_help(title, section, version, text, see_also):
    page = Page(title, section, version)
    paragraphs = blocks(text)
    head, usage = [], []
    while paragraphs and not paragraphs[0][0].startswith("Usage:"):
        lines = paragraphs.pop(0)
        at = next((i for i, line in enumerate(lines) if line.startswith("Usage:")), len(lines))
        head += lines[:at]
        if at < len(lines):
            usage = lines[at:]
            break
    if not usage and paragraphs:
        usage = paragraphs.pop(0)
    name = " ".join(head).rstrip(".")
    page.section("Name")
    page.lines.append(f"{roff(title)} \\- {roff(re.sub(r'^' + re.escape(title) + r' (is )?', '', name))}")
    page.section("Synopsis")
    page.literal([re.sub(r"^(Usage:| {6})\s*", "", line) for line in usage])
    described = False
    for lines in paragraphs:
        heading = re.match(r"^([A-Z][A-Za-z ]+):\s*(.*)$", lines[0])
        if heading and not heading[2]:
            page.section(heading[1])
            (page.literal if heading[1].startswith("Example") else lambda rows: write_rows(page, rows))(lines[1:])
            described = False
        elif heading and heading[1] == "Exit status":
            page.section("Exit status")
            page.paragraph([heading[2], *lines[1:]])
        else:
            if not described:
                page.section("Notes")
                described = True
            page.paragraph(lines)
    page.section("See also")
    page.paragraph([see_also])
    return page.text()


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("bin", type=pathlib.Path)
    options.add_argument("out", type=pathlib.Path)
    options.add_argument("version")
    options.add_argument("--emulator")
    given = options.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for old in given.out.glob("*.[18]"):
        old.unlink()

    def said(program, *arguments):
        command = [given.emulator] if given.emulator else []
        done = subprocess.run([*command, str(given.bin / program), *arguments], capture_output=True, text=True, check=True,
                              env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"})
        return done.stdout

    def commands_in(text, heading):
        listed = re.search(rf"^{heading}:\n((?: .*\n)+)", text, re.MULTILINE)
        return re.findall(r"^ {2}([a-z][a-z-]*)", listed[1], re.MULTILINE) if listed else []

    def write(title, section, text):
        (given.out / f"{title}.{section}").write_text(text)

    def write_tree(program, words, section, see_also):
        text = said(program, *words, "--help")
        title = "-".join([program, *words])
        commands = commands_in(text, "Subcommands")
        others = ", ".join([f"{title}-{c}({section})" for c in commands] + ([] if not words else [f"{program}({section})"]) +
                           ([see_also] if not words else []))
        write(title, section, page_of_help(title, section, given.version, text, others))
        for command in commands:
            write_tree(program, [*words, command], section, see_also)

    for program, (section, see_also) in PROGRAMS.items():
        if not (given.bin / program).exists():
            continue
        if program == "topo":
            write("topo", section, said("topo", "man"))
            for command in commands_in(said("topo", "--help"), "Commands"):
                if command not in ("help", "completion"):
                    write(f"topo-{command}", section, said("topo", "man", command))
        else:
            write_tree(program, [], section, see_also)


if __name__ == "__main__":
    main()
