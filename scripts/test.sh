#!/usr/bin/env bash
# All tests of the release build; arguments go to ctest (./run test -R npu/). Ends with ctest's own summary.
set -euo pipefail
exec ctest --test-dir build/release --output-on-failure -j "$(nproc)" --no-tests=error "$@"
