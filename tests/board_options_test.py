#!/usr/bin/env python3
"""Boards that lack something, misbehave or crash: each failure that users meet, as it shows."""
import os
import pathlib
import subprocess
import sys
import termios
import time

import board_lib as lib
from board_lib import board, check, end, equal, log_of, run, shell_write, stage, started, wait_for

def what_a_board_lacks_shows_where_users_meet_it():
    node = "firmware/devicetree/base/"
    for word, path, there in (("reserved-memory", node + "reserved-memory/model@c0000000", False),
                              ("ethosu-region", node + "reserved-memory/ethosu_region@A8000000/reusable", True),
                              ("ethosu-region", node + "reserved-memory/ethosu_region@A8000000/no-map", False),
                              ("power-domain", node + "remoteproc-cm33/power-domains", False)):
        with board("--without", word) as b:
            equal((b.sys / path).exists(), there, f"--without {word}: {path}")
    with board("--without", "mcore-booted,iomem-relaxed") as b:
        bootargs = (b.sys / node / "chosen/bootargs").read_text()
        check("mcore_booted" not in bootargs and "iomem" not in bootargs, f"bootargs: {bootargs}")
        try:
            os.open(b.dev / "mem", os.O_RDWR)
            raise AssertionError("/dev/mem opened")
        except PermissionError as error:
            equal(error.errno, 1, "errno of /dev/mem")  # EPERM
    with board("--without", "devmem", "--without", "ethosu-device") as b:
        equal(os.listdir(b.dev), [], "devices")
    b = started("--without", "rpmsg")
    wait_for(lambda: "creating channel rpmsg-tty" in log_of(b), "announcement")
    time.sleep(0.05)
    check(not (b.dev / "ttyRPMSG0").is_symlink(), "no driver, no tty")
    end(b)


def a_start_that_kills_the_board_is_told_as_what_it_was():
    for word, state, said in (("power-domain", "panicked", "Kernel panic - not syncing"), ("mcore-booted", "frozen", "board: frozen: Linux gated")):
        b = lib.Board("--startup-delay", 0, "--without", word)
        b.install()
        check(shell_write("start", b.remoteproc() / "state") != "", "the writer does not get away")
        wait_for(lambda: f": {state} " in lib.talpa("board", "status", "--root", b.root).stdout, state)
        check(said in log_of(b), f"log: {log_of(b)}")
        equal("panic" in log_of(b), state == "panicked", "a kernel that stands still says nothing")
        end(b)


def an_npu_without_clock_faults_the_core_and_linux_sees_nothing():
    b = started("--without", "npu-clock")
    stage(b)
    check("OK" not in run(b, seconds=1), "no answer")
    check("BusFault" in (b.debug() / "trace0").read_text(), "the fault in the trace")
    equal((b.remoteproc() / "state").read_text(), "running\n", "state")
    end(b)
    # Where hardware tells, Linux starts it again.
    b = started("--without", "npu-clock", "--quirk", "fault-crashes")
    stage(b)
    run(b, seconds=2)
    wait_for(lambda: log_of(b).count("is now up") == 2, "recovery")
    check("handling crash #1 in imx-rproc" in log_of(b), "log of the crash")
    check(run(b, line="PING").startswith("PONG"), "an answer after recovery")
    end(b)


def the_firewall_makes_a_bus_error_of_the_npu():
    b = started("--quirk", "trdc-deny")
    stage(b)
    check("ERR 12" in run(b), "a run")
    check(run(b, line="PING").startswith("PONG"), "the next command")
    end(b)


def the_vendors_tty_driver_echoes_and_numbers_by_address():
    b = started("--quirk", "nxp-tty")
    wait_for((b.dev / "ttyRPMSG30").is_symlink, "tty")
    equal([name for name in os.listdir(b.dev) if name.startswith("tty")], ["ttyRPMSG30"], "the other channel has no driver")
    tty = os.open(b.dev / "ttyRPMSG30", os.O_RDWR | os.O_NOCTTY)
    local = termios.tcgetattr(tty)[3]
    check(local & termios.ECHO and local & termios.ICANON, "the settings of a new tty")
    os.close(tty)
    reply = run(b, node="ttyRPMSG30", line="PING")
    check("PONG" in reply and "ERR" not in reply, f"the greeting is no command: {reply}")
    end(b)


