"""What tests of programs on the board share: the virtual hardware under a folder (board_tree_tool), started and stopped."""
import pathlib
import subprocess
import sys
import time

from talpa_test import BUILD, SKIPPED, SOURCE

TOOL = BUILD / "bin" / "talpa_board_tree_tool"
FIRMWARE = SOURCE / "build" / "firmware" / "executorch_runner_cm33.elf"


def need_firmware():
    if not FIRMWARE.exists():
        print("skipped: the firmware is not built (./run build)")
        sys.exit(SKIPPED)


class BoardTree:
    def __init__(self, *arguments, start=True):
        self.process = subprocess.Popen([TOOL, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.root = pathlib.Path(self.process.stdout.readline().strip())
        if start:
            self.start()

    def say(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def start(self):
        assert self.say("start") == 0
        deadline = time.monotonic() + 10
        while not (self.root / "dev/ttyRPMSG0").exists():
            assert time.monotonic() < deadline, "no tty appeared"
            time.sleep(0.01)

    def stop(self):
        assert self.say("stop") == 0

    def close(self):
        self.process.stdin.close()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
