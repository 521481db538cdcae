#!/usr/bin/env python3
"""./run demo where something is missing, and elsewhere: without a container engine (firmware started by the tree's sysfs files, the page
as a process), without FUSE (the NPU model alone), and with --target: a board that is only known by its sshd. Each still classifies;
its own model (.pt2 where the reference set is there), picture and labels; and one that is interrupted. A folder and boards of its own."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import board_lib as lib
import end_to_end_lib as whole
from board_lib import check, equal, wait_for
from talpa_test import GOLDEN, REFERENCE, SOURCE

PTE = GOLDEN / "models/resnet8_random/resnet8_random.pte"
PT2 = REFERENCE / "models/resnet8_random/resnet8_random.float.pt2"
ENGINES = ("podman", "docker")


class Demo:
    def __init__(self, folder):
        self.folder, self.port = folder, whole.free_port()
        self.labels = folder / "names.txt"
        self.labels.write_text("".join(f"thing {i}\n" for i in range(10)))
        self.environment = {**os.environ, "TALPA_DEMO_FOLDER": str(folder), "TALPA_DEMO_BOARD": "forms"}

    def run(self, *words, before=(), timeout=900, status=0):
        done = subprocess.run([*before, SOURCE / "scripts/demo.sh", "--port", str(self.port), *map(str, words)], capture_output=True, text=True,
                              env=self.environment, timeout=timeout, stdin=subprocess.DEVNULL, cwd=self.folder)
        check(done.returncode == status, f"demo {words}: {done.returncode} {done.stdout}{done.stderr}")
        return done.stdout if status == 0 else done.stdout + done.stderr

    def model(self, *more):
        return ("--model", PTE, "--labels", self.labels.name, "--image", whole.PHOTO, "--calibration", SOURCE / "docs/pictures", *more)

    def answers_as_talpa_run(self, program):
        answer = json.loads((self.folder / "answer.json").read_text())
        equal(whole.top_of(answer), whole.expected_top(program, self.labels), "the classes of talpa run")


def without_a_container_engine(folder):
    demo = Demo(folder)
    programs = folder / "programs"  # all that the machine has, but no engine
    programs.mkdir()
    for place in os.environ["PATH"].split(":") + ["/usr/sbin", "/sbin"]:
        for program in pathlib.Path(place).glob("*") if os.path.isdir(place) else ():
            if program.name not in ENGINES and not (programs / program.name).exists():
                (programs / program.name).symlink_to(program)
    demo.environment["PATH"] = str(programs)
    try:
        if PT2.exists():
            said = demo.run("--model", PT2, "--labels", demo.labels, "--image", whole.PHOTO, "--calibration", SOURCE / "docs/pictures")
            check("resnet8_random.float.pt2" in said and "talpa compile" in said, f"the compiler's step: {said}")
            check("The model: yours" in said, f"whose weights: {said}")
        else:
            said = demo.run(*demo.model())
        check("Reduced form (no container engine here" in said and "firmware started by its sysfs" in said, f"it says what is reduced: {said}")
        check("thing " in said.split("Classify")[1] and f"http://127.0.0.1:{demo.port}" in said, f"it classifies: {said}")
        demo.answers_as_talpa_run(folder / "model.pte")
        status, answer = whole.Site(demo.port).classify(whole.PHOTO.read_bytes())
        equal(status, 200, f"the page: {answer}")
        again = demo.run(*demo.model())
        check("Reduced form" in again and "thing " in again.split("Classify")[1], f"a second run: {again}")
    finally:
        demo.run("--down")
    equal(lib.talpa("board", "status").stdout, "No board is up.\n", "after --down")
    wait_for(lambda: subprocess.run(["pgrep", "-f", f"talpa-webapp.*{demo.port}"], capture_output=True, check=False).stdout == b"", "end of the page's process")


def with_a_taken_port(folder):
    demo = Demo(folder)
    with socket.create_server(("127.0.0.1", demo.port)):
        said = demo.run(*demo.model(), status=1)
        check(f"port {demo.port} of this machine is taken" in said and "--port PORT" in said and "Reduced" not in said, f"it says so: {said}")
    equal(lib.talpa("board", "status").stdout, "No board is up.\n", "afterwards")
    for port in ("abc", "0", "65536", "3001x"):
        demo.port = port
        check("--port wants a number" in demo.run(*demo.model(), status=2), f"--port {port}")


def interrupted(folder):
    """At several moments of the board's coming up: who interrupts that wants no reduced form of the demo instead."""
    for delay in (0.01, 0.03, 0.06, 0.1):
        demo = Demo(folder)
        began = subprocess.Popen([SOURCE / "scripts/demo.sh", "--port", str(demo.port), *map(str, demo.model())], stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, env=demo.environment, stdin=subprocess.DEVNULL, start_new_session=True, cwd=folder)
        said = line = ""
        while not line.startswith("$ talpa board up"):
            line = began.stdout.readline()
            check(line, f"it got to the board: {said}")
            said += line
        time.sleep(delay)
        os.killpg(began.pid, signal.SIGINT)
        rest = began.communicate(timeout=300)[0]
        demo.run("--down")
        check(began.returncode in (130, -signal.SIGINT), f"the status of what was interrupted: {began.returncode}, {rest}")
        check("Reduced form" not in rest and "Done" not in rest, f"it goes no further: {rest}")
    equal(lib.talpa("board", "status").stdout, "No board is up.\n", "no board is left")


