#!/usr/bin/env python3
"""Our runtime on the virtual i.MX 93 with talpa's own firmware: unmodified programs at their real paths. The firmware is
checked against the M33's memory map, its trace comes out as the container's log, its heartbeat is watched."""
import json
import sys
import time

import board_lib as lib
from board_lib import BUILD, FIRMWARE, check, equal, namespace_board, wait_for

RUNTIME = BUILD / "bin" / "remoteproc-runtime"
STATE = "/sys/class/remoteproc/remoteproc0/state"


def bundle(b, file, where, **annotations):
    config = {"ociVersion": "1.0.2", "process": {"args": ["fw.elf"]}, "root": {"path": "rootfs"},
              "annotations": {"remoteproc.name": "imx-rproc", **annotations}}
    b.sh(f"mkdir -p {where}/rootfs && cp {file} {where}/rootfs/fw.elf && cat > {where}/config.json <<'END'\n"
         f"{json.dumps(config)}\nEND")


def life(b):
    bundle(b, FIRMWARE, "/run/b1")
    b.sh(f"{RUNTIME} create --bundle /run/b1 c1 && {RUNTIME} start c1")
    equal(b.sh(f"cat {STATE}"), "running\n", "state")
    log = wait_for(lambda: b.sh(f"{RUNTIME} logs c1"), "the firmware's trace in the container's log")
    check("talpa" in log or "runner" in log, f"a log of the runner: {log!r}")
    wait_for(lambda: b.exec("test", "-e", "/dev/ttyRPMSG0").returncode == 0, "the firmware's tty")
    busy = b.exec("bash", "-c", f"{RUNTIME} create --bundle /run/b1 c2 && {RUNTIME} start c2")
    check("busy: used by container c1" in busy.stderr, busy.stderr)
    b.sh(f"{RUNTIME} kill c1 && {RUNTIME} delete c1 && {RUNTIME} delete -f c2")
    equal(b.sh(f"cat {STATE}"), "offline\n", "state")
    equal(b.sh("ls /lib/firmware"), "", "firmware left")


def refused(b):
    """An ELF for another machine is refused with what is wanted, before the kernel gets it."""
    bundle(b, "/bin/true", "/run/b2")
    done = b.exec(RUNTIME, "create", "--bundle", "/run/b2", "c3")
    check(done.returncode == 1 and "imx-rproc wants 40 (32-bit Arm (Cortex-M33))" in done.stderr, done.stderr)


def hung(b):
    """A heartbeat that stands still ends the container with its own code, and the core is stopped."""
    bundle(b, FIRMWARE, "/run/b3", **{"remoteproc.heartbeat": "1"})
    b.sh(f"{RUNTIME} create --bundle /run/b3 c4 && {RUNTIME} start c4")
    wait_for(lambda: b.exec("test", "-e", "/dev/ttyRPMSG0").returncode == 0, "the firmware's tty")
    time.sleep(1.5)
    equal(json.loads(b.sh(f"{RUNTIME} state c4"))["status"], "running", "a beating heart")
    # What a firmware writes that faults: state 6 of the control block. (imx93-remoteproc, section 10)
    b.sh("python3 -c \"import mmap,os; m=mmap.mmap(os.open('/dev/mem',os.O_RDWR|os.O_SYNC),4096,offset=0xC036C000); "
         "m[12:16]=(6).to_bytes(4,'little')\"")
    wait_for(lambda: json.loads(b.sh(f"{RUNTIME} state c4"))["status"] == "stopped", "the end", 5)
    check("exit 140 the firmware reports a fault" in b.sh("cat /root/.local/run/remoteproc-runtime/c4/proxy.events"),
          "the reason")
    equal(b.sh(f"cat {STATE}"), "offline\n", "state")
    b.sh(f"{RUNTIME} delete c4")


def crashed(b):
    bundle(b, FIRMWARE, "/run/b4", **{"remoteproc.recovery": "disabled"})
    b.sh(f"{RUNTIME} create --bundle /run/b4 c5 && {RUNTIME} start c5")
    b.sh("echo 1 > /sys/kernel/debug/remoteproc/remoteproc0/crash")
    wait_for(lambda: json.loads(b.sh(f"{RUNTIME} state c5"))["status"] == "stopped", "the end", 5)
    b.sh(f"{RUNTIME} delete c5")
    equal(b.sh(f"cat {STATE}; cat /sys/class/remoteproc/remoteproc0/recovery"), "offline\nenabled\n", "as it was before")


def firmware_as_a_container():
    with namespace_board("rproc-test") as b:
        for case in (life, refused, hung, crashed):
            case(b)


def main():
    if not FIRMWARE.exists():
        lib.skip(f"no firmware at {FIRMWARE}")
    return lib.run_all([firmware_as_a_container], namespaces=True)


if __name__ == "__main__":
    sys.exit(main())
