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
    path=$(realpath --relative-to=. "$path")
    name=$(basename "${path%.*}")
    case $path in
        src/*)
            folder=${path#src/}
            until grep -q "^build talpa_${folder//\//_}_test:" build/release/build.ninja; do
                case $folder in */*) folder=${folder%/*} ;; *) folder='' && break ;; esac
            done
            if [ -n "$folder" ]; then targets[talpa_${folder//\//_}_test]=1; else echo "check: no test program is near $path"; fi ;;
        tests/*_test.py) scripts[$path]=1 ;;
        tests/*_test.cpp) targets[$name]=1 ;;
        *) echo "check: $path belongs to no test program" ;;
    esac
done
wanted=("${!targets[@]}")
[ ${#scripts[@]} -eq 0 ] || wanted+=(programs)  # what they start
[ ${#wanted[@]} -eq 0 ] || cmake --build --preset release --target "${wanted[@]}"
for target in "${!targets[@]}"; do
    "build/release/bin/$target" --gtest_brief=1
done
for script in "${!scripts[@]}"; do
    TALPA_BUILD=$PWD/build/release TALPA_SOURCE=$PWD /usr/bin/python3 "$script" || [ $? -eq 77 ]
done
