#!/usr/bin/env python3
"""A board below a folder: each wrong write gives what Linux gives, by the shell's own echo; states; what comes and goes."""
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time

import board_lib as lib
from board_lib import board, check, equal, shell_write, wait_for

INVALID, BUSY, DENIED, ABSENT = ("Invalid argument", "Device or resource busy", "Permission denied",
                                 "No such file or directory")

# What kernel 6.6 answers while the processor is offline: (file, text, message of echo). remoteproc spec, section 7.1
OFFLINE = [
    ("state", "start", ABSENT),  # the default firmware does not exist
    ("state", "stop", INVALID),
    ("state", "detach", INVALID),
    ("state", "bogus", INVALID),
    ("state", " start", INVALID),
    ("state", "start start", INVALID),
    ("state", "start\r", INVALID),
    ("state", "", INVALID),
    ("state", "START", INVALID),
    ("firmware", "", INVALID),
    ("recovery", "disabled", ""),
    ("recovery", "enabled", ""),
    ("recovery", "recover", ""),
    ("recovery", "on", INVALID),
    ("coredump", "inline", ""),
    ("coredump", "enabled", ""),
    ("coredump", "disabled", ""),
    ("coredump", "yes", INVALID),
    ("name", "other", DENIED),
]
RUNNING = [
    ("firmware", "other.elf", BUSY),
    ("firmware", "", BUSY),
    ("state", "detach", INVALID),
    ("state", "nonsense", INVALID),
    ("state", "start", ""),  # counted: it wants one more stop
    ("state", "stop", ""),
]


def wrong_writes_give_what_linux_gives():
    with board("--startup-delay", 0) as b:
        for file, text, message in OFFLINE:
            equal(shell_write(text, b.remoteproc() / file), message, f"echo {text!r} > {file} while offline")
        b.install()
        b.start()
        for file, text, message in RUNNING:
            equal(shell_write(text, b.remoteproc() / file), message, f"echo {text!r} > {file} while running")
        equal((b.remoteproc() / "state").read_text(), "running\n", "state after start, start, stop")
        equal(shell_write("stop", b.remoteproc() / "state"), "", "second stop")
        equal((b.remoteproc() / "state").read_text(), "offline\n", "state at the end")
        log = lib.talpa("board", "logs", "--root", b.root).stdout
        for line in ("Direct firmware load for rproc-imx-rproc-fw failed with error -2", "Boot failed: -2",
                     "Unrecognised option: bogus", "can't provide empty string for firmware name",
                     "can't change firmware while running"):
            check(line in log, f"the log lacks '{line}': {log}")


def old_kernels_refuse_a_second_start():
    with board("--startup-delay", 0, "--kernel", "legacy") as b:
        b.install()
        b.start()
        equal(shell_write("start", b.remoteproc() / "state"), BUSY, "second start")


def one_write_is_one_command():
    with board("--startup-delay", 0) as b:
        state = os.open(b.remoteproc() / "state", os.O_RDWR)
        for text in (b"stop", b"stop\n", b"st", b"stop\n\n", b"x" * 5000):
            try:
                os.write(state, text)
                raise AssertionError(f"{text[:20]} was accepted")
            except OSError as error:
                equal(error.errno, 22, f"errno of {text[:20]}")
        equal(os.read(state, 100), b"offline\n", "first read")
        equal(os.read(state, 100), b"", "at the end")
        os.close(state)
        for call, path in ((os.mkdir, "x"), (os.unlink, "state"), (os.rmdir, "power")):
            try:
                call(b.remoteproc() / path)
                raise AssertionError(f"{call} was accepted")
            except PermissionError:
                pass
        equal(os.stat(b.remoteproc() / "state").st_size, 4096, "size of an attribute")


