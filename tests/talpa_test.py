"""What system tests of talpa share: where things are, running a program and looking at how it went."""
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(os.environ.get("TALPA_SOURCE", pathlib.Path(__file__).resolve().parent.parent))
BUILD = pathlib.Path(os.environ.get("TALPA_BUILD", SOURCE / "build" / "release"))
TALPA = BUILD / "bin" / "talpa"
GOLDEN = SOURCE / "tests" / "golden"
REFERENCE = pathlib.Path(os.environ.get("TALPA_REFERENCE", SOURCE / ".." / "shared" / "reference"))
SANITIZED = "TALPA_SANITIZED" in os.environ  # set by tests/CMakeLists.txt
EMULATED = "TALPA_EMULATED" in os.environ  # set by scripts/emulated.sh
UNMEASURED = SANITIZED or EMULATED  # neither time nor memory are the program's own
SKIPPED = 77


class Ran:
    """One run of a program: status, stdout, stderr, wall seconds, peak KiB."""

    def __init__(self, args, **options):
        started = time.monotonic()
        # Errors go to a file: a pipe that nobody reads yet would stop a program that says much.
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen([str(a) for a in args], stdout=subprocess.PIPE, stderr=errors, **options)
            with process.stdout:
                out = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = 0
            errors.seek(0)
            err = errors.read()
        self.seconds = time.monotonic() - started
        self.peak_kib = usage.ru_maxrss
        self.status = os.waitstatus_to_exitcode(status)
        self.out, self.err = out.decode(), err.decode()


def talpa(*args, **options):
    return Ran([TALPA, *args], **options)


class Checks:
    """Counts failures and goes on, so that one run shows all of them."""

    def __init__(self):
        self.count = 0
        self.failures = []

    def that(self, condition, what):
        self.count += 1
        if not condition:
            self.failures.append(what)
            print(f"FAILED: {what}", flush=True)

    def equal(self, got, wanted, what):
        self.that(got == wanted, f"{what}: got {got!r}, wanted {wanted!r}")

    def finish(self):
        print(f"{self.count} checks, {len(self.failures)} failed")
        sys.exit(1 if self.failures else 0)
