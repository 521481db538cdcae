#!/usr/bin/env bash
# The long runs at full count. Each is a line NAME|COMMAND below; one that passed is not run again until `./run soak --again`,
# so an interrupted soak goes on where it was. Output of each: build/soak/NAME.log. `./run test` has the short form of all.
set -euo pipefail
bin=build/release/bin
state=build/soak
mkdir -p "$state"
[ "${1:-}" = --again ] && { rm -f "$state"/*.passed; shift; }
only=${1:-}

soaks() {
    cat scripts/soaks.txt | grep -v '^#'
}

failed=0
while IFS='|' read -r name command; do
    [[ "$name" == *"$only"* ]] || continue
    if [ -e "$state/$name.passed" ]; then
        printf '%-28s passed before (%s)\n' "$name" "$(cat "$state/$name.passed")"
        continue
    fi
    printf '%-28s %s\n' "$name" "$command"
    start=$SECONDS
    if BIN=$bin bash -c "$command" >"$state/$name.log" 2>&1; then
        echo "$((SECONDS - start)) s" >"$state/$name.passed"
        printf '%-28s passed in %s\n' "" "$(cat "$state/$name.passed")"
    else
        failed=1
        tail -20 "$state/$name.log"
        printf '%-28s FAILED: %s\n' "" "$state/$name.log"
    fi
done < <(soaks)
exit $failed
