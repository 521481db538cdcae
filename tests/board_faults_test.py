#!/usr/bin/env python3
"""Faults injected into a whole board, each with the error that one sees, and the next command works."""
import os
import select
import struct
import subprocess
import sys
import time
import zlib

import board_lib as lib
from board_lib import check, end, equal, log_of, run, shell_write, stage, started, wait_for


def answers(b):
    check(run(b, line="PING").startswith("PONG"), "an answer to PING")


def poke(b, address, data):
    with open(b.dev / "mem", "r+b", buffering=0) as memory:
        memory.seek(address)
        memory.write(data)


def a_program_with_one_wrong_bit_is_refused_by_its_crc():
    b = started()
    stage(b)
    program = (lib.GOLDEN / "ds_cnn_random.pte").read_bytes()
    command = f"RUN pte=0,{len(program)} crc={zlib.crc32(program):#x}"
    reply = run(b, line=command)
    check("OK RUN" in reply, f"the program as it is: {reply}")
    at = len(program) // 2
    poke(b, 0xC0000000 + at, bytes([program[at] ^ 0x10]))
    check("ERR 5" in run(b, line=command), "one bit wrong")
    poke(b, 0xC0000000 + at, program[at:at + 1])
    check("OK RUN" in run(b, line=command), "the program as it was")
    end(b)


def memory_without_a_program_is_said_so():
    b = started()
    poke(b, 0xC0000000, bytes(1 << 20))
    check("ERR 4" in run(b), "zeroed memory")
    stage(b)
    check("ERR 14" in run(b, line="RUN in=0x36D000,16"), "a tensor that is too small")
    check("ERR 8" in run(b, line="RUN pte=0x90000000,1000"), "a program outside of what is set aside")
    check("OK RUN" in run(b), "the next run")
    end(b)


def patched(change):
    image = bytearray(lib.FIRMWARE.read_bytes())
    change(image)
    return bytes(image)


def firmware_that_linux_cannot_use():
    def segment_elsewhere(image):
        table, = struct.unpack_from("<I", image, 28)
        struct.pack_into("<I", image, table + 12, 0x40000000)  # p_paddr of the first

    def no_table(image):
        at = bytes(image).index(b".resource_table\0")
        image[at:at + 15] = b".resource_tabla"

    b = lib.Board("--startup-delay", 0)
    files = {"elsewhere.elf": patched(segment_elsewhere), "no_table.elf": patched(no_table),
             "short.elf": lib.FIRMWARE.read_bytes()[:1000], "raw.bin": bytes(100000)}
    for name, data in files.items():
        (b.root / "lib/firmware" / name).write_bytes(data)
        equal(shell_write(name, b.remoteproc() / "firmware"), "", "firmware")
        equal(shell_write("start", b.remoteproc() / "state"), "" if name == "no_table.elf" else "Invalid argument", f"start of {name}")
        if name == "no_table.elf":
            time.sleep(0.1)
            check(not (b.dev / "ttyRPMSG0").is_symlink(), "no table, no tty")
            check("No resource table found" in (b.debug() / "resource_table").read_text(), "debugfs")
            equal(shell_write("stop", b.remoteproc() / "state"), "", "stop")
    log = log_of(b)
    for line in ("Translation failed: da = 0x40000000", "bad phdr da 0x40000000", "Failed to load program segments: -22",
                 "20000000..2003ffff  data TCM", "No resource table in elf", "Boot failed: -22"):
        check(line in log, f"the log lacks '{line}': {log}")
    b.install()
    b.start()
    answers(b)
    end(b)


def three_writers_at_once_get_every_reply_once():
    b = started()
    wait_for((b.dev / "ttyRPMSG0").is_symlink, "tty")
    reader = os.open(b.dev / "ttyRPMSG0", os.O_RDWR | os.O_NOCTTY)
    writers = [subprocess.Popen(["bash", "-c", f"for i in {{1..40}}; do echo \"@{w}-$i PING\"; done > {b.dev / 'ttyRPMSG0'}"])
               for w in "abc"]
    text = b""
    while text.count(b"PONG") < 120 and select.select([reader], [], [], 10)[0]:
        text += os.read(reader, 4096)
    for writer in writers:
        equal(writer.wait(10), 0, "writer")
    tags = sorted(line.split()[0] for line in text.decode().splitlines())
    equal(tags, sorted(f"@{w}-{i}" for w in "abc" for i in range(1, 41)), "replies")
    os.close(reader)
    end(b)


