#!/usr/bin/env python3
"""talpa run from the outside: golden programs give the golden bytes, JSON has its shape, and every kind of bad input gets an
error that says what is wrong, with the right status."""
import json
import os
import pathlib
import signal
import struct
import subprocess
import tempfile

from talpa_test import GOLDEN, UNMEASURED, Checks, talpa
from talpa_test import TALPA as TALPA_PROGRAM

MEMORY_BUDGET_KIB = 64 * 1024
IMAGES = GOLDEN.parent / "corpus" / "image_fuzz"
RESNET = GOLDEN / "models" / "resnet8_random" / "resnet8_random.pte"
INT8 = GOLDEN / "ops" / "int8_io_conv" / "int8_io_conv.pte"
VARIANTS = GOLDEN / "pte_variants"
DMA_WAIT, PMU_MASK = 0x11, 0x13  # command words (ethos-u65, section 3.3)


def golden_programs():
    for folder in sorted([*(GOLDEN / "ops").iterdir(), *(GOLDEN / "models").iterdir()]):
        yield folder / f"{folder.name}.pte", sorted(folder.glob("in*.bin")), sorted(folder.glob("out*.bin"))


def inputs(files):
    return [word for file in files for word in ("--input", file)]


def check_golden(check, folder):
    for program, ins, outs in golden_programs():
        ran = talpa("run", program, *inputs(ins), "--output-dir", folder)
        check.equal(ran.status, 0, f"{program.name}: {ran.err}")
        strict = talpa("run", program, *inputs(ins), "--strict") if program.parent.parent.name == "ops" else ran
        check.equal(strict.status, 0, f"{program.name}, strict: {strict.err}")
        for out in outs:
            written = folder / out.name
            check.that(written.exists() and written.read_bytes() == out.read_bytes(), f"{program.name}: {out.name} differs")


def check_json(check, folder):
    ran = talpa("run", RESNET, "--input", RESNET.parent / "in0.bin", "--json", "--top", "3", "--output-dir", folder / "json")
    document = json.loads(ran.out)
    check.equal(list(document), ["top", "scores", "outputs", "latency_ms", "npu_cycles"], "keys of the document")
    check.equal([sorted(t) for t in document["top"]], [["class", "label", "probability"]] * 3, "keys of top")
    out = struct.unpack("<10f", (RESNET.parent / "out0.bin").read_bytes())
    ranked = sorted(range(10), key=lambda i: -out[i])
    check.equal([t["class"] for t in document["top"]], ranked[:3], "classes in order")
    check.that(abs(sum(t["probability"] for t in json.loads(talpa("run", RESNET, "--input", RESNET.parent / "in0.bin", "--json", "--top", "10").out)["top"]) - 1) < 1e-6,
               "probabilities sum to 1")
    check.equal(document["outputs"], [{"shape": [1, 10], "dtype": "float32", "order": "C", "dim_order": [0, 1],
                                       "file": str(folder / "json" / "out0.bin")}], "outputs")
    latency = document["latency_ms"]
    check.that(latency["min"] <= latency["median"] <= latency["p90"] <= latency["max"], f"latency in order: {latency}")
    check.that(document["npu_cycles"] is None or document["npu_cycles"] > 0, "npu_cycles")

    pictures = [IMAGES / "red.jpg", IMAGES / "png.png", IMAGES / "webp.webp", IMAGES / "bmp.bmp", IMAGES / "red.jpg"]
    ran = talpa("run", RESNET, "--image", *pictures, "--json", "--output-dir", folder / "many")
    results = json.loads(ran.out)["results"]
    check.equal([r["image"] for r in results], [str(p) for p in pictures], "a result for each picture")
    check.equal(results[0]["top"], results[4]["top"], "the same picture, the same result")
    check.that((folder / "many" / "red.jpg" / "out0.bin").exists() and (folder / "many" / "red.jpg.2" / "out0.bin").exists(),
               "a folder for each picture")
    before_program = talpa("run", "--json", "--image", pictures[0], RESNET)
    check.equal(before_program.status, 0, f"the program may stand behind the pictures: {before_program.err}")

    ran = talpa("run", RESNET, "--input", RESNET.parent / "in0.bin", "--repeat", "30")
    check.that("30 runs: min" in ran.out and "p90" in ran.out and "#" in ran.out, f"the distribution of repeated runs: {ran.out}")


