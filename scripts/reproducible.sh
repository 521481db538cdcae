#!/usr/bin/env bash
# scripts/reproducible.sh [--ccache] [--amd64] [FOLDER]: is a release the same bytes wherever it is built? Clones HEAD into two folders
# with paths of different lengths, builds programs, firmware and (without --amd64) arm64 in each, packs both, compares the checksums
# of all files. The compiler's cache is off unless --ccache is given (then a second build may be copies of the first).
# Exit status: 0 equal, 1 different (both folders stay).
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export CCACHE_DISABLE=1
presets=(release firmware arm64)
while [ $# -gt 0 ]; do
    case "$1" in
        --ccache) unset CCACHE_DISABLE; shift ;;
        --amd64) presets=(release firmware); shift ;;
        -*) sed -n 2,5p "${BASH_SOURCE[0]}" >&2; exit 2 ;;
        *) break ;;
    esac
done
out=${1:-$(mktemp -d /var/tmp/talpa-reproducible-XXXXXX)}
trees=("$out/a" "$out/in-another/folder")
for tree in "${trees[@]}"; do
    git clone --quiet --no-hardlinks "$repository" "$tree"
    (
        cd "$tree"
        for preset in "${presets[@]}"; do
            target=(--target programs) form=(-DTALPA_PCH=OFF -DTALPA_UNITY=0)  # as ./run packages
            [ "$preset" != firmware ] || target=() form=()
            cmake --preset "$preset" "${form[@]}" >/dev/null
            echo "$tree: $preset"
            cmake --build --preset "$preset" "${target[@]}" >"build/$preset.log" 2>&1 || { tail -20 "build/$preset.log" >&2; exit 1; }
        done
        scripts/packages.sh >/dev/null
    )
done
cat "${trees[0]}/build/packages/SHA256SUMS"
if ! diff "${trees[@]/%//build/packages/SHA256SUMS}"; then
    echo "reproducible: the releases differ; both are in $out" >&2
    exit 1
fi
echo "The same bytes in both: $(wc -l < "${trees[0]}/build/packages/SHA256SUMS") files."
rm -rf "$out/a" "$out/in-another"
rmdir "$out" 2>/dev/null || true
