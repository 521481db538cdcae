#!/usr/bin/env python3
"""The packages that scripts/packages.sh makes of this build: made twice they are the same bytes; dpkg installs them into a root that is
an overlay of this machine's, they are used there and removed without a trace; their firmware boots from their bundle on a virtual
board. Of arm64, when it was built (./run arm64), packages and tarball are unpacked and run under qemu."""
import gzip
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from board_lib import REFUSALS
from talpa_test import BUILD, GOLDEN, SOURCE, Checks

NAMES = {"remoteproc-runtime", "talpa", "talpa-board", "talpa-webapp", "topo"}
VERSION = re.search(r"^project\(talpa VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
SAYS = {  # what each program answers to a question for its version
    ("talpa", "--version"): f"talpa {VERSION}",
    ("talpa-webapp", "--version"): f"talpa-webapp {VERSION}",
    ("topo", "--version"): f"topo version {VERSION}",
    ("remoteproc-runtime", "--version"): f"remoteproc-runtime version {VERSION}",
    ("containerd-shim-remoteproc-v1", "-v"): VERSION,
}
DS_CNN = GOLDEN / "models" / "ds_cnn_random" / "ds_cnn_random.pte"
check = Checks()


def run(*command, **options):
    return subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          timeout=240, **options)


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def make(folder):
    folder.mkdir()
    done = run(SOURCE / "scripts" / "packages.sh", folder)
    check.equal(done.returncode, 0, f"packages.sh ({done.stdout[-2000:]})")
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def checksums(folder, made):
    listed = dict(reversed(line.split()) for line in (folder / "SHA256SUMS").read_text().splitlines())
    check.equal(listed, {name: digest for name, digest in made.items() if name != "SHA256SUMS"}, "SHA256SUMS names every file")


def contents(deb):
    out = run("dpkg-deb", "-c", deb).stdout
    return [line.split()[5].lstrip(".") for line in out.splitlines() if not line.split()[5].endswith("/")]