def check_bad_pictures(check, folder):
    """One bad picture among several: the others' results are shown and written, and the status says that something failed."""
    good, bad, none = IMAGES / "red.jpg", folder / "bad.jpg", folder / "none.jpg"
    bad.write_bytes(good.read_bytes()[:300])
    out = folder / "some"
    ran = talpa("run", RESNET, "--image", good, bad, none, IMAGES / "png.png", "--json", "--output-dir", out)
    check.equal(ran.status, 1, f"two of four pictures are bad: {ran.err}")
    results = json.loads(ran.out)["results"]
    check.equal([r["image"] for r in results], [str(p) for p in (good, bad, none, IMAGES / "png.png")], "a result for each picture")
    check.equal([sorted(r) for r in results[1:3]], [["error", "image"]] * 2, "what failed has an error")
    check.that("cut short" in results[1]["error"] and "No such file" in results[2]["error"], f"errors: {results[1:3]}")
    alone = json.loads(talpa("run", RESNET, "--image", IMAGES / "png.png", "--json").out)
    check.equal(results[3]["top"], alone["top"], "the picture behind the bad ones")
    check.equal(sorted(p.name for p in out.iterdir()), ["png.png", "red.jpg"], "folders of those with results")
    for text in ("bad.jpg", "none.jpg", "2 of 4 pictures have no result"):
        check.that(text in ran.err, f"'{text}': {ran.err}")
    ran = talpa("run", RESNET, "--image", good, bad)
    check.equal(ran.status, 1, "the same for a person")
    check.that("red.jpg" in ran.out and "bad.jpg" not in ran.out, ran.out)


def check_not_a_number(check, folder):
    """Scores that are no numbers: an error, and all outputs are there to be looked at, or none."""
    program, nan = VARIANTS / "lin_dyn.pte", folder / "nan.bin"
    nan.write_bytes(struct.pack("<f", float("nan")) * 5)  # one row
    ran = talpa("run", program, "--input", nan, "--output-dir", folder / "nan")
    check.equal(ran.status, 1, f"scores that are no numbers: {ran.out}")
    check.that("the score of class 0 is nan" in ran.err, ran.err)
    check.that((folder / "nan" / "out0.bin").exists(), "the outputs are written all the same")


def check_order(check, folder):
    """A channels-last program takes and gives raw tensors in C order of their shapes."""
    program = VARIANTS / "two_cl.pte"
    expected = (VARIANTS / "two_cl.out0.bin").read_bytes()
    ran = talpa("run", program, "--input", VARIANTS / "two_cl.in0.bin", "--json", "--output-dir", folder / "order")
    check.equal(ran.status, 0, f"channels last: {ran.err}")
    got = (folder / "order" / "out0.bin").read_bytes()
    count = len(expected) // 4
    pairs = list(zip(struct.unpack(f"<{count}f", got), struct.unpack(f"<{count}f", expected)))
    spread = max(e for _, e in pairs) - min(e for _, e in pairs)
    worst = max(abs(g - e) for g, e in pairs)
    check.that(worst < spread / 50, f"channels last: differs by {worst} of a spread of {spread}")
    ran = talpa("compare", program, "--input", VARIANTS / "two_cl.in0.bin", "--against", program)
    check.equal(ran.status, 0, ran.out + ran.err)


def check_labels(check, folder):
    labels = folder / "labels.txt"
    labels.write_text("".join(f"name {i}\n" for i in range(10)))
    raw = ("run", RESNET, "--input", RESNET.parent / "in0.bin", "--json")
    best = json.loads(talpa(*raw).out)["top"][0]["class"]
    check.equal(json.loads(talpa(*raw, "--labels", labels).out)["top"][0]["label"], f"name {best}", "the label of the best class")
    labels.write_text("".join(f"name {i}\n" for i in range(9)))
    few = talpa(*raw, "--labels", labels)
    check.equal(few.status, 1, "labels fewer than outputs")
    check.that("has 9 labels, and the output has 10 classes" in few.err and "--label-offset -1" in few.err, few.err)
    shifted = json.loads(talpa(*raw, "--labels", labels, "--label-offset", "-1").out)["top"][0]["label"]
    check.equal(shifted, f"name {best - 1}" if best > 0 else None, "a shifted label")
    labels.write_text("".join(f"name {i}\n" for i in range(11)))
    many = talpa(*raw, "--labels", labels, "--json")
    check.equal((many.status, json.loads(many.out)["top"][0]["label"]), (0, f"name {best}"), "more labels than classes")
    check.that("talpa: note: " in many.err and "has 11 labels, and the output has 10 classes" in many.err, many.err)
    check.equal(talpa(*raw, "--labels", labels, "--label-offset", "1").err, "", "one line before the first class")
    labels.write_text("".join(f"name {i}\n" for i in range(9)))
    for offset in (-9, -10, -1000000, 5):
        nonsense = talpa(*raw, "--labels", labels, "--label-offset", offset)
        check.equal(nonsense.status, 1, f"label offset {offset}: {nonsense.out}")
        check.that(f"label offset {'of ' if offset < 0 else ''}{offset}" in nonsense.err, nonsense.err)


