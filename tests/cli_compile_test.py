#!/usr/bin/env python3
"""talpa compile and talpa model from the outside: a program that runs and gives what the float or quantized model gave, dumps,
JSON, everything that is unsupported at once, wrong usage, weights of a built-in network, calibration from .npy."""
import json
import os
import pathlib
import struct
import tempfile
import zipfile

from talpa_test import GOLDEN, Checks, talpa

IMPORT = GOLDEN / "import"


def floats(path):
    data = pathlib.Path(path).read_bytes()
    return struct.unpack(f"<{len(data) // 4}f", data)


def edited(archive, target, changes):
    """The archive with texts replaced in its program."""
    with zipfile.ZipFile(archive) as source, zipfile.ZipFile(target, "w") as to:
        for name in source.namelist():
            data = source.read(name)
            if name.endswith("models/model.json"):
                for old, new in changes:
                    assert old.encode() in data, old
                    data = data.replace(old.encode(), new.encode())
            to.writestr(name, data)


def main():
    check = Checks()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program = folder / "out.pte"

        # A quantized ONNX model, compiled and run on the NPU model: within a step of the reference evaluator.
        made = talpa("compile", IMPORT / "qdq_net.onnx", "-o", program)
        check.equal(made.status, 0, f"a QDQ model compiles: {made.out}{made.err}")
        if made.status == 0:
            ran = talpa("run", program, "--input", IMPORT / "qdq_net.in0.bin", "--output-dir", folder / "out", "--strict")
            check.equal(ran.status, 0, f"and runs, strictly: {ran.out}{ran.err}")
            got, wanted = floats(folder / "out" / "out0.bin"), floats(IMPORT / "qdq_net.out0.bin")
            check.that(len(got) == len(wanted) and max(abs(a - b) for a, b in zip(got, wanted)) < 0.0301,
                       f"its outputs are those of the reference evaluator within a step: {got} {wanted}")

        # SRAM is what lies there by the memory mode: the same in the text, the document and Vela's columns.
        for mode, said in (("dedicated-sram", ", arena "), ("shared-sram", " with the arena"), ("sram-only", " with arena and constants")):
            flags = ["compile", IMPORT / "qdq_net.onnx", "-o", folder / "mode.pte", "--memory-mode", mode, "--csv", folder / "mode.csv"]
            text, document = talpa(*flags), json.loads(talpa(*flags, "--json").out)["delegates"][0]
            names, values = (folder / "mode.csv").read_text().splitlines()
            used = float(dict(zip(names.split(","), values.split(",")))["sram_memory_used"])
            check.that(used > 0 and used * 1024 == document["sram_bytes"], f"{mode}: {used} KiB, {document}")
            check.that(f"SRAM {used:.1f} KiB{said}" in text.out, f"{mode}: {text.out}")
            check.equal(document["arena_in_sram"], mode != "dedicated-sram", mode)

        # y = relu(x), x of N x 4 x 8 x 8: what is decided for the model is said, in the document too.
        field = lambda number, body: bytes([number << 3 | 2, len(body)]) + body
        port = lambda number, name, dims: field(number, field(1, name) + field(2, field(1, b"\x08\x01" + field(2, b"".join(field(1, d) for d in dims)))))
        fixed = [b"\x08\x04", b"\x08\x08", b"\x08\x08"]
        free = folder / "free.onnx"
        for first, status in ((field(2, b"N"), 0), (b"\x08\x02", 1)):
            free.write_bytes(b"\x08\x08" + field(7, field(1, field(1, b"x") + field(2, b"y") + field(4, b"Relu")) + port(11, b"x", [field(2, b"N")] + fixed) +
                                                 port(12, b"y", [first] + fixed)) + field(8, b"\x10\x11"))
            for flags in ([], ["--json"]):
                made = talpa("compile", free, "-o", folder / "free.pte", *flags)
                check.equal(made.status, status, f"a free batch: {made.out}{made.err}")
                said = "dimension 0 of input 'x' is free" if status == 0 else "result 'y' has shape [1, 4, 8, 8], the file declares [2, 4, 8, 8]"
                check.that(said in (made.out if flags else made.err), f"{said}: {made.out}{made.err}")

        # A float model, calibrated with its own input; deterministic.
        data = (IMPORT / "float_net.in0.bin").read_bytes()
        (folder / "calibration").mkdir()
        (folder / "calibration" / "a.bin").write_bytes(data)
        made = talpa("compile", IMPORT / "float_net.onnx", "-o", program, "--calibration", folder / "calibration", "--json",
                     "--evaluate", folder / "calibration", "--report")
        check.equal(made.status, 0, f"a float model compiles: {made.out}{made.err}")
        if made.status == 0:
            facts = json.loads(made.out)
            check.equal(facts["evaluation"]["same_class"], 1, "the class is that of the float model")
            check.that(facts["delegates"] and facts["delegates"][0]["cycles"] > 0 and facts["layers"], f"JSON has facts: {made.out}")
            noisy = [layer for layer in facts["layers"] if layer["snr_db"] < 25]
            check.that(all("advice" in layer for layer in noisy[:5]) and not any("advice" in layer for layer in facts["layers"][5:]),
                       f"the worst layers have advice: {facts['layers']}")
            again = folder / "again.pte"
            talpa("compile", IMPORT / "float_net.onnx", "-o", again, "--calibration", folder / "calibration")
            check.that(again.read_bytes() == program.read_bytes(), "the same bytes each time")
        made = talpa("compile", IMPORT / "float_net.onnx", "-o", program)
        check.that(made.status == 0 and "no calibration data" in made.err, f"noise is never used in silence: {made.err}")

        # Everything that is unsupported, at once, and nothing written.
        broken = folder / "broken.pt2"
        edited(IMPORT / "conv3x3_same.float.pt2", broken, [("aten.conv2d.default", "aten.conv3d.default"), ("aten.relu.default", "aten.lstm.input")])
        missing = folder / "missing.pte"
        failed = talpa("compile", broken, "-o", missing)
        check.equal(failed.status, 1, "unsupported operators end with status 1")
        check.that("2 operators cannot be compiled" in failed.err and "aten.conv3d.default" in failed.err and "recurrent layers" in failed.err
                   and "DS-CNN" in failed.err, f"all of them are named, with what can be done: {failed.err}")
        check.that(not missing.exists(), "no program is written")
        failed = talpa("compile", broken, "-o", missing, "--json")
        problems = json.loads(failed.out)["problems"]
        check.equal([p["operator"] for p in problems], ["aten.conv3d.default", "aten.lstm.input"], "the same as JSON")
        check.that(all(p["line"] for p in problems), f"source lines: {problems}")

        # Dumps.
        shown = talpa("compile", IMPORT / "conv3x3_same.quantized.pt2", "--dump-after", "canonical")
        check.that(shown.status == 0 and "clamp=0..inf" in shown.out and "aten" not in shown.err, f"a dump: {shown.out}{shown.err}")

        # Weights of a built-in network.
        made = talpa("compile", IMPORT / "ds_cnn.safetensors", "--dump-after", "canonical")
        check.that(made.status == 0 and made.out.count("conv2d") >= 9, f"the names say which network it is: {made.out[:300]}{made.err}")
        wrong = talpa("compile", IMPORT / "ds_cnn.safetensors", "--architecture", "resnet18", "-o", missing)
        check.that(wrong.status == 1 and "missing: 'conv1.weight'" in wrong.err, f"what does not fit is listed: {wrong.err[:300]}")

        # Vela's forms: a configuration, costs, the debug map; and the map names the program's operations.
        config = folder / "my.ini"
        config.write_text("[System_Config.Slow]\ncore_clock=1e8\naxi0_port=Sram\naxi1_port=Dram\nDram_clock_scale=0.5\n"
                          "[Memory_Mode.Small]\nconst_mem_area=Axi1\narena_mem_area=Axi1\narena_cache_size=65536\n")
        csv, database = folder / "out.csv", folder / "out.xml"
        made = talpa("compile", IMPORT / "qdq_net.onnx", "-o", program, "--config", config, "--system-config", "Slow", "--memory-mode", "Small",
                     "--csv", csv, "--debug-db", database)
        check.that(made.status == 0 and "64.0 KiB of SRAM" in made.out and "at 100 MHz" in made.out, f"a configuration of one's own: {made.out}{made.err}")
        names, values = (line.split(",") for line in csv.read_text().splitlines())
        row = dict(zip(names, values))
        check.equal((row["network"], row["system_config"], row["memory_mode"], float(row["core_clock"])), ("qdq_net", "Slow", "Small", 1e8), "costs")
        shown = talpa("inspect", program, "--json", "--debug-db", database, "--config", config)
        facts = json.loads(shown.out)["delegates"][0]
        named = [o["node"] for o in facts["operations"] if "ofm" in o and "node" in o]
        check.equal((len(named), facts["cycles_total"]), (sum("ofm" in o for o in facts["operations"]), int(row["cycles_total"])),
                    "every kernel has a node, and the costs are the same")
        check.equal(set(named), {"node_4", "node_8", "node_11", "node_16"}, "names of the model: its convolutions, pool and layer have none but their places")
        failed = talpa("compile", IMPORT / "qdq_net.onnx", "-o", program, "--config", config, "--system-config", "Fast")
        check.that(failed.status == 2 and "in the files: Slow" in failed.err, f"a system that there is not: {failed.err}")
        config.write_text("[System_Config.Slow]\ncore_clock=fast\n")
        failed = talpa("compile", IMPORT / "qdq_net.onnx", "-o", program, "--config", config, "--system-config", "Slow")
        check.that(failed.status == 2 and "my.ini:2: [System_Config.Slow] core_clock: 'fast'" in failed.err, f"file, section, key: {failed.err}")
        check.equal(talpa("inspect", program, "--debug-db", csv).status, 1, "a debug database that is none")

        # Calibration that cannot be used.
        (folder / "empty").mkdir()
        failed = talpa("compile", IMPORT / "float_net.onnx", "-o", missing, "--calibration", folder / "empty")
        check.that(failed.status == 1 and "no picture, .npy or .bin in it" in failed.err, f"an empty folder: {failed.err}")
        (folder / "empty" / "notes.txt").write_text("no picture")
        failed = talpa("compile", IMPORT / "float_net.onnx", "-o", missing, "--calibration", folder / "empty")
        check.that(failed.status == 1 and "notes.txt" in failed.err, f"nothing but what is no picture: {failed.err}")
        (folder / "empty" / "a.bin").write_bytes(data)
        made = talpa("compile", IMPORT / "float_net.onnx", "-o", program, "--calibration", folder / "empty")
        check.that(made.status == 0 and "not used: notes.txt" in made.err, f"it is passed over, by name: {made.err}")

        # A name of the registry without a network: what to do instead.
        offline = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "https_proxy": "http://127.0.0.1:9", "ALL_PROXY": "http://127.0.0.1:9"}
        failed = talpa("compile", "mobilenet_v2", "-o", missing, env=offline)
        check.that(failed.status == 1 and "Without a network: fetch https://" in failed.err and "mobilenet_v2-b0353104.pth" in failed.err, f"offline: {failed.err}")
        failed = talpa("model", "get", "mobilenet_v2", env=offline)
        check.that(failed.status == 1 and "Without a network" in failed.err, f"offline: {failed.err}")

        failed = talpa("compile", "mobilenet_v9", "-o", missing)
        check.that(failed.status == 1 and "talpa model list" in failed.err, f"a name that there is not: {failed.err}")
        for flags in (("--architecture", "ds_cnn"), ("--picture-size", "64")):
            failed = talpa("compile", IMPORT / "small.tflite", *flags, "-o", missing)
            check.that(failed.status != 0 and f"{flags[0]} is for files of weights" in failed.err and not missing.exists(), f"{flags}: {failed.err}")

        # Usage.
        failed = talpa("compile", IMPORT / "qdq_net.onnx", "-o", "-")
        check.that(failed.status == 2 and "/dev/stdout" in failed.err, f"-o -: {failed.err}")
        failed = talpa("run", program, "--input", "-")
        check.that(failed.status == 1 and "/dev/stdin" in failed.err, f"--input -: {failed.err}")
        check.equal(talpa("compile", IMPORT / "qdq_net.onnx").status, 2, "no output")
        check.equal(talpa("compile", IMPORT / "qdq_net.onnx", "-o", program, "--sram", "lots").status, 2, "no size")
        mine = folder / "mine.onnx"
        mine.write_bytes((IMPORT / "qdq_net.onnx").read_bytes())
        for outputs in (("-o", mine), ("-o", program, "--csv", mine), ("-o", folder / "same", "--debug-db", folder / "same")):
            ran = talpa("compile", mine, *outputs)
            check.equal(ran.status, 2, f"{outputs}: {ran.out}")
            check.that("would overwrite an input" in ran.err or "would both write" in ran.err, ran.err)
        check.that(mine.read_bytes() == (IMPORT / "qdq_net.onnx").read_bytes() and not (folder / "same").exists(), "the model is as it was")
        names = folder / "names.txt"
        names.write_text("".join(f"name {i}\n" for i in range(1000)))
        many = json.loads(talpa("compile", mine, "-o", program, "--labels", names, "--json").out)
        check.that(any("has 1000 labels" in w or "no output scores classes" in w for w in many["warnings"]), many["warnings"])
        check.equal(talpa("compile", IMPORT / "qdq_net.onnx", "-o", program, "--target", "ethos-u85").status, 2, "no target")
        check.equal(talpa("compile", folder / "no", "-o", program).status, 1, "no file")
        check.equal(talpa("compile", __file__, "-o", program).status, 1, "no model")

        listed = talpa("model", "list", "--json")
        entries = json.loads(listed.out)
        check.that({"mobilenet_v2", "efficientnet_lite0"} <= {e["name"] for e in entries} and all(e["licence"] and e["sha256"] for e in entries),
                   f"the registry: {listed.out}")
        check.equal(talpa("model", "get", "nothing").status, 1, "a model that there is not")
    check.finish()


main()
