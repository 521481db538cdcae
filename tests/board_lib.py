"""What the tests of the virtual board share: bringing boards up and down, writing to their files as a shell does."""
import contextlib
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import time

from talpa_test import SANITIZED

BUILD = pathlib.Path(os.environ.get("TALPA_BUILD", "build/release")).resolve()
SOURCE = pathlib.Path(os.environ.get("TALPA_SOURCE", ".")).resolve()
TALPA = BUILD / "bin" / "talpa"
FIRMWARE = SOURCE / "build/firmware/executorch_runner_cm33.elf"
SKIP = 77
# Sanitizers keep freed memory for a while, so that what a process holds says nothing.
MEMORY_TELLS = not SANITIZED


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIP)


# How it shows that a machine does not give what a board needs. Any other reason is a fault of the board's, which must not be skipped.
REFUSALS = ("Operation not permitted", "Permission denied", "Function not implemented", "No such device", "Resource temporarily unavailable",
            "cannot mount a FUSE file system", "cannot mount overlay")


def need_board(*words):
    """Skips where the machine refuses a board what it needs; fails where it does not come up for another reason."""
    up = talpa("board", "up", *words)
    talpa("board", "down", *words)
    if up.returncode != 0:
        check(any(text in up.stderr for text in REFUSALS), f"no board comes up: {up.stderr.strip()}")
        skip(f"no board here: {up.stderr.strip()}")


def need_namespaces():
    need_board("--name", "probe")


def need_fuse():
    """The board's /sys is a FUSE file system."""
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        skip(f"/dev/fuse: {error.strerror}")
    folder = tempfile.mkdtemp(prefix="talpa-fuse-")
    try:
        need_board("--root", folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def talpa(*words, timeout=120, **more):
    return subprocess.run([TALPA, *map(str, words)], capture_output=True, text=True, timeout=timeout, **more)


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def equal(got, wanted, what):
    check(got == wanted, f"{what}: {got!r}, not {wanted!r}")


def wait_for(condition, what, seconds=20):
    until = time.monotonic() + seconds
    while not (value := condition()):
        check(time.monotonic() < until, f"no {what} after {seconds} s")
        time.sleep(0.005)
    return value


def shell_write(text, path):
    """What bash's own echo reports, "" when all is well."""
    done = subprocess.run(["bash", "-c", f"echo '{text}' > '{path}'"], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "LC_ALL": "C"})
    return done.stderr.strip().rpartition(": ")[2]


class Board:
    """A board below a folder of its own."""

    def __init__(self, *options):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="talpa-board-"))
        done = talpa("board", "up", "--root", self.root, *options)
        check(done.returncode == 0, f"board up failed: {done.stderr}")
        self.sys = self.root / "sys"
        self.dev = self.root / "dev"

    def remoteproc(self, k=0):
        return self.sys / f"class/remoteproc/remoteproc{k}"

    def debug(self, k=0):
        return self.sys / f"kernel/debug/remoteproc/remoteproc{k}"

    def install(self, name="runner.elf"):
        shutil.copy(FIRMWARE, self.root / "lib/firmware" / name)
        equal(shell_write(name, self.remoteproc() / "firmware"), "", "firmware")

    def start(self):
        equal(shell_write("start", self.remoteproc() / "state"), "", "start")

    def pid(self):
        return int(next(f for f in boards().glob("*/pid") if self.root.as_posix() in (f.parent / "board.json").read_text())
                   .read_text())

    def down(self):
        done = talpa("board", "down", "--root", self.root)
        check(done.returncode == 0, f"board down failed: {done.stderr}")
        return done.stdout


