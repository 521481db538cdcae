#!/usr/bin/env python3
"""Writes src/base/core/sentence_pairs.h: the pairs of characters by which the firmware's build packs the sentences of errors
(byte pair encoding over those of the freestanding folders). Any table is right; a fresh one packs new sentences better."""
import collections
import pathlib
import re

SOURCE = pathlib.Path(__file__).resolve().parent.parent / "src"
FOLDERS = ("base/core", "npu", "pte", "runtime", "link", "firmware", "firmware/chip")
OPERATORS = ("runtime/operators/quantize.cpp",)
NAMES = (("base/core/error.h", 1), ("link/runner_protocol.h", 2))  # the name of a code; its text
PAIRS = 128
LITERALS = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'


def sentences():
    files = [f for folder in FOLDERS for f in sorted((SOURCE / folder).glob("*.[ch]*"))
             if not re.search(r"_(test|fuzz|bench)\.|for_test", f.name)]
    for file in files + [SOURCE / name for name in OPERATORS]:
        text = file.read_text()
        for call in re.finditer(r"\b(?:fail|bad|refuse|error|Error|TALPA_SENTENCE|S)\(", text):
            first = re.match(r'[^;"]*?' + LITERALS, text[call.end():call.end() + 700])
            if first:
                yield "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', first[1]))
    for table, column in NAMES:  # what a macro of rows makes sentences of
        text = (SOURCE / table).read_text()
        yield from (row[column - 1] for row in re.findall(r'^ +X\((\w+), \w+, "([^"]*)"\)', text, re.MULTILINE))


def pairs(texts):
    sequences = [[ord(c) for c in text] for text in sorted(set(texts)) if text.isascii()]
    rules = []
    for code in range(128, 128 + PAIRS):
        count = collections.Counter()
        for s in sequences:
            count.update(zip(s, s[1:]))
        best = max(count, key=lambda pair: (count[pair], pair))
        rules.append(best)
        for s in sequences:
            i = 0
            while i + 1 < len(s):
                if (s[i], s[i + 1]) == best:
                    s[i:i + 2] = [code]
                i += 1
    return rules, sum(len(s) + 1 for s in sequences)


def main():
    texts = list(sentences())
    rules, packed = pairs(texts)
    rows = [", ".join(f"{{{a}, {b}}}" for a, b in rules[i:i + 10]) for i in range(0, PAIRS, 10)]
    (SOURCE / "base/core/sentence_pairs.h").write_text(
        "// Made by scripts/make_sentence_pairs.py. Code 128 + i stands for the two codes of row i; codes below 128 are ASCII.\n"
        "#pragma once\n\n#include <cstdint>\n\nnamespace talpa::detail {\n\n"
        "struct SentencePair {\n    std::uint8_t first, second;\n};\n"
        "// clang-format off\n"
        "inline constexpr SentencePair kSentencePairs[] = {\n    " + ",\n    ".join(rows) +
        "};\n// clang-format on\n\n}  // namespace talpa::detail\n")
    print(f"{len(set(texts))} sentences, {sum(len(t) + 1 for t in set(texts))} bytes, packed {packed}")


main()