def in_scratch_root(debs):
    """Installs, uses, removes, in a mount namespace whose root is an overlay: nothing of it reaches the machine."""
    script = r"""
set -e
dpkg -i /scratch/debs/*.deb >/dev/null
echo "installed=$(dpkg-query -W -f '${Package} ${Status}\n' talpa talpa-board talpa-webapp topo remoteproc-runtime | grep -c 'install ok installed')"
echo "audit=$(dpkg --audit talpa talpa-board talpa-webapp topo remoteproc-runtime | wc -l)"
echo "versions=$(for p in talpa talpa-webapp topo remoteproc-runtime; do $p --version | head -n 1; done | tr '\n' ';')"
echo "compare=$(talpa compare "$PROGRAM" --input "$INPUT" >/dev/null && echo equal)"
echo "completion=$(bash -c '. /usr/share/bash-completion/completions/talpa; COMP_WORDS=(talpa insp); COMP_CWORD=1; _talpa; echo ${COMPREPLY[@]}')"
echo "completion_of_runtime=$(bash -c '. /usr/share/bash-completion/completions/remoteproc-runtime; COMP_WORDS=(remoteproc-runtime --root /x sp); COMP_CWORD=3
    _remoteproc_runtime; echo ${COMPREPLY[@]}')"
echo "archive=$(ls /usr/share/topo)"
if command -v systemd-analyze >/dev/null; then
    systemd-analyze verify --man=no /lib/systemd/system/talpa-runner.service /lib/systemd/system/talpa-webapp.service /lib/systemd/system/firmware@.service 2>&1 |
        grep -E 'talpa|firmware@' | sed 's/^/unit=/' || true
fi
echo '# mine' >> /etc/default/talpa-webapp
dpkg -r talpa-webapp >/dev/null 2>&1; echo "settings_kept=$(grep -c mine /etc/default/talpa-webapp)"
dpkg -P talpa talpa-board talpa-webapp topo remoteproc-runtime >/dev/null 2>&1
echo "left=$(while read -r f; do [ ! -e "$f" ] && [ ! -L "$f" ] || echo "$f"; done < "$FILES" | tr '\n' ' ')"
"""
    with tempfile.TemporaryDirectory(prefix="talpa-packages-") as folder:
        folder = pathlib.Path(folder)
        files = folder / "files"
        files.write_text("".join(path + "\n" for deb in debs for path in contents(deb)))
        (folder / "script").write_text(script)
        (folder / "debs").mkdir()
        for deb in debs:
            shutil.copy(deb, folder / "debs")
        for name in (DS_CNN, DS_CNN.parent / "in0.bin", DS_CNN.parent / "out0.bin"):
            shutil.copy(name, folder)
        mounts = f"""
set -e
mount -t tmpfs tmpfs {folder / 'mnt'}
cd {folder / 'mnt'}
mkdir upper work root
mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work root
mkdir -p root/scratch
mount --bind {folder} root/scratch
mount --rbind /proc root/proc
mount --rbind /dev root/dev
exec chroot root env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 \\
    PROGRAM=/scratch/{DS_CNN.name} INPUT=/scratch/in0.bin FILES=/scratch/files bash /scratch/script
"""
        (folder / "mnt").mkdir()
        done = run("unshare", "--mount", "--propagation", "private", "bash", "-c", mounts)
    check.equal(done.returncode, 0, f"install, use, remove ({done.stdout[-2000:]})")
    said = {}
    for line in done.stdout.splitlines():
        key, equals, value = line.partition("=")
        if equals:
            said.setdefault(key, value)
    check.equal(said.get("installed"), "5", f"packages installed ({done.stdout[-1500:]})")
    check.equal(said.get("audit"), "0", "dpkg --audit")
    for (program, flag), answer in SAYS.items():
        if flag == "--version":
            check.that(answer in said.get("versions", ""), f"{program} {flag} says {answer}: {said.get('versions')}")
    check.equal(said.get("compare"), "equal", "the installed talpa gives the recorded outputs")
    check.equal(said.get("completion"), "inspect", "bash completes")
    check.equal(said.get("completion_of_runtime"), "spec", "bash completes the runtime's commands")
    check.that("linux_amd64.tar.gz" in said.get("archive", ""), "topo carries the runtime for boards")
    check.that("unit" not in said, f"systemd-analyze verify is content: {said.get('unit')}")
    check.equal(said.get("settings_kept"), "1", "changed settings outlive a removal")
    check.equal(said.get("left"), "", "files left after a purge")


def no_paths(debs):
    """A program that carries the folder in which it was built is another one elsewhere."""
    with tempfile.TemporaryDirectory() as folder:
        for deb in debs:
            run("dpkg-deb", "-x", deb, folder)
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if not path.is_file() or path.is_symlink():
                continue
            data = path.read_bytes()
            found = [words.decode() for words in (str(SOURCE).encode(), b"../src/") if words in data]
            check.equal(found, [], f"paths of the source in {path.name}")


def fields(deb):
    out = run("dpkg-deb", "-f", deb).stdout
    return dict(line.split(": ", 1) for line in out.splitlines() if ": " in line and not line.startswith(" "))


def project(debs):
    """The classifier's project, where it was assembled: topo clones it from where the package puts it, with all that it deploys."""
    with tempfile.TemporaryDirectory() as folder:
        for deb in debs:
            run("dpkg-deb", "-x", deb, folder)
        there, copy = pathlib.Path(folder) / "usr/share/talpa/projects/imx93-npu-classifier", pathlib.Path(folder) / "copy"
        if not there.exists():
            print("no project was assembled (scripts/demo.sh --assemble): the package goes without")
            return
        done = run(pathlib.Path(folder) / "usr/bin/topo", "clone", f"dir:{there}", copy)
        check.equal(done.returncode, 0, f"topo clone: {done.stdout}")
        names = {str(p.relative_to(copy)) for p in copy.rglob("*") if p.is_file()}
        built = ["amd64"] + ["arm64"] * (SOURCE / "build/arm64/bin/talpa-webapp").exists()
        wanted = {f"webapp/artifacts/{a}/talpa-webapp" for a in built} | {"webapp/artifacts/imagenet_classes.txt", "runner/artifacts/executorch_runner_cm33.elf"}
        check.equal(wanted - names, set(), "what a deployment takes")
        check.that(any(n.startswith("webapp/artifacts/") and n.endswith(".pte") for n in names), f"a program: {sorted(names)}")
        check.equal(run("diff", "-r", there, copy).stdout, "", "the copy")
        done = run(pathlib.Path(folder) / "usr/bin/topo", "lint", cwd=copy)
        check.equal(done.returncode, 0, f"topo lint: {done.stdout}")