def linux_that_updates_its_own_table_only_is_not_heard():
    b = started("--quirk", "table-copy-only")
    for _ in range(3):
        time.sleep(0.3)
        check(not any(name.startswith("tty") for name in os.listdir(b.dev)), "no tty")
        check("link up" not in (b.debug() / "trace0").read_text(), "the firmware waits")
        equal((b.remoteproc() / "state").read_text(), "running\n", "state")
        with open(b.dev / "mem", "rb", buffering=0) as memory:
            memory.seek(0xC036C010)  # the heartbeat of the control block
            before = memory.read(4)
            wait_for(lambda: memory.seek(0xC036C010) and memory.read(4) != before, "heartbeat")
        equal(shell_write("stop", b.remoteproc() / "state"), "", "stop")
        b.start()
    check("creating channel" not in log_of(b), "no announcement")
    end(b)


def words_that_survive_a_stop_and_poisoned_tcm_do_not_matter():
    for quirk in ("mu-survives-stop", "ecc-poison"):
        b = started("--quirk", quirk)
        stage(b)
        for _ in range(3):
            check("OK RUN" in run(b), f"a run with {quirk}")
            equal(shell_write("stop", b.remoteproc() / "state"), "", "stop")
            b.start()
        end(b)


def u_boot_may_have_started_the_m33():
    with board("--quirk", "attached", "--boot", lib.FIRMWARE) as b:
        equal((b.remoteproc() / "state").read_text(), "attached\n", "state")
        equal((b.remoteproc() / "firmware").read_text(), "unknown\n", "firmware")
        stage(b)
        check("OK RUN" in run(b), "a run")
        equal(shell_write("start", b.remoteproc() / "state"), "", "start is counted")
        equal(shell_write("stop", b.remoteproc() / "state"), "", "stop is counted")
        equal(shell_write("detach", b.remoteproc() / "state"), "Operation not supported", "detach")
        equal((b.remoteproc() / "state").read_text(), "attached\n", "state after detach")
        equal(shell_write("stop", b.remoteproc() / "state"), "", "stop")
        equal((b.remoteproc() / "state").read_text(), "offline\n", "state")
        b.install()
        b.start()
        check(run(b, line="PING").startswith("PONG"), "Linux's own start")
    done = lib.talpa("board", "up", "--root", "/nonexistent", "--quirk", "attached")
    check(done.returncode == 2 and "--boot" in done.stderr, f"without --boot: {done.stderr}")


def a_crash_is_recovered_from_and_leaves_a_core_file():
    b = started()
    wait_for((b.dev / "ttyRPMSG0").is_symlink, "tty")
    for text, message in (("7x", "Invalid argument"), ("12345678901", "Invalid argument"), ("", "Invalid argument")):
        equal(shell_write(text, b.debug() / "crash"), message, f"echo {text} > crash")
    equal(shell_write("1", b.debug() / "crash"), "", "crash")
    check("crash detected in imx-rproc: type watchdog" in log_of(b), "log")
    check(not (b.sys / "class/devcoredump/devcd1").exists(), "no core file unless it is asked for")
    equal(shell_write("enabled", b.remoteproc() / "coredump"), "", "coredump")
    equal(shell_write("2", b.debug() / "crash"), "", "crash")
    data = b.sys / "class/devcoredump/devcd1/data"
    core = data.read_bytes()
    if lib.shutil.which("readelf"):
        file = b.root / "core"
        file.write_bytes(core)
        text = subprocess.run(["readelf", "-hl", file], capture_output=True, text=True).stdout
        check("CORE (Core file)" in text and "0x0ffe0000" in text and text.count("LOAD") >= 6, f"readelf: {text}")
    equal(shell_write("1", data), "", "write to the core file")
    check(not data.exists(), "that removes it")
    equal(shell_write("disabled", b.remoteproc() / "recovery"), "", "recovery")
    equal(shell_write("0", b.debug() / "crash"), "", "crash")
    equal((b.remoteproc() / "state").read_text(), "crashed\n", "state")
    equal(shell_write("enabled", b.remoteproc() / "coredump"), "Device or resource busy", "coredump while crashed")
    equal(shell_write("stop", b.remoteproc() / "state"), "Invalid argument", "stop while crashed")
    equal(shell_write("start", b.remoteproc() / "state"), "", "start while crashed does nothing")
    equal((b.remoteproc() / "state").read_text(), "crashed\n", "state")
    equal(shell_write("recover", b.remoteproc() / "recovery"), "", "recover")
    equal((b.remoteproc() / "state").read_text(), "running\n", "state")
    check(run(b, line="PING").startswith("PONG"), "an answer after recovery")
    end(b)


