#!/usr/bin/env bash
# ./run fuzz [SECONDS [WORD]]: every fuzz target, or those whose name has WORD, for SECONDS each (default 600), as many at a time
# as there are processors, seeded from tests/corpus/NAME. New inputs stay in
# build/fuzz/corpus; a crash is left in build/fuzz/crashes/ and named. With TALPA_FUZZ_SEED=N each target begins from the
# same inputs in the same order with the same random numbers, so that two runs of one build try the same things.
set -euo pipefail
seconds=${1:-600}
only=${2:-}
bin=build/fuzz/bin
mkdir -p build/fuzz/corpus build/fuzz/crashes
targets=$(git ls-files 'src/*_fuzz.cpp' | xargs -r -n1 basename | sed 's/\.cpp$//' | grep -e "$only" || true)
[ -n "$targets" ] || { echo "fuzz: no target matches '$only'" >&2; exit 2; }

one() {
    local name=$1 seconds=$2 log=build/fuzz/$1.log
    local inputs=("build/fuzz/corpus/$name" "tests/corpus/$name")
    mkdir -p "build/fuzz/corpus/$name"
    if [ -n "${TALPA_FUZZ_SEED:-}" ]; then
        # A folder is read in the file system's order, which differs between machines: a sorted list does not.
        find "tests/corpus/$name" -type f | LC_ALL=C sort | paste -sd, >"build/fuzz/$name.seeds"
        inputs=(-seed="$TALPA_FUZZ_SEED" -seed_inputs=@"build/fuzz/$name.seeds")
    fi
    if "$3/$name" -max_total_time="$seconds" -timeout=25 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
        -artifact_prefix="build/fuzz/crashes/$name-" "${inputs[@]}" >"$log" 2>&1; then
        printf '  %-28s %s runs, clean\n' "$name" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
    else
        tail -40 "$log"
        printf '  %-28s FAILED: %s\n' "$name" "$log"
        return 1
    fi
}
export -f one
printf '%s\n' $targets | xargs -P "$(nproc)" -I{} bash -c 'one "$@"' _ {} "$seconds" "$bin"