def manuals(debs):
    """Every program has a page, every page formats without a warning, every option of a program is on its page."""
    with tempfile.TemporaryDirectory() as folder:
        for deb in debs:
            run("dpkg-deb", "-x", deb, folder)
        root = pathlib.Path(folder) / "usr"
        pages = sorted((root / "share" / "man").rglob("*.gz"))
        for program in (root / "bin").iterdir():
            check.that(any(p.name.startswith(program.name + ".") for p in pages), f"{program.name} has a man page")
        check.that(len(pages) > 35, f"a page for each command: {len(pages)}")
        for page in pages:
            text = gzip.decompress(page.read_bytes())
            done = subprocess.run(["groff", "-K", "utf8", "-man", "-T", "utf8", "-ww", "-z", "-rLL=200n"], input=text, capture_output=True, check=False)
            check.equal(done.stderr.decode(), "", f"{page.name} formats")
        for name, words in (("talpa-compile.1", ["compile"]), ("talpa-board-up.1", ["board", "up"])):
            help_text = run(BUILD / "bin" / "talpa", *words, "--help").stdout
            text = gzip.decompress((root / "share/man/man1" / (name + ".gz")).read_bytes()).decode().replace("\\-", "-")
            for line in help_text.splitlines():
                if line.startswith("  --"):
                    check.that(line.split()[0] in text, f"{name} has {line.split()[0]}")