def a_debugger_attaches_and_leaves():
    if not lib.shutil.which("gdb-multiarch"):
        print("  no gdb-multiarch here: not tried")
        return
    b = started()
    check(run(b, line="PING").startswith("PONG"), "an answer")
    gdb = ["gdb-multiarch", "-batch", "-nx", lib.FIRMWARE, "-ex", "set confirm off"]
    by_pipe = subprocess.run([*gdb, "-ex", f"target remote | {lib.TALPA} board gdb --root {b.root} --stdio", "-ex", "print/x $pc",
                              "-ex", "x/2xw 0x0ffe0000", "-ex", "x/2dw 0x2001e000", "-ex", "detach"],
                             capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    check("$1 = 0xffe" in by_pipe.stdout and "0x2001e000:\t1\t2" in by_pipe.stdout, f"by a pipe: {by_pipe.stdout}{by_pipe.stderr}")
    check(run(b, line="PING").startswith("PONG"), "an answer after the debugger has left")
    stub = subprocess.Popen([lib.TALPA, "board", "gdb", "--root", b.root, "--port", "0"], stdout=subprocess.PIPE, text=True)
    stub.stdout.readline()
    port = stub.stdout.readline().rpartition(":")[2].strip(" '\n")
    by_port = subprocess.run([*gdb, "-ex", f"target remote :{port}", "-ex", "stepi", "-ex", "print $primask", "-ex", "detach"],
                             capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    check("$1 = 0" in by_port.stdout, f"by a port: {by_port.stdout}{by_port.stderr}")
    check(run(b, line="PING").startswith("PONG"), "an answer after that")
    b.down()
    stub.wait(10)
    lib.shutil.rmtree(b.root)


def trace_shows_what_passes():
    b = lib.Board("--startup-delay", 0)
    trace = subprocess.Popen([lib.TALPA, "board", "trace", "--root", b.root], stdout=subprocess.PIPE, text=True)
    only = subprocess.Popen([lib.TALPA, "board", "trace", "--root", b.root, "--rpmsg"], stdout=subprocess.PIPE, text=True)
    b.install()
    b.start()
    stage(b)
    check("OK RUN" in run(b), "a run")
    b.down()  # ends the traces
    text, rpmsg = trace.communicate(timeout=10)[0], only.communicate(timeout=10)[0]
    lib.shutil.rmtree(b.root)
    for wanted in ('sysfs write class/remoteproc/remoteproc0/state "start\\n" = ok', "mu    Linux writes TR1 = 0x00010000",
                   "mu    M33 reads RR1 = 0x00010000", "mu    M33 writes TR1", '-> 0x400, 4 bytes "RUN\\n"',
                   "npu   M33 writes CMD", "npu   interrupt line up"):
        check(wanted in text, f"the trace lacks '{wanted}': {text[-2000:]}")
    check(all(" rpmsg " in line for line in rpmsg.splitlines()) and "RUN" in rpmsg, f"--rpmsg alone: {rpmsg}")
    times = [float(line[1:line.index("]")]) for line in text.splitlines()]
    check(times == sorted(times) and times[0] >= 0, "times rise")


if not lib.FIRMWARE.exists():
    lib.skip("the firmware is not built (./run build)")
sys.exit(lib.run_all([what_a_board_lacks_shows_where_users_meet_it, a_start_that_kills_the_board_is_told_as_what_it_was,
                      an_npu_without_clock_faults_the_core_and_linux_sees_nothing,
                      the_firewall_makes_a_bus_error_of_the_npu, the_vendors_tty_driver_echoes_and_numbers_by_address,
                      linux_that_updates_its_own_table_only_is_not_heard,
                      words_that_survive_a_stop_and_poisoned_tcm_do_not_matter, u_boot_may_have_started_the_m33,
                      a_crash_is_recovered_from_and_leaves_a_core_file, a_debugger_attaches_and_leaves,
                      trace_shows_what_passes]))
