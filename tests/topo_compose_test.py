#!/usr/bin/env python3
"""topo by the Compose plugin and by the registry tunnel, with a docker and an ssh that write down how they are called
(fake_docker.py): the choice between the plugin and topo's own way, and the commands of Arm's topo (its sections 8.2 a to e)."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

import fake_docker
from topo_board import TOPO, Checks

TARGET = "root@board.example"
URI = f"ssh://{TARGET}"
COMPOSE = """services:
  web:
    platform: linux/arm64
    build: web
    environment: {WHERE: "${TOPO_TARGET_HOSTNAME}"}
  store: {image: "example/store:1", platform: linux/arm64}
  files: {platform: linux/arm64, build: files, scale: 0}
x-topo: {name: p}
"""
GOOD = {"version": "28.2.2", "compose": "2.32.4", "buildx": True}


class Bench:
    def __init__(self, folder, check):
        self.folder, self.check = folder, check
        self.project = folder / "p"
        for name in ("web", "files"):
            (self.project / name).mkdir(parents=True)
            (self.project / name / "Dockerfile").write_text("FROM scratch\nCOPY . /\n")
        self.fresh()

    def fresh(self, compose=COMPOSE):
        for name in ("host", "target", "registry"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for name in ("host.json", "target.json", "fake.json", *(p.name for p in self.folder.glob("tunnel-*"))):
            (self.folder / name).unlink(missing_ok=True)
        self.env = fake_docker.install(self.folder)
        (self.project / "compose.yaml").write_text(compose)
        self.change("one")

    def change(self, content):
        (self.project / "web" / "content").write_text(content)

    def state(self, side):
        return json.loads((self.folder / f"{side}.json").read_text())

    def topo(self, *words, env=None):
        fake_docker.calls(self.folder)
        return subprocess.run([str(TOPO), *words], capture_output=True, text=True, cwd=self.project, env={**self.env, **(env or {})}, timeout=300)

    def deploy(self, *words, status=0, env=None, wait="0s"):
        ran = self.topo("deploy", "--target", TARGET, "--wait", wait, "-v", *words, env=env)
        self.check.equal(ran.returncode, status, f"deploy {' '.join(words)}: {ran.stdout}{ran.stderr}")
        self.calls = fake_docker.calls(self.folder, clear=False)
        return ran

    def docker(self, *starts):
        """The calls of docker on HOST that begin so, after -H."""
        found = []
        for c in self.calls:
            words = c["words"][2:] if c["words"][:1] == ["-H"] else c["words"]
            if c["side"] == "host" and tuple(words[:len(starts)]) == starts:
                found.append(c)
        return found


def check_plugin(bench, check):
    """What the original runs, in its order, and with its environment."""
    ran = bench.deploy()
    composes = [c for c in bench.docker() if "compose" in c["words"] and "version" not in c["words"]]
    check.equal([c["words"] for c in composes],
                [["compose", "-f", "compose.yaml", "build"], ["compose", "-f", "compose.yaml", "pull", "store"],
                 ["-H", URI, "compose", "-f", "compose.yaml", "up", "-d", "--no-build", "--pull", "never"]], "the plugin's calls")
    for c in composes:
        check.equal((c["env"].get("TOPO_TARGET"), c["env"].get("TOPO_TARGET_HOSTNAME")), (URI, "board.example"), f"the environment of {c['words']}")
    order = [ran.stdout.find(f"┌─ {title} ") for title in ("Build images", "Pull images", "Transfer images", "Start services", "Deployment Success")]
    check.that(-1 not in order and order == sorted(order), f"sections in order: {ran.stdout}")
    check.has(ran.stderr, "the project is applied by docker compose: docker compose v2.32.4 with buildx", "-v says which way, and why")
    check.equal(bench.docker("run"), [], "topo starts nothing itself")
    check.equal(sorted(c["name"] for c in bench.state("target")["containers"].values()), ["p-store-1", "p-web-1"], "what runs")
    names = [n for i in bench.state("target")["images"].values() for n in i["names"]]
    check.equal(sorted(names), ["example/store:1", "p-web:latest"], "images of scale 0 stay here")
    # docker's own ssh goes over the connection that is there.
    dial = [c["words"] for c in fake_docker.calls(bench.folder, "ssh", clear=False) if c["words"][-2:] == ["system", "dial-stdio"]]
    check.that(dial and all(any(w.startswith("ControlPath=") for w in words) and "-T" in words for words in dial), f"docker's ssh: {dial}")

    ran = bench.deploy("--force-recreate", "--remove-orphans")
    check.equal(bench.docker("compose", "-f", "compose.yaml", "up")[0]["words"][5:], ["up", "-d", "--no-build", "--pull", "never", "--force-recreate", "--remove-orphans"], "flags of up")
    check.equal(bench.docker("compose", "-f", "compose.yaml", "pull"), [], "an image that is here is not pulled")
    check.has(ran.stdout, "p-web  Unchanged", "an unchanged image is not sent")
    bench.deploy("--no-recreate", "--profile", "a", "--profile", "b")
    check.equal(bench.docker("compose", "-f", "compose.yaml", "--profile", "a", "--profile", "b", "up")[0]["words"][-1], "--no-recreate", "profiles stand in front")
    bench.deploy("--no-registry")
    events = [json.loads(line) for line in bench.deploy("--json").stdout.splitlines()]
    check.equal([(e["appliedBy"], e["why"]) for e in events if e["event"] == "method"], [("docker compose", "docker compose v2.32.4 with buildx")], "the same as JSON, and nothing else on stdout")
    plan = json.loads(bench.topo("deploy", "--target", TARGET, "--plan", "--json").stdout)
    check.equal(plan["appliedBy"], "docker compose", "the plan says it")
    local = bench.topo("deploy", "--target", "localhost")
    check.equal(local.returncode, 0, f"localhost: {local.stdout}{local.stderr}")
    bench.calls = fake_docker.calls(bench.folder, clear=False)
    check.that([c["words"][0] for c in bench.docker("compose", "-f", "compose.yaml", "up")] == ["compose"], "localhost: without -H")
    check.that("Transfer images" not in local.stdout, "localhost: nothing is sent")


def check_choice(bench, check):
    for host, target, why in (({"compose": None}, {}, "`docker compose` is not installed"), ({"compose": "2.20.3"}, {}, "`docker compose` v2.20.3 is older than 2.21.0"),
                              ({"buildx": False}, {}, "`docker buildx` is not installed"), ({}, {"version": "20.10.24"}, "Docker 20.10.24 of the target is older than 23"),
                              ({"version": "20.10.24"}, {}, "Docker 20.10.24 of this machine is older than 23")):
        bench.fresh()
        fake_docker.configure(bench.folder, host={**GOOD, **host}, target={**GOOD, **target})
        ran = bench.deploy()
        check.has(ran.stderr, f"the project is applied by topo: {why}", f"{host} {target}")
        check.that(not bench.docker("compose", "-f") and any(c["words"][0] == "run" for c in bench.calls if c["side"] == "target"), f"{why}: topo starts the containers")
    for words, env in ((("--compose", "never"), {}), ((), {"TOPO_COMPOSE": "never"})):
        bench.fresh()
        bench.deploy(*words, env=env)
        check.equal(bench.docker("compose", "-f"), [], f"{words} {env}")
    bench.fresh()
    fake_docker.configure(bench.folder, host={**GOOD, "version": "20.10.24", "buildx": False}, target={**GOOD, "version": "20.10.24"})
    ran = bench.deploy("--compose", "always")
    check.equal(len(bench.docker("compose", "-f", "compose.yaml", "up")), 1, "demanded, where topo would not have chosen it")
    fake_docker.configure(bench.folder, host={**GOOD, "compose": None})
    ran = bench.deploy("--compose=always", status=1)
    check.has(ran.stderr, "the Compose plugin cannot be used: `docker compose` is not installed", "demanded in vain")
    ran = bench.topo("deploy", "--target", TARGET, "--compose", "sometimes")
    check.that(ran.returncode == 2 and "must be auto" in ran.stderr, f"a wrong word: {ran.stderr}")
    # Keys that only the plugin honours.
    only = COMPOSE.replace("    build: web\n", "    build: web\n    configs: [c]\n") + "configs: {c: {file: ./web/content}}\n"
    bench.fresh()
    bench.deploy()
    first = sorted(c["image"] for c in bench.state("target")["containers"].values())
    (bench.project / "compose.yaml").write_text(only)
    bench.change("two")
    bench.deploy()
    check.equal(len(bench.docker("compose", "-f", "compose.yaml", "up")), 1, "the plugin honours configs")
    # A good deployment that no record can hold: from there it goes back to the last recorded one.
    ran = bench.topo("rollback", "--target", TARGET)
    check.that(ran.returncode == 0 and "the last deployment is in no record" in ran.stderr and "did not come to its end" not in ran.stderr, f"rollback: {ran.stdout}{ran.stderr}")
    check.equal(sorted(c["image"] for c in bench.state("target")["containers"].values()), first, "what had been recorded")
    ran = bench.deploy("--compose", "never", status=1)
    check.has(ran.stderr, "services.web.configs", "topo names what it cannot honour")


def check_trouble(bench, check):
    bench.fresh()
    fake_docker.configure(bench.folder, fail=["build"])
    ran = bench.deploy(status=1)
    check.has(ran.stderr, "deployment failed; ensure topo health is passing: `docker compose build` failed: exit status 17", "the build fails")
    fake_docker.configure(bench.folder, fail=["up"])
    ran = bench.deploy(status=1)
    check.has(ran.stderr, "`docker compose up` failed: exit status 17; no container of the project is there now", "nothing half-deployed stays unnamed")
    fake_docker.configure(bench.folder, fail=[])
    bench.deploy()
    first = {c["name"]: c["image"] for c in bench.state("target")["containers"].values()}
    # The new container dies: the gate sees it, and what ran before runs again.
    bench.change("die")
    ran = bench.deploy(status=1, wait="60s")
    for part in ("p-web-1 ended with status 3", "its last words", "the old containers run again; there is now: p-"):
        check.has(ran.stderr, part, "a container that dies")
    check.equal({c["name"]: (c["image"], c["state"]) for c in bench.state("target")["containers"].values()}, {n: (i, "running") for n, i in first.items()}, "the first images again")
    ran = bench.deploy("--no-rollback", status=1, wait="60s")
    check.that("there is now: p-" in ran.stderr and "p-web-1 (exited)" in ran.stderr, f"left as it is: {ran.stderr}")
    bench.change("one")
    bench.deploy()
    check.equal({c["name"]: c["image"] for c in bench.state("target")["containers"].values()}, first, "and mended by the next")


def check_registry(bench, check):
    """Sections c1 to c5."""
    bench.fresh()
    ran = bench.deploy("--registry")
    # registry:2 is neither here nor pulled by force when it is.
    words = [c["words"] for c in bench.docker() if c["words"][0] in ("run", "push", "start") or "topo-registry" in c["words"] or c["words"][0] == "tag"]
    check.equal([w for w in words if w[0] == "run"], [["run", "-d", "--restart", "always", "-p", "127.0.0.1:12737:5000", "--name", "topo-registry", "registry:2"]], "the registry's start")
    check.equal([w for w in words if w[0] == "push"], [["push", "localhost:12737/example/store:1"], ["push", "localhost:12737/p-web"]], "what is pushed, sorted by name")
    pulls = [c["words"] for c in bench.calls if c["side"] == "target" and c["words"][0] == "pull"]
    check.that(len(pulls) == 2 and all(w[1].startswith("localhost:12737/") and "@sha256:" in w[1] for w in pulls), f"the target pulls by digest: {pulls}")
    tunnels = [c["words"] for c in fake_docker.calls(bench.folder, "ssh", clear=False)]
    opened = [w for w in tunnels if "-N" in w]
    check.that(len(opened) == 1 and "ExitOnForwardFailure=yes" in opened[0] and "-fMS" in opened[0] and "127.0.0.1:12737:127.0.0.1:12737" in opened[0] and opened[0][-1] == URI, f"the tunnel: {opened}")
    check.that(not any("ControlMaster" in w for w in opened[0]), "the tunnel has a connection of its own")
    socket_path = opened[0][opened[0].index("-fMS") + 1]
    check.that(pathlib.Path(socket_path).name.startswith("topo-tunnel-") and not pathlib.Path(socket_path).exists(), "its socket is gone")
    check.equal(sum(w[-4:] == ["-O", "exit", "--", URI] for w in tunnels), 1, "it is closed once")
    order = [ran.stdout.find(f"┌─ {title}") for title in ("Build images", "Run registry", "Open registry SSH tunnel", "Check registry tunnel is not exposed on remote network", "Transfer via registry", "Close registry SSH tunnel", "Start services")]
    check.that(-1 not in order and order == sorted(order), f"sections in order: {order} {ran.stdout}")
    check.has(ran.stdout, "Registry port 12737 is bound to remote loopback only", "the exposure check")
    names = sorted(n for i in bench.state("target")["images"].values() for n in i["names"])
    check.equal(names, ["example/store:1", "p-web:latest"], "the images' own names, and no reference by digest")
    check.that(not [n for i in bench.state("host")["images"].values() for n in i["names"] if n.startswith("localhost:")], "no lent name stays here")
    # Again: nothing to send, no registry asked.
    bench.deploy("--registry")
    check.equal((bench.docker("push"), bench.docker("start")), ([], []), "unchanged images are not pushed")
    # A stopped registry is started; another port than its own is refused.
    bench.change("two")
    with open(bench.folder / "host.json") as file:
        data = json.load(file)
    next(c for c in data["containers"].values() if c["name"] == "topo-registry")["state"] = "exited"
    (bench.folder / "host.json").write_text(json.dumps(data))
    bench.deploy("-p", "12737")
    check.equal((len(bench.docker("start", "topo-registry")), bench.docker("run"), bench.docker("pull")), (1, [], []), "started, not made anew, nothing pulled")
    bench.change("three")
    ran = bench.deploy("-p", "12738", status=1)
    check.has(ran.stderr, "registry port mismatch (running: 12737, requested: 12738)", "another port")
    check.has(ran.stderr, "docker rm -f topo-registry", "another port: what to do")
    bench.deploy(env={"TOPO_REGISTRY": "1", "TOPO_PORT": "12737"})
    check.equal(len(bench.docker("push")), 1, "by the environment")


def check_registry_trouble(bench, check):
    def closed(what):
        check.that(not list(bench.folder.glob("tunnel-*")), f"{what}: the tunnel is closed")

    bench.fresh()
    fake_docker.configure(bench.folder, fail=["run"])
    ran = bench.deploy("--registry", status=1)
    check.has(ran.stderr, "port 12737 is already in use, this could be an existing topo-registry or another process", "the port is taken here")
    check.that("topo-registry" not in json.dumps(bench.state("host")["containers"]), "what did not start does not stay")
    bench.fresh()
    fake_docker.configure(bench.folder, fail=["tunnel"])
    ran = bench.deploy("--registry", status=1)
    check.has(ran.stderr, "failed to open SSH tunnel: Error: remote port forwarding failed for listen port 12737; ensure port 12737 is free or specify a different one with `--registry-port`", "no tunnel")
    # What is told to paste is pasted, but for the name of this build's program.
    fake_docker.configure(bench.folder, fail=[])
    told = [line.split("Fix: ")[-1].strip() for line in ran.stderr.splitlines() if "--registry-port 12738" in line]
    pasted = subprocess.run(["/bin/sh", "-c", f"topo() {{ {TOPO} \"$@\" --wait 0s; }}\n{told[-1]}"], capture_output=True, text=True, cwd=bench.project, env=bench.env, timeout=300)
    check.equal(pasted.returncode, 0, f"{told}: {pasted.stdout}{pasted.stderr}")
    bench.change("other")
    bench.topo("down", "--target", TARGET)
    subprocess.run(["docker", "rm", "-f", "topo-registry"], env=bench.env, capture_output=True)
    fake_docker.configure(bench.folder, fail=[], exposed=True)
    ran = bench.deploy("--registry", status=1)
    check.has(ran.stderr, "the remote SSH server is exposing forwarded registry port 12737 beyond remote loopback", "exposed")
    closed("exposed")
    check.equal(bench.docker("push"), [], "exposed: nothing was pushed")
    bench.deploy("--registry", "--skip-remote-port-check")
    bench.change("two")
    bench.deploy("--registry", env={"TOPO_SKIP_REMOTE_PORT_CHECK": "yes"})
    bench.change("three")
    fake_docker.configure(bench.folder, exposed=False, pushes=False)
    ran = bench.deploy("--registry", status=1)
    check.has(ran.stderr, "pushing p-web to the registry failed", "a push that fails")
    closed("a push that fails")
    bench.fresh(COMPOSE.replace('  store: {image: "example/store:1", platform: linux/arm64}\n', ""))
    fake_docker.configure(bench.folder, fail=["pull"])
    ran = bench.deploy("--registry", status=1)
    check.has(ran.stderr, "the image registry:2 is not here and cannot be pulled: no network", "offline, without the registry's image")
    bench.deploy()
    check.equal(bench.docker("pull"), [], "and without --registry no network is needed")
    ran = bench.topo("deploy", "--target", TARGET, "--registry", "--no-registry")
    check.equal(ran.returncode, 2, "both at once")
    ran = bench.deploy("--no-registry", "-p", "1")
    check.has(ran.stderr, "--registry-port has no effect when --no-registry is set", "the original's warning")


def check_registry_interrupted(bench, check):
    """Ctrl-C in a push or in a pull: neither the names that were lent for it nor the tunnel stay."""
    bench.fresh(COMPOSE.replace('  store: {image: "example/store:1", platform: linux/arm64}\n', ""))
    for word in ("push", "pull"):
        fake_docker.configure(bench.folder, hang=[word])
        (bench.folder / "hangs").unlink(missing_ok=True)
        if word == "pull":  # the registry's image is pulled as well, and is here from now on
            bench.change("two")
        process = subprocess.Popen([str(TOPO), "deploy", "--target", TARGET, "--registry"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=bench.project, env=bench.env)
        for _ in range(600):
            if (bench.folder / "hangs").exists():
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        check.equal(process.returncode, 130, f"interrupted in a {word}: {out}{err}")
        lent = [n for side in ("host", "target") for i in bench.state(side)["images"].values() for n in i["names"] if n.startswith("localhost:")]
        check.equal(lent, [], f"interrupted in a {word}: no lent name stays")
        check.that(not list(bench.folder.glob("tunnel-*")), f"interrupted in a {word}: the tunnel is closed")
    fake_docker.configure(bench.folder, hang=[])
    bench.deploy("--registry")


def check_silent(bench, check):
    """A target that accepts and says nothing, and one that does not answer at all, by the real ssh."""
    silent = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=lambda: [silent.accept() for _ in range(20)], daemon=True).start()
    env = {**os.environ, "PATH": bench.env["PATH"].replace(str(bench.folder / "host/bin"), str(bench.folder / "docker-only")), "TOPO_TARGET": ""}
    (bench.folder / "docker-only").mkdir()
    shutil.copy(bench.folder / "host/bin/docker", bench.folder / "docker-only/docker")
    for words in (("deploy",), ("deploy", "--plan"), ("ps",), ("stop",), ("logs",), ("rollback",)):
        ran = subprocess.run([str(TOPO), *words, "--target", f"root@127.0.0.1:{silent.getsockname()[1]}", "--connect-timeout", "1s"], cwd=bench.project, env=env, capture_output=True, text=True, timeout=60,
                             stdin=subprocess.DEVNULL)
        check.that(ran.returncode == 1 and "connection timed out" in ran.stderr, f"{words} of a silent target: {ran.returncode} {ran.stderr}")
        check.that("Build images" not in ran.stdout, "nothing was built before that was known")


def main():
    check = Checks()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="topo-compose-"))
    try:
        bench = Bench(folder, check)
        for part in (check_plugin, check_choice, check_trouble, check_registry, check_registry_trouble, check_registry_interrupted, check_silent):
            part(bench, check)
    finally:
        shutil.rmtree(folder)
    check.finish()


main()