def boots_from_bundle(debs):
    """The unit's own command line, on a virtual board: the packages' runtime boots the packages' firmware."""
    with tempfile.TemporaryDirectory(prefix="talpa-packages-") as folder:
        for deb in debs:
            run("dpkg-deb", "-x", deb, folder)
        root = pathlib.Path(folder)
        link = root / "lib/firmware/executorch_runner_cm33.elf"
        check.equal(os.readlink(link), "/usr/lib/talpa/runner/rootfs/executorch_runner_cm33.elf", "the firmware's link")
        check.that((root / os.readlink(link).lstrip("/")).exists(), "leads to the firmware")
        unit = dict(line.split("=", 1) for line in (root / "lib/systemd/system/talpa-runner.service").read_text().splitlines() if "=" in line)
        command = unit["ExecStart"].replace("/usr/", f"{folder}/usr/").split()
        talpa, board = root / "usr/bin/talpa", ["--name", f"packages-{os.getpid()}"]
        up = run(talpa, "board", "up", *board)
        if up.returncode != 0:
            check.that(any(text in up.stdout for text in REFUSALS), f"no board comes up: {up.stdout}")
            print(f"no board here, the bundle is not booted: {up.stdout}")
            return
        runner = subprocess.Popen([str(c) for c in (talpa, "board", "exec", *board, "--", *command)], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
        try:
            state = ""
            for _ in range(300):
                state = run(talpa, "board", "exec", *board, "--", "sh", "-c",
                            "cat /sys/class/remoteproc/remoteproc0/state; ls /dev/ttyRPMSG0").stdout
                if state.startswith("running") and "/dev/ttyRPMSG0" in state and "cannot" not in state:
                    break
                time.sleep(0.2)
            check.that(state.startswith("running"), f"the unit's command boots the core: {state}")
            done = run(talpa, "board", "exec", *board, "--", talpa, "classify", SOURCE / "docs/pictures/chelsea.jpg", "--program",
                       GOLDEN / "models/resnet8_random/resnet8_random.pte", "--timeout", "120", "--json")
            check.equal(done.returncode, 0, f"talpa classify ({done.stdout[-500:]})")
            run(talpa, "board", "exec", *board, "--", "sh", "-c", f"{unit['ExecStopPost'].lstrip('-').replace('/usr/', folder + '/usr/')}")
            state = run(talpa, "board", "exec", *board, "--", "cat", "/sys/class/remoteproc/remoteproc0/state").stdout
            check.equal(state, "offline\n", "ExecStopPost stops it")
        finally:
            run(talpa, "board", "down", *board)
            runner.kill()
            runner.wait()


def arm64(folder):
    """Unpacked and run: by qemu's user emulation."""
    qemu = shutil.which("qemu-aarch64-static")
    debs = sorted(folder.glob("*_arm64.deb"))
    if not debs or not qemu:
        print("arm64 is not built here (./run arm64): its packages are not tried")
        return
    check.equal({d.name.split("_")[0] for d in debs}, NAMES, "packages for arm64")
    for deb in debs:
        check.equal(fields(deb)["Architecture"], "arm64", deb.name)
    tarball = folder / f"talpa-board_{VERSION}_linux_arm64.tar.gz"
    with tempfile.TemporaryDirectory() as unpacked, tempfile.TemporaryDirectory() as untarred:
        for deb in debs:
            run("dpkg-deb", "-x", deb, unpacked)
        run("tar", "-C", untarred, "-xzf", tarball)
        for root in map(pathlib.Path, (unpacked, untarred)):
            for (program, flag), answer in SAYS.items():
                if (root / "usr/bin" / program).exists() or root.samefile(unpacked):
                    said = run(qemu, root / "usr/bin" / program, flag).stdout
                    check.that(answer in said, f"{program} {flag} says {answer}: {said}")
            headers = run("readelf", "-lW", root / "usr/bin/talpa").stdout
            check.that("LOAD" in headers and "INTERP" not in headers, f"talpa is static: {headers}")
            outputs = pathlib.Path(untarred) / "outputs"
            done = run(qemu, root / "usr/bin/talpa", "run", DS_CNN, "--input", DS_CNN.parent / "in0.bin", "--output-dir", outputs)
            check.equal(done.returncode, 0, f"talpa run for arm64: {done.stdout[-500:]}")
            check.equal((outputs / "out0.bin").read_bytes(), (DS_CNN.parent / "out0.bin").read_bytes(), "the recorded outputs")
            check.that((root / "lib/systemd/system/talpa-runner.service").exists(), "a unit that starts at boot")
        check.that("compile" not in run(qemu, pathlib.Path(unpacked) / "usr/bin/talpa", "--help").stdout, "the board's talpa has no compiler")


def main():
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], check=False).returncode != 0:
        skip("needs root and mount namespaces")
    if not (SOURCE / "build/firmware/executorch_runner_cm33.elf").exists():
        skip("build/firmware is not built")
    for tool in ("cpack", "dpkg-shlibdeps", "groff"):
        if not shutil.which(tool):
            skip(f"{tool} is missing")
    with tempfile.TemporaryDirectory(prefix="talpa-packages-") as folder:
        first, second = pathlib.Path(folder) / "first", pathlib.Path(folder) / "second"
        made = make(first)
        checksums(first, made)
        check.equal(make(second), made, "the same bytes twice")
        debs = sorted(first.glob("*_amd64.deb"))
        check.equal({d.name.split("_")[0] for d in debs}, NAMES, "packages")
        depends = {d.name.split("_")[0]: fields(d).get("Depends", "") for d in debs}
        check.that("libfuse3-3" in depends["talpa"] and "libc6" in depends["talpa"], f"Depends of talpa: {depends['talpa']}")
        check.that("openssh-client" in depends["topo"] and "libyaml-0-2" in depends["topo"], f"Depends of topo: {depends['topo']}")
        check.that("remoteproc-runtime" in depends["talpa-board"], f"Depends of talpa-board: {depends['talpa-board']}")
        check.equal(depends["remoteproc-runtime"], "", "remoteproc-runtime is static")
        no_paths(debs)
        project(debs)
        manuals(debs)
        in_scratch_root(debs)
        boots_from_bundle(debs)
        arm64(first)
    check.finish()


if __name__ == "__main__":
    main()
