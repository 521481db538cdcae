#!/usr/bin/env bash
# scripts/assemble_project.sh DEST PROGRAM.pte LABELS: a copy of projects/imx93-npu-classifier with everything that its
# images take, from the build: the web application for each architecture that was built, the firmware, program and
# labels. What it makes deploys without a build tree: topo clone dir:DEST.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ $# = 3 ] || { sed -n 2,4p "${BASH_SOURCE[0]}" >&2; exit 2; }
destination=$1 program=$2 labels=$3

part=$destination.part.$$
trap 'rm -rf "$part"' EXIT
rm -rf "$part"
mkdir -p "$(dirname "$destination")"
cp -r projects/imx93-npu-classifier "$part"
mkdir -p "$part"/{webapp,runner}/artifacts

put() { # put FILE TO
    mkdir -p "$(dirname "$2")"
    cp "$1" "$2"
}
architectures=0
for pair in amd64:build/release arm64:build/arm64; do
    if [ -f "${pair#*:}/bin/talpa-webapp" ]; then
        put "${pair#*:}/bin/talpa-webapp" "$part/webapp/artifacts/${pair%%:*}/talpa-webapp"
        architectures=$((architectures + 1))
    fi
done
[ "$architectures" -gt 0 ] || { echo "assemble_project: build/release/bin/talpa-webapp is missing; ./run build makes it" >&2; exit 1; }
put build/firmware/executorch_runner_cm33.elf "$part/runner/artifacts/executorch_runner_cm33.elf"
put "$labels" "$part/webapp/artifacts/imagenet_classes.txt"
# The file name tells the page what it is: only a MobileNetV2 is called mv2_….
name=$(basename "$program")
put "$program" "$part/webapp/artifacts/$name"
if [ "$name" != mv2_ethosu65_256.pte ]; then
    sed -i "s/:-mv2_ethosu65_256.pte}/:-$name}/" "$part/compose.yaml"
fi
rm -rf "$destination"
mv "$part" "$destination"
