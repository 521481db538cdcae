#!/usr/bin/env python3
"""ExecuTorch's own loader on the programs that talpa compiles: it verifies the file from end to end, names the methods, tells
their inputs and outputs, runs the constant methods and what is CPU operators alone. Delegates need the device, so a method
that has one must be refused for that alone.

Needs the Python package executorch (and with it torch), in this interpreter or in the one that TALPA_EXECUTORCH_PYTHON names;
skipped without it. The same file is both sides: with --inside it is the part that the package's interpreter runs."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

MARK = "talpa-executorch "


def inside(programs):
    """Prints one JSON line: what ExecuTorch makes of each program."""
    from executorch.runtime import Runtime, Verification
    import executorch.kernels.quantized  # quantize and dequantize
    import torch

    def tensor(info):
        return {"sizes": list(info.sizes()), "dtype": int(info.dtype()), "nbytes": info.nbytes()}

    def plain(value):
        return value.flatten().tolist() if isinstance(value, torch.Tensor) else value

    runtime = Runtime.get()
    answers = []
    for path, run in programs:
        program = runtime.load_program(pathlib.Path(path), verification=Verification.InternalConsistency)
        answer = {"methods": {}}
        for name in sorted(program.method_names):
            meta = program.metadata(name)
            facts = {"inputs": [tensor(meta.input_tensor_meta(i)) for i in range(meta.num_inputs())],
                     "outputs": meta.num_outputs()}
            if name == "forward":
                facts["output_tensors"] = [tensor(meta.output_tensor_meta(i)) for i in range(meta.num_outputs())]
            try:
                method = program.load_method(name)
                if name != "forward":
                    facts["gives"] = [plain(v) for v in method.execute([])]
                elif run:
                    inputs = []
                    for i, file in enumerate(run):
                        sizes = facts["inputs"][i]["sizes"]
                        raw = bytearray(pathlib.Path(file).read_bytes())
                        inputs.append(torch.frombuffer(raw, dtype=torch.float32).reshape(sizes))
                    facts["gives"] = [plain(v) for v in method.execute(inputs)]
            except RuntimeError as error:
                facts["refused"] = str(error)
            answer["methods"][name] = facts
        answers.append(answer)
    print(MARK + json.dumps(answers))


if len(sys.argv) > 1 and sys.argv[1] == "--inside":
    inside(json.loads(sys.argv[2]))
    sys.exit(0)

import array  # noqa: E402  what follows is the outer side

from talpa_test import GOLDEN, SKIPPED, Checks, talpa  # noqa: E402

# c10's numbers of scalar types (pte-format, section 3).
TYPES = {"uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float32": 6}


def cpu_model():
    """ONNX of log_softmax(x) / x over [1, 4]: nothing of it has a form on the NPU."""
    def field(number, content):
        return bytes([number << 3 | 2, len(content)]) + content

    def node(op, inputs, output):
        return field(1, b"".join(field(1, i) for i in inputs) + field(2, output) + field(4, op))

    def port(number, name):
        sizes = b"".join(field(1, bytes([8, n])) for n in (1, 4))
        return field(number, field(1, name) + field(2, field(1, b"\x08\x01" + field(2, sizes))))

    graph = node(b"LogSoftmax", [b"x"], b"l") + node(b"Div", [b"l", b"x"], b"y") + port(11, b"x") + port(12, b"y")
    return b"\x08\x08" + field(7, graph) + field(8, b"\x10\x11")


class Check(Checks):
    def that(self, condition, what, found=""):
        super().that(condition, what if condition or found == "" else f"{what}: {found}")


def interpreter():
    for python in [os.environ.get("TALPA_EXECUTORCH_PYTHON"), sys.executable]:
        if not python:
            continue
        found = subprocess.run([python, "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('executorch') is None)"],
                               capture_output=True)
        if found.returncode == 0:
            return python
    return None


def main():
    python = interpreter()
    if python is None:
        print("skipped: no interpreter has the package executorch; TALPA_EXECUTORCH_PYTHON=PYTHON names one that has")
        sys.exit(SKIPPED)
    check = Check()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        labels = folder / "labels.txt"
        labels.write_text("cat\ndog\nbird\n")
        models = [("qdq", GOLDEN / "import" / "qdq_net.onnx", ["--labels", labels, "--mean", "0.5", "--std", "0.25"]),
                  ("int8", GOLDEN / "import" / "conv3x3_same.quantized.pt2", ["--io", "int8"]),
                  ("tflite", GOLDEN / "import" / "small.tflite", []),
                  ("u55", GOLDEN / "import" / "qdq_net.onnx", ["--target", "ethos-u55-128", "--memory-mode", "shared-sram"])]
        cpu, cpu_input = folder / "cpu.onnx", folder / "cpu.bin"
        cpu.write_bytes(cpu_model())
        numbers = array.array("f", [0.5, -1.25, 2.0, 3.5])
        cpu_input.write_bytes(numbers.tobytes())
        models.append(("cpu", cpu, ["--calibration", cpu_input]))
        programs = []
        for name, model, options in models:
            path = folder / f"{name}.pte"
            made = talpa("compile", model, "-o", path, *options)
            check.that(made.status == 0, f"{name} compiles", made.err)
            programs.append([str(path), [str(cpu_input)] if name == "cpu" else []])
        ran = subprocess.run([python, __file__, "--inside", json.dumps(programs)], capture_output=True, text=True)
        lines = [line for line in ran.stdout.splitlines() if line.startswith(MARK)]
        check.that(ran.returncode == 0 and len(lines) == 1, "ExecuTorch loads them all, verified from end to end",
                   ran.stderr[-2000:])
        if not lines:
            check.finish()
        for (name, _, _), (path, _), answer in zip(models, programs, json.loads(lines[0][len(MARK):])):
            compare(check, name, path, answer["methods"])
            if name == "cpu":
                run_by_both(check, path, cpu_input, answer["methods"]["forward"], folder)
    check.finish()


def compare(check, name, path, methods):
    facts = json.loads(talpa("inspect", path, "--json").out)
    ours = {m["name"]: m for m in facts["methods"]}
    check.that(set(methods) == set(ours), f"{name}: the same methods", f"{sorted(methods)} and {sorted(ours)}")
    forward, mine = methods["forward"], ours["forward"]
    for side, theirs in (("inputs", forward["inputs"]), ("outputs", forward["output_tensors"])):
        wanted = [{"sizes": t["shape"], "dtype": TYPES[t["dtype"]], "nbytes": t["bytes"]} for t in mine[side]]
        check.that(theirs == wanted, f"{name}: the same {side}", f"{theirs} and {wanted}")
    if name == "cpu":
        check.that("refused" not in forward, f"{name}: loads", forward.get("refused"))
    else:
        check.that("0x:20" in forward.get("refused", ""), f"{name}: refused for its backend alone", forward)
    for method, theirs in methods.items():
        if method != "forward":
            check.that(len(theirs.get("gives", [])) == theirs["outputs"] > 0, f"{name}: {method} gives its values", theirs)
    if name == "qdq":
        check.that(methods["labels"]["gives"] == ["cat\ndog\nbird\n"], "the labels", methods["labels"])
        check.that(methods["input0_mean"]["gives"] == [0.5, 0.5, 0.5], "the mean", methods["input0_mean"])
        check.that(methods["input0_std"]["gives"] == [0.25, 0.25, 0.25], "the deviation", methods["input0_std"])
    if name == "int8":
        check.that({"input0_scale", "input0_zp", "output0_scale"} <= set(methods), "the scales are told", sorted(methods))


def run_by_both(check, path, input_file, forward, folder):
    """A program of CPU operators alone: both give the same numbers."""
    ran = talpa("run", path, "--input", input_file, "--output-dir", folder / "out")
    check.that(ran.status == 0, "talpa runs it", ran.err)
    mine = array.array("f", (folder / "out" / "out0.bin").read_bytes())
    theirs = forward.get("gives", [[]])[0]
    same = len(mine) == len(theirs) == 4 and all(abs(a - b) <= 1e-6 * (1 + abs(b)) for a, b in zip(mine, theirs))
    check.that(same, "both give the same numbers", f"{list(mine)} and {theirs}")


main()
