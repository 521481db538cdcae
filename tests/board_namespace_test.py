#!/usr/bin/env python3
"""A board in namespaces: programs that know nothing of talpa see an i.MX 93 at its real paths, the user's machine stays
as it is, and nothing is left after any end."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

import board_lib as lib
from board_lib import check, equal, namespace_board, wait_for

# As the original web page talks to the runner: mmap of /dev/mem, read and write of the tty.
WEB_PAGE = """
import mmap, os, struct, sys
pte, tensor, want = (open(name, 'rb').read() for name in sys.argv[1:4])
def region(node):
    for base in ('/sys/firmware/devicetree/base', '/proc/device-tree'):
        try:
            with open(base + '/reserved-memory/' + node + '/reg', 'rb') as reg:
                high, low, size_high, size = struct.unpack('>4I', reg.read())
                return low, size
        except FileNotFoundError:
            continue
base, size = region('model@c0000000')
scratch, scratch_size = region('ethosu_region@A8000000')
assert os.path.exists('/dev/ethosu0')
assert open('/sys/class/remoteproc/remoteproc0/name').read().strip() == 'imx-rproc'
memory = os.open('/dev/mem', os.O_RDWR | os.O_SYNC)
model = mmap.mmap(memory, size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE, offset=base)
model[0:len(pte)] = pte
model[0x36D000:0x36D000 + len(tensor)] = tensor
tty = os.open('/dev/ttyRPMSG0', os.O_RDWR | os.O_NOCTTY)
os.write(tty, b'RUN\\n')
text = b''
while not any(line.startswith((b'OK ', b'ERR ')) for line in text.splitlines() if text.endswith(b'\\n')):
    text += os.read(tty, 512)
print(text.decode())
output = mmap.mmap(memory, scratch_size, mmap.MAP_SHARED, mmap.PROT_READ, offset=scratch)
print('EQUAL' if output[0x3000000:0x3000000 + len(want)] == want else 'DIFFERENT')
"""


def machine():
    """What of the user's machine a board could change."""
    mounts = pathlib.Path("/proc/self/mounts").read_text()
    listing = {folder: sorted(os.listdir(folder)) for folder in
               ("/etc", "/usr/local", "/usr/local/bin", "/var", "/var/lib", "/run", "/dev", "/sys/class", "/lib/firmware")
               if os.path.isdir(folder)}
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True).stdout if lib.shutil.which("ip") else ""
    return mounts, listing, os.uname().nodename, links, os.path.exists("/root/.ssh")


def start_runner(b):
    equal(b.sh(f"cp {lib.FIRMWARE} /lib/firmware/runner.elf && cd /sys/class/remoteproc/remoteproc0 && "
               "echo runner.elf > firmware && echo start > state && cat state"), "running\n", "start")
    wait_for(lambda: b.exec("test", "-e", "/dev/ttyRPMSG0").returncode == 0, "/dev/ttyRPMSG0")


def programs_see_an_imx93_and_the_machine_stays_as_it_is():
    golden = lib.SOURCE / "tests/golden/models/resnet8_random"
    before = machine()
    with namespace_board("imx93") as b:
        start_runner(b)
        done = b.exec("python3", "-c", WEB_PAGE, *(golden / name for name in ("resnet8_random.pte", "in0.bin", "out0.bin")))
        check("OK RUN seq=1" in done.stdout and "EQUAL" in done.stdout, f"the run: {done.stdout}{done.stderr}")
        check("1 inferences finished" in b.sh("cat /sys/kernel/debug/remoteproc/remoteproc0/trace0"), "trace0")
        # echo and cat, as one does by hand; the reader stands ready before the question
        equal(b.sh("(timeout 5 head -n 1 /dev/ttyRPMSG0 & sleep 0.2; echo PING > /dev/ttyRPMSG0; wait)"), "PONG seq=1\n",
              "echo PING")
        equal(b.sh("hostname"), "imx93\n", "host name")
        check("iomem=relaxed" in b.sh("cat /proc/cmdline"), "the kernel's command line")
        b.sh("touch /etc/new /usr/local/bin/new /var/lib/new /run/new /root/.ssh/new /lib/firmware/new; echo x >> /etc/hosts")
        for path in ("/etc/new", "/usr/local/bin/new", "/var/lib/new", "/run/new", "/root/.ssh/new", "/lib/firmware/new"):
            check(not os.path.exists(path), f"{path} came through to the user's machine")
        check("127.0.0.1" in b.sh("cat /proc/net/fib_trie"), "its own loopback interface")
        equal(b.sh("ls /proc | grep -c '^1$'"), "1\n", "its own process numbers")
        wrong = b.exec("bash", "-c", "echo bogus > /sys/class/remoteproc/remoteproc0/state")
        check("Invalid argument" in wrong.stderr, f"a wrong word: {wrong.stderr}")
        equal(b.sh("cat /sys/firmware/devicetree/base/model | tr -d '\\0'"), "NXP FRDM-IMX93", "model")
        equal(b.sh("echo stop > /sys/class/remoteproc/remoteproc0/state; ls /dev/ttyRPMSG* 2>&1 | grep -c 'No such'"), "1\n",
              "the tty goes")
    now = machine()
    for what, was, now_is in zip(("mounts", "folders", "host name", "interfaces", "/root/.ssh"), before, now):
        equal(now_is, was, f"{what} of the user's machine")


