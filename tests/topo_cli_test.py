#!/usr/bin/env python3
"""topo from the outside, without a target: usage and exit status, clone and configure, hostile projects, JSON, documentation that
follows the command table, start-up and memory."""
import json
import os
import pathlib
import pty
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from talpa_test import UNMEASURED
from topo_board import TOPO, Checks

try:
    import yaml
except ImportError:
    yaml = None

SOURCE = pathlib.Path(os.environ.get("TALPA_SOURCE", pathlib.Path(__file__).parent.parent))
SAMPLES = SOURCE / "tests" / "golden" / "topo"


def topo(*words, cwd=None, env=None, stdin=None):
    return subprocess.run([str(TOPO), *map(str, words)], capture_output=True, text=True, cwd=cwd, env={**os.environ, **(env or {})}, input=stdin, timeout=60)


def check_usage(check):
    for words, status, part in (
            ((), 0, ""), (("--help",), 0, ""), (("help", "deploy"), 0, ""), (("--version",), 0, ""), (("deploy", "--help"), 0, ""),
            (("version",), 2, 'unknown command "version" for "topo"'), (("health", "--nope"), 2, "unknown flag: --nope"),
            (("health", "x"), 2, "accepts 0 arg(s), received 1"), (("clone",), 2, "requires at least 1 arg(s), only received 0"),
            (("ps", "--target"), 2, "flag needs an argument"), (("ps",), 2, "target not specified: use --target"),
            (("health", "--timeout", "5"), 2, "5s or 1m30s"), (("lint", "-o", "yaml"), 2, "must be plain or json"),
            (("describe", "-t", "a b"), 2, "invalid target"), (("deploy", "-t", "h", "-f", "none.yaml"), 1, "compose file not found: none.yaml"),
            (("deploy", "-t", "h", "-f", str(SAMPLES)), 1, "is a directory"), (("deploy", "-t", "h", "-f", " "), 1, "must not be empty"),
            (("install", "other", "-t", "h"), 2, "unknown component"), (("setup-keys", "-t", "h", "--key-type", "dsa"), 2, "unsupported key type"),
            (("completion", "csh"), 2, "no completion for"), (("clone", "ftp:x"), 2, "unsupported source type: ftp"), (("clone", "x"), 2, "invalid source format: x"),
            (("deploy", "-t", "h", "-f", str(SAMPLES / "valid/01-minimal.yaml"), "-p", "x"), 2, 'invalid port "x": must be a number'),
            (("deploy", "-t", "h", "-f", str(SAMPLES / "valid/01-minimal.yaml"), "-p", "70000"), 2, "between 1 and 65535"),
            (("deploy", "-t", "h", "-f", str(SAMPLES / "valid/01-minimal.yaml"), "--engine", "lxc"), 2, "must be docker or podman"),
            # Flags may stand before their command (-v is then the command's), "--" ends them, and the hint is for what was meant.
            (("-v", "ps"), 2, "target not specified"), (("-q", "ps"), 2, "target not specified"), (("-t", "a b", "ps"), 2, "invalid target"),
            (("--target", "a b", "-v", "ps"), 2, "invalid target"), (("-o", "ps"), 2, 'invalid output format "ps"'), (("-o", "yaml"), 2, 'invalid output format "yaml"'),
            (("down", "-t", "a", "-t", "b"), 2, "topo down takes one --target"), (("ps", "--", "x"), 2, "accepts 0 arg(s), received 1"), (("depoly",), 2, "did you mean topo deploy?"), (("health", "--nope"), 2, "topo health --help"),
            (("new", ""), 2, "a path for the project is needed"), (("clone", "dir:/", "--", "-dash", "A=1"), 1, "-dash is inside source directory")):
        ran = topo(*words, env={"TOPO_TARGET": ""}, cwd="/")
        check.equal(ran.returncode, status, f"status of topo {' '.join(words)}: {ran.stderr}")
        check.has(ran.stderr, part, f"topo {' '.join(words)}")
    for words in (("--help",), ("--version",), ("deploy", "--help"), ("man",)):
        with open("/dev/full", "w") as full:
            check.equal(subprocess.run([str(TOPO), *words], stdout=full, stderr=subprocess.PIPE).returncode, 1, f"a full disk is noticed: {words}")
    check.has(topo("-h", "deploy").stdout, "Build a project and start it", "-h before its command")
    check.equal(topo("upgrade", env={"TOPO_DISABLE_SELF_UPGRADE": "yes"}).returncode, 2, "upgrade is switched off")
    for words in (("-o", "json", "nope"), ("nope", "--json"), ("health", "--nope", "--output=JSON")):
        record = json.loads(topo(*words).stderr)
        check.equal(record["level"], "ERROR", f"errors are JSON: {words}")
    check.has(topo("--version").stdout, "topo version ", "version")
    check.equal(topo("templates", "-s", f"file://{SAMPLES}/catalog/empty.json").stdout, "", "an empty catalogue prints nothing")
    catalogue = json.loads(topo("projects", "--source", f"file://{SAMPLES}/catalog/ok.json", "-o", "json").stdout)
    check.equal(catalogue[2]["parameters"]["GREETING"]["hints"], {"meta.type": "git.uri"}, "hints are kept")
    for name in ("wrong-major", "no-version", "not-json"):
        ran = topo("projects", "-s", f"file://{SAMPLES}/catalog/{name}.json")
        check.that(ran.returncode == 1 and "%!w" not in ran.stderr, f"{name}: {ran.stderr}")


