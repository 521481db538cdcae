#!/usr/bin/env python3
"""From a catalogue to a running page on a virtual board, in one shell, by pasting what each command printed as the next one and
nothing else: projects, clone, cd, configure, health and its fixes, deploy, the page, ps, logs, stop."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
import uuid

from topo_board import Checks

SOURCE = pathlib.Path(os.environ.get("TALPA_SOURCE", pathlib.Path(__file__).parent.parent)).resolve()
BIN = pathlib.Path(os.environ.get("TALPA_BUILD", SOURCE / "build/release")).resolve() / "bin"
PROGRAM = SOURCE / "tests/golden/models/resnet8_random/resnet8_random.pte"
PICTURE = SOURCE / "docs/pictures/chelsea.jpg"
NAME = f"paste-{os.getpid()}"


class Shell:
    """A user's shell: one process that lines are pasted into, with what they print in the order in which it shows."""

    def __init__(self, folder, environment):
        self.process = subprocess.Popen(["/bin/bash", "--norc"], cwd=folder, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT)

    def paste(self, line):
        mark = uuid.uuid4().hex
        print(f"$ {line}")
        # The command gets no input of ours: it would read the lines that follow.
        self.process.stdin.write(f"{{ {line}\n}} </dev/null\necho \"\n{mark} $?\"\n")
        self.process.stdin.flush()
        said = []
        for text in self.process.stdout:
            if text.startswith(mark):
                return int(text.split()[1]), "".join(said).rstrip("\n")
            said.append(text)
            print("  " + text, end="", flush=True)
        raise SystemExit("the shell ended")


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def need():
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        skip("a board with namespaces needs root and /dev/fuse here")
    for program in ("podman", "ssh", "sshd"):
        if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin"):
            skip(f"{program} is not installed")
    if not (SOURCE / "build/firmware/executorch_runner_cm33.elf").exists():
        skip("the firmware is not built (./run build)")
    if not (SOURCE / "build/release/bin/talpa-webapp").exists():
        skip("the web application is not built")


def lines_behind(text, title):
    """The indented lines below a title such as "Now run:"."""
    below = re.search(rf"^[ \t]*{re.escape(title)}\n((?:[ \t]+\S.*\n?)+)", text, re.MULTILINE)
    return [line.strip() for line in below.group(1).splitlines()] if below else []


def commands_of_health(text):
    return [lines[0] for lines in (lines_behind(part, "Command:") for part in re.split(r"(?=^  Command:)", text, flags=re.MULTILINE)) if lines]