def what_programs_write_stays_on_the_board():
    with tempfile.TemporaryDirectory(prefix="talpa-home-") as name:
        home = pathlib.Path(name)
        for path, text in (("notes", "first"), (".config/settings", "mine"), ("work/source", "one"), ("work/out/kept", "")):
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(text)

        def listing():
            return {str(p.relative_to(home)): p.read_text() for p in home.rglob("*") if p.is_file() and ".cache" not in p.parts}

        before, was = listing(), os.environ.get("HOME")
        os.environ["HOME"] = str(home)
        try:
            with namespace_board("homes", "--share", home / "work/out") as b:
                equal(b.sh(f"cd {home}; cat notes .config/settings work/source"), "firstmineone", "the home is seen")
                b.sh(f"cd {home}; touch new .local-new; mkdir -p .cache/topo .local/state; echo other > .config/settings; rm notes; mkdir made")
                places = [f"{folder}/talpa-board-test" for folder in
                          ("/root", "/usr/bin", "/usr/lib", "/usr/sbin", "/opt", "/srv", "/var", "/bin") if os.path.isdir(folder)]
                b.sh(f"touch {' '.join(places)}; ls {' '.join(places)}")
                equal([path for path in places if os.path.lexists(path)], [], "came through to the user's machine")
                equal(listing(), before, "the user's home")
                check(not (home / ".cache/topo").exists() and not (home / "made").exists(), "the user's folders")
                for place in (f"{home}/work/new", "/home/new", "/mnt/new", "/boot/new"):
                    refused = b.exec("touch", place)
                    check(refused.returncode != 0 and "Read-only file system" in refused.stderr, f"touch {place}: {refused.stderr}")
                # What the user does meanwhile is seen: files replaced as editors and linkers do it, folders made.
                for path in ("work/source", "notes-of-now", "later/source"):
                    (home / path).parent.mkdir(exist_ok=True)
                    for text in ("two", "three"):
                        (home / "fresh").write_text(text)
                        (home / "fresh").rename(home / path)
                        equal(b.exec("cat", home / path, cwd=home).stdout, text, f"{path}, replaced")
                equal(b.exec("pwd", cwd=home / "later").stdout, f"{home}/later\n", "a folder that was made since")
                check("Read-only" in b.exec("touch", "x", cwd=home / "later").stderr, "that is a work folder as well")
                b.sh(f"echo result > {home}/work/out/file")
                equal((home / "work/out/file").read_text(), "result\n", "what was shared")
                equal(b.exec("sh", "-c", f"ls -A {home}/.cache/talpa/boards 2>/dev/null; true").stdout, "", "the board's own disk is out of sight")
        finally:
            os.environ["HOME"] = was or "/root"


def a_programs_status_folder_and_input_are_its_own():
    with namespace_board("statuses") as b:
        equal(b.exec("sh", "-c", "exit 42").returncode, 42, "exit status")
        equal(b.exec("sh", "-c", "kill -9 $$").returncode, 137, "killed")
        missing = b.exec("no-such-program")
        check(missing.returncode == 127 and "No such file" in missing.stderr, f"missing program: {missing}")
        unfit = b.exec("/etc/passwd")
        check(unfit.returncode == 126 and "Permission denied" in unfit.stderr, f"no program: {unfit}")
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            away = b.exec("pwd", cwd=folder)
            check(away.stdout == "/\n" and f"{folder} is not on the board" in away.stderr, f"a folder that is not there: {away}")
        equal(b.exec("cat", input="through\n").stdout, "through\n", "standard input")
        with tempfile.TemporaryDirectory() as folder:
            equal(b.exec("pwd", cwd=folder).stdout, folder + "\n", "folder")
        check("/usr/sbin" in b.exec("sh", "-c", "echo $PATH", env={**os.environ, "PATH": "/usr/bin:/bin"}).stdout,
              "root's programs are found")
        equal(b.exec("--", "echo", "--name", "x").stdout, "--name x\n", "options behind -- are the program's")
        sleeper = subprocess.Popen([lib.TALPA, "board", "exec", "--name", "statuses", "--", "sleep", "60"])
        wait_for(lambda: b.exec("pgrep", "sleep").returncode == 0, "sleep")
        sleeper.terminate()
        equal(sleeper.wait(10), 143, "SIGTERM is passed on")
    equal(b.exec("true").returncode, 1, "exec on a board that is down")


