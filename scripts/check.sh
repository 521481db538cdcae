#!/usr/bin/env bash
# Builds and runs the tests nearest to what changed, as one does after each edit: ./run check [FILE|FOLDER…]; without any,
# of all files that differ from the last commit. For src/FOLDER/… that is the test program of the folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ $# -eq 0 ]; then
    mapfile -t changed < <(git diff --name-only HEAD; git ls-files --others --exclude-standard)
    set -- "${changed[@]}"
fi
declare -A targets=() scripts=()
for path in "$@"; do
    path=$(realpath -m --relative-to=. "$path")  # -m: what was deleted, with its folder, counts too
    name=$(basename "${path%.*}")
    case $path in
        src/*)
            folder=${path#src/}
            until grep -q "^build talpa_${folder//\//_}_test:" build/release/build.ninja; do
                case $folder in */*) folder=${folder%/*} ;; *) folder='' && break ;; esac
            done
            if [ -n "$folder" ]; then targets[talpa_${folder//\//_}_test]=1; else echo "check: no test program is near $path"; fi ;;
        tests/*_test.py) [ ! -e "$path" ] || scripts[$path]=1 ;;
        tests/*_test.cpp) [ ! -e "$path" ] || targets[$name]=1 ;;
        *) echo "check: $path belongs to no test program" ;;
    esac
done
wanted=("${!targets[@]}")
[ ${#scripts[@]} -eq 0 ] || wanted+=(programs)  # what they start
[ ${#wanted[@]} -eq 0 ] || cmake --build --preset release --target "${wanted[@]}"
# A test program once a processor, each with its part of the tests.
status=0
shards=$(nproc)
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
for target in "${!targets[@]}"; do
    started=$SECONDS pids=()
    for ((i = 0; i < shards; ++i)); do
        GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$i "build/release/bin/$target" --gtest_brief=1 >"$logs/$i" 2>&1 &
        pids+=($!)
    done
    failed=0
    for ((i = 0; i < shards; ++i)); do
        wait "${pids[i]}" || { failed=1; cat "$logs/$i"; }
    done
    if [ $failed -eq 0 ]; then echo "$target: passed, $((SECONDS - started)) s"; else echo "$target: FAILED" && status=1; fi
done
for script in "${!scripts[@]}"; do
    TALPA_BUILD=$PWD/build/release TALPA_SOURCE=$PWD /usr/bin/python3 "$script" || [ $? -eq 77 ] || status=1
done
exit $status