class NamespaceBoard:
    """A board of its own namespaces."""

    def __init__(self, name, *options):
        self.name = name
        done = talpa("board", "up", "--name", name, *options)
        check(done.returncode == 0, f"board up failed: {done.stderr}")

    def exec(self, *words, **more):
        words = words if words[0] == "--" else ("--", *words)
        return talpa("board", "exec", "--name", self.name, *words, **more)

    def sh(self, script, **more):
        """What the script prints; it must succeed."""
        done = self.exec("bash", "-c", script, **more)
        check(done.returncode == 0, f"{script}: {done.stdout}{done.stderr}")
        return done.stdout

    def pid(self):
        return int((boards() / self.name / "pid").read_text())

    def disk(self):
        return json.loads((boards() / self.name / "board.json").read_text())["disk"]

    def down(self):
        done = talpa("board", "down", "--name", self.name)
        check(done.returncode == 0, f"board down failed: {done.stderr}")
        return done.stdout


def namespace_processes(pid):
    """All processes in the pid namespace whose first is `pid`."""
    def space(p):
        try:
            return os.readlink(f"/proc/{p}/ns/pid")
        except OSError:
            return None
    own = space(pid)
    return [int(p) for p in os.listdir("/proc") if p.isdigit() and own and space(p) == own]


@contextlib.contextmanager
def namespace_board(name, *options):
    b = NamespaceBoard(name, *options)
    try:
        yield b
    finally:
        b.down()


GOLDEN = SOURCE / "tests/golden/models/ds_cnn_random"


def stage(b, device="mem"):
    """A small network and its input where a bare RUN looks for them."""
    with open(b.dev / device, "r+b", buffering=0) as memory:
        for name, address in (("ds_cnn_random.pte", 0xC0000000), ("in0.bin", 0xC036D000)):
            memory.seek(address)
            memory.write((GOLDEN / name).read_bytes())


def run(b, node="ttyRPMSG0", line="RUN", seconds=20):
    """All that comes back until OK, ERR or silence."""
    wait_for((b.dev / node).is_symlink, node)
    fd = os.open(b.dev / node, os.O_RDWR | os.O_NOCTTY)
    os.write(fd, line.encode() + b"\n")
    text = b""
    tag = line.partition(" ")[0] + " " if line.startswith("@") else ""
    endings = tuple((tag + word).encode() for word in ("OK ", "ERR ", "PONG"))
    while not any(part.startswith(endings) for part in text.split(b"\n")[:-1]):
        if not select.select([fd], [], [], seconds)[0]:
            break
        try:
            piece = os.read(fd, 4096)
        except OSError:
            break
        if not piece:
            break
        text += piece
    os.close(fd)
    return text.decode()


def started(*options):
    b = Board("--startup-delay", 0, *options)
    b.install()
    b.start()
    return b


def log_of(b):
    return talpa("board", "logs", "--root", b.root).stdout


def end(b):
    b.down()
    shutil.rmtree(b.root, ignore_errors=True)


def boards():
    return pathlib.Path(os.environ["TALPA_BOARDS"])


@contextlib.contextmanager
def board(*options):
    b = Board(*options)
    try:
        yield b
    finally:
        b.down()
        shutil.rmtree(b.root, ignore_errors=True)


def run_all(tests, namespaces=False):
    """Runs each test (or the one that TALPA_TEST names) with a folder of its own for the boards' state; the exit status."""
    failed = 0
    only = os.environ.get("TALPA_TEST")
    tests = [test for test in tests if only in (None, test.__name__)]
    check(tests, f"no test '{only}'")
    with tempfile.TemporaryDirectory(prefix="talpa-boards-") as folder:
        os.environ["TALPA_BOARDS"] = folder
        need_fuse()
        if namespaces:
            need_namespaces()
        for test in tests:
            try:
                started = time.monotonic()
                test()
                print(f"{test.__name__} ({time.monotonic() - started:.1f} s)")
            except Exception as error:
                failed = 1
                print(f"FAILED {test.__name__}: {error}")
        if failed:  # their boards are still up
            talpa("board", "down", "--all")
        left = list(pathlib.Path(folder).iterdir())
        if left:
            failed = 1
            print(f"FAILED: boards left behind: {left}")
    return failed
