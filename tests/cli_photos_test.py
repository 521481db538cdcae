#!/usr/bin/env python3
"""Real networks on real photographs, from the command line: the classes that the float network finds, tensors equal to the
reference set's, and what a cold start costs. Needs the reference set (skipped where it is absent)."""
import json
import pathlib
import sys
import tempfile

from talpa_test import REFERENCE, SANITIZED, SKIPPED, Checks, talpa

# README.md of the reference set: what the float MobileNetV2 says.
TOP_1 = {"cat.bmp": 285, "cat_720p.jpg": 285, "parrot.jpg": 88, "hot_dog.jpg": 934, "dragonfly.bmp": 319, "bird.bmp": 19, "sunflower.bmp": 985}
MODELS = ("mobilenet_v2", "mobilenet_v2_int8io", "mobilenet_v2_sram384")
MEMORY_BUDGET_KIB = 64 * 1024
STARTS = 5


def main():
    if not (REFERENCE / "models").exists():
        print("skipped: the reference set is absent")
        sys.exit(SKIPPED)
    check = Checks()
    labels = REFERENCE / "imagenet_labels.txt"
    names = labels.read_text().splitlines()
    photos = [REFERENCE / "photos" / name for name in TOP_1]
    for model in MODELS:
        ran = talpa("run", REFERENCE / "models" / model / f"{model}.pte", "--image", *photos, "--labels", labels, "--json")
        check.equal(ran.status, 0, f"{model}: {ran.err}")
        for photo, result in zip(photos, json.loads(ran.out)["results"], strict=True):
            best = result["top"][0]
            check.equal((best["class"], best["label"]), (TOP_1[photo.name], names[TOP_1[photo.name]]), f"{model} on {photo.name}")
    lite = talpa("run", REFERENCE / "models/efficientnet_lite0/efficientnet_lite0.pte", "--image", photos[0], "--labels", labels, "--json")
    best = json.loads(lite.out)["top"][0]
    check.equal((best["class"], round(best["probability"], 3)), (285, 0.505), "EfficientNet-Lite0 on cat.bmp")

    with tempfile.TemporaryDirectory() as folder:
        for model in ("mobilenet_v2", "efficientnet_lite0"):
            talpa("run", REFERENCE / "models" / model / f"{model}.pte", "--image", photos[0], "--output-dir", folder)
            expected = (REFERENCE / "models" / model / "out0.bin").read_bytes()
            check.that((pathlib.Path(folder) / "out0.bin").read_bytes() == expected, f"{model}: from picture to output, bit for bit")

    starts = [talpa("run", REFERENCE / "models/mobilenet_v2/mobilenet_v2.pte", "--image", photos[0], "--labels", labels) for _ in range(STARTS)]
    seconds = sorted(ran.seconds for ran in starts)
    peak = max(ran.peak_kib for ran in starts)
    print(f"MobileNetV2, whole process: {', '.join(f'{s * 1000:.0f}' for s in seconds)} ms; peak {peak / 1024:.1f} MiB")
    if not SANITIZED:
        check.that(peak < MEMORY_BUDGET_KIB, f"peak memory {peak} KiB, the budget is {MEMORY_BUDGET_KIB}")
    check.finish()


if __name__ == "__main__":
    main()