def check_clone(check, folder):
    source = folder / "source"
    source.mkdir()
    shutil.copy(SAMPLES / "valid/02-all-fields.yaml", source / "compose.yaml")
    (source / "tool").write_text("x")
    (source / "tool").chmod(0o755)
    os.symlink("tool", source / "link")
    os.symlink("/etc/passwd", source / "outside")
    ran = topo("clone", f"dir:{source}", "copy", cwd=folder)
    check.equal(ran.returncode, 1, "a required value is missing")
    check.has(ran.stderr, "init failed: failed to resolve parameters: missing value(s) for required parameters:\n  SENSOR_MODEL:", "what is missing")
    check.that(not (folder / "copy").exists(), "a failed clone leaves nothing")
    ran = topo("clone", f"dir:{source}", "copy", "SENSOR_MODEL=TMP117", cwd=folder)
    check.equal(ran.returncode, 0, ran.stderr)
    check.has(ran.stdout, "Created in 'copy'\n\nNow run:\n  cd copy\n  topo deploy\n", "what to do next")
    check.has(ran.stderr, "outside is a link that leaves the project", "a link that leaves the project is named")
    copy = folder / "copy"
    check.that((copy / "tool").stat().st_mode & 0o777 == 0o755 and os.readlink(copy / "link") == "tool", "modes and links are kept")
    want = (source / "compose.yaml").read_text().replace('SENSOR_MODEL: ""', 'SENSOR_MODEL: "TMP117"')
    check.equal((copy / "compose.yaml").read_text(), want, "only the value changed")
    ran = topo("clone", f"dir:{source}", "copy", "SENSOR_MODEL=x", cwd=folder)
    check.has(ran.stderr, "directory copy already exists", "a folder that is there")
    check.that((copy / "compose.yaml").exists(), "and it stays")
    check.has(topo("clone", f"dir:{source}", source / "inside", cwd=folder).stderr, "is inside source directory", "into itself")
    for words, where in ((("dir:.", "k"), source), ((f"dir:{source}", "k"), source), (("dir:..", "k"), source / "sub"), (("dir:.", "./a/b"), source)):
        where.mkdir(exist_ok=True)
        ran = topo("clone", *words, "SENSOR_MODEL=A", cwd=where)
        check.that(ran.returncode == 1 and "is inside source directory" in ran.stderr and not (where / "k").exists(), f"into itself: {words}: {ran.stderr[:300]}")
    os.mkfifo(source / "pipe")
    check.has(topo("clone", f"dir:{source}", "piped", "SENSOR_MODEL=A", cwd=folder).stderr, "pipe is no file or folder and was not copied", "a pipe")
    (source / "pipe").unlink()
    before = (copy / "compose.yaml").stat()
    check.equal(topo("configure", "SENSOR_MODEL=TMP117", cwd=copy).returncode, 0, "the same again")
    after = (copy / "compose.yaml").stat()
    check.equal((after.st_mtime_ns, after.st_ino), (before.st_mtime_ns, before.st_ino), "is not written")
    check.equal(json.loads(topo("configure", "UNIT=kelvin", "--json", cwd=copy).stdout)["changed"], True, "configure, JSON")
    check.has(topo("configure", "NOPE=1", cwd=copy).stderr, "failed to resolve parameters: unknown argument: NOPE", "unknown parameter")
    git = ["git", "-C", source, "-c", "user.name=t", "-c", "user.email=t@example.org"]
    if subprocess.run(["git", "--version"], capture_output=True).returncode == 0:
        for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "one"], ["tag", "v1"]):
            subprocess.run([*git, *words], check=True)
        commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        for reference in ("", "#v1", f"#{commit}"):
            ran = topo("clone", f"git:file://{source}{reference}", f"g{reference[1:4]}", "SENSOR_MODEL=A", cwd=folder)
            check.equal(ran.returncode, 0, f"clone of git {reference}: {ran.stderr}")
        ran = topo("clone", f"git:file://{source}#nope", "gone", "SENSOR_MODEL=A", cwd=folder)
        check.that(ran.returncode == 1 and "failed to copy project: failed to clone git repository" in ran.stderr and not (folder / "gone").exists(), f"a ref that is not there: {ran.stderr}")
        check.equal(topo("clone", "git:ext::sh -c touch% /tmp/x", "evil", cwd=folder).returncode, 1, "a URL that would run a program")
        check.equal(topo("clone", "git:--upload-pack=x", "evil", cwd=folder).returncode, 1, "a URL that would be an option")


