#!/usr/bin/env python3
"""talpa compare from the outside: equal programs, a program whose weights were changed in one place, recorded outputs that
differ in one element, and trouble."""
import pathlib
import re
import shutil
import struct
import tempfile

from talpa_test import GOLDEN, Checks, talpa

RESNET = GOLDEN / "models" / "resnet8_random"
PROGRAM = RESNET / "resnet8_random.pte"
INT8 = GOLDEN / "ops" / "int8_io_conv"


def weights_of(program):
    """Offset and size of the weight_data block of the only delegate: a 16-byte name, a size, 12 bytes of zero (pte-format, 7.1)."""
    at = program.index(b"weight_data".ljust(16, b"\0"))
    return at + 32, struct.unpack_from("<I", program, at + 16)[0]


def main():
    check = Checks()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        same = talpa("compare", PROGRAM, "--input", RESNET / "in0.bin", "--against", PROGRAM)
        check.equal((same.status, same.out), (0, "output 0: float32 [1, 10]: equal\n"), "a program is equal to itself")
        for what, against in (("a folder", ("--against", RESNET)), ("its own folder", ())):
            ran = talpa("compare", PROGRAM, "--input", RESNET / "in0.bin", *against)
            check.equal(ran.status, 0, f"equal to what is recorded in {what}: {ran.out}{ran.err}")
        check.equal(talpa("compare", PROGRAM).status, 0, "inputs that are recorded beside the outputs")
        check.equal(talpa("compare", PROGRAM, "--against", PROGRAM).status, 0, "inputs that are recorded beside the program")

        # One recorded element changed: the difference is told to the digit.
        out = bytearray((RESNET / "out0.bin").read_bytes())
        third = struct.unpack_from("<f", out, 12)[0]
        struct.pack_into("<f", out, 12, third + 0.5)
        recorded = folder / "recorded"
        recorded.mkdir()
        (recorded / "out0.bin").write_bytes(out)
        ran = talpa("compare", PROGRAM, "--input", RESNET / "in0.bin", "--against", recorded)
        check.equal(ran.status, 1, f"a changed element: {ran.err}")
        check.that("1 of 10 elements differ, by at most 0.5; the first at [0, 3]" in ran.out, ran.out)
        check.that(re.search(r"written by instruction \d+ \(quantized_decomposed::dequantize_per_tensor.out\)", ran.out), ran.out)

        # A bias changed in the middle of the network: the first operation that differs is one with weights, and not the first.
        program = bytearray(PROGRAM.read_bytes())
        start, size = weights_of(program)
        found = None
        for part in range(1, 8):
            changed = bytearray(program)
            at = start + size * part // 8 // 16 * 16
            changed[at:at + 160] = bytes(b ^ 0x40 for b in changed[at:at + 160])
            (folder / "changed.pte").write_bytes(changed)
            ran = talpa("compare", PROGRAM, "--input", RESNET / "in0.bin", "--against", folder / "changed.pte")
            if ran.status == 1 and "first tensor that differs" in ran.out:
                found = re.search(r"instruction \d+ \(delegate 0\), operation (\d+) (\w+) at stream offset (0x[0-9a-f]+) \(int8 \[\d+, \d+, \d+\]\)\n"
                                  r"  (\d+) of (\d+) elements differ", ran.out)
                check.that(found, f"the operation is named: {ran.out}")
                break
            check.that(ran.status in (1, 2), f"changed weights are noticed: {ran.out}{ran.err}")
        check.that(found and found[2] == "CONV" and int(found[1]) > 0, f"one of the changes runs, and a convolution is named: {ran.out}{ran.err}")

        # Other networks: shapes differ, or nothing inside can be compared.
        other = talpa("compare", INT8 / "int8_io_conv.pte", "--input", INT8 / "in0.bin", "--against", PROGRAM)
        check.equal(other.status, 2, "a program that does not take the inputs is trouble")
        check.that("resnet8_random.pte" in other.err, f"which side has trouble: {other.err}")

        # A model: its program is sound; another one's program is compared by its outputs.
        network = GOLDEN / "import" / "qdq_net.onnx"
        ran = talpa("compare", network, "--input", GOLDEN / "import" / "qdq_net.in0.bin", "--all")
        check.equal(ran.status, 0, f"a model and its program: {ran.out}{ran.err}")
        check.that("conv2d" in ran.out and "the program computes" in ran.out and "off" not in ran.out, ran.out)
        compiled = folder / "qdq.pte"
        talpa("compile", network, "-o", compiled)
        again = talpa("compare", network, compiled, "--input", GOLDEN / "import" / "qdq_net.in0.bin", "--all")
        check.equal((again.status, again.out), (0, ran.out), "the same with the program from a file")
        noisy = talpa("compare", network, compiled, "--input", GOLDEN / "import" / "qdq_net.in0.bin", "--least", "150")
        check.that(noisy.status == 1 and "quantization goes wrong first at" in noisy.out, noisy.out)
        otherwise = folder / "otherwise.pte"
        talpa("compile", network, "-o", otherwise, "--sram", "8K", "--target", "ethos-u65-512")
        other = talpa("compare", network, otherwise, "--input", GOLDEN / "import" / "qdq_net.in0.bin")
        check.equal(other.status, 2, f"a program for another NPU does not run here: {other.out}{other.err}")
        talpa("compile", network, "-o", otherwise, "--memory-mode", "sram-only")
        other = talpa("compare", network, otherwise, "--input", GOLDEN / "import" / "qdq_net.in0.bin")
        check.that(other.status == 0 and "only its outputs were compared" in other.out and "exactly" in other.out, f"{other.out}{other.err}")
        # One changed byte of its constants: the operator is named, if it still runs.
        program, named = bytearray(compiled.read_bytes()), False
        start, size = weights_of(program)
        for at in range(1, size, 16):
            changed = bytearray(program)
            changed[start + at] ^= 0x20
            (folder / "changed.pte").write_bytes(changed)
            ran = talpa("compare", network, folder / "changed.pte", "--input", GOLDEN / "import" / "qdq_net.in0.bin")
            named = named or (ran.status == 1 and "the program goes wrong first at" in ran.out and " elements are off" in ran.out)
            if named:
                break
        check.that(named, f"a changed program goes wrong at an operator: {ran.out}{ran.err}")
        for what, arguments, text in (
                ("a model without inputs", (network,), "--image FILE or --input"),
                ("inputs of another size", (network, "--input", INT8 / "in0.bin"), "bytes of float32"),
                ("a model and --against", (network, "--against", PROGRAM), "--against is for programs"),
                ("two programs", (PROGRAM, PROGRAM), "--against"),
                ("a picture for a program", (PROGRAM, "--image", "x.jpg"), "--image is for models")):
            ran = talpa("compare", *arguments)
            check.that(ran.status == 2 and text in ran.err, f"{what}: {ran.status} {ran.out}{ran.err}")

        for what, arguments, text in (
                ("missing program", ("compare", folder / "none.pte", "--input", RESNET / "in0.bin"), "none.pte"),
                ("missing other side", ("compare", PROGRAM, "--input", RESNET / "in0.bin", "--against", folder / "none"), "none"),
                ("nothing recorded", ("compare", PROGRAM, "--input", RESNET / "in0.bin", "--against", folder), "out0.bin"),
                ("an input that is none", ("compare", PROGRAM, "--input", PROGRAM), "own types; of pictures, talpa run --image makes them\n"),
                ("no inputs", ("compare", INT8 / "int8_io_conv.pte", "--against", PROGRAM, "--input", PROGRAM, "--input", PROGRAM), "give --input FILE.bin once for each"),
                ("no arguments", ("compare",), "PROGRAM.pte is required")):
            ran = talpa(*arguments)
            check.equal(ran.status, 2, f"{what}: {ran.out}")
            check.that(text in ran.err, f"{what}: {ran.err}")
            check.that(ran.err.count("none.pte") in (0, 1), f"{what}: named once: {ran.err}")
        shutil.copy(RESNET / "in0.bin", recorded / "out0.bin")
        ran = talpa("compare", PROGRAM, "--input", RESNET / "in0.bin", "--against", recorded)
        check.equal(ran.status, 2, "a recorded output of another size is trouble")
        check.that("12288 bytes" in ran.err, ran.err)
        check.equal(ran.err.count(str(PROGRAM)), ran.err.count("resnet8_random.pte"), ran.err)
        shutil.copy(RESNET / "out0.bin", recorded / "out0.bin")
        shutil.copy(RESNET / "out0.bin", recorded / "out1.bin")
        ran = talpa("compare", PROGRAM, "--input", RESNET / "in0.bin", "--against", recorded)
        check.equal(ran.status, 1, f"a recorded output too many: {ran.out}{ran.err}")
        check.that("output 1: different" in ran.out and "out1.bin is recorded, and the program has 1 tensor outputs" in ran.out, ran.out)
        (folder / "cut.pte").write_bytes(PROGRAM.read_bytes()[:1000])
        ran = talpa("compare", folder / "cut.pte", "--input", RESNET / "in0.bin", "--against", RESNET)
        check.equal((ran.status, ran.err.count("cut.pte")), (2, 1), f"the program is named once: {ran.err}")
    check.finish()


if __name__ == "__main__":
    main()
