"""A private mount namespace in which unmodified programs find remote processors at the paths of a real board. Everything
that a runtime writes (firmware, state, locks) lies in folders of this namespace only. remoteproc-runtime, section 18."""
import ctypes
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kernel_double  # noqa: E402

CLONE_NEWNS = 0x20000
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
LIBC = ctypes.CDLL(None, use_errno=True)
DOUBLE = "/run/kernel-double"
PARAMETER = "/sys/module/firmware_class/parameters/path"
FIRMWARE = "/lib/firmware"


def possible():
    """Why it cannot be made here, or None."""
    if os.geteuid() != 0:
        return "needs root for a mount namespace"
    if not os.path.exists("/dev/fuse"):
        return "no /dev/fuse"
    return None


def unshare():
    if LIBC.unshare(CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    kernel_double.mount(None, "/", None, MS_REC | MS_PRIVATE)


def is_ours(pid):
    """Whether a process is of this board, also in a mount namespace of its own: it sees the same /run."""
    try:
        return os.stat(f"/proc/{pid}/root/run").st_dev == os.stat("/run").st_dev
    except OSError:
        return False


def firmware_folders():
    folders = [FIRMWARE]
    try:
        with open(PARAMETER) as file:
            custom = file.read().split("\n")[0]
        if custom:
            folders.insert(0, custom)
    except OSError:
        pass
    return folders


class Board:
    """Enters the namespace and starts the double. One a process."""

    def __init__(self, names=("imx-rproc",), private=("/run", "/var/lib/remoteproc-runtime", "/root/.local")):
        unshare()
        for folder in list(private) + [FIRMWARE]:
            os.makedirs(folder, exist_ok=True)
            kernel_double.mount("tmpfs", folder, "tmpfs", 0, "mode=755")
        os.makedirs("/run/board/upper", exist_ok=True)
        os.makedirs("/run/board/work", exist_ok=True)
        kernel_double.mount("overlay", "/sys/class", "overlay", 0,
                            "lowerdir=/sys/class,upperdir=/run/board/upper,workdir=/run/board/work")
        os.makedirs("/sys/class/remoteproc", exist_ok=True)
        if os.path.exists(PARAMETER):
            with open("/run/board/parameter", "w"):
                pass
            kernel_double.mount("/run/board/parameter", PARAMETER, None, MS_BIND)
        kernel_double.mount("tmpfs", "/sys/kernel/debug", "tmpfs", 0, "mode=700")
        os.makedirs("/sys/kernel/debug/remoteproc")
        self.names = names
        self.serve()

    def serve(self):
        reader, writer = os.pipe()
        self.server = os.fork()
        if self.server == 0:
            os.close(reader)
            os.setpgid(0, 0)
            os.dup2(os.open("/dev/null", os.O_RDWR), 0)
            try:
                kernel_double.serve(DOUBLE, self.names, firmware_folders, writer)
            finally:
                os._exit(0)
        os.close(writer)
        if os.read(reader, 1) != b"r":
            raise RuntimeError("the double did not come up")
        os.close(reader)
        kernel_double.mount(DOUBLE + "/class", "/sys/class/remoteproc", None, MS_BIND)
        kernel_double.mount(DOUBLE + "/debug", "/sys/kernel/debug/remoteproc", None, MS_BIND)

    def die(self):
        """kill -9 of the board itself: every file of it answers ENOTCONN from now on, as one of a dead virtual board does."""
        os.kill(self.server, signal.SIGKILL)
        os.waitpid(self.server, 0)

    def come_back(self):
        for target in ("/sys/kernel/debug/remoteproc", "/sys/class/remoteproc", DOUBLE):
            LIBC.umount2(target.encode(), 2)
        self.serve()

    def close(self):
        for target in ("/sys/kernel/debug/remoteproc", "/sys/class/remoteproc", DOUBLE):
            LIBC.umount2(target.encode(), 2)
        try:
            self.die()
        except ProcessLookupError:
            pass  # it died in a test

    @staticmethod
    def ctl(*commands):
        with open(DOUBLE + "/ctl", "w") as file:
            file.write("\n".join(commands) + "\n")

    @staticmethod
    def log():
        with open(DOUBLE + "/log") as file:
            return file.read().splitlines()

    @staticmethod
    def state(index=0):
        with open(f"/sys/class/remoteproc/remoteproc{index}/state") as file:
            return file.read().strip()

    @staticmethod
    def attribute(name, index=0):
        with open(f"/sys/class/remoteproc/remoteproc{index}/{name}") as file:
            return file.read().strip()

    def wait_state(self, word, timeout=3.0, index=0):
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            if self.state(index) == word:
                return True
            time.sleep(0.005)
        return False