def at_terminal(words, answers, env=None):
    """What shows on a terminal: each answer is typed when a question for it stands there. Its exit status too."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([str(TOPO), *map(str, words)], stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm", **(env or {})}, start_new_session=True)
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
            if answers and shown.endswith(b"> "):
                os.write(ours, answers.pop(0).encode() + b"\n")
    except OSError:  # the other side is gone
        pass
    os.close(ours)
    return process.wait(timeout=60), shown.decode().replace("\r\n", "\n")


def check_terminal(check, folder):
    """Questions as the original asks them (its section 7.3), and colours."""
    path = folder / "asked.yaml"
    shutil.copy(SAMPLES / "valid/02-all-fields.yaml", path)
    status, shown = at_terminal(("configure", "-f", path), ["  TMP117 ", "", ""])
    check.equal(status, 0, f"answers: {shown}")
    check.equal(path.read_text(), (SAMPLES / "valid/02-all-fields.yaml").read_text().replace('SENSOR_MODEL: ""', 'SENSOR_MODEL: "TMP117"'), "only that line")
    check.has(shown, "Provide: ", "the question")
    check.has(shown, 'Current: [""]\nSENSOR_MODEL (required, leave blank to keep current)> ', "the question")
    order = [shown.find(f"{name} (") for name in ("SENSOR_MODEL", "TITLE", "UNIT")]
    check.that(-1 not in order and order == sorted(order), f"in the order of the file: {shown}")
    shutil.copy(SAMPLES / "valid/08-shared-parameter.yaml", path)
    check.has(at_terminal(("configure", "-f", path), [""])[1], 'Current: ["eu","us"]\n', "two current values")
    check.equal(path.read_text(), (SAMPLES / "valid/08-shared-parameter.yaml").read_text(), "blank keeps")
    shutil.copy(SAMPLES / "invalid/15-required-unset.yaml", path)
    status, shown = at_terminal(("configure", "-f", path), [""])
    check.that(status == 1 and "missing value(s) for required parameters" in shown, f"a required one, left blank: {shown}")
    (folder / "Dockerfile").write_text("FROM scratch\n")
    ran = topo("deploy", "-t", "root@127.0.0.1:9", "-f", path)  # the original asks for them on clone and configure only
    check.has(ran.stderr, "missing value(s) for required parameters:\n  TOKEN_NAME:", "deploy says what is missing")
    # All that is required stands on the command line: nothing is asked.
    shutil.copy(SAMPLES / "valid/02-all-fields.yaml", path)
    check.that("Provide" not in at_terminal(("configure", "-f", path, "SENSOR_MODEL=A"), [])[1], "nothing is asked")
    for env, coloured in (({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
        for words in (("projects", "-s", f"file://{SAMPLES}/catalog/ok.json"), ("nope",)):
            check.equal("\x1b[" in at_terminal(words, [], env)[1], coloured, f"colours: {words} {env}")


def check_submodules(check, folder):
    """A stranger's repository with all that git has been hurt by: nothing of it runs, is fetched, or is written outside."""
    if not shutil.which("git"):
        print("git is not installed: hostile repositories were not tried")
        return
    base = folder / "hostile"
    repo, other, marks = base / "repo", base / "other", base / "marks"
    for path in (repo, other, marks, base / "template" / "hooks"):
        path.mkdir(parents=True)

    def git(*words, where=repo, text=None):
        return subprocess.run(["git", "-C", where, "-c", "user.name=t", "-c", "user.email=t@example.org", *words], check=True, capture_output=True, text=True, input=text).stdout.strip()

    for where in (other, repo):
        git("init", "-q", "-b", "main", where=where)
    (other / "secret").write_text("secret")
    git("add", ".", where=other)
    git("commit", "-qm", "one", where=other)
    commit = git("rev-parse", "HEAD", where=other)
    shutil.copy(SAMPLES / "valid/01-minimal.yaml", repo / "compose.yaml")
    (repo / ".gitmodules").write_text(f'[submodule "run"]\n\tpath = run\n\turl = ext::sh -c touch% {marks}/ext\n[submodule "files"]\n\tpath = files\n\turl = file://{other}\n'
                                      f'[submodule "../../out"]\n\tpath = ../out\n\turl = https://example.org/x\n[submodule "dash"]\n\tpath = .git/hooks\n\turl = -u./x\n'
                                      f'[submodule "shell\x1b[2J"]\n\tpath = fine\n\tupdate = !touch {marks}/update\n')
    git("add", ".")
    for name in ("run", "files"):
        git("update-index", "--add", "--cacheinfo", f"160000,{commit},{name}")
    git("commit", "-qm", "hostile")
    head = git("rev-parse", "HEAD")
    # A user whose own settings are as careless as they can be.
    hook = base / "template" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {marks}/hook\n")
    hook.chmod(0o755)
    (base / "config").write_text(f"[submodule]\n\trecurse = true\n[protocol]\n\tallow = always\n[protocol \"ext\"]\n\tallow = always\n[protocol \"file\"]\n\tallow = always\n"
                                 f"[init]\n\ttemplateDir = {base}/template\n[fetch]\n\trecurseSubmodules = true\n[clone]\n\tdefaultRemoteName = origin\n")
    env = {"GIT_CONFIG_GLOBAL": str(base / "config"), "GIT_CONFIG_SYSTEM": "/dev/null"}
    for reference in ("", "#main", f"#{head}"):
        to = base / "clone"
        ran = topo("clone", f"git:file://{repo}{reference}", to, cwd=base, env=env)
        check.equal(ran.returncode, 0, f"a project with submodules {reference}: {ran.stderr}")
        check.equal(sorted(p.name for p in marks.iterdir()), [], f"nothing of it ran {reference}")
        check.that(not any((to / name).exists() and any((to / name).iterdir()) for name in ("run", "files")) and not (base / "out").exists(), f"no submodule was fetched {reference}")
        for part in ("url ext::sh -c touch", f"url file://{other}", "path ../out", "path .git/hooks", "url -u./x", "update !touch"):
            check.has(ran.stderr, part, "what must not be fetched is named")
        check.that("\x1b" not in ran.stdout + ran.stderr and "submodule update --init" not in ran.stderr, "and no advice to fetch it")
        shutil.rmtree(to)
    # Trees that git's own commands would not make: paths that leave the folder, a .git that is a link, a folder behind a link.
    outside = base / "outside"
    outside.mkdir()
    blob = git("hash-object", "-w", "--stdin", text=str(outside))
    body = git("hash-object", "-w", "--stdin", text="#!/bin/sh\n")
    inner = git("mktree", text=f"100755 blob {body}\tfile\n")
    compose = git("rev-parse", "HEAD:compose.yaml")
    for name, entries in (("dotgit", f"120000 blob {blob}\t.git\n"), ("dotgit-folder", f"040000 tree {inner}\t.git\n"), ("dotdot", f"040000 tree {inner}\t..\n"),
                          ("behind-link", f"120000 blob {blob}\ta\n040000 tree {inner}\ta\n"), ("short-name", f"040000 tree {inner}\tgit~1\n")):
        tree = git("mktree", text=entries + f"100644 blob {compose}\tcompose.yaml\n")
        git("update-ref", f"refs/heads/{name}", git("commit-tree", "-m", name, tree))
        ran = topo("clone", f"git:file://{repo}#{name}", "evil-clone", cwd=base, env=env)
        refused = ran.returncode == 1 and not (base / "evil-clone").exists()
        if name == "behind-link":  # some gits check one of the two out
            shutil.rmtree(base / "evil-clone", ignore_errors=True)
        else:
            check.that(refused, f"{name} is refused and leaves nothing: {ran.returncode} {ran.stdout}{ran.stderr}")
        check.that(list(outside.iterdir()) == [] and not (base / "file").exists() and list(marks.iterdir()) == [], f"{name} wrote nothing outside")
    # A folder whose .git is elsewhere, or whose .gitmodules is a link.
    local = base / "local"
    local.mkdir()
    shutil.copy(repo / "compose.yaml", local / "compose.yaml")
    (local / ".git").write_text(f"gitdir: {other}/.git\n")
    os.symlink("/etc/passwd", local / ".gitmodules")
    ran = topo("clone", f"dir:{local}", "copy", cwd=base)
    for part in (f".git is a file that names another repository: {other}/.git", ".gitmodules is a link", ".gitmodules is a link that leaves the project"):
        check.has(ran.stderr, part, "a folder")


