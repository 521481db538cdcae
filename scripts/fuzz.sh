#!/usr/bin/env bash
# Every fuzz target for SECONDS each (default 600), two at a time, seeded from tests/corpus/NAME. New inputs stay in
# build/fuzz/corpus; a crash is left in build/fuzz/crashes/ and named.
set -euo pipefail
seconds=${1:-600}
only=${2:-}
bin=build/fuzz/bin
mkdir -p build/fuzz/corpus build/fuzz/crashes
targets=$(git ls-files 'src/*_fuzz.cpp' | xargs -r -n1 basename | sed 's/\.cpp$//' | grep -e "$only" || true)
[ -n "$targets" ] || { echo "fuzz: no target matches '$only'" >&2; exit 2; }

one() {
    local name=$1 seconds=$2 log=build/fuzz/$1.log
    mkdir -p "build/fuzz/corpus/$name"
    if "$3/$name" -max_total_time="$seconds" -timeout=25 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
        -artifact_prefix="build/fuzz/crashes/$name-" "build/fuzz/corpus/$name" "tests/corpus/$name" >"$log" 2>&1; then
        printf '  %-28s %s runs, clean\n' "$name" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
    else
        tail -40 "$log"
        printf '  %-28s FAILED: %s\n' "$name" "$log"
        return 1
    fi
}
export -f one
printf '%s\n' $targets | xargs -P "$(nproc)" -I{} bash -c 'one "$@"' _ {} "$seconds" "$bin"