def firmware_is_looked_for_where_linux_looks():
    with board("--startup-delay", 0) as b:
        parameter = b.sys / "module/firmware_class/parameters/path"
        firmware, state = b.remoteproc() / "firmware", b.remoteproc() / "state"
        elf = lib.FIRMWARE.read_bytes()
        places = ["opt/fw", f"lib/firmware/updates/{os.uname().release}", "lib/firmware/updates",
                  f"lib/firmware/{os.uname().release}", "lib/firmware"]
        equal(shell_write("/opt/fw", parameter), "", "path")
        equal(parameter.read_text(), "/opt/fw\n", "path")
        for place in places:
            (b.root / place).mkdir(parents=True, exist_ok=True)
        for i, place in enumerate(places):  # sizes tell which of them was taken
            (b.root / place / "f.elf").write_bytes(elf + bytes(i + 1))
        equal(shell_write("f.elf", firmware), "", "firmware")
        for i, place in enumerate(places):
            equal(shell_write("start", state), "", f"start from {place}")
            equal(shell_write("stop", state), "", "stop")
            check(f"Booting fw image f.elf, size {len(elf) + i + 1}" in lib.talpa("board", "logs", "--root", b.root).stdout,
                  f"{place} was not taken")
            (b.root / place / "f.elf").unlink()
        equal(shell_write("start", state), ABSENT, "start when all are gone")
        (b.root / "lib/firmware/sub").mkdir()
        (b.root / "lib/firmware/sub/f.elf").write_bytes(elf)
        for name, message in (("sub/f.elf", ""), ("/lib/firmware/sub/f.elf", ABSENT), ("sub/../sub/f.elf", INVALID),
                              ("sub", ABSENT), ("n" * 300, "File name too long")):
            equal(shell_write(name, firmware), "", "firmware")
            equal(shell_write("start", state), message, f"start of {name}")
            if not message:
                equal(shell_write("stop", state), "", "stop")
        (b.root / "lib/firmware/raw.bin").write_bytes(bytes(4096))
        equal(shell_write("raw.bin", firmware), "", "firmware")
        equal(shell_write("start", state), INVALID, "start of a .bin")