def rings_that_another_firmware_used_do_not_matter():
    b = lib.Board("--startup-delay", 0)
    poke(b, 0xA4000000, os.urandom(0x10000))  # rings of both devices
    poke(b, 0xA4020000, b"\xff" * 0x100000)  # buffers
    b.install()
    for starts in (1, 2):
        b.start()
        answers(b)
        equal(log_of(b).count("creating channel rpmsg-tty"), starts, "announcements")
        poke(b, 0xA4010000, os.urandom(0x10000))  # those of a device that this firmware does not have
        answers(b)
        equal(shell_write("stop", b.remoteproc() / "state"), "", "stop")
        poke(b, 0xA4000000, os.urandom(0x10000))
    end(b)


def messages_of_every_length_are_taken():
    b = started()
    wait_for((b.dev / "ttyRPMSG0").is_symlink, "tty")
    tty = os.open(b.dev / "ttyRPMSG0", os.O_RDWR | os.O_NOCTTY)
    text, asked = b"", []
    for size in [*range(9, 240, 7), 240, 241, 495, 496, 497, 600]:  # one write is one message, or two beyond 496 bytes
        line = f"@{size} PING ".ljust(size - 1, "x")
        os.write(tty, line.encode() + b"\n")
        asked.append(f"@{size} " + ("PONG" if len(line) <= 240 else "ERR 2"))
        while text.count(b"\n") < len(asked) and select.select([tty], [], [], 20)[0]:
            text += os.read(tty, 4096)
    got = text.decode().splitlines()
    check(len(got) == len(asked) and all(g.startswith(a) for g, a in zip(got, asked)), f"{got}, not {asked}")
    os.close(tty)
    end(b)


def a_reader_that_leaves_harms_nobody():
    b = started()
    stage(b)
    wait_for((b.dev / "ttyRPMSG0").is_symlink, "tty")
    for _ in range(5):  # closed in the middle of a reply
        tty = os.open(b.dev / "ttyRPMSG0", os.O_RDWR | os.O_NOCTTY)
        os.write(tty, b"RUN\n")
        os.read(tty, 10)
        os.close(tty)
    check("OK RUN" in run(b, line="@9 RUN"), "a run")
    end(b)


def questions_whose_answers_nobody_reads_are_all_answered_once():
    """Less than the 640 KiB that the board's tty holds for a reader who does not read."""
    b = started()
    wait_for((b.dev / "ttyRPMSG0").is_symlink, "tty")
    for word, lines, count in (("PING", 1, 1000), ("STATUS", 2, 1000), ("INFO", 3, 500)):
        tty = os.open(b.dev / "ttyRPMSG0", os.O_RDWR | os.O_NOCTTY)
        questions = "".join(f"@{i} {word}\n" for i in range(count)) + "@last PING\n"
        while questions:  # what does not fit the rings waits, and so does its writer
            questions = questions[os.write(tty, questions.encode()):]
        text = b""
        while b"@last PONG" not in text and select.select([tty], [], [], 60)[0]:
            text += os.read(tty, 65536)
        tags = [line.split()[0] for line in text.decode().splitlines()]
        equal(tags, [f"@{i}" for i in range(count) for _ in range(lines)] + ["@last"], f"replies to {word}")
        os.close(tty)
    check("ERR 4" in run(b), "the next run")
    end(b)


if not lib.FIRMWARE.exists():
    lib.skip("the firmware is not built (./run build)")
sys.exit(lib.run_all([a_program_with_one_wrong_bit_is_refused_by_its_crc, memory_without_a_program_is_said_so,
                      firmware_that_linux_cannot_use, three_writers_at_once_get_every_reply_once,
                      questions_whose_answers_nobody_reads_are_all_answered_once,
                      rings_that_another_firmware_used_do_not_matter, messages_of_every_length_are_taken, a_reader_that_leaves_harms_nobody]))
