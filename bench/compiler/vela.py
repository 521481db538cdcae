#!/usr/bin/env python3
"""ExecuTorch and Vela on the reference networks, for the side-by-side table: bench/compiler/vela.py REFERENCE OUT [NAME...]

Writes OUT/NAME.pte and OUT/NAME.seconds (the whole lowering and, of it, Vela; the import of the packages is not counted).
Memory mode, system configuration and int8 inputs and outputs are those with which the recorded program was made, which its
NAME.json tells. Needs the packages executorch and ethos-u-vela (executorch[ethos-u])."""
import json
import pathlib
import sys
import time
import warnings

# Programs whose network stands under another name, and the SRAM that they are limited to (bytes).
OTHER_MODEL = {"mobilenet_v2_sram384": "mobilenet_v2"}
ARENA = {"mobilenet_v2_sram384": 384 << 10}


def timed(function, total):
    def inner(*arguments, **named):
        begin = time.perf_counter()
        try:
            return function(*arguments, **named)
        finally:
            total[0] += time.perf_counter() - begin
    return inner


def main(reference, out, names):
    import torch
    import executorch.kernels.quantized  # the operators that quantize and dequantize
    from ethosu.vela import vela
    from executorch.backends.arm.ethosu import EthosUCompileSpec, EthosUPartitioner
    from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge_transform_and_lower
    from executorch.exir.passes.quantize_io_pass import QuantizeInputs, QuantizeOutputs

    in_vela = [0.0]
    vela.main = timed(vela.main, in_vela)
    out.mkdir(parents=True, exist_ok=True)
    for folder in sorted((reference / "models").iterdir()) + sorted((reference / "ops").iterdir()):
        name = folder.name
        facts_file = folder / f"{name}.json"
        model = folder.parent / OTHER_MODEL.get(name, name) / f"{OTHER_MODEL.get(name, name)}.quantized.pt2"
        if (names and name not in names) or not model.is_file() or not facts_file.is_file():
            continue
        facts = json.loads(facts_file.read_text())
        limit = [f"--arena-cache-size={ARENA[name]}"] if name in ARENA else None
        spec = EthosUCompileSpec(facts["target"], facts.get("system_config"), facts.get("memory_mode"), limit)
        program = torch.export.load(model)
        in_vela[0] = 0.0
        begin = time.perf_counter()
        edge = to_edge_transform_and_lower(program, partitioner=[EthosUPartitioner(spec)],
                                           compile_config=EdgeCompileConfig(_check_ir_validity=False))
        if facts.get("input_quant"):
            edge = edge.transform([QuantizeInputs(edge, [0]), QuantizeOutputs(edge, [0])])
        pte = edge.to_executorch(config=ExecutorchBackendConfig(extract_delegate_segments=False)).buffer
        seconds = time.perf_counter() - begin
        (out / f"{name}.pte").write_bytes(pte)
        (out / f"{name}.seconds").write_text(f"{seconds:.2f} {in_vela[0]:.2f}\n")
        print(f"{name}: {seconds:.1f} s, of which Vela {in_vela[0]:.1f} s", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    warnings.simplefilter("ignore")
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:])