def a_program_that_knows_nothing_of_talpa_runs_a_network():
    golden = lib.SOURCE / "tests/golden/models/resnet8_random"
    with board() as b:  # with Linux's delay of 500 ms
        b.install()
        before = time.monotonic()
        b.start()
        check(0.5 <= time.monotonic() - before < 5, "a start takes its delay")
        tty = b.dev / "ttyRPMSG0"
        wait_for(tty.is_symlink, "tty")
        script = f"""
import mmap, os
memory = os.open({str(b.dev / 'mem')!r}, os.O_RDWR | os.O_SYNC)
model = mmap.mmap(memory, 0x400000, offset=0xC0000000)
pte, tensor = open({str(golden / 'resnet8_random.pte')!r}, 'rb').read(), open({str(golden / 'in0.bin')!r}, 'rb').read()
model[0:len(pte)] = pte
model[0x36D000:0x36D000 + len(tensor)] = tensor
tty = os.open({str(tty)!r}, os.O_RDWR | os.O_NOCTTY)
os.write(tty, b'RUN\\n')
text = b''
while b'OK RUN' not in text and b'ERR' not in text:
    text += os.read(tty, 4096)
print(text.decode())
want = open({str(golden / 'out0.bin')!r}, 'rb').read()
print('EQUAL' if mmap.mmap(memory, 0x1000, offset=0xAB000000)[0:len(want)] == want else 'DIFFERENT')
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
        check("OK RUN seq=1" in done.stdout and "EQUAL" in done.stdout, f"the run: {done.stdout} {done.stderr}")
        with open(b.dev / "mem", "rb", buffering=0) as memory:  # the resource table at its system address
            memory.seek(0x2021E000)
            equal(struct.unpack("<2I", memory.read(8)), (1, 2), "version and entries of the resource table")
            memory.seek(0x2021E060)
            equal(memory.read(1), b"\x07", "virtio status while running")
            trace = (b.debug() / "trace0").read_text()
            check("1 inferences finished" in trace, f"trace: {trace}")
            check("Status 0x7" in (b.debug() / "resource_table").read_text(), "resource_table of debugfs")
            equal(shell_write("stop", b.remoteproc() / "state"), "", "stop")
            memory.seek(0x2021E060)
            equal(memory.read(1), b"\x00", "virtio status after the stop")
        check(not os.path.lexists(tty), "the tty is gone after the stop")
        check(not (b.debug() / "trace0").exists(), "so is the trace")


def a_blocked_reader_wakes_when_the_processor_stops():
    with board("--startup-delay", 0) as b:
        b.install()
        b.start()
        tty = b.dev / "ttyRPMSG0"
        wait_for(tty.is_symlink, "tty")
        reader = subprocess.Popen(["cat", tty], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.1)
        equal(shell_write("stop", b.remoteproc() / "state"), "", "stop")
        reader.communicate(timeout=5)


def many_idle_processors_cost_nothing():
    with board("--remoteproc", 50) as b:
        check((b.remoteproc(49) / "name").read_text() == "imx-rproc\n", "name of the last")

        def cpu_ticks():
            fields = pathlib.Path(f"/proc/{b.pid()}/stat").read_text().rpartition(")")[2].split()
            return int(fields[11]) + int(fields[12])

        before = cpu_ticks()
        time.sleep(1)
        check(cpu_ticks() - before <= 2, f"50 idle processors used {cpu_ticks() - before} ticks of 10 ms in a second")
        resident = int(pathlib.Path(f"/proc/{b.pid()}/statm").read_text().split()[1]) * 4
        check(resident < 120_000 or not lib.MEMORY_TELLS, f"50 idle processors hold {resident} KiB")


def processors_have_memories_of_their_own():
    with board("--startup-delay", 0, "--remoteproc", 3) as b:
        lib.shutil.copy(lib.FIRMWARE, b.root / "lib/firmware/runner.elf")
        for k in range(3):  # each tty is there before the next one comes: so are its numbers
            equal(shell_write("runner.elf", b.remoteproc(k) / "firmware"), "", "firmware")
            equal(shell_write("start", b.remoteproc(k) / "state"), "", "start")
            wait_for((b.dev / f"ttyRPMSG{k}").is_symlink, "tty")
        lib.stage(b, "mem1")
        for k, (ending, table) in enumerate((("ERR 4", 7), ("OK RUN", 7), ("ERR 4", 7))):
            check(ending in lib.run(b, f"ttyRPMSG{k}"), f"a run on remoteproc{k}")
            with open(b.dev / ("mem" if k == 0 else f"mem{k}"), "rb", buffering=0) as memory:
                memory.seek(0x2021E060)
                equal(memory.read(1), bytes([table]), f"status in the table of remoteproc{k}")
        equal(shell_write("stop", b.remoteproc(1) / "state"), "", "stop")
        check("ERR 4" in lib.run(b, "ttyRPMSG0") and "ERR 4" in lib.run(b, "ttyRPMSG2"), "the others go on")


def classify_takes_the_processor_that_is_meant():
    program, photo = lib.SOURCE / "tests/golden/models/resnet8_random/resnet8_random.pte", lib.SOURCE / "docs/pictures/chelsea.jpg"
    wanted = json.loads(lib.talpa("run", program, "--image", photo, "--json").stdout)["top"]
    model = (0xC0000000, program.stat().st_size)

    def holds_the_program(b, device):
        with open(b.dev / device, "rb", buffering=0) as memory:
            memory.seek(model[0])
            return memory.read(model[1]) == program.read_bytes()

    with board("--startup-delay", 0, "--remoteproc", 3) as b:
        lib.shutil.copy(lib.FIRMWARE, b.root / "lib/firmware/runner.elf")
        for number, k in enumerate((2, 0, 1)):  # so that ttys are numbered otherwise than processors
            if k == 1:
                none = lib.talpa("classify", photo, "--program", program, "--root", b.root, "--remoteproc", 1)
                check(none.returncode == 1 and "echo start > /sys/class/remoteproc/remoteproc1/state" in none.stderr, none.stderr)
            equal(shell_write("runner.elf", b.remoteproc(k) / "firmware"), "", "firmware")
            equal(shell_write("start", b.remoteproc(k) / "state"), "", "start")
            wait_for((b.dev / f"ttyRPMSG{number}").is_symlink, "tty")
            equal(os.listdir(b.sys / f"bus/rpmsg/devices/virtio{k}.rpmsg-tty.-1.1024/tty"), [f"ttyRPMSG{number}"], "the device's tty")
            check(f"/remoteproc{k}/" in os.path.realpath(b.sys / f"bus/rpmsg/devices/virtio{k}.rpmsg-tty.-1.1024"), "its place")
        done = 0
        for k, how in ((2, 2), (1, "remoteproc1"), (0, "imx-rproc")):
            result = lib.talpa("classify", photo, "--program", program, "--root", b.root, "--remoteproc", how, "--json")
            equal(result.returncode, 0, f"--remoteproc {how}: {result.stderr}")
            equal(json.loads(result.stdout)["top"], wanted, f"--remoteproc {how}")
            done |= 1 << k
            for i, device in enumerate(("mem", "mem1", "mem2")):
                equal(holds_the_program(b, device), bool(done >> i & 1), f"the program in /dev/{device} after --remoteproc {how}")
        by_hand = lib.talpa("classify", photo, "--program", program, "--root", b.root, "--memory", "/dev/mem1", "--tty", "/dev/ttyRPMSG2",
                            "--remoteproc", 1, "--json")
        equal(json.loads(by_hand.stdout)["top"], wanted, f"by devices: {by_hand.stderr}")
        absent = lib.talpa("classify", photo, "--program", program, "--root", b.root, "--remoteproc", 3)
        check(absent.returncode == 1 and "no remote processor named 3 (only remoteproc0 (imx-rproc), remoteproc1" in absent.stderr, absent.stderr)


def truncating_the_memory_ends_no_board():
    golden = lib.GOLDEN
    b = lib.started()

    def whole():
        return os.stat(b.dev / "mem").st_size == 1 << 32

    # As tutorials stage a file: dd cuts a file where it begins to write, and physical memory not at all.
    for name, address in (("ds_cnn_random.pte", 0xC0000000), ("in0.bin", 0xC036D000)):
        subprocess.run(["dd", f"if={golden / name}", f"of={b.dev / 'mem'}", "bs=4096", f"seek={address // 4096}"], check=True, capture_output=True)
        wait_for(whole, "whole memory")
    check("OK RUN" in lib.run(b), "a run of what dd staged")
    check("mem was truncated at 0xC0" in lib.log_of(b), f"the log says it: {lib.log_of(b)}")
    with open(b.dev / "mem", "w", encoding="utf-8"):  # as `> /dev/mem`: the M33 is without its code, the board is not
        pass
    wait_for(whole, "whole memory")
    check("the M33's code among it" in lib.log_of(b), "the log says that too")
    equal(shell_write("stop", b.remoteproc() / "state"), "", "stop")
    b.start()
    check(lib.run(b, line="PING").startswith("PONG"), "an answer after a new start")
    lib.stage(b)
    check("OK RUN" in lib.run(b), "a run after that")
    lib.end(b)


def half_a_line_of_somebody_else_harms_no_client():
    program, photo = lib.SOURCE / "tests/golden/models/resnet8_random/resnet8_random.pte", lib.SOURCE / "docs/pictures/chelsea.jpg"
    b = lib.started()
    wait_for((b.dev / "ttyRPMSG0").is_symlink, "tty")
    for half in (b"PIN", b"@zz RUN in="):
        tty = os.open(b.dev / "ttyRPMSG0", os.O_RDWR | os.O_NOCTTY)
        os.write(tty, half)
        os.close(tty)
        done = lib.talpa("classify", photo, "--program", program, "--root", b.root, "--top", 1)
        equal(done.returncode, 0, f"after {half}: {done.stderr}")
    lib.end(b)


def kill_9_leaves_what_down_removes():
    b = lib.Board("--remoteproc", 2)
    os.kill(b.pid(), signal.SIGKILL)
    wait_for(lambda: "dead" in lib.talpa("board", "status").stdout, "dead board")
    equal(lib.talpa("board", "status", "--root", b.root).returncode, 1, "status of a dead board")
    check("removed" in b.down(), "down says what it did")
    check(str(b.root) not in pathlib.Path("/proc/mounts").read_text(), "no mount is left")
    check(not (b.root / "dev").exists() and not (b.root / "sys").exists(), "nor are its folders")
    equal(lib.talpa("board", "down", "--root", b.root).returncode, 0, "down of nothing")
    # And the next one of that name comes up over the remains.
    again = lib.Board("--name", "phoenix")
    os.kill(again.pid(), signal.SIGKILL)
    wait_for(lambda: "dead" in lib.talpa("board", "status").stdout, "dead board")
    up = lib.talpa("board", "up", "--root", again.root, "--name", "phoenix")
    equal(up.returncode, 0, f"up over the remains: {up.stderr}")
    equal(lib.talpa("board", "up", "--root", again.root, "--name", "phoenix").returncode, 1, "up twice")
    equal(lib.talpa("board", "down", "--name", "phoenix").returncode, 0, "down")
    for root in (b.root, again.root):
        lib.shutil.rmtree(root)


def a_board_that_does_not_come_up_leaves_nothing():
    if os.geteuid() != 0:
        print("  only root can take /dev/fuse away: not tried")
        return
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)
        for words in (("--root", home / "new/root"), ("--name", "refused")):
            done = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount --bind /dev/null /dev/fuse && exec "$@"', "sh",
                                   "setpriv", "--bounding-set", "-sys_admin,-mknod", "--inh-caps", "-all", lib.TALPA, "board", "up", *words],
                                  capture_output=True, text=True, timeout=60,
                                  env={**os.environ, "HOME": folder, "XDG_CACHE_HOME": "", "TALPA_BOARD_DISK": ""})
            equal(done.returncode, 1, f"up {words}: {done.stdout}{done.stderr}")
            equal(os.listdir(folder), [], f"left of up {words}: {done.stderr}")
        # What it made goes with it, what the user put there stays.
        root = home / "mine"
        equal(lib.talpa("board", "up", "--root", root).returncode, 0, "up in a new folder")
        (root / "lib/firmware/mine.elf").write_bytes(b"")
        equal(lib.talpa("board", "down", "--root", root).returncode, 0, "down")
        equal(sorted(str(p.relative_to(root)) for p in root.rglob("*")), ["lib", "lib/firmware", "lib/firmware/mine.elf"], "left after down")


def device_tree_is_what_the_compiler_reads():
    with board() as b:
        base = b.sys / "firmware/devicetree/base"
        equal((base / "compatible").read_bytes(), b"fsl,imx93-11x11-frdm\0fsl,imx93\0", "compatible")
        equal(struct.unpack(">4I", (base / "reserved-memory/model@c0000000/reg").read_bytes()),
              (0, 0xC0000000, 0, 0x400000), "model@c0000000/reg")
        equal(os.stat(base / "reserved-memory/ethosu_region@A8000000/no-map").st_size, 0, "no-map")
        check(not (base / "reserved-memory/ethosu_region@A8000000/reusable").exists(), "not reusable")
        equal((base / "chosen/bootargs").read_bytes().count(b"iomem=relaxed"), 1, "bootargs")
        equal((b.root / "proc/device-tree/model").read_bytes(), b"NXP FRDM-IMX93\0", "by /proc/device-tree")
        if not lib.shutil.which("dtc"):
            print("  no dtc here: the blob was not read")
            return
        # The blob and the folder say the same, by the device tree compiler's reading of both.
        read = [subprocess.run(["dtc", "-q", "-s", "-I", kind, "-O", "dts", path], capture_output=True, text=True)
                for kind, path in (("dtb", b.sys / "firmware/fdt"), ("fs", base))]
        texts = [[line for line in r.stdout.splitlines() if "name = " not in line] for r in read]
        check(len(texts[0]) > 100 and texts[0] == texts[1], f"blob and folder differ: {read}")


def options_are_checked():
    for words, text in ((("--without", "gravity"), "reserved-memory"), (("--quirk", "odd"), "nxp-tty"),
                        (("--kernel", "2.4"), "bsp-6.6"), (("--name", "a/b"), "no name"), (("--remoteproc", "0"), "")):
        done = lib.talpa("board", "up", "--root", "/nonexistent", *words)
        check(done.returncode == 2 and text in done.stderr, f"{words}: {done.returncode} {done.stderr}")
    for words, text in ((("--root", "/tmp/x", "--publish", "47010"), "no ports"), (("--name", ""), "no name"), (("--address", "nope"), "IPv4"),
                        (("--quirk", "attached"), "--boot"), (("--root", ""), "a folder is wanted")):
        done = lib.talpa("board", "up", *words)
        check(done.returncode == 2 and text in done.stderr, f"{words}: {done.returncode} {done.stderr}")
    equal(lib.talpa("board", "down", "--name", "").returncode, 2, "an empty name is none")
    done = lib.talpa("board", "status", "--name", "nope")
    check(done.returncode == 1 and "there is no board 'nope'" in done.stderr, f"status of no board: {done.stdout}{done.stderr}")
    done = lib.talpa("board", "up", "--root", "/")
    check(done.returncode == 1 and "this machine's own /sys" in done.stderr, f"--root /: {done.stderr}")
    with tempfile.TemporaryDirectory() as folder:
        mine = pathlib.Path(folder, "dev/mem")
        mine.parent.mkdir()
        mine.write_text("mine")
        done = lib.talpa("board", "up", "--root", folder)
        check(done.returncode == 1 and "something else than a board's memory" in done.stderr, f"a file dev/mem: {done.stderr}")
        equal(mine.read_text(), "mine", "it stays")


def a_full_disk_is_said_and_ends_the_board():
    if os.geteuid() != 0:
        print("  only root can make a small disk: not tried")
        return
    script = """mount -t tmpfs -o size=64k none /mnt; dd if=/dev/zero of=/mnt/fill bs=4k 2>/dev/null; exec "$0" board up --name full --root /mnt"""
    try:
        done = subprocess.run(["unshare", "--mount", "sh", "-c", script, lib.TALPA], capture_output=True, text=True, timeout=90)
        log = lib.talpa("board", "logs", "--name", "full").stdout
        check(done.returncode == 1 and "the disk is full" in done.stderr + log, f"{done.returncode} {done.stdout}{done.stderr}{log}")
    finally:
        lib.talpa("board", "down", "--name", "full")


if not lib.FIRMWARE.exists():
    lib.skip("the firmware is not built (./run build)")
sys.exit(lib.run_all([wrong_writes_give_what_linux_gives, old_kernels_refuse_a_second_start, one_write_is_one_command,
                      firmware_is_looked_for_where_linux_looks, a_program_that_knows_nothing_of_talpa_runs_a_network,
                      a_blocked_reader_wakes_when_the_processor_stops, many_idle_processors_cost_nothing,
                      processors_have_memories_of_their_own, classify_takes_the_processor_that_is_meant, truncating_the_memory_ends_no_board,
                      half_a_line_of_somebody_else_harms_no_client,
                      kill_9_leaves_what_down_removes, a_board_that_does_not_come_up_leaves_nothing, device_tree_is_what_the_compiler_reads, options_are_checked,
                      a_full_disk_is_said_and_ends_the_board]))