def get(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read()


def classify(url):
    boundary = uuid.uuid4().hex
    body = f"--{boundary}\r\nContent-Disposition: form-data; name=\"image\"; filename=\"a.jpg\"\r\n\r\n".encode() + PICTURE.read_bytes() + f"\r\n--{boundary}--\r\n".encode()
    ask = urllib.request.Request(f"{url}/api/classify", body, {"Content-Type": f"multipart/form-data; boundary={boundary}"})
    return json.loads(get(ask))


def go(check, shell, catalogue):
    status, said = shell.paste(f"topo projects --source file://{catalogue}")
    check.equal(status, 0, "projects")
    clone = lines_behind(said, "Clone:")
    clone = [line for line in clone if line.startswith("topo clone ")]
    check.equal(len(clone), 1, "one command to clone")

    status, said = shell.paste(clone[0])
    check.equal(status, 0, "clone")
    after = lines_behind(said, "Now run:")
    check.equal((after[0].split()[0], after[-1]), ("cd", "topo deploy"), "what clone says is next")
    check.has(said, "Provide --target or set TOPO_TARGET.", "clone")
    shell.paste(f"export TOPO_TARGET=board://{NAME}")
    for line in after[:-1]:
        check.equal(shell.paste(line)[0], 0, line)

    # A parameter, by the name and with the value that --show gives.
    status, said = shell.paste("topo configure --show")
    name, values = re.match(r"(\w+): (\[.*\])", said).groups()
    value = json.loads(values)[0].removeprefix(f"${{{name}:-").rstrip("}")
    check.equal(value, PROGRAM.name, "the program that the project was made of")
    status, said = shell.paste(f"topo configure {name}={value}")
    check.equal((status, said), (0, ""), "configure")

    # Who only looks brings no board up, and says how; what health finds wrong it says how to mend.
    status, said = shell.paste("topo health --skip-version-checks")
    up = [command for command in commands_of_health(said) if "board up" in command]
    check.equal(up, [f"talpa board up --name {NAME}"], "health has the command that brings the board up")
    check.equal(shell.paste(up[0])[0], 0, up[0])
    status, said = shell.paste("topo health --skip-version-checks")
    check.has(said, "Processing Domain Driver (remoteproc): ✅ (imx-rproc)", "health")
    fixes = [command for command in commands_of_health(said) if "install remoteproc-runtime" in command]
    check.that(fixes, "health has a command that mends the missing runtime")

    # Without it deploy says the same, and changes nothing; both commands are one.
    status, said = shell.paste(after[-1])
    check.equal(status, 1, "deploy without the runtime")
    advised = re.findall(r"^\s*(topo install .*)$", said, re.MULTILINE)
    check.equal(advised, [fixes[0]], "deploy and health advise the same")
    check.equal(shell.paste(advised[0])[0], 0, advised[0])
    status, said = shell.paste("topo health --skip-version-checks")
    check.that("install remoteproc-runtime" not in said, "it is mended")

    status, said = shell.paste(after[-1])
    check.equal(status, 0, "deploy")
    urls = re.findall(r"http://\S+", said.split("Deployment Success")[-1])
    check.equal(len(urls), 1, "the address of the page")
    if not urls:
        return
    url = urls[0].rstrip(".")
    check.has(get(url).decode().lower(), "<html", "the page")
    answer = classify(url)
    check.that(len(answer.get("top", [])) == 5 and answer.get("npu_cycles", 0) > 0, f"a picture on the board's NPU: {answer}")
    addresses(check, shell, url)
    check.equal(shell.paste("topo stop")[0], 0, "stop")


def addresses(check, shell, url):
    status, said = shell.paste("topo ps")
    rows = [line for line in said.splitlines() if " WARN " not in line][1:]  # of a Docker that is installed and does not run
    check.equal((status, len(rows)), (0, 2), "ps: page and firmware")
    check.that(any("imx-rproc" in row for row in rows), "the firmware's domain")
    web = next(row for row in rows if "-webapp-1" in row)
    check.equal("http://" + web.split()[-1], url, "ps gives the address of the page")
    status, said = shell.paste("topo logs")
    check.equal(status, 0, "logs")


def main():
    need()
    check = Checks()
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="topo-paste-"))
    project = scratch / "source" / f"{NAME}-classifier"
    (scratch / "labels.txt").write_text("".join(f"thing {i}\n" for i in range(10)))
    subprocess.run([SOURCE / "scripts/assemble_project.sh", project, PROGRAM, scratch / "labels.txt"], check=True)
    catalogue = scratch / "catalog.json"
    catalogue.write_text(json.dumps({"version": "v2.0.0", "projects": [{"name": "i.MX 93 NPU classifier", "description": "Pictures on the board's NPU.",
                                                                       "url": f"dir:{project}", "ref": "", "features": ["remoteproc-runtime"]}]}))
    (scratch / "work").mkdir()
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "WEBAPP_PORT": str(20000 + os.getpid() % 20000)}
    environment.pop("TOPO_TARGET", None)
    try:
        go(check, Shell(scratch / "work", environment), catalogue)
    finally:
        subprocess.run([BIN / "talpa", "board", "down", "--name", NAME], capture_output=True)
        for service in ("webapp", "cm33-runner", "pte-artifacts", "runner-artifacts"):
            subprocess.run(["podman", "rmi", "--force", f"localhost/{project.name}-{service}"], capture_output=True)
        shutil.rmtree(scratch, ignore_errors=True)
    check.finish()


main()