def boards_do_not_see_each_other():
    with namespace_board("one") as one, namespace_board("two", "--remoteproc", "3") as two:
        one.sh("touch /etc/mark; echo here.elf > /sys/class/remoteproc/remoteproc0/firmware")
        equal(two.exec("test", "-e", "/etc/mark").returncode, 1, "file of the other")
        equal(two.sh("cat /sys/class/remoteproc/remoteproc0/firmware"), "rproc-imx-rproc-fw\n", "firmware of the other")
        equal(two.sh("ls /sys/class/remoteproc"), "remoteproc0\nremoteproc1\nremoteproc2\n", "its processors")
        start_runner(one)
        equal(two.exec("test", "-e", "/dev/ttyRPMSG0").returncode, 1, "tty of the other")
        check("'" not in lib.talpa("board", "status", "--name", "one").stderr, "status")


def ports_reach_the_users_machine():
    with namespace_board("ports", "--publish", "0:8000") as b:
        status = json.loads(lib.talpa("board", "status", "--name", "ports", "--json").stdout)
        port = status["published"][0]["outside"]

        def fetch():
            with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
                client.sendall(b"GET /new HTTP/1.0\r\n\r\n")
                text = b""
                while piece := client.recv(65536):
                    text += piece
                return text

        def refused():
            try:
                return fetch() == b""
            except ConnectionError:
                return True

        check(refused(), "nobody serves yet")
        b.sh("mkdir /run/www; head -c 3000000 /dev/zero > /run/www/new; cd /run/www; "
             "setsid python3 -m http.server --bind 127.0.0.1 8000 >/dev/null 2>&1 </dev/null &")
        text = wait_for(lambda: not refused() and fetch(), "web server")
        check(text.startswith(b"HTTP/1.0 200") and text.endswith(bytes(3000000)), f"{len(text)} bytes through the port")
        # A second one while the board is up.
        more = lib.talpa("board", "publish", "--name", "ports", "0:8000")
        first, port = port, json.loads(lib.talpa("board", "status", "--name", "ports", "--json").stdout)["published"][1]["outside"]
        check(more.returncode == 0 and f"Port {port} of this machine" in more.stdout, f"publish: {more.stdout}{more.stderr}")
        equal(fetch()[-3:], bytes(3), "the second port")
        again = lib.talpa("board", "publish", "--name", "ports", f"{port}:8000")
        equal((again.returncode, again.stdout), (0, ""), "what is forwarded already stays")
        other = lib.talpa("board", "publish", "--name", "ports", f"{first}:80")
        check(other.returncode == 1 and "Address already in use" in other.stderr, f"a port of ours: {other.stderr}")
        taken = lib.talpa("board", "up", "--name", "other", "--publish", f"{port}:80")
        check(taken.returncode == 1 and "Address already in use" in taken.stderr, f"a port that is taken: {taken.stderr}")
        check("other" not in lib.talpa("board", "status").stdout, "the refused board leaves nothing")
    check(refused(), "the port is closed when the board is down")


def ssh_enters_with_the_boards_own_key():
    if not os.path.exists("/usr/sbin/sshd") or not lib.shutil.which("ssh"):
        print("  no sshd here: ssh not tried")
        return
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "config"
        for options in (("--ssh", "0"), ()):  # by a port, and by talpa board connect
            with namespace_board("secure", *options) as b:
                config.write_text(lib.talpa("board", "ssh-config", "--name", "secure").stdout)
                check(("ProxyCommand" in config.read_text()) == (options == ()), f"way in: {config.read_text()}")
                done = subprocess.run(["ssh", "-F", config, "secure", "hostname; cat > /etc/sent; id -u"], input="x" * 100000,
                                      capture_output=True, text=True, timeout=60)
                equal((done.returncode, done.stdout), (0, "secure\n0\n"), f"ssh: {done.stderr}")
                equal(b.sh("wc -c < /etc/sent"), "100000\n", "bytes by ssh")
                check(not os.path.exists("/etc/sent"), "the user's /etc")


