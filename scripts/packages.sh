#!/usr/bin/env bash
# scripts/packages.sh [OUT]: Debian packages and release tarballs of what is built, into OUT (default build/packages), with
# SHA256SUMS. amd64 from build/release, arm64 from build/arm64; what is not built is left out, and said. The same commit and
# the same programs give the same bytes, whenever and wherever this runs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p "${1:-build/packages}"
out=$(cd "${1:-build/packages}" && pwd)
version=$(sed -n 's/^project(talpa VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CMakeLists.txt)
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
umask 022
firmware=executorch_runner_cm33.elf
grep -qs '^TALPA_UNITY:STRING=0$' build/release/CMakeCache.txt ||
    echo "packages: build/release compiles several sources at a time; for the bytes of a release: ./run packages" >&2
[ -f "build/firmware/$firmware" ] || { echo "packages: build/firmware/$firmware is missing: ./run build makes it" >&2; exit 1; }

pack() { # pack FOLDER ARCHIVE: the same bytes for the same files
    tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu -C "$1" -cf - . | gzip -9n > "$2"
}

# What the programs say of themselves, and what else no build makes; where cmake/TalpaPackages.cmake looks for it.
prepare() { # prepare PRESET [EMULATOR]
    local bin=build/$1/bin to=build/$1/packaging emulator=${2:-} shell
    rm -rf "$to"
    mkdir -p "$to/completions" "$to/runner" "$to/archives"
    python3 scripts/manual_pages.py "$bin" "$to/man" "$version" ${emulator:+--emulator "$emulator"}
    find "$to/man" -type f -exec gzip -9n {} +
    for program in talpa topo remoteproc-runtime; do
        for shell in bash:$program zsh:_$program fish:$program.fish; do
            $emulator "$bin/$program" completion "${shell%%:*}" > "$to/completions/${shell#*:}"
        done
    done
    $emulator "$bin/remoteproc-runtime" spec --bundle "$to/runner" --name imx-rproc --firmware $firmware
    ln -s /usr/lib/talpa/runner/rootfs/$firmware "$to/runner/$firmware"
    cp build/release/bin/remoteproc-runtime_*_linux_amd64.tar.gz "$to/archives/"
    ! compgen -G 'build/arm64/bin/remoteproc-runtime_*_linux_arm64.tar.gz' >/dev/null || cp build/arm64/bin/remoteproc-runtime_*_linux_arm64.tar.gz "$to/archives/"
}

# What this script has made, by name: OUT may be a folder that has other archives.
ours() { (cd "$out" && find . -maxdepth 1 -type f -regextype posix-extended -regex '\./(talpa|topo|remoteproc-runtime)[_-].*\.(deb|tar\.gz)' -printf '%f\n' | sort); }
(cd "$out" && ours | xargs -r rm -f && rm -f SHA256SUMS)
log=$(mktemp) stage=''
trap 'rm -rf "$log" "$stage"' EXIT
for pair in amd64:release: arm64:arm64:qemu-aarch64-static; do
    IFS=: read -r architecture preset emulator <<< "$pair"
    if [ ! -x "build/$preset/bin/talpa" ] || [ ! -x "build/$preset/bin/talpa-webapp" ]; then
        echo "packages: nothing for $architecture: build/$preset is not built"
        continue
    fi
    prepare "$preset" "$emulator"
    if ! (cd "build/$preset" && cpack -G DEB -B "$out") > "$log" 2>&1; then
        cat "$log" >&2
        exit 1
    fi
    rm -rf "$out/_CPack_Packages"
    # For a board whose Linux is not Debian's: the board's programs (static), firmware and units in one archive.
    if [ "$architecture" = arm64 ]; then
        stage=$(mktemp -d)
        for component in talpa remoteproc-runtime talpa-webapp talpa-board; do
            DESTDIR=$stage cmake --install build/$preset --component $component --strip > "$log"
        done
        pack "$stage" "$out/talpa-board_${version}_linux_arm64.tar.gz"
        rm -rf "$stage"
    fi
    cp "build/$preset/bin/remoteproc-runtime_${version}_linux_$architecture.tar.gz" "$out/"
done
if git rev-parse HEAD >/dev/null 2>&1; then
    git archive --format=tar --prefix="talpa-$version/" HEAD | gzip -9n > "$out/talpa_$version.tar.gz"
fi
(cd "$out" && ours | xargs -r sha256sum > SHA256SUMS && ls -l | awk 'NR > 1 {print $5, $9}')
