#!/usr/bin/env python3
"""topo's start-up, memory and commands, beside the original where its path is given, alternating in one run.

  bench/topo.py [--original PATH] [--target USER@HOST --project FOLDER | --board] [--runs N]

Without a target only what needs none is measured. With one, the project must be deployed there already: `health`, `ps` and an
unchanged `deploy` are timed. --board makes target and project itself, in namespaces (root): a real sshd on loopback, Docker on both
sides, first deployments to empty engines too, each tool with a folder of its own of the same project, since each takes the other's
containers for changed ones. The original wants the Compose plugin (DOCKER_CONFIG says where); without a network it has no registry,
so both run with --no-registry."""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
OURS = HERE.parent / "build/release/bin/topo"
PLAIN = ["--no-registry", "--skip-project-checks"]  # projects are arm64 by their rules; this machine may not be


def memory(program, words, folder):
    """KiB, by time(1): a child of this Python would be charged with Python's own."""
    ran = subprocess.run(["/usr/bin/time", "-f", "%M", program, *words], capture_output=True, text=True, cwd=folder)
    return int(ran.stderr.split()[-1])


def run(program, words, folder):
    """Seconds of the wall clock and of the processor (children that topo waited for included)."""
    null = os.open(os.devnull, os.O_RDWR)
    actions = [(os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)]
    here = os.getcwd()
    os.chdir(folder)
    started = time.monotonic()
    pid = os.posix_spawn(program, [program, *words], os.environ, file_actions=actions)
    _, status, usage = os.wait4(pid, 0)
    wall = time.monotonic() - started
    os.chdir(here)
    os.close(null)
    return wall, usage.ru_utime + usage.ru_stime, os.waitstatus_to_exitcode(status)


def measure(programs, folders, commands):
    """Prints the table; says of each command by what factor the original is slower, round by round."""
    print(f"{'command':<20} {'program':<10} {'wall ms':>9} {'best':>8} {'CPU ms':>8} {'MiB':>6}  status")
    for name, (words, runs) in commands.items():
        results = {program: [] for program in programs}
        for _ in range(runs):  # alternating, so that both see the same machine
            for program, path in programs.items():
                results[program].append(run(path, words, folders[program]))
        for program, rows in results.items():
            walls = [r[0] * 1000 for r in rows]
            statuses = sorted({r[2] for r in rows})
            print(f"{name:<20} {program:<10} {statistics.median(walls):>9.2f} {min(walls):>8.2f} {statistics.median(r[1] * 1000 for r in rows):>8.2f} "
                  f"{memory(programs[program], words, folders[program]) / 1024:>6.1f}  {statuses}")
        if "original" in results:
            ratios = [theirs[0] / ours[0] for ours, theirs in zip(results["topo"], results["original"])]
            print(f"{'':<20} original/topo: median {statistics.median(ratios):.2f}, least {min(ratios):.2f}", flush=True)
            middle = {program: statistics.median(r[0] * 1000 for r in rows) for program, rows in results.items()}
            print(f"figure: topo {name} (peer: Arm's) | {middle['topo']:.1f} ms | {middle['original']:.1f} ms | {1 / statistics.median(ratios):.2f}", flush=True)


def on_board(options, programs):
    sys.path.insert(0, str(HERE.parent / "tests"))
    from topo_board import PORT, Board, build_web, clean, need_root, private_machine, scratch_folder, sh, start_docker

    need_root()
    scratch = scratch_folder()
    sh("ip link set lo up")
    private_machine(scratch / "host")
    board = Board(scratch / "board", sshd_options=("MaxSessions 10", "MaxStartups 10:30:100"))
    try:
        board.authorize()
        os.environ["HOME"] = "/root"
        architecture = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
        os.environ["DOCKER_BUILDKIT"] = "0"  # for the original, too: without the buildx plugin there is no other
        start_docker(lambda script: sh(script, capture_output=True, text=True).stdout, scratch / "host" / "docker", "--bridge=none", "--iptables=false")
        start_docker(lambda script: board.run(script).stdout, scratch / "board" / "docker")
        target = f"root@127.0.0.1:{PORT}"
        folders = {}
        for i, (program, path) in enumerate(programs.items()):
            folder = folders[program] = scratch / f"{program}-project"
            (folder / "web").mkdir(parents=True)
            build_web(folder / "web", "v1")
            (folder / "web" / "data").write_bytes(os.urandom(8 << 20))
            (folder / "web" / "Dockerfile").write_text('FROM scratch\nCOPY data /data\nCOPY web /web\nENTRYPOINT ["/web"]\n')
            (folder / "compose.yaml").write_text(
                f"services:\n  web:\n    platform: linux/{architecture}\n    build: web\n    ports: [\"{3010 + i}:3000\"]\n  other:\n    platform: linux/{architecture}\n    build: web\n")
        empty = "set +e; docker rm -f $(docker ps -aq); docker rmi -f $(docker images -aq); docker network prune -f; true"
        first = {program: [] for program in programs}
        for _ in range(max(1, options.runs // 4)):
            for program, path in programs.items():
                sh(empty, capture_output=True)
                board.run(empty)
                started = time.monotonic()
                ran = subprocess.run([path, "deploy", "--target", target, *PLAIN], cwd=folders[program], capture_output=True, text=True)
                first[program].append(time.monotonic() - started)
                if ran.returncode != 0:
                    raise SystemExit(ran.stdout[-2000:] + ran.stderr[-2000:])
        for program, walls in first.items():
            print(f"first deploy, {program}: median {statistics.median(walls):.2f} s, best {min(walls):.2f} s of {len(walls)}", flush=True)
        for program, path in programs.items():  # the other one emptied the target
            subprocess.run([path, "deploy", "--target", target, *PLAIN], cwd=folders[program], capture_output=True, check=True)
        few = max(3, options.runs // 2)
        commands = {name: ([*words, "--target", target], few) for name, words in
                    {"health": ["health", "--skip-version-checks"], "ps": ["ps"], "deploy, unchanged": ["deploy", *PLAIN]}.items()}
        measure(programs, folders, commands)
    finally:
        board.stop()
        clean(scratch)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--original", default=os.environ.get("TOPO_ORIGINAL"))
    parser.add_argument("--target", default=os.environ.get("TOPO_TARGET"))
    parser.add_argument("--project", default=".")
    parser.add_argument("--board", action="store_true")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    programs = {"topo": str(OURS.resolve())} | ({"original": options.original} if options.original else {})
    if options.board:
        return on_board(options, programs)
    commands = {"--version": (["--version"], options.runs), "deploy --help": (["deploy", "--help"], options.runs)}
    if options.target:
        few = max(3, options.runs // 4)
        for name, words in {"health": ["health"], "ps": ["ps"], "deploy, unchanged": ["deploy"]}.items():
            commands[name] = ([*words, "--target", options.target], few)
    measure(programs, {program: options.project for program in programs}, commands)


main()