def nothing_is_left_after_kill_9():
    before = machine()
    for victim in ("board", "keeper", "both"):
        b = lib.NamespaceBoard(f"killed-{victim}")
        start_runner(b)
        b.sh("setsid sleep 1000 >/dev/null 2>&1 & ")
        pid = b.pid()
        keeper = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        inside = lib.namespace_processes(pid)
        check(len(inside) >= 2, f"processes in the namespace: {inside}")
        for process in {"board": [pid], "keeper": [keeper], "both": [keeper, pid]}[victim]:
            os.kill(process, signal.SIGKILL)
        if victim != "keeper":
            wait_for(lambda: not any(os.path.exists(f"/proc/{p}") for p in inside), "end of all that ran on it")
            check("dead" in lib.talpa("board", "status", "--name", b.name).stdout, "status of a killed board")
            check("is now up" in lib.talpa("board", "logs", "--name", b.name).stdout, "its log can still be read")
        disk = b.disk()
        b.down()
        wait_for(lambda: not any(os.path.exists(f"/proc/{p}") for p in inside), "end of all processes")
        check(not os.path.exists(disk), f"{disk} after down")
        equal(machine(), before, f"the machine after kill -9 of the {victim}")


def an_ordinary_user_may_have_one():
    """With a /dev/fuse as distributions set it, and user namespaces; root makes both here, in a mount namespace of its own."""
    if os.geteuid() != 0:
        return  # then all the other tests are this one
    script = f"""
set -e
mount -t tmpfs none /mnt
mknod /mnt/fuse c 10 229 && chmod 666 /mnt/fuse && mount --bind /mnt/fuse /dev/fuse
mkdir -m 777 /mnt/home && cp {lib.TALPA} /mnt/talpa && cp {lib.FIRMWARE} /mnt/runner.elf && chmod 755 /mnt /mnt/talpa /mnt/runner.elf
cat > /mnt/user.sh <<'END'
export HOME=/mnt/home TALPA_BOARDS=/mnt/home/boards
cd /mnt
if ! ./talpa board up --startup-delay 0; then exit 77; fi
./talpa board exec -- sh -c 'cp /mnt/runner.elf /lib/firmware/ && cd /sys/class/remoteproc/remoteproc0 && echo runner.elf > firmware &&
    echo start > state && cat state && sleep 0.5 && test -e /dev/ttyRPMSG0 && id -u'
./talpa board down
ls /mnt/home/boards
END
exec setpriv --reuid 65534 --regid 65534 --clear-groups sh /mnt/user.sh
"""
    done = subprocess.run(["unshare", "--mount", "bash", "-c", script], capture_output=True, text=True, timeout=120)
    if done.returncode == 77:
        print(f"  not here: {done.stderr.strip()}")
        return
    check("\nrunning\n0\nThe board 'board' is down.\n" in done.stdout and done.stdout.endswith("down.\n"),
          f"{done.stdout}{done.stderr}")


def a_signal_ends_a_board_in_order():
    b = lib.NamespaceBoard("signalled")
    disk = b.disk()
    os.kill(b.pid(), signal.SIGTERM)
    wait_for(lambda: lib.talpa("board", "status").stdout == "No board is up.\n", "end")
    check(not os.path.exists(disk), "its disk is gone")
    foreground = subprocess.Popen([lib.TALPA, "board", "up", "--name", "front", "--foreground"], stdout=subprocess.PIPE,
                                  text=True)
    check("is up" in foreground.stdout.readline(), "first line")
    equal(lib.talpa("board", "exec", "--name", "front", "--", "true").returncode, 0, "exec")
    foreground.send_signal(signal.SIGINT)
    equal(foreground.wait(20), 0, "status after Ctrl-C")
    equal(lib.talpa("board", "status").stdout, "No board is up.\n", "status after Ctrl-C")