def without_fuse(folder):
    demo = Demo(folder)
    # Neither the device nor the right to make another one or to mount.
    said = demo.run(*demo.model(), before=("unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount --bind /dev/null /dev/fuse && exec "$@"', "sh",
                                           "setpriv", "--bounding-set", "-sys_admin,-mknod", "--inh-caps", "-all"))
    check("Reduced form (no FUSE either)" in said and "no board, no firmware, no page" in said, f"it says what is reduced: {said}")
    check("thing " in said, f"it classifies: {said}")
    demo.answers_as_talpa_run(PTE)


def with_a_target(folder):
    if not all(map(shutil.which, ("podman", "ssh"))) or not os.path.exists("/usr/sbin/sshd"):
        print("  podman, ssh or sshd are not installed: not tried")
        return
    demo = Demo(folder)
    home = folder / "home"
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    with lib.namespace_board("over-there", "--ssh", 0, "--publish", f"{demo.port}:{demo.port}", "--startup-delay", 0):
        (home / ".ssh/config").write_text(lib.talpa("board", "ssh-config", "--name", "over-there").stdout)
        # ssh takes its configuration from the user's home, whatever HOME says.
        said = demo.run(*demo.model("--target", "over-there"),
                        before=("unshare", "--mount", "--propagation", "private", "bash", "-c",
                                f'exec 9< {SOURCE}; mount --bind {home} /root; '  # and a tree in root's own home back into it
                                f'[ -e {SOURCE}/run ] || {{ mkdir -p {SOURCE}; mount --no-canonicalize --rbind /proc/self/fd/9 {SOURCE}; }}; exec "$@" 9<&-', "bash"))
        check("thing " in said.split("Classify")[1] and "imx-rproc" in said and "Linux Host" in said, f"it classifies there: {said}")
        check("topo down --target over-there" in said, f"how it ends: {said}")
        demo.answers_as_talpa_run(PTE)
        equal(whole.Site(demo.port).checks()["program"]["looked_at"], "/opt/mv2-imx93/model.pte", "only a MobileNetV2 is called mv2_…")
    equal(lib.talpa("board", "status").stdout, "No board is up.\n", "no board of the demo's own")


FORMS = [without_a_container_engine, with_a_taken_port, interrupted, without_fuse, with_a_target]


def main():
    if os.geteuid() != 0:
        lib.skip("needs root")
    if not lib.FIRMWARE.exists():
        lib.skip("the firmware is not built (./run build)")

    def named(form):
        def run():
            with tempfile.TemporaryDirectory(prefix="demo-forms-") as folder:
                form(pathlib.Path(folder))
        run.__name__ = form.__name__
        return run
    return lib.run_all([named(f) for f in FORMS if not sys.argv[1:] or f.__name__ in sys.argv[1:]], namespaces=True)


if __name__ == "__main__":
    sys.exit(main())
