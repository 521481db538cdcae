#!/usr/bin/env bash
# Builds the web application's page: scripts/build_ui.sh SOURCE OUT. Called by the build. The packages of package-lock.json are fetched
# by npm into OUT/work (once, and again when the list changes); the page lands in OUT/ui, with the samples and the API's
# description beside it: everything that the server's binary carries.
set -euo pipefail
source=$1 out=$2
work=$out/work
mkdir -p "$work"
if ! command -v npm >/dev/null; then
    echo "build_ui: npm is missing: ./run setup installs it (Debian packages nodejs and npm)" >&2
    exit 1
fi
cp -r "$source"/ui/. "$work"/
if ! cmp -s "$work/package-lock.json" "$work/node_modules/.talpa-lock"; then
    if ! (cd "$work" && npm ci --no-audit --no-fund --prefer-offline) >"$work/npm.log" 2>&1; then
        cat "$work/npm.log" >&2
        echo "build_ui: npm could not fetch the page's packages (preact, vite). The first build needs the network;" >&2
        echo "build_ui: without it, build everything else: cmake -D TALPA_WEBAPP=OFF --preset release" >&2
        exit 1
    fi
    cp "$work/package-lock.json" "$work/node_modules/.talpa-lock"
fi
if ! (cd "$work" && node_modules/.bin/vite build --outDir "$out/ui" --emptyOutDir --logLevel warn) >"$work/vite.log" 2>&1; then
    cat "$work/vite.log" >&2
    exit 1
fi
mkdir -p "$out/samples"
cp "$source"/samples/*.jpg "$out/samples/"
cp "$source/openapi.json" "$out/"