def check_values(check, folder):
    """What is written is read by another YAML reader as that very text."""
    if yaml is None:
        print("python3-yaml is not installed: values were not read by another reader")
        return
    texts = ["007", "yes", "no", "~", "", " x ", "a: b", "# c", "it's", '"q"', "1e3", "0x10", "2026-01-01", "ü €", "a\tb", "- x", "*a", "&a", "!t", "%d", "@x", "`x`", "{a}", "[a]", "a,b", "null", "1:30", "=", "<<", "a #b", "a:", "|", ">", "\\", "$X", "true", "🙂", "x" * 3000]
    for quoted in ("old", "'old'", '"old"', "5", "", "|\n          old"):
        for text in texts:
            path = folder / "values.yaml"
            path.write_text(f"services:\n  a:\n    image: i\n    build:\n      context: .\n      args:\n        N: {quoted}\n        M: keep # comment\n\nx-topo: {{name: n, parameters: {{N: {{}}}}}}\n")
            ran = topo("configure", "-f", path, f"N={text}")
            check.equal(ran.returncode, 0, f"{quoted} <- {text!r}: {ran.stderr}")
            document = yaml.safe_load(path.read_text())
            args = document["services"]["a"]["build"]["args"]
            check.equal((args["N"], args["M"]), (text, "keep"), f"{quoted} <- {text!r}")


