#!/usr/bin/env bash
# ./run demo: the longest chain that talpa has today, step by step, with times. Today that is: a photo and a program made by
# ExecuTorch and Vela go in, the NPU model runs it, classes come out. It says what it does not show.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
talpa=build/release/bin/talpa
reference=${TALPA_REFERENCE:-../shared/reference}
photo=docs/pictures/chelsea.jpg
out=build/demo
step=0

# Shows what is run and runs it, so that one can paste it.
show() {
    step=$((step + 1))
    printf '\n== %d. %s\n$ %s\n' "$step" "$1" "${*:2}"
    local started ended status=0
    started=$(date +%s%N)
    "${@:2}" || status=$?
    ended=$(date +%s%N)
    printf -- '-- took %d.%03d s\n' $(((ended - started) / 1000000000)) $(((ended - started) / 1000000 % 1000))
    return "$status"
}

size_of() { printf '%d KiB' $((($(stat -c %s "$1") + 1023) / 1024)); }

if [ -f "$reference/models/mobilenet_v2/mobilenet_v2.pte" ]; then
    program=$reference/models/mobilenet_v2/mobilenet_v2.pte
    labels=(--labels "$reference/imagenet_labels.txt")
    echo "MobileNetV2 with real ImageNet weights ($(size_of "$program")), compiled for the Ethos-U65 by ExecuTorch and Vela."
else
    program=tests/golden/models/resnet8_random/resnet8_random.pte
    labels=()
    echo "A ResNet-8 with RANDOM weights ($(size_of "$program")): no trained classifier comes with this repository, and talpa does not"
    echo "compile one yet. What you see is a real program, run exactly; the classes that it names mean nothing."
fi
folder=$(dirname "$program")
echo "The photo: $photo ($(size_of "$photo"), a cat)."

show "What is in the program, and what memory it needs to the byte" "$talpa" inspect "$program"
show "Classify the photo on the NPU model" "$talpa" run "$program" --image "$photo" "${labels[@]}"
show "Run the recorded input, 20 times" "$talpa" run "$program" --input "$folder/in0.bin" "${labels[@]}" --repeat 20 --output-dir "$out"
show "Is the output equal, bit for bit, to the one recorded with other software?" \
    "$talpa" compare "$program" --input "$folder/in0.bin" --against "$folder"

echo
echo "Done. Not shown yet: the compiler, the firmware, the virtual board and the web page."