def check_names(check, folder):
    """Names of files reach a terminal without what could drive it."""
    picture = folder / "x\x1b[31mred\n.jpg"
    picture.write_bytes((IMAGES / "png.png").read_bytes())
    ran = talpa("run", RESNET, "--image", picture, IMAGES / "red.jpg", "--output-dir", folder / "named")
    check.equal(ran.status, 0, ran.err)
    check.that("\x1b" not in ran.out and f"{folder}/x\\x1b[31mred\\x0a.jpg\n" in ran.out, repr(ran.out))


def bad_inputs(folder):
    """(what, arguments, status, text that the error must have)"""
    in0 = RESNET.parent / "in0.bin"
    short = folder / "short.bin"
    short.write_bytes(in0.read_bytes()[:-1])
    as_int8 = folder / "int8.bin"
    as_int8.write_bytes(in0.read_bytes()[: in0.stat().st_size // 4])
    as_float = folder / "float.bin"
    as_float.write_bytes(b"\0" * (4 * (INT8.parent / "in0.bin").stat().st_size))
    empty = folder / "empty.pte"
    empty.write_bytes(b"")
    text = folder / "text.txt"
    text.write_text("hello, this is no program and no picture; it is only here to be refused, which it should be by now\n")
    cut = folder / "cut.jpg"
    cut.write_bytes((IMAGES / "red.jpg").read_bytes()[:300])
    raw = ("--input", in0)
    yield "no command", (), 2, "talpa --help"
    yield "unknown command", ("frobnicate",), 2, "no command 'frobnicate'"
    yield "unknown option", ("run", RESNET, "--frobnicate"), 2, "--frobnicate"
    yield "no program", ("run", *raw), 2, "PROGRAM.pte is required"
    yield "input and image", ("run", RESNET, *raw, "--image", IMAGES / "red.jpg"), 2, "cannot be given together"
    yield "bad mean", ("run", RESNET, "--image", IMAGES / "red.jpg", "--mean", "1,2"), 2, "--mean takes 1 or 3 numbers"
    yield "mean without image", ("run", RESNET, *raw, "--mean", "1"), 2, "are for pictures"
    yield "top 0", ("run", RESNET, *raw, "--top", "0"), 2, "--top"
    yield "offset without labels", ("run", RESNET, *raw, "--label-offset", "1"), 2, "needs --labels"
    for option in ("--output-dir", "--labels", "--input", "--image", "--method", "--data"):
        yield f"an empty {option}", ("run", RESNET, option, ""), 2, f"{option}: needs a value that is not empty"
    yield "an empty program", ("run", "", *raw), 2, "needs a value that is not empty"
    yield "missing program", ("run", folder / "none.pte", *raw), 1, "No such file"
    yield "empty program", ("run", empty, *raw), 1, "empty.pte"
    yield "a text as program", ("run", text, *raw), 1, "text.txt"
    yield "a data file as program", ("run", VARIANTS / "flash.ptd", *raw), 1, "FT01"
    yield "unknown method", ("run", RESNET, *raw, "--method", "backward"), 1, "backward"
    yield "no input", ("run", RESNET), 1, "1 tensor input (float32 [1, 3, 32, 32]), 0 files were given"
    yield "no input, and pictures are possible", ("run", RESNET), 1, "or --image for pictures"
    yield "no input, and no picture is possible", ("run", GOLDEN / "ops" / "linear" / "linear.pte"), 1, "give --input FILE.bin once for each, in order\n"
    yield "two inputs for one", ("run", RESNET, *raw, *raw), 1, "2 files were given"
    yield "missing input", ("run", RESNET, "--input", folder / "none.bin"), 1, "none.bin"
    yield "a folder as input", ("run", RESNET, "--input", folder), 1, "is a folder"
    yield "input of the wrong size", ("run", RESNET, "--input", short), 1, "has 12287 bytes; input 0 is float32 [1, 3, 32, 32], 12288 bytes"
    yield "int8 for float32", ("run", RESNET, "--input", as_int8), 1, "is it int8 data?"
    yield "float32 for int8", ("run", INT8, "--input", as_float), 1, "is it float32 data?"
    yield "missing labels", ("run", RESNET, *raw, "--labels", folder / "none.txt"), 1, "none.txt"
    yield "missing picture", ("run", RESNET, "--image", folder / "none.jpg"), 1, "none.jpg"
    yield "a text as picture", ("run", RESNET, "--image", text), 1, "not a JPEG, PNG, WebP, GIF or BMP picture"
    yield "a picture cut short", ("run", RESNET, "--image", cut), 1, "cut short"
    yield "400 megapixels", ("run", RESNET, "--image", IMAGES / "huge.png"), 1, "20000 x 20000 pixels, more than the limit"
    yield "a picture for two inputs", ("run", GOLDEN / "ops" / "add_same" / "add_same.pte", "--image", IMAGES / "red.jpg"), 1, "more than one input"
    yield "a picture for a vector", ("run", GOLDEN / "ops" / "linear" / "linear.pte", "--image", IMAGES / "red.jpg"), 1, "is no picture"
    for what, option, value, status, wanted in (
            ("a std of 0", "--std", "0", 2, "standard deviation of 0"), ("a std of 0 for green", "--std", "1,0,1", 2, "standard deviation of 0"),
            ("an empty range", "--range", "1,1", 2, "holds nothing"), ("a range upside down", "--range", "1,-1", 2, "holds nothing"),
            ("a range of nan", "--range", "nan,1", 2, "--range takes 2 numbers"), ("a range beyond float32", "--range", "0,1e39", 2, "--range takes 2 numbers"),
            ("a range that overflows", "--range", "-3e38,3e38", 1, "gives values beyond 1e+30"), ("a std that overflows", "--std", "1e-38", 1, "gives values beyond 1e+30")):
        for program in (RESNET, INT8):
            yield f"{what}, {program.stem}", ("run", program, "--image", IMAGES / "red.jpg", f"{option}={value}"), status, wanted
    half = folder / "half.pte"
    half.write_bytes(RESNET.read_bytes()[: RESNET.stat().st_size // 2])
    tflite = folder / "model.tflite.bin"
    tflite.write_bytes(b"\x1c\0\0\0TFL3" + b"\0" * 100)
    sparse = folder / "sparse.bin"
    with sparse.open("wb") as file:
        file.truncate(5 << 30)
    yield "half a program", ("run", half, *raw), 1, "only a part of the file is here"
    yield "half a program, inspected", ("inspect", half), 1, "only a part of the file is here"
    yield "a TFLite model", ("run", tflite, *raw), 1, "it is a TensorFlow Lite model (.tflite); talpa compile makes a program of it"
    yield "talpa itself", ("inspect", TALPA_PROGRAM), 1, "it is an ELF file"
    yield "a picture as program", ("run", IMAGES / "red.jpg", *raw), 1, "talpa run PROGRAM.pte --image FILE takes it"
    for what, arguments in (("program", ("/dev/zero", *raw)), ("input", (RESNET, "--input", "/dev/zero")), ("picture", (RESNET, "--image", "/dev/zero")),
                            ("data file", (RESNET, *raw, "--data", "/dev/zero")), ("list of labels", (RESNET, *raw, "--labels", "/dev/zero"))):
        yield f"an endless {what}", ("run", *arguments), 1, "/dev/zero is larger than the limit of"
    yield "a huge program", ("run", sparse, *raw), 1, "has 5368709120 bytes, more than the limit of 4294967296"
    yield "a huge input", ("run", RESNET, "--input", sparse), 1, "has 5368709120 bytes, more than the limit of 4294967296"
    yield "output folder under a file", ("run", RESNET, *raw, "--output-dir", text / "x"), 1, "cannot make the folder"
    yield "another NPU's program", ("run", VARIANTS / "two_u85.pte", "--input", VARIANTS / "two.in0.bin"), 1, "two_u85.pte"


def check_errors(check, folder):
    for what, arguments, status, text in bad_inputs(folder):
        ran = talpa(*arguments)
        check.equal(ran.status, status, f"{what}: status ({ran.err.strip()})")
        check.that(text in ran.err, f"{what}: the error does not say '{text}': {ran.err.strip()}")
        check.that(ran.err.startswith("talpa"), f"{what}: the error names the program: {ran.err.strip()}")
        check.equal(ran.out, "", f"{what}: nothing on standard output")


def check_strict(check, folder):
    """A wait replaced by a command that does nothing is found, without --strict it is not."""
    program = (RESNET).read_bytes()
    start, size = block_of(program, "cmd_data")
    words = list(struct.unpack_from(f"<{size // 4}I", program, start))
    wait = words.index(DMA_WAIT)
    words[wait] = PMU_MASK
    broken = folder / "no_wait.pte"
    broken.write_bytes(program[:start] + struct.pack(f"<{size // 4}I", *words) + program[start + size:])
    raw = ("run", broken, "--input", RESNET.parent / "in0.bin")
    check.equal(talpa(*raw).status, 0, "a missing wait has no effect on the model")
    strict = talpa(*raw, "--strict")
    check.equal(strict.status, 1, f"a missing wait, strict: {strict.out}")
    check.that("(Hazard)" in strict.err and "delegate 0" in strict.err, strict.err)


def block_of(program, name):
    """Offset and size of a block of the only delegate: a 16-byte name, a size, 12 bytes of zero (pte-format, 7.1)."""
    at = program.index(name.encode().ljust(16, b"\0"))
    return at + 32, struct.unpack_from("<I", program, at + 16)[0]


def check_manners(check, folder):
    help_text = talpa("run", "--help")
    check.equal(help_text.status, 0, "help is a success")
    for option in ("--input", "--image", "--labels", "--label-offset", "--top", "--output-dir", "--method", "--data", "--repeat", "--threads",
                   "--mean", "--std", "--range", "--strict", "--json", "Examples:"):
        check.that(option in help_text.out, f"run --help shows {option}")
    check.that(talpa("--version").out.startswith("talpa "), "version")
    check.that("Examples:\n  talpa run " in talpa("--help").out, "talpa --help has examples")
    for arguments in ("--help", "--version", "run --help"):
        closed = subprocess.run(["bash", "-c", f"exec {TALPA_PROGRAM} {arguments} >&-"], stderr=subprocess.PIPE, check=False)
        check.equal((closed.returncode, b"cannot write to standard output" in closed.stderr), (1, True), f"{arguments} to nowhere: {closed.stderr}")
    raw = ("run", RESNET, "--input", RESNET.parent / "in0.bin")
    check.that("\x1b" not in talpa(*raw).out, "no colour in a pipe")
    with open("/dev/full", "w") as full:
        process = subprocess.run([str(a) for a in (TALPA_PROGRAM, *raw)], stdout=full, stderr=subprocess.PIPE, check=False)
    check.equal(process.returncode, 1, "a full disk is an error")
    check.that(b"cannot write to standard output" in process.stderr, process.stderr)

    for arguments in (("inspect", RESNET, "--json"), ("completion", "bash")):  # more than a buffer holds
        with open("/dev/full", "w") as full:
            process = subprocess.run([str(a) for a in (TALPA_PROGRAM, *arguments)], stdout=full, stderr=subprocess.PIPE, check=False)
        check.equal((process.returncode, process.stderr), (1, b"talpa: cannot write to standard output (AccessFailed)\n"), arguments[0])

    process = subprocess.Popen([str(a) for a in (TALPA_PROGRAM, *raw, "--repeat", "10000000")], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        process.wait(1)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    check.equal(process.wait(10), 130, "Ctrl-C")
    check.equal(process.stderr.read(), b"", "Ctrl-C is silent")


def check_terminal(check):
    """On a terminal: colour, unless NO_COLOR says no."""
    import pty
    command = f"{TALPA_PROGRAM} run {RESNET} --input {RESNET.parent / 'in0.bin'}"

    def on_terminal(**environment):
        pid, fd = pty.fork()
        if pid == 0:
            os.execve("/bin/sh", ["sh", "-c", command], {"TERM": "xterm", "PATH": "/usr/bin:/bin", **environment})
        shown = b""
        try:
            while chunk := os.read(fd, 65536):
                shown += chunk
        except OSError:  # the other side is gone
            pass
        os.waitpid(pid, 0)
        os.close(fd)
        return shown

    check.that(b"\x1b[" in on_terminal(), "colour on a terminal")
    check.that(b"\x1b[" not in on_terminal(NO_COLOR="1"), "NO_COLOR")
    check.that(b"\x1b[" not in on_terminal(TERM="dumb"), "a dumb terminal")


def check_completion(check, folder):
    for shell in ("bash", "zsh", "fish"):
        script = talpa("completion", shell)
        check.equal(script.status, 0, f"completion {shell}")
        for word in ("run", "compare", "output-dir", "label-offset", "against"):
            check.that(word in script.out, f"{shell} completes {word}")
    check.equal(talpa("completion", "tcsh").status, 2, "another shell")

    def bash(line, cwd=RESNET.parent):
        words = line.split(" ")
        code = (f"source <({TALPA_PROGRAM} completion bash); COMP_WORDS=({' '.join(repr(w) for w in words)}); COMP_CWORD={len(words) - 1}; "
                "compopt() { :; }; _talpa; printf '%s\\n' \"${COMPREPLY[@]}\"")
        return subprocess.run(["bash", "-c", code], stdout=subprocess.PIPE, text=True, check=True, cwd=cwd).stdout.splitlines()

    check.that({"run", "compare", "completion"} <= set(bash("talpa ")), "bash completes commands")
    check.equal(bash("talpa run --lab"), ["--labels", "--label-offset"], "bash completes options")
    check.that("in0.bin" in bash("talpa run --input i"), "bash completes files")
    check.equal(bash("talpa completion f"), ["fish"], "bash completes words")
    (folder / "completion" / "two words").mkdir(parents=True)
    (folder / "completion" / "my cat.jpg").write_bytes(b"")
    check.equal(bash("talpa run --image my", folder / "completion"), ["my cat.jpg"], "a file name with a space is one word")
    check.equal(bash("talpa run --output-dir t", folder / "completion"), ["two words"], "a folder with a space is one word")


def check_first_round_of_breaking(check, folder):
    """What a first round of breaking the command found."""
    program = GOLDEN / "pte_variants/mut.pte"
    for repeat in (1, 3):
        out = folder / f"state{repeat}"
        talpa("run", program, "--input", GOLDEN / "pte_variants/mut.in0.bin", "--repeat", repeat, "--output-dir", out)
        check.that((out / "out0.bin").read_bytes() == (GOLDEN / "pte_variants/mut.out0.bin").read_bytes(),
                   f"--repeat {repeat}: each run begins with the program's own state")
    number = talpa("run", GOLDEN / "pte_variants/min.pte", "--method", "f")
    check.that("output 0: Int 42\n" in number.out, f"an output that is a number is shown: {number.out}{number.err}")
    number = json.loads(talpa("run", GOLDEN / "pte_variants/min.pte", "--method", "f", "--json").out)
    check.equal(number["numbers"], [{"output": 0, "type": "Int", "value": 42}], "an output that is a number, as JSON")
    largest = folder / "largest.pte"
    largest.write_bytes((GOLDEN / "pte_variants/min.pte").read_bytes().replace((42).to_bytes(8, "little"), (2**63 - 1).to_bytes(8, "little")))
    number = json.loads(talpa("run", largest, "--method", "f", "--json").out)
    check.equal(number["numbers"][0]["value"], 2**63 - 1, "the largest number, which no double is")
    with open("/dev/full", "w") as full:
        ended = subprocess.run([TALPA_PROGRAM, "inspect", "nofile"], stdout=subprocess.DEVNULL, stderr=full, check=False)
    check.equal(ended.returncode, 1, "an error that cannot be shown is still only an error")
    long_name = subprocess.run([TALPA_PROGRAM, "compare", str(RESNET), "--against", "x" * 300], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, check=False)
    check.equal(long_name.returncode, 2, "compare: trouble is never taken for a difference")


def check_costs(check):
    ran = talpa("run", RESNET, "--image", IMAGES / "red.jpg")
    print(f"resnet8_random, whole process: {ran.seconds * 1000:.0f} ms, peak {ran.peak_kib / 1024:.1f} MiB")
    if not UNMEASURED:
        check.that(ran.peak_kib < MEMORY_BUDGET_KIB, f"peak memory {ran.peak_kib} KiB")


def main():
    check = Checks()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_golden(check, folder / "golden")
        check_json(check, folder)
        check_labels(check, folder)
        check_names(check, folder)
        check_bad_pictures(check, folder)
        check_not_a_number(check, folder)
        check_order(check, folder)
        check_errors(check, folder)
        check_strict(check, folder)
        check_first_round_of_breaking(check, folder)
        check_manners(check, folder)
        check_terminal(check)
        check_completion(check, folder)
        check_costs(check)
        left = [p for p in folder.rglob("*") if p.suffix not in (".bin", ".pte", ".txt", ".jpg") and p.is_file()]
        check.equal(left, [], "no temporary files are left")
    check.finish()


if __name__ == "__main__":
    main()
