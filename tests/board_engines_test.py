#!/usr/bin/env python3
"""Container engines that know nothing of talpa, installed on the machine and run on a board: podman builds and runs, containerd
runs; containers see the i.MX 93, the tty that appears later included, and nothing of it touches the machine's own engine."""
import json
import os
import pathlib
import subprocess
import sys
import urllib.request

import board_lib as lib
from board_lib import check, equal, namespace_board, wait_for

# A container of the board's own programs: links into /usr, which it is given.
MAKE_IMAGE = """set -e
mkdir -p /run/image/root/usr /run/image/root/run /run/image/root/tmp
for name in bin lib lib64; do ln -s usr/$name /run/image/root/$name; done
printf 'FROM scratch\\nCOPY root /\\n' > /run/image/Containerfile
"""


def start_runner(b):
    b.sh(f"cp {lib.FIRMWARE} /lib/firmware/runner.elf && cd /sys/class/remoteproc/remoteproc0 && "
         "echo runner.elf > firmware && echo start > state")
    wait_for(lambda: b.exec("test", "-e", "/dev/ttyRPMSG0").returncode == 0, "/dev/ttyRPMSG0")


ASK = """
import os
print(open('/sys/class/remoteproc/remoteproc0/name').read().strip())
print(open('/sys/firmware/devicetree/base/model').read().strip(chr(0)))
tty = os.open('/dev/ttyRPMSG0', os.O_RDWR | os.O_NOCTTY)
os.write(tty, b'PING\\n')
print(os.read(tty, 100).decode())
"""
ANSWER = ["imx-rproc", "NXP FRDM-IMX93", "PONG seq=0"]


def podman_builds_and_runs_on_a_board():
    if not lib.shutil.which("podman"):
        print("  no podman here: not tried")
        return
    own = pathlib.Path("/var/lib/containers").exists() and sorted(os.listdir("/var/lib/containers"))
    with namespace_board("podman", "--startup-delay", 0, "--publish", "0:3001") as b:
        b.sh(MAKE_IMAGE)
        b.sh("podman build -q -t webapp /run/image")
        b.sh("podman run -d --name web --privileged -v /usr:/usr:ro -v /sys:/sys -v /dev:/dev -p 3001:3000 webapp "
             "/usr/bin/python3 -m http.server --directory /sys/firmware/devicetree/base 3000")
        start_runner(b)  # the container was there before its tty
        equal(b.exec("podman", "exec", "web", "/usr/bin/python3", "-c", ASK).stdout.split("\n")[:3], ANSWER, "from the container")
        port = json.loads(lib.talpa("board", "status", "--name", "podman", "--json").stdout)["published"][0]["outside"]

        def page():
            try:
                return urllib.request.urlopen(f"http://127.0.0.1:{port}/model", timeout=10).read()
            except OSError:
                return None

        equal(wait_for(page, "page through two forwarded ports"), b"NXP FRDM-IMX93\0", "page")
        equal(b.sh("podman kill web >/dev/null && podman wait web; podman rm web >/dev/null; podman ps -aq"), "137\n", "end")
    now = pathlib.Path("/var/lib/containers").exists() and sorted(os.listdir("/var/lib/containers"))
    equal(now, own, "the machine's own containers")
    check("podman" not in subprocess.run(["ip", "-o", "link"], capture_output=True, text=True).stdout, "no bridge is left")


def containerd_runs_on_a_board():
    if not lib.shutil.which("containerd") or not lib.shutil.which("runc"):
        print("  no containerd with runc here: not tried")
        return
    with namespace_board("containerd", "--startup-delay", 0) as b:
        b.sh(MAKE_IMAGE)
        b.sh("setsid containerd > /var/log/containerd.log 2>&1 < /dev/null &")
        wait_for(lambda: b.exec("ctr", "version").returncode == 0, "containerd")
        # An image as `docker save` writes it, by hand: one layer.
        b.sh("""cd /run/image && tar -C root -cf layer.tar . && sum=$(sha256sum layer.tar | cut -d' ' -f1) &&
printf '{"architecture":"%s","os":"linux","config":{},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
    $(case $(uname -m) in x86_64) echo amd64;; *) echo arm64;; esac) $sum > config.json &&
printf '[{"Config":"config.json","RepoTags":["localhost/webapp:latest"],"Layers":["layer.tar"]}]' > manifest.json &&
tar -cf image.tar manifest.json config.json layer.tar && ctr image import image.tar""")
        start_runner(b)
        done = b.exec("ctr", "run", "--rm", "--privileged", "--mount", "type=bind,src=/usr,dst=/usr,options=rbind:ro",
                      "--mount", "type=bind,src=/sys,dst=/sys,options=rbind", "--mount", "type=bind,src=/dev,dst=/dev,options=rbind",
                      "localhost/webapp:latest", "once", "/usr/bin/python3", "-c", ASK)
        equal(done.stdout.split("\n")[:3], ANSWER, f"from the container: {done.stderr}")


if not lib.FIRMWARE.exists():
    lib.skip("the firmware is not built (./run build)")
if not lib.shutil.which("podman") and not lib.shutil.which("containerd"):
    lib.skip("neither podman nor containerd is installed (apt-get install podman containerd runc)")
sys.exit(lib.run_all([podman_builds_and_runs_on_a_board, containerd_runs_on_a_board], namespaces=True))
