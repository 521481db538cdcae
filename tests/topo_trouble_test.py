#!/usr/bin/env python3
"""topo when things go wrong, against a real sshd and real Podman: the error says which it is and what to do, within the time limit,
and nothing half-deployed stays without being named."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.request

from topo_board import Board, Checks, PORT, TOPO, build_web, clean, need_root, private_machine, scratch_folder, sh, topo

TARGET = f"root@127.0.0.1:{PORT}"
URI = f"ssh://{TARGET}"
HOME = pathlib.Path("/root")


def health(target=TARGET, *words, env=None):
    if "--timeout" not in words:
        words = ("--timeout", "60s", *words)  # for a busy machine; how it ends is tried with one of its own
    ran = topo("health", "--target", target, "-o", "json", *words, env=env)
    return json.loads(ran.stdout)["target"]


def timed(check, limit, what, call):
    started = time.monotonic()
    result = call()
    check.that(time.monotonic() - started < limit, f"{what} took {time.monotonic() - started:.1f} s, more than {limit} s")
    return result


def check_host_keys(check, board):
    (HOME / ".ssh/known_hosts").unlink(missing_ok=True)
    c = health()["connectivity"]
    check.equal((c["status"], c["value"], c["fix"]["command"]), ("error", "ssh host key is unknown", f"topo health --target {URI} --accept-new-host-keys"), "unknown host key")
    # What is printed as the next command can be pasted.
    subprocess.run(c["fix"]["command"].replace("topo", str(TOPO), 1), shell=True, capture_output=True, env={**os.environ, "HOME": "/root"})
    check.equal(health()["connectivity"]["status"], "ok", "after the command that was printed")
    other = subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", board.scratch / "other_key"], check=True)
    kind, key = (board.scratch / "other_key.pub").read_text().split()[:2]
    (HOME / ".ssh/known_hosts").write_text(f"[127.0.0.1]:{PORT} {kind} {key}\n")
    disconnect()
    c = health()["connectivity"]
    check.equal((c["value"], c["fix"]["command"]), ("ssh host key has changed", f"ssh-keygen -R '[127.0.0.1]:{PORT}'"), "changed host key")
    subprocess.run(c["fix"]["command"], shell=True, check=True, capture_output=True, env={**os.environ, "HOME": "/root"})
    check.equal(health()["connectivity"]["value"], "ssh host key is unknown", "after the command that was printed")
    board.trust()


def disconnect():
    """Ends the connection that stays open for ten seconds, so that the next command has to log in."""
    for path in pathlib.Path("/tmp/topo-0").glob("*"):
        if path.is_socket():
            subprocess.run(["ssh", "-o", f"ControlPath={path}", "-O", "exit", "x"], capture_output=True)


def check_login(check, board):
    keys = board.run("cat /root/.ssh/authorized_keys").stdout
    disconnect()
    board.run("mv /root/.ssh/authorized_keys /root/.ssh/kept")
    c = health()["connectivity"]
    check.equal((c["value"], c["fix"]["command"]), ("ssh authentication failed", f"topo setup-keys --target {URI}"), "the key is refused")
    ran = topo("ps", "--target", TARGET, "-f", "/nowhere/none.yaml")
    check.equal(ran.returncode, 1, "ps")
    config = "Host *\n  IdentitiesOnly yes\n"
    for i in range(7):
        sh(f"[ -f /root/.ssh/k{i} ] || ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/k{i}")
        config += f"  IdentityFile /root/.ssh/k{i}\n"
    (HOME / ".ssh/config").write_text(config)
    c = health()["connectivity"]
    check.equal(c["value"], "ssh too many authentication failures", "too many keys")
    (HOME / ".ssh/config").unlink()
    board.run("mv /root/.ssh/kept /root/.ssh/authorized_keys")
    check.equal(health()["connectivity"]["status"], "ok", f"and well again {keys[:20]}")


def check_passwords_only(check, board):
    """A second sshd that takes passwords and no keys: nothing here may wait for somebody to type one."""
    text = (board.scratch / "sshd_config").read_text().replace(f":{PORT}\n", ":2223\n").replace("PasswordAuthentication no", "PasswordAuthentication yes\nPubkeyAuthentication no")
    (board.scratch / "passwords_config").write_text(text)
    board.run(f"setsid /usr/sbin/sshd -D -e -f {board.scratch}/passwords_config > {board.scratch}/passwords.log 2>&1 < /dev/null &")
    target = "root@127.0.0.1:2223"
    known = (HOME / ".ssh/known_hosts").read_text()
    (HOME / ".ssh/known_hosts").write_text(known + known.replace(f":{PORT} ", ":2223 "))
    c = {}
    for _ in range(50):
        c = health(target)["connectivity"]
        if "refused" not in c["value"]:
            break
        time.sleep(0.2)
    check.equal((c["value"], c["fix"]["command"]), ("ssh authentication failed", f"topo setup-keys --target ssh://{target}"), "passwords only")
    ran = topo("describe", "--target", target)
    check.that(ran.returncode == 1 and "authentication failed" in ran.stderr and "setup-keys" in ran.stderr and "?" not in ran.stderr, f"passwords only: {ran.stderr}")


def check_unreachable(check):
    c = timed(check, 8, "a refused connection", lambda: health("root@127.0.0.1:2299"))["connectivity"]
    check.that("connection failed" in c["value"] and "refused" in c["value"], f"refused: {c}")
    check.that("connection failed" in health("nowhere.invalid")["connectivity"]["value"], "no such host")
    silent = socket.create_server(("127.0.0.1", 2298))
    threading.Thread(target=lambda: [silent.accept() for _ in range(30)], daemon=True).start()
    c = timed(check, 8, "a silent target", lambda: health("root@127.0.0.1:2298", "--timeout", "2s"))["connectivity"]
    check.equal(c["value"], "timed out", "accepts and stays silent")
    sh("ip link add topodrop type veth peer name topovoid; ip addr add 10.9.9.1/24 dev topodrop; ip link set topodrop arp off; ip link set topodrop up; ip link set topovoid up")
    c = timed(check, 8, "a target that drops packets", lambda: health("root@10.9.9.9", "--timeout", "2s"))["connectivity"]
    check.equal(c["value"], "timed out", "drops packets")
    ran = timed(check, 8, "describe", lambda: topo("describe", "--target", "root@10.9.9.9", "--timeout", "2s"))
    check.that(ran.returncode == 1 and "timed out" in ran.stderr, f"describe: {ran.stderr}")
    # The same of a deployment: nothing is built for a target that is not there.
    project = pathlib.Path("/root/unreachable")
    make_project(project)
    for where in ("root@10.9.9.9", "root@127.0.0.1:2298", "root@192.0.2.1"):
        ran = timed(check, 30, f"deploy to {where}", lambda: topo("deploy", "--target", where, "--connect-timeout", "2s", cwd=project))
        check.that(ran.returncode == 1 and ("timed out" in ran.stderr or "unreachable" in ran.stderr) and "Build images" not in ran.stdout, f"deploy to {where}: {ran.stdout}{ran.stderr}")
    for words in (("status",), ("down",), ("prune",), ("install", "remoteproc-runtime")):  # others: topo_compose_test
        ran = timed(check, 30, f"{words} of a silent target", lambda: topo(*words, "--target", "root@127.0.0.1:2298", "--connect-timeout", "1s", cwd=project))
        check.that(ran.returncode == 1 and "timed out" in ran.stderr, f"{words} of a silent target: {ran.stdout}{ran.stderr}")
    shutil.rmtree(project)


def check_odd_targets(check, board):
    check.equal(health(f"root@[::1]:{PORT}")["connectivity"], {"name": "Connectivity", "status": "ok", "value": ""}, "IPv6")
    long_home = pathlib.Path("/tmp") / ("h" * 95)
    shutil.copytree(HOME / ".ssh", long_home / ".ssh", dirs_exist_ok=True)
    disconnect()
    check.equal(health(env={"HOME": str(long_home), "XDG_RUNTIME_DIR": str(long_home)})["connectivity"]["status"], "ok", "a HOME of 100 characters")
    shutil.rmtree(long_home)
    board.run("echo 'echo NOISE; echo NOISE >&2; sleep 1' > /root/.profile; printf '#!/bin/sh\\n[ \"$1\" = --json ] && { echo no such option >&2; exit 1; }\\nexec /usr/bin/lscpu \"$@\"\\n' > /usr/local/bin/lscpu; chmod 755 /usr/local/bin/lscpu")
    ran = topo("describe", "--target", TARGET, "--json")
    check.that(ran.returncode == 0 and json.loads(ran.stdout)["hostProcessors"][0]["cores"] > 0, f"noise and an lscpu without JSON: {ran.stderr}")
    check.equal(json.loads(ran.stdout)["remoteProcessors"], [{"name": "imx-rproc"}], "the remote processor is seen")
    report = timed(check, 60, "a slow profile", lambda: health())
    check.that(all(d["value"] != "timed out" for d in report["dependencies"]), f"a slow profile makes no check late: {report}")
    # A profile, or an engine, that hangs: it ends within the limit (of which the connection takes its part), not minutes later.
    board.run("echo 'sleep 600' > /root/.profile")
    c = timed(check, 30, "a profile that hangs", lambda: health(TARGET, "--timeout", "6s"))["connectivity"]
    check.equal((c["status"], c["value"]), ("error", "timed out"), "a profile that hangs")
    board.run("printf '#!/bin/sh\\nexec sleep 600\\n' > /usr/local/bin/podman; chmod 755 /usr/local/bin/podman; rm /root/.profile")
    report = timed(check, 30, "an engine that hangs", lambda: health(TARGET, "--timeout", "8s"))
    check.equal([d["status"] for d in report["dependencies"] if d["name"] == "Container Engine"], ["error"], f"an engine that hangs: {report}")
    check.equal([d["status"] for d in report["dependencies"] if d["name"] == "Hardware Info"], ["ok"], f"what is asked beside it: {report}")
    # The catalogue: all features must be there, and those that are not are named (the original is content with one).
    board.run("rm /usr/local/bin/podman; printf '#!/bin/sh\\necho \\047{\"lscpu\": [{\"field\": \"Model name:\", \"data\": \"A55\"}, {\"field\": \"Core(s) per socket:\", \"data\": \"2\"}, "
              "{\"field\": \"Socket(s):\", \"data\": \"1\"}, {\"field\": \"Flags:\", \"data\": \"fp asimd\"}]}\\047\\n' > /usr/local/bin/lscpu")
    catalogue = pathlib.Path(__file__).parent / "golden/topo/catalog/ok.json"
    ran = topo("projects", "--source", f"file://{catalogue}", "--target", TARGET, "--timeout", "60s")
    check.equal([line for line in ran.stdout.splitlines() if line[:1] in ("✅", "❌")], ["✅ Alpha Web", "❌ Beta SVE", "✅ Gamma Firmware"], f"a board with NEON and a remote processor: {ran.stdout}{ran.stderr}")
    projects = json.loads(topo("projects", "--source", f"file://{catalogue}", "--target", TARGET, "--timeout", "60s", "--json").stdout)
    check.equal([(p["compatibility"], p.get("missingFeatures")) for p in projects], [("supported", None), ("unsupported", ["SVE"]), ("supported", None)], "which features are missing")
    board.run("rm /usr/local/bin/lscpu")
    # A shell that ends before it is asked anything: that is said, not that the target has no engine.
    board.run("echo 'echo come back tomorrow >&2; exit 1' > /root/.bashrc")
    project = pathlib.Path("/root/closed")
    make_project(project)
    for words in (("ps",), ("status",), ("deploy",)):
        ran = topo(*words, "--target", TARGET, cwd=project)
        check.that(ran.returncode == 1 and "come back tomorrow" in ran.stderr and "not installed" not in ran.stderr and "apt-get" not in ran.stderr,
                   f"a shell that ends at once: {words}: {ran.stderr}")
    shutil.rmtree(project)
    board.run("rm /root/.bashrc")
    # Whatever a target says is shown without driving the terminal.
    board.run("mkdir /sys/class/remoteproc/remoteproc1; printf 'evil\\033[2J\\n' > /sys/class/remoteproc/remoteproc1/name")
    for words in (("health",), ("describe",), ("describe", "--json"), ("health", "--json")):
        ran = topo(*words, "--target", TARGET)
        check.that("\x1b" not in ran.stdout + ran.stderr, f"no escape of the target reaches the terminal: {words}")
    board.run("rm -r /sys/class/remoteproc/remoteproc1")


def make_project(folder, size=96 << 20):
    (folder / "app").mkdir(parents=True)
    (folder / "compose.yaml").write_text("services:\n  app:\n    platform: linux/arm64\n    build: app\n    ports: [\"3005:3000\"]\n")
    build_web(folder / "app", "v1")
    (folder / "app" / "Dockerfile").write_text("FROM scratch\nCOPY big /big\nCOPY web /web\nENTRYPOINT [\"/web\"]\n")
    (folder / "app" / "big").write_bytes(os.urandom(size))


def deploy(project, *words):
    return topo("deploy", "--target", TARGET, *words, cwd=project)


def check_preflight(check, board, project):
    taken = socket.create_server(("127.0.0.1", 3005))
    ran = deploy(project)
    taken.close()
    check.equal(ran.returncode, 1, "a taken port")
    check.has(ran.stderr, "port 3005 of the target, which service \"app\" wants, is taken", "a taken port")
    check.that("Build images" not in ran.stdout, "nothing was built before that was known")
    board.run("printf '#!/bin/sh\\necho engine is stopped >&2\\nexit 125\\n' > /usr/local/bin/podman; chmod 755 /usr/local/bin/podman")
    ran = deploy(project)
    check.that(ran.returncode == 1 and "no container engine works" in ran.stderr and "engine is stopped" in ran.stderr, f"the engine is stopped: {ran.stderr}")
    board.run("rm /usr/local/bin/podman")
    board.run("mkdir -p /root/.cache && mount -t tmpfs -o size=1m tmpfs /root/.cache")
    ran = deploy(project)
    check.that(ran.returncode == 1 and "disk is full" in ran.stderr, f"the disk is full: {ran.stderr}")
    board.run("umount /root/.cache")
    check.equal(board.run("podman ps -aq").stdout, "", "no container")


def check_cut(check, board, project):
    """The network goes away in the middle of a transfer; the next try goes on where it ended."""
    process = subprocess.Popen([str(TOPO), "deploy", "--target", TARGET], cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "HOME": "/root"})
    # Looked for and cut in one shell on the board: an idle machine sends the whole layer in a quarter of a second.
    had = int(board.run("""master=$(pgrep -o -x sshd); for _ in $(seq 20000); do
        size=$(stat -c %s /root/.cache/topo/staging/blobs/sha256/*.part 2>/dev/null | sort -n | tail -n 1)
        [ "${size:-0}" -gt 8388608 ] || { sleep 0.002; continue; }
        for p in $(pgrep -x sshd); do [ "$p" = "$master" ] || kill -9 "$p"; done
        echo "$size"; exit; done; echo 0""").stdout)
    out, err = process.communicate(timeout=600)
    check.equal(process.returncode, 1, f"a cut transfer: {out}{err}")
    check.that("broke off" in err and "goes on where it ended" in err, f"a cut transfer: {err}")
    left = int(board.run("stat -c %s /root/.cache/topo/staging/blobs/sha256/*.part | sort -n | tail -n 1").stdout)  # of the large layer
    check.that(left >= had > 0, f"what had arrived stays: {left} of {had}")
    ran = topo("deploy", "--target", TARGET, "--json", cwd=project)
    check.equal(ran.returncode, 0, f"the second try: {ran.stderr}")
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    first = [e for e in events if e["event"] == "transfer" and e["total"] > 50 << 20]
    check.that(first and first[0]["done"] >= left, f"it goes on behind {left}: {first[:1]}")
    check.equal(events[-1]["event"], "success", "the last event")
    check.that("blobs" not in board.run("ls /root/.cache/topo/staging").stdout, "the staging folder is cleared")


def check_interrupt(check, board, project):
    compose = project / "compose.yaml"
    good = compose.read_text()
    first = board.run("podman inspect --format '{{.Id}}' " + f"{project.name}-app-1").stdout
    # Never healthy, so the gate waits; Ctrl-C in the middle of that.
    compose.write_text(good + "    healthcheck: {test: [\"CMD\", \"/none\"], interval: 1s}\n")
    process = subprocess.Popen([str(TOPO), "deploy", "--target", TARGET, "--wait", "60s"], cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "HOME": "/root"})
    for _ in range(600):
        if board.run("podman ps --format '{{.Names}}'").stdout.count("topo-old-") or board.run("podman ps -a --format '{{.Names}}'").stdout.count("topo-old-"):
            break
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=600)
    check.equal(process.returncode, 130, f"interrupted: {out}{err}")
    check.equal(board.run("podman inspect --format '{{.Id}}' " + f"{project.name}-app-1").stdout, first, f"the old container is back: {out}{err}")
    check.that("topo-old" not in board.run("podman ps -a --format '{{.Names}}'").stdout, "under its own name")
    compose.write_text(good)
    topo("down", "--target", TARGET, cwd=project)


def page():
    with urllib.request.urlopen("http://127.0.0.1:3005/", timeout=30) as answer:
        return answer.read().decode().strip()


def check_killed(check, board, project):
    """What an interrupt or a kill leaves in the middle of a replacement is put back, by the same topo or by the next one."""
    compose, name = project / "compose.yaml", f"{project.name}-app-1"
    good = compose.read_text()

    def write(greeting, more=""):
        compose.write_text(good + f"    environment: {{GREETING: {greeting}}}\n" + more)

    def identity():
        return board.run("podman ps --no-trunc --format '{{.ID}} {{.Names}}'").stdout

    def start(*words):
        return subprocess.Popen([str(TOPO), "deploy", "--target", TARGET, *words], cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "HOME": "/root"})

    for greeting in ("one", "two"):
        write(greeting)
        ran = deploy(project)
        check.equal(ran.returncode, 0, f"{greeting}: {ran.stdout}{ran.stderr}")
    before = identity()
    # Ctrl-C while the engine stops the old one: it has been stopped, but that has not come back to topo.
    board.run("printf '#!/bin/sh\\n/usr/bin/podman \"$@\" || exit\\n[ \"$1\" != stop ] || { touch /run/has-stopped; sleep 2; }\\n' > /usr/local/bin/podman; chmod 755 /usr/local/bin/podman")
    write("three")
    process = start()
    for _ in range(600):
        if board.run("ls /run/has-stopped", check=False).returncode == 0:
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=600)
    board.run("rm /usr/local/bin/podman /run/has-stopped")
    check.that(process.returncode == 130 and f"the old containers run again: {name}" in err, f"interrupted in a stop: {process.returncode} {out}{err}")
    check.equal((identity(), page()), (before, "v1 two"), "and so it is")
    # Killed when the new one is there and not yet known to be good: "the deployment before" is the last good one.
    write("four", "    healthcheck: {test: [\"CMD\", \"/none\"], interval: 1s}\n")
    process = start("--wait", "10m")
    for _ in range(600):
        names = board.run("podman ps -a --format '{{.Names}}'").stdout.split()
        if f"topo-old-{name}" in names and name in names:
            break
        time.sleep(0.1)
    process.kill()
    process.communicate()
    # The next one is bad too: what comes back is the last good one, not the one that nobody has seen to be good.
    marker = f"/root/.local/state/topo/{project.name}/begun"
    check.equal(board.run(f"cat {marker}").stdout, "deploy\n", "the deployment that was cut is marked")
    write("five", "    command: [fail]\n")
    ran = deploy(project)
    check.that(ran.returncode == 1 and f"the old containers run again: {name}" in ran.stderr, f"bad after one that was cut: {ran.stdout}{ran.stderr}")
    check.equal((identity(), page(), board.run(f"cat {marker}", check=False).stdout), (before, "v1 two", ""), "the last good one itself, and nothing is begun any more")
    check.equal(board.run("podman ps -a --format '{{.Names}}'").stdout, f"{name}\n", "and nothing beside it")
    write("four", "    healthcheck: {test: [\"CMD\", \"/none\"], interval: 1s}\n")
    process = start("--wait", "10m")
    for _ in range(600):
        names = board.run("podman ps -a --format '{{.Names}}'").stdout.split()
        if f"topo-old-{name}" in names and name in names:
            break
        time.sleep(0.1)
    process.kill()
    process.communicate()
    board.run(f"podman rm --force topo-old-{name}")  # whatever is there, the marker tells
    ran = topo("rollback", "--target", TARGET, cwd=project)
    check.that(ran.returncode == 0 and "the last deployment did not come to its end" in ran.stderr, f"rollback of a deployment that was cut: {ran.stdout}{ran.stderr}")
    check.equal((page(), board.run("podman ps -a --format '{{.Names}}'").stdout), ("v1 two", f"{name}\n"), "the last good one, and nothing beside it")
    ran = topo("rollback", "--target", TARGET, cwd=project)
    check.equal((ran.returncode, page()), (0, "v1 one"), f"the one before: {ran.stdout}{ran.stderr}")
    # Killed when the old one was put aside and no new one was there.
    before = identity()
    board.run(f"podman stop {name}; podman rename {name} topo-old-{name}")
    write("one")
    ran = deploy(project)
    check.equal((ran.returncode, identity(), page()), (0, before, "v1 one"), f"what had been put aside is the service's: {ran.stdout}{ran.stderr}")
    board.run(f"podman rename {name} other-name")
    ran = deploy(project)
    check.equal((ran.returncode, identity()), (0, before), f"somebody renamed it: {ran.stdout}{ran.stderr}")
    if board.run(f"podman pause {name}", check=False).returncode == 0:
        ran = deploy(project)
        check.equal((ran.returncode, identity(), page()), (0, before, "v1 one"), f"a paused one: {ran.stdout}{ran.stderr}")
        board.run(f"podman pause {name}")
        write("six", "    command: [fail]\n")
        ran = deploy(project)
        state = board.run("podman ps -a --format '{{.Names}} {{.Status}}'").stdout
        check.that(ran.returncode == 1 and "NOT undone" not in ran.stderr and f"{name} (paused)" in ran.stderr and state == f"{name} Paused\n", f"a bad deployment over a paused one: {state}{ran.stderr}")
        write("one")
        ran = topo("stop", "--target", TARGET, cwd=project)
        check.equal(ran.returncode, 0, f"a paused one is stopped: {ran.stderr}")
        check.equal((deploy(project).returncode, identity()), (0, before), "and started")
    # A job in the network of the other, which Podman does not remove before it: replaced with it, and nothing stays aside.
    for greeting in ("one", "two"):
        write(greeting, "  peer: {platform: linux/arm64, build: app, network_mode: \"service:app\", command: [\"-\"]}\n")
        plan = topo("deploy", "--plan", "--target", TARGET, cwd=project).stdout
        check.that((f"replace {project.name}-peer-1 (it lives in {name}, which this replaces)" in plan) == (greeting == "two"), f"{greeting}, the plan: {plan}")
        ran = deploy(project)
        check.equal((ran.returncode, page(), board.run("podman ps -a --format '{{.Names}}'").stdout.split()), (0, f"v1 {greeting}", [name, f"{project.name}-peer-1"]), f"{greeting}: {ran.stdout}{ran.stderr}")
    ran = topo("down", "--target", TARGET, cwd=project)
    check.equal((ran.returncode, board.run("podman ps -aq").stdout), (0, ""), f"down: {ran.stderr}")
    compose.write_text(good)


def check_lock(check, board, project):
    """One topo at a time changes a project on a target; the others say whom they wait for, and a killed one is not waited for."""
    compose = project / "compose.yaml"
    good = compose.read_text()

    def start(*words):
        return subprocess.Popen([str(TOPO), *words, "--target", TARGET], cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "HOME": "/root"})

    both = [start("deploy", "--force-recreate") for _ in range(2)]
    said = [process.communicate(timeout=600) for process in both]
    check.equal([process.returncode for process in both], [0, 0], f"two at once: {said}")
    check.equal(board.run("podman ps -a --format '{{.Names}}'").stdout, f"{project.name}-app-1\n", "one container, under its own name")
    # Never healthy, so it goes on; killed, it has nothing to say any more.
    compose.write_text(good + "    healthcheck: {test: [\"CMD\", \"/none\"], interval: 1s}\n")
    first = start("deploy", "--wait", "10m")
    lock = f"/root/.local/state/topo/locks/{project.name}"
    for _ in range(600):
        if "topo deploy of root@" in board.run(f"flock -n {lock} true || cat {lock}", check=False).stdout:
            break
        time.sleep(0.1)
    second = start("down")
    line = next((line for line in iter(second.stderr.readline, "") if "waiting" in line), "")
    check.that(f'waiting: "{project.name}" on {URI} is being changed by topo deploy of root@' in line and f"(process {first.pid}) since 20" in line, f"who has it: {line}")
    check.equal(second.poll(), None, "it waits")
    first.kill()
    first.communicate()
    out, err = second.communicate(timeout=600)
    check.equal(second.returncode, 0, f"the killed one is not waited for: {out}{err}")
    compose.write_text(good)
    topo("down", "--target", TARGET, cwd=project)
    # A deployment that waits for a `down`: what the target said before that, of a port that was taken, is not held against it.
    check.equal(topo("deploy", "--target", TARGET, cwd=project).returncode, 0, "one that has the port")
    board.run("printf '#!/bin/sh\\n[ \"$1\" != stop ] || { touch /run/stops; n=0; while [ ! -e /run/go ] && [ $n -lt 600 ]; do sleep 0.1; n=$((n+1)); done; }\\nexec /usr/bin/podman \"$@\"\\n' > /usr/local/bin/podman; chmod 755 /usr/local/bin/podman")
    first = start("down")
    for _ in range(600):
        if board.run("ls /run/stops", check=False).returncode == 0:
            break
        time.sleep(0.1)
    second = start("deploy")
    line = next((line for line in iter(second.stderr.readline, "") if "waiting" in line), "")
    time.sleep(2)  # until it has asked about ports too
    board.run("touch /run/go")
    check.equal(first.wait(timeout=600), 0, f"down: {line}{first.stderr.read()}")
    out, err = second.communicate(timeout=600)
    check.equal(second.returncode, 0, f"deploy behind a down: {out}{err}")
    board.run("rm /usr/local/bin/podman /run/stops /run/go")
    topo("down", "--target", TARGET, cwd=project)
    # Two services whose images are one, under two names.
    (project / "small").mkdir()
    shutil.copy(project / "app" / "web", project / "small" / "web")
    (project / "small" / "Dockerfile").write_text("FROM scratch AS base\nCOPY web /web\nENTRYPOINT [\"/web\"]\nFROM base AS three\nCOPY web /three\nFROM base AS four\nCOPY web /four\nFROM base\n")
    compose.write_text("services:\n" + "".join(f"  {name}: {{platform: linux/arm64, build: small}}\n" for name in ("one", "two")) +
                       "".join(f"  {name}: {{platform: linux/arm64, build: {{context: small, target: {name}}}}}\n" for name in ("three", "four")))
    ran = topo("deploy", "--target", TARGET, cwd=project)
    check.equal(ran.returncode, 0, f"one image, two names: {ran.stdout}{ran.stderr}")
    shown = json.loads(topo("ps", "--target", TARGET, "--json", cwd=project).stdout)["containers"]
    check.equal([(c["names"], c["image"]) for c in shown], [(f"{project.name}-{name}-1", f"{project.name}-{name}") for name in ("four", "one", "three", "two")], "each under its own")
    # Builds that share a stage make it once: else the next deployment would find another image.
    ran = topo("deploy", "--target", TARGET, cwd=project)
    check.equal([ran.stdout.count(f"{project.name}-{name}-1  Running") for name in ("one", "two", "three", "four")], [1, 1, 1, 1], f"nothing has changed: {ran.stdout}{ran.stderr}")
    topo("down", "--target", TARGET, cwd=project)
    compose.write_text(good)
    check.equal(board.run("podman ps -aq").stdout, "", "nothing is left")


def check_crowd(check, board, project):
    """More at a time than MaxStartups 2 and MaxSessions 2 let in: nothing fails, and following logs takes one session."""
    compose = project / "compose.yaml"
    good = compose.read_text()
    compose.write_text("services:\n  app: {platform: linux/arm64, build: app, scale: 5}\n")
    ran = topo("deploy", "--target", f"root@[::1]:{PORT}", cwd=project)
    check.equal(ran.returncode, 0, f"five of them, over IPv6: {ran.stdout}{ran.stderr}")
    # Podman publishes on IPv4 alone: what ps prints for a target that is named by its IPv6 address must answer.
    compose.write_text(good)
    check.equal(topo("deploy", "--target", f"root@[::1]:{PORT}", cwd=project).returncode, 0, "one, with a port")
    address = json.loads(topo("ps", "--json", "--target", f"root@[::1]:{PORT}", cwd=project).stdout)["containers"][0]["address"]
    check.equal(address, "127.0.0.1:3005", "the address of a target that is named by its IPv6 address")
    with urllib.request.urlopen(f"http://{address}/", timeout=30) as answer:
        check.has(answer.read().decode(), "v1", "and it answers")
    compose.write_text("services:\n  app: {platform: linux/arm64, build: app, scale: 5}\n")
    topo("deploy", "--target", f"root@[::1]:{PORT}", cwd=project)
    disconnect()
    crowd = [subprocess.Popen([str(TOPO), "ps", "--json", "--target", TARGET], cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "HOME": "/root"}) for _ in range(10)]
    for process in crowd:
        out, err = process.communicate(timeout=600)
        check.that(process.returncode == 0 and len(json.loads(out)["containers"]) == 5, f"one of ten at a time: {err}")

    def follow():
        return subprocess.Popen([str(TOPO), "logs", "--follow", "--json", "--target", TARGET], cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env={**os.environ, "HOME": "/root"})

    def names(process):
        return {json.loads(process.stdout.readline() or "{}").get("container") for _ in range(5)}

    process = follow()
    check.equal(names(process), {f"{project.name}-app-{i}" for i in range(1, 6)}, "logs of all five at once")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=600)
    check.equal(process.returncode, 130, "logs, interrupted")
    for _ in range(100):
        left = board.run("pgrep -f '[p]odman logs'", check=False).stdout
        if not left:
            break
        time.sleep(0.2)
    check.equal(left, "", "nothing follows on the target any more")
    # The connection that all share goes away in the middle.
    process = follow()
    names(process)
    disconnect()
    out, err = process.communicate(timeout=600)
    check.that(process.returncode == 1 and "the connection broke off" in err, f"the connection goes: {process.returncode} {err}")
    topo("down", "--target", TARGET, cwd=project)
    compose.write_text(good)


def main():
    need_root()
    check = Checks()
    scratch = scratch_folder()
    sh("ip link set lo up")
    private_machine(scratch / "host")
    board = Board(scratch / "board", sshd_options=("MaxAuthTries 3", "PasswordAuthentication no", "GatewayPorts yes", f"Banner {scratch}/banner"))
    (scratch / "banner").write_text("*** authorised use only ***\n")
    try:
        board.authorize()
        check_host_keys(check, board)
        check_login(check, board)
        check_passwords_only(check, board)
        check_unreachable(check)
        check_odd_targets(check, board)
        project = scratch / "cut"
        make_project(project)
        check_preflight(check, board, project)
        check_cut(check, board, project)
        check_interrupt(check, board, project)
        make_project(scratch / "killed", 1000)
        check_killed(check, board, scratch / "killed")
        check_lock(check, board, project)
        check_crowd(check, board, project)
    finally:
        board.stop()
        clean(scratch)
    check.finish()


main()