def check_boards(check, folder):
    """Who only looks, or ends something, brings no virtual board up; deploy does."""
    programs = folder / "programs"
    programs.mkdir()
    shutil.copy(TOPO, programs / "topo")
    (programs / "talpa").write_text(f"#!/bin/sh\necho \"$*\" >> {folder}/talpa-calls\nexit 1\n")
    (programs / "talpa").chmod(0o755)
    sample = SAMPLES / "valid/01-minimal.yaml"
    for words, up in ((("ps",), False), (("status",), False), (("logs", "--file", sample), False), (("stop",), False), (("down",), False), (("rollback",), False), (("prune",), False),
                      (("deploy", "--plan"), False), (("deploy",), True), (("describe",), False), (("doctor",), False), (("health", "--strict"), False), (("install", "remoteproc-runtime"), True)):
        (folder / "talpa-calls").write_text("")
        file = [] if words[0] in ("logs", "health", "describe", "doctor", "install") else ["-f", sample]
        ran = subprocess.run([programs / "topo", *words, *file, "--target", "board://nosuch"], capture_output=True, text=True)
        calls = (folder / "talpa-calls").read_text()
        check.equal((ran.returncode, "board up --name nosuch" in calls), (1, up), f"{words}: {ran.stderr}")
        check.has(ran.stdout + ran.stderr, "talpa board up --name nosuch", f"{words}: what brings it up")


