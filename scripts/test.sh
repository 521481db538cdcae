#!/usr/bin/env bash
# The tests of the release build, without those labelled long; --all takes those too. Other arguments go to ctest
# (./run test -R npu/). Ends with ctest's own summary.
set -euo pipefail
choice=(-LE long)
case "${1:-}" in
    --all) shift; choice=() ;;
    -*) choice=() ;;
esac
exec ctest --test-dir build/release --output-on-failure -j "$(nproc)" --no-tests=error "${choice[@]}" "$@"