def a_board_that_comes_up_is_not_up():
    words = set()
    for _ in range(10):  # until one was seen coming up
        up = subprocess.Popen([lib.TALPA, "board", "up", "--name", "slow"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        seen = []
        while up.poll() is None:
            status = lib.talpa("board", "status", "--name", "slow")
            if "there is no board" not in status.stderr:
                seen.append((status.stdout.partition(",")[0].strip(), status.returncode))
        equal(up.returncode, 0, up.stdout.read())
        equal(lib.talpa("board", "exec", "--name", "slow", "--", "true").returncode, 0, "up is up")
        lib.talpa("board", "down", "--name", "slow")
        equal(sorted(seen, key=lambda s: s[1], reverse=True), seen, "it does not go back")
        words |= set(seen)
        if ("slow: coming up", 1) in words:
            break
    check(("slow: coming up", 1) in words and words <= {("slow: coming up", 1), ("slow: up", 0)}, f"while it comes up: {words}")


def what_is_the_users_stays():
    """A folder of the board's name on its disk, one in /tmp that somebody else made, folders that cannot be shared."""
    def up(*words, **more):
        return lib.talpa("board", "up", "--name", "careful", *words, env={**os.environ, **more})

    with tempfile.TemporaryDirectory(prefix="talpa-disk-") as folder:
        photo = pathlib.Path(folder, "careful/photos/a.jpg")
        photo.parent.mkdir(parents=True)
        photo.write_text("precious")
        done = up(TALPA_BOARD_DISK=folder)
        check(done.returncode == 1 and f"{folder}/careful is there and no board made it" in done.stderr and "--name another" in done.stderr, done.stderr)
        equal(photo.read_text(), "precious", "the user's file")
        os.rename(f"{folder}/careful", f"{folder}/mine")
        for _ in range(2):  # what a board of before left is a board's
            equal(up(TALPA_BOARD_DISK=folder).returncode, 0, "where nothing is in the way")
            equal(lib.talpa("board", "down", "--name", "careful").returncode, 0, "down")
        equal(os.listdir(folder), ["mine"], "afterwards")
    for shared in ("/", "/etc", "/usr", "/home", "/dev", "/run"):
        done = up("--share", shared)
        check(done.returncode == 2 and f"--share {shared}" in done.stderr, f"{shared}: {done.returncode} {done.stderr}")
    named = subprocess.run([lib.TALPA, "board", "up"], env={**os.environ, "TALPA_BOARD": "careful"}, capture_output=True, text=True, timeout=60)
    check("The board 'careful' is up" in named.stdout, f"TALPA_BOARD: {named.stdout}{named.stderr}")
    equal(lib.talpa("board", "down", "--name", "careful").returncode, 0, "down")
    if os.geteuid() == 0:
        script = """mount -t tmpfs none /tmp; install -d -o 1234 /tmp/talpa-0; exec "$0" board up --name careful"""
        bare = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "TALPA_BOARD_DISK")}
        done = subprocess.run(["unshare", "--mount", "sh", "-c", script, lib.TALPA], env=bare, capture_output=True, text=True, timeout=60)
        check(done.returncode == 1 and "/tmp/talpa-0 is not a folder of yours alone" in done.stderr, f"{done.returncode} {done.stdout}{done.stderr}")
    equal(lib.talpa("board", "status").stdout, "No board is up.\n", "afterwards")


def a_signal_while_it_comes_up_leaves_nothing():
    for words in ((), ("--foreground",)):
        for moment in (0, 0.03, 0.08, 0.2):
            for sign in (signal.SIGINT, signal.SIGTERM):
                up = subprocess.Popen([lib.TALPA, "board", "up", "--name", "hasty", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      text=True)
                time.sleep(moment)
                up.send_signal(sign)
                said = up.communicate(timeout=60)[0]
                check(up.returncode in (-sign, 128 + sign, 0), f"{words} {moment} {sign!r}: {up.returncode} {said}")
                if not words and up.returncode == 0:  # the board was up already
                    lib.talpa("board", "down", "--name", "hasty")
                equal(lib.talpa("board", "status").stdout, "No board is up.\n", f"{words} {moment} {sign!r}: {said}")


def a_board_of_a_chroot_is_entered_there():
    if os.geteuid() != 0:
        print("  not root: no chroot")
        return
    script = """mount --rbind / "$1"; chroot "$1" "$0" board up --name chrooted || exit 1
chroot "$1" "$0" board exec --name chrooted -- cat /sys/class/remoteproc/remoteproc0/name; chroot "$1" "$0" board down --name chrooted"""
    with tempfile.TemporaryDirectory() as root:
        done = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", script, lib.TALPA, root], capture_output=True, text=True, timeout=120)
        check(done.returncode == 0 and "\nimx-rproc\n" in done.stdout, f"{done.returncode} {done.stdout}{done.stderr}")


if not lib.FIRMWARE.exists():
    lib.skip("the firmware is not built (./run build)")
sys.exit(lib.run_all([programs_see_an_imx93_and_the_machine_stays_as_it_is, what_programs_write_stays_on_the_board,
                      a_programs_status_folder_and_input_are_its_own,
                      boards_do_not_see_each_other, ports_reach_the_users_machine,
                      ssh_enters_with_the_boards_own_key, an_ordinary_user_may_have_one, nothing_is_left_after_kill_9,
                      a_signal_ends_a_board_in_order, a_board_that_comes_up_is_not_up, what_is_the_users_stays, a_signal_while_it_comes_up_leaves_nothing,
                      a_board_of_a_chroot_is_entered_there],
                     namespaces=True))