def check_board_interrupted(check, folder):
    """Ctrl-C while a board comes up ends it; what fails later on a board that was brought up for it names what ends it."""
    programs = folder / "programs"
    state, calls, sample = folder / "board-is-up", folder / "talpa-calls", SAMPLES / "valid/01-minimal.yaml"
    (programs / "talpa").write_text(f"""#!/bin/sh
echo "$*" >> {calls}
case "$2" in
    ssh-config) [ -e {state} ] && echo "Host *" && echo "  ProxyCommand false" ;;
    down) rm {state} ;;
    up) touch {state}; [ -e {folder}/board-is-slow ] || exit 0; trap 'exit 143' TERM; while :; do sleep 0.1; done ;;
esac
""")
    (folder / "board-is-slow").write_text("")
    calls.write_text("")
    words = [programs / "topo", "deploy", "-f", sample, "--target", "board://slow"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(600):
        if state.exists():
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    check.equal((process.returncode, state.exists()), (130, False), f"interrupted in the bring-up: {out}{err}")
    check.has(err, 'interrupted; the board "slow" that was being brought up is down again', "interrupted in the bring-up")
    (folder / "board-is-slow").unlink()
    ran = subprocess.run(words, capture_output=True, text=True)
    check.equal((ran.returncode, state.exists()), (1, True), f"a deployment to a board that was brought up: {ran.stderr}")
    check.has(ran.stderr, 'the board "slow" was brought up for this and runs; to end it: talpa board down --name slow', "what ends it")
    state.unlink()
    ran = subprocess.run([*words, "--json"], capture_output=True, text=True)
    said = [json.loads(line) for line in ran.stderr.splitlines()]
    check.equal((any("was brought up for this" in one["msg"] for one in said), said[-1]["level"]), (True, "ERROR"), f"the last record is the error: {said}")
    ran = subprocess.run(words, capture_output=True, text=True)
    check.that(ran.returncode == 1 and "was brought up for this" not in ran.stderr, f"a board that was up before is not ours to end: {ran.stderr}")


def check_odd_files(check, folder):
    path = folder / "odd.yaml"
    (folder / "Dockerfile").write_text("FROM scratch\n")
    head = "services:\n  a:\n    platform: linux/arm64\n    build: {context: ., args: {P: old}}\nx-topo:\n  name: n\n  parameters:\n    P: {description: d, required: true}\n"
    path.write_bytes(b"\xef\xbb\xbf" + head.encode())
    check.equal(topo("configure", "-f", path, "P=new").returncode, 0, "a byte order mark")
    check.equal(path.read_bytes(), b"\xef\xbb\xbf" + head.replace("old", "new").encode(), "only the value")
    check.equal((topo("lint", path).returncode, topo("lint", path).stdout), (0, ""), "and lint finds nothing")
    broken = "---\nservices:\n  a: {build: {args: {P: old}}}\n...\nx-topo: {name: n, parameters: {P: {description: d}}}\n"
    path.write_text(broken)
    ran = topo("configure", "-f", path, "P=new")
    check.that(ran.returncode == 1 and "invalid YAML" in ran.stderr and path.read_text() == broken, f"what is broken behind the first document: {ran.stderr}")
    path.write_text("services: {a: {image: i}}\n")
    ran = topo("configure", "-f", path, "FOO=bar")
    check.that(ran.returncode == 0 and "the project has no parameters; ignored: FOO=bar" in ran.stderr, f"no parameters: {ran.stderr}")
    path.write_text(head)
    ran = subprocess.run([str(TOPO), "configure", "-f", str(path), b"P=\xff"], capture_output=True, text=True)
    check.that(ran.returncode == 1 and "the value of P is not UTF-8" in ran.stderr, f"a value that is no text: {ran.stderr}")
    path.write_text(head.replace("P: old", 'P: ""'))
    fix = next(line for line in topo("lint", path).stdout.splitlines() if "topo configure" in line).split("fix: ")[1]
    check.equal(fix, f"topo configure -f {path} P=VALUE", "a fix that works from here")
    path.write_text("services:\n  a: {platform: linux/arm64, image: x, ports: ['80:80']}\n  b: {platform: linux/arm64, image: y, ports: ['80:81']}\n")
    for command in (("deploy",), ("deploy", "--plan"), ("ps",), ("logs",), ("stop",), ("down",), ("status",)):
        starts = command[0] == "deploy"
        ran = topo(*command, "--file", path, "-t", "root@127.0.0.1:9")
        check.that(ran.returncode == 1 and ("wants port 80 of the target" in ran.stderr) == starts, f"{command} of a project with a clash: {ran.stderr}")
        check.that(starts or "127.0.0.1" in ran.stderr, f"{command} goes on to the target: {ran.stderr}")
    if os.geteuid() == 0:
        os.chown(path, 1234, 2345)
        topo("configure", "-f", path, "P=mine")
        check.equal((path.stat().st_uid, path.stat().st_gid), (1234, 2345), "the file stays its owner's")


def check_hostile(check, folder):
    evil = folder / "evil"
    evil.mkdir()
    (evil / "compose.yaml").write_text('services:\n  "$(reboot)": {image: "a\\e[2J", platform: linux/arm64, build: {context: ., args: {A: "\\e]0;x\\a"}}}\n'
                                       'x-topo: {name: "n\\e[31m", description: "d\\e[2J", parameters: {A: {description: "\\e[2Jtell", required: true}, B: {description: "\\e[2Jme", required: true}}}\n')
    for words in (("lint",), ("configure",), ("configure", "--show"), ("configure", "A=\x1b[2J", "B=1"), ("lint", "--json"), ("configure", "--json")):
        ran = topo(*words, cwd=evil)
        check.that("\x1b" not in ran.stdout + ran.stderr, f"no escape reaches the terminal: {words}")
    shutil.copytree(evil, folder / "$(reboot) ;x")
    ran = topo("clone", f"dir:{folder}/$(reboot) ;x", "A=1", "B=2", cwd=evil)
    check.has(ran.stdout + ran.stderr, "missing value" if ran.returncode else "cd '$(reboot) ;x'", "a name that a shell would run is quoted")
    bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(f"a{i}: &a{i} [{','.join([f'*a{i-1}'] * 10)}]\n" for i in range(1, 12)) + "services: {a: {image: i, x-y: *a11}}\n"
    for name, text, part in (("bomb", bomb, "expand to more than"), ("deep", "a: " + "[" * 5000, "nested deeper"), ("twice", "services: {}\nservices: {}\n", "already defined"),
                             ("cycle", "a: &a [*a]\n", "contains itself"), ("binary", "a: \0", "invalid YAML"), ("list", "- a\n", "must be a mapping")):
        path = folder / f"{name}.yaml"
        path.write_text(text)
        started = time.monotonic()
        ran = topo("lint", path)
        check.equal(ran.returncode, 1, f"{name}: {ran.stdout}")
        check.has(ran.stdout, part, name)
        check.that(time.monotonic() - started < 10, f"{name} ends soon")


def check_new(check, folder):
    for template in ("web", "web-firmware", "npu-classifier"):
        path = folder / f"new {template}"
        ran = topo("new", path, "--template", template)
        check.equal(ran.returncode, 0, ran.stderr)
        ran = topo("lint", path / "compose.yaml")
        check.equal((ran.returncode, ran.stdout), (0, ""), "a new project is without fault")
    check.equal(topo("new", folder / "new web").returncode, 1, "a folder that is there")
    firmware = folder / "new web-firmware" / "firmware"
    if shutil.which("arm-none-eabi-gcc"):
        command = next(line for line in (firmware / "Dockerfile").read_text().splitlines() if "arm-none-eabi-gcc -mcpu" in line)[4:]
        ran = subprocess.run(command.replace("/src/", f"{firmware}/").replace("/firmware.elf", "/tmp/x.elf").replace(str(firmware), ".").replace("/tmp/x.elf", "out.elf"), shell=True, cwd=firmware, capture_output=True, text=True)
        check.equal(ran.returncode, 0, f"the template's firmware builds as its Dockerfile says: {ran.stderr}")
        check.that((firmware / "out.elf").read_bytes()[:4] == b"\x7fELF", "an ELF")


def check_json(check, folder):
    """--json everywhere: what a command says is one document of standard output, however it ends; its errors are records of standard
    error, one object a line. The documents are those of the table in docs/topo.md."""
    home = folder / "json home"
    (home / ".ssh").mkdir(parents=True)
    sample = home / "compose.yaml"
    shutil.copy(SAMPLES / "valid/05-artifact-scale0.yaml", sample)
    nobody, catalog = "root@127.0.0.1:9", f"file://{SAMPLES}/catalog/ok.json"
    nowhere = ("--target", nobody)
    rows = (  # command line, exit status, fields of the document (None: none, it failed before there was one)
        (("health",), 0, {"host"}), (("health", *nowhere), 0, {"host", "target"}), (("health", *nowhere, "--strict"), 1, {"host", "target"}),
        (("health", "--timeout", "x"), 2, None), (("projects", "-s", catalog), 0, [{"name", "url", "ref"}]), (("projects", "-s", "file:///none"), 1, None),
        (("describe", "--target", "localhost"), 0, {"hostProcessors", "totalMemoryKb"}), (("describe", *nowhere), 1, None), (("describe",), 2, None),
        (("clone", f"dir:{SAMPLES}/valid/parts", "copy"), 1, None), (("clone", "x"), 2, None), (("new", "fresh"), 0, {"directory", "template"}), (("new", "fresh"), 1, None),
        (("clone", "dir:fresh", "copy"), 0, {"directory", "values"}), (("configure", "TITLE=x", "-f", "copy/compose.yaml"), 0, {"file", "values", "changed"}),
        (("configure", "--show", "-f", "copy/compose.yaml"), 0, [{"name", "description", "required", "example", "current"}]), (("configure", "-f", "none"), 1, None),
        (("lint", SAMPLES / "invalid/11-platform-missing.yaml"), 1, [{"code", "severity", "file", "line", "column", "message", "fix"}]), (("lint", "fresh/compose.yaml"), 0, []),
        (("deploy", *nowhere), 1, None), (("deploy", "--plan", *nowhere), 1, None), (("deploy",), 2, None), (("deploy", *nowhere, "-t", "root@127.0.0.1:7"), 1, {"results"}),
        *(((name, *nowhere), 1, None) for name in ("ps", "status", "logs", "stop", "down", "rollback", "prune", "setup-keys")), (("ps",), 2, None),
        (("install", "remoteproc-runtime", *nowhere), 1, None), (("install", "x", *nowhere), 2, None), (("migrate-ssh",), 1, None),
        (("doctor", "--yes"), None, {"findings", "done", "open"}), (("doctor", *nowhere), 1, {"findings", "done", "open"}), (("doctor", "-t", "a b"), 2, None),
        (("upgrade",), 1, None), (("completion", "bash"), 0, {"shell", "script"}), (("completion", "csh"), 2, None), (("man",), 0, {"page"}), (("man", "nope"), 2, None),
        (("help",), 0, {"help"}), (("help", "ps"), 0, {"help"}), (("ps", "--help"), 0, {"help"}), (("--version",), 0, {"version", "commit"}), (("nope",), 2, None), (("ps", "--nope"), 2, None))
    for words, status, wanted in rows:
        ran = topo(*words, "--json", cwd=home, env={"HOME": str(home), "TOPO_TARGET": "", "TOPO_RELEASES": "", "TOPO_SKIP_VERSION_CHECKS": "1"})
        name = f"topo {' '.join(map(str, words))} --json"
        check.that(status is None or ran.returncode == status, f"status of {name}: {ran.returncode}, {ran.stderr}")
        try:
            records = [json.loads(line) for line in ran.stderr.splitlines()]
            documents = [json.loads(ran.stdout)] if ran.stdout and words[0] != "deploy" else [json.loads(line) for line in ran.stdout.splitlines()]
        except ValueError as error:
            check.that(False, f"{name}: {error}: {ran.stdout}{ran.stderr}")
            continue
        check.that(all({"time", "level", "msg"} <= set(record) for record in records), f"records of {name}: {records}")
        if wanted is None:
            check.that(records and records[-1]["level"] == "ERROR" and records[-1]["code"], f"{name} says why: {records}")
            check.that(words[0] == "deploy" or not documents, f"{name} has no document: {ran.stdout}")
        else:
            document = documents[-1] if documents else None
            check.that(type(document) is (dict if isinstance(wanted, set) else list), f"{name}: {ran.stdout}")
            check.that(wanted == [] or (wanted if isinstance(wanted, set) else wanted[0]) <= set(document if isinstance(wanted, set) else document[0]), f"fields of {name}: {ran.stdout}")
    commands = {line.split()[2] for line in (SOURCE / "docs/topo-commands.md").read_text().splitlines() if line.startswith("## topo ")}
    check.equal(commands - {str(words[0]) for words, _, _ in rows}, set(), "every command is in the table")
    described = (SOURCE / "docs/topo.md").read_text().split("## JSON")[1].split("##")[0]
    check.equal({name for name in commands if f"`{name}" not in described}, set(), "every command's document is described")


def check_projects(check):
    """What the tree itself ships, by topo lint and by the published form of x-topo: its fields, their types, no unknown field in a
    parameter, every parameter wired to a build argument, each service for linux/arm64 unless its runtime is remoteproc's."""
    for path in sorted((SOURCE / "projects").glob("*/compose.yaml")):
        ran = topo("lint", path)
        check.equal((ran.returncode, ran.stdout), (0, ""), f"{path}: {ran.stderr}")
        if yaml is None:
            continue
        project = yaml.safe_load(path.read_text())
        said, services = project["x-topo"], project["services"]
        check.that(isinstance(said["name"], str) and isinstance(said["description"], str) and isinstance(said["deployment_success_message"], str), f"{said}")
        check.equal(said["features"], ["remoteproc-runtime"], "features")
        arguments = {name for service in services.values() for name in service.get("build", {}).get("args", {})}
        for name, parameter in said["parameters"].items():
            check.that(name in arguments, f"{name} reaches a build")
            check.equal(set(parameter) - {"description", "required", "example", "hints"}, set(), f"fields of {name}")
            check.that(isinstance(parameter["description"], str) and isinstance(parameter["required"], bool), f"{name}: {parameter}")
        for name, service in services.items():
            check.that(service.get("platform") == "linux/arm64" or "remoteproc" in service.get("runtime", ""), f"platform of {name}")
        check.equal({n for n, s in services.items() if s.get("scale") == 0}, {"pte-artifacts", "runner-artifacts"}, "services that never start")


def check_documentation(check):
    page = topo("man", "--markdown").stdout
    check.equal((SOURCE / "docs" / "topo-commands.md").read_text(), page, "docs/topo-commands.md is stale: topo man --markdown > docs/topo-commands.md")
    for shell, program in (("bash", ["bash", "-n"]), ("zsh", ["zsh", "-n"]), ("fish", ["fish", "-n"])):
        script = topo("completion", shell).stdout
        check.has(script, "accept-new-host-keys", f"completion for {shell}")
        if shutil.which(program[0]):
            check.equal(subprocess.run(program, input=script, text=True, capture_output=True).returncode, 0, f"the script for {shell} is {shell}")
    words = subprocess.run(["bash", "-c", "source <(\"$0\" completion bash); COMP_WORDS=(topo setup-keys --key-type ''); COMP_CWORD=3; _topo; echo ${COMPREPLY[@]}", str(TOPO)], capture_output=True, text=True).stdout
    check.equal(words.split(), ["ed25519", "rsa"], "bash completes values")
    check.equal(topo("completion", "powershell").returncode, 0, "completion for PowerShell")
    for name in ("", "deploy", "health"):
        check.has(topo("man", *([name] if name else [])).stdout, ".TH TOPO", f"manual page {name}")


def check_budget(check):
    """Under 10 ms and 8 MiB (the original: 10 to 30 ms, 16 MB)."""
    if UNMEASURED:
        return
    sample = SAMPLES / "valid/02-all-fields.yaml"
    for words in (["--version"], ["lint", str(sample)]):
        best = 1.0
        for _ in range(20):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            ran = subprocess.run([str(TOPO), *words], capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            check.equal(ran.returncode, 0, " ".join(words))
            best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        check.that(best < 0.010, f"topo {words[0]} took {best * 1000:.1f} ms of the processor, at best of 20")
    # A child of this Python would be charged with the memory of Python; time(1) is small.
    if not shutil.which("time"):
        print("time is not installed: memory was not measured")
        return
    kib = int(subprocess.run(["time", "-f", "%M", str(TOPO), "lint", str(sample)], capture_output=True, text=True).stderr.split()[-1])
    check.that(kib < 8 * 1024, f"topo lint took {kib} KiB")


def main():
    check = Checks()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="topo-cli-"))
    try:
        check_usage(check)
        check_clone(check, folder)
        check_submodules(check, folder)
        check_terminal(check, folder)
        check_values(check, folder)
        check_odd_files(check, folder)
        check_boards(check, folder)
        check_board_interrupted(check, folder)
        check_hostile(check, folder)
        check_new(check, folder)
        check_json(check, folder)
        check_projects(check)
        check_documentation(check)
        check_budget(check)
    finally:
        shutil.rmtree(folder)
    check.finish()


main()
