#!/usr/bin/env bash
# Measures talpa against its peers, side by side in one run: ./run bench [NAME…]; without names all of them.
#   litert   MobileNetV2 on the NPU model against LiteRT with XNNPACK (PyPI ai-edge-litert, in a venv under build/)
#   kernels  the single kernels of the NPU model
#   compiler talpa's programs of the reference networks against Vela's, by the cycle model; where python3, or the interpreter that
#            TALPA_EXECUTORCH_PYTHON names, has the packages executorch and ethos-u-vela, theirs are made anew and timed
#   topo     start-up and memory of topo, beside the original where TOPO_ORIGINAL is its path
#   remoteproc   remoteproc-runtime and its shim, against another pair where REMOTEPROC_PEER names its folder
#   run      a whole RUN of MobileNetV2 on the virtual board, and the NPU model's part of it
#   m33      the Cortex-M33 simulator against qemu-system-arm on the same programs
#   webapp   a picture through the web application on the virtual board against Flask, Pillow and pyserial
# BENCH_ARGUMENTS are handed on to the programs in bench/ of litert and remoteproc (their --help says what they take).
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
    local python=${TALPA_EXECUTORCH_PYTHON:-python3} made=
    if "$python" -c 'import ethosu.vela, executorch.exir' 2>/dev/null; then
        made=build/bench/vela
        rm -rf "$made"
        "$python" bench/compiler/vela.py "$reference" "$made" 2>"$made.log" | grep ' s, of which Vela '
    fi
    build/release/bin/talpa_bench_compiler ${made:+--vela "$made"} "$reference"
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

# What a figure depends on.
machine() {
    printf 'machine: %s, %d processors, %d MiB, Linux %s; talpa %s, %s; %s\n' \
        "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)" "$(awk '/^MemTotal/ {print int($2 / 1024)}' /proc/meminfo)" \
        "$(uname -r)" "$(git describe --always --dirty 2>/dev/null || echo 'without git')" "$(g++ --version | head -n 1)" "$(date -u +%F)"
}

all=(litert kernels run compiler m33 topo webapp remoteproc)
[ $# -gt 0 ] || set -- "${all[@]}"
for name in "$@"; do
    if ! declare -F "bench_$name" >/dev/null; then
        echo "bench: there is no '$name'; there are: ${all[*]}" >&2
        exit 2
    fi
done
machine
logs=build/bench
mkdir -p "$logs"
failed=0
for name in "$@"; do
    load=$(cut -d' ' -f1 /proc/loadavg)
    printf '\n== %s (load %s)\n' "$name" "$load"
    echo "load $load" > "$logs/$name"
    { set +e; (set -e; "bench_$name") 2>&1; echo $? > "$logs/status"; } | tee -a "$logs/$name" | { grep -v '^figure: ' || true; }
    case $(cat "$logs/status") in
        0 | 77) ;;
        *) echo "bench: $name failed" >&2; failed=1 ;;
    esac
done

# Lines `figure: WHAT | TALPA | PEER | RATIO` of what was said are the rows.
printf '\n== The figures\n'
machine
{
    echo 'figure | talpa | peer | talpa/peer | load'
    for name in "$@"; do awk 'NR == 1 {load = $2} sub(/^figure: /, "") {print $0 " | " load}' "$logs/$name"; done
} | awk -F ' *[|] *' '{printf "%-64s %14s %14s %10s  %s\n", $1, $2, $3, $4, $5}'
exit "$failed"
