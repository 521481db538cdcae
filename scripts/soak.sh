#!/usr/bin/env bash
# The long runs at full count: ./run soak [--again] [WORD], all or those whose name has WORD. scripts/soaks.txt is the list; one
# that passed is not run again until --again, so an interrupted soak goes on where it was. Output of each:
# build/soak/NAME.log. `./run test` has the short form of all.
set -euo pipefail
bin=build/release/bin
state=build/soak
mkdir -p "$state"
[ "${1:-}" = --again ] && { rm -f "$state"/*.passed; shift; }
only=${1:-}

failed=0 found=0
# The list is read by a descriptor of its own: a command that reads its input must not eat the lines behind its own.
while IFS='|' read -r name command <&3; do
    case $name in '#'* | '') continue ;; esac
    [[ "$name" == *"$only"* ]] || continue
    found=1
    if [ -e "$state/$name.passed" ]; then
        printf '%-28s passed before (%s)\n' "$name" "$(cat "$state/$name.passed")"
        continue
    fi
    printf '%-28s %s\n' "$name" "$command"
    start=$SECONDS
    if BIN=$bin bash -c "$command" </dev/null 3<&- >"$state/$name.log" 2>&1; then
        echo "$((SECONDS - start)) s" >"$state/$name.passed"
        printf '%-28s passed in %s\n' "" "$(cat "$state/$name.passed")"
    else
        failed=1
        tail -20 "$state/$name.log"
        printf '%-28s FAILED: %s\n' "" "$state/$name.log"
    fi
done 3<scripts/soaks.txt
[ $found = 1 ] || { echo "soak: none has '$only' in its name; scripts/soaks.txt lists them" >&2; exit 2; }
exit $failed
