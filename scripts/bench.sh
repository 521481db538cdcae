#!/usr/bin/env bash
# Measures talpa against its peers, side by side in one run: ./run bench [NAME…]; without names all of them.
#   litert   MobileNetV2 on the NPU model against LiteRT with XNNPACK (PyPI ai-edge-litert, in a venv under build/)
#   kernels  the single kernels of the NPU model
#   compiler talpa's programs of the reference networks against Vela's, by the cycle model
#   topo     start-up and memory of topo, beside the original where TOPO_ORIGINAL is its path
#   remoteproc   remoteproc-runtime and its shim, against another pair where REMOTEPROC_PEER names its folder
#   run      a whole RUN of MobileNetV2 on the virtual board, and the NPU model's part of it
#   m33      the Cortex-M33 simulator against qemu-system-arm on the same programs
#   webapp   a picture through the web application on the virtual board against Flask, Pillow and pyserial
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

reference=${TALPA_REFERENCE:-../shared/reference}

bench_litert() {
    if [ ! -d "$reference/models/mobilenet_v2_int8io" ]; then
        echo "bench litert: the reference set is absent (TALPA_REFERENCE names its folder); skipped"
        return
    fi
    cmake --build --preset release --target talpa_bench_server >/dev/null
    if [ ! -x build/bench-venv/bin/python ]; then
        echo "Making build/bench-venv with ai-edge-litert"
        /usr/bin/python3 -m venv build/bench-venv
        build/bench-venv/bin/pip install -q ai-edge-litert numpy
    fi
    build/bench-venv/bin/python bench/litert/compare.py --server build/release/bin/talpa_bench_server \
        --model "$reference/models/mobilenet_v2_int8io" \
        --tflite "$reference/tflite/tf2_mobilenet_v2_1.0_224_ptq.tflite" ${BENCH_ARGUMENTS:-}
}

bench_kernels() {
    cmake --build --preset release --target kernels_bench >/dev/null
    build/release/bin/kernels_bench
}

bench_compiler() {
    if [ ! -d "$reference/models" ]; then
        echo "bench compiler: the reference set is absent (TALPA_REFERENCE names its folder); skipped"
        return
    fi
    cmake --build --preset release --target talpa_bench_compiler >/dev/null
    build/release/bin/talpa_bench_compiler "$reference"
}

bench_run() {
    if [ ! -d "$reference/models/mobilenet_v2" ]; then
        echo "bench run: the reference set is absent (TALPA_REFERENCE names its folder); skipped"
        return
    fi
    cmake --build --preset release --target run_bench >/dev/null
    build/release/bin/run_bench build/firmware/executorch_runner_cm33.elf "$reference/models/mobilenet_v2/mobilenet_v2.pte" \
        "$reference/models/mobilenet_v2/in0.bin" "$reference/models/mobilenet_v2/out0.bin"
}

bench_m33() {
    /usr/bin/python3 bench/m33.py
}

bench_remoteproc() {
    /usr/bin/python3 bench/remoteproc.py ${REMOTEPROC_PEER:+--peer "$REMOTEPROC_PEER"} ${BENCH_ARGUMENTS:-}
}

bench_webapp() {
    cmake --build --preset release --target talpa-webapp talpa_board_tree_tool >/dev/null
    TALPA_BUILD=build/release /usr/bin/python3 bench/webapp/compare.py
}

bench_topo() {
    /usr/bin/python3 bench/topo.py
    [ -z "${TOPO_ORIGINAL:-}" ] || /usr/bin/python3 bench/topo.py --board
}

[ $# -gt 0 ] || set -- litert kernels run compiler m33 topo webapp remoteproc
for name in "$@"; do
    if ! declare -F "bench_$name" >/dev/null; then
        echo "bench: there is no '$name'; there are: litert, kernels, run, compiler, m33, topo, webapp, remoteproc" >&2
        exit 2
    fi
    printf '\n== %s\n' "$name"
    "bench_$name"
done
