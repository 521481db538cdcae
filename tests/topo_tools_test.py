#!/usr/bin/env python3
"""install, setup-keys, migrate-ssh, doctor, status, prune, several targets and localhost, against a real sshd and real Podman."""
import json
import os
import pathlib
import pty
import shutil
import signal
import subprocess

from topo_board import Board, Checks, PORT, TOPO, build_web, clean, need_root, private_machine, scratch_folder, sh, topo

TARGET = f"root@127.0.0.1:{PORT}"
HOME = pathlib.Path("/root")
TREE = """/dts-v1/;
/ {
    #address-cells = <2>; #size-cells = <2>;
    reserved-memory {
        #address-cells = <2>; #size-cells = <2>; ranges;
        ethosu_region@A8000000 { compatible = "shared-dma-pool"; reg = <0 0xa8000000 0 0x8000000>; reusable; };
    };
    chosen { bootargs = "clk-imx93.mcore_booted"; };
    remoteproc-cm33 { compatible = "fsl,imx93-cm33"; status = "disabled"; };
    soc@0 {
        #address-cells = <1>; #size-cells = <1>; ranges;
        mailbox@44230000 { reg = <0x44230000 0x10000>; #mbox-cells = <2>; status = "disabled"; };
        power-domain@44461800 { reg = <0x44461800 0x400>; #power-domain-cells = <0>; };
    };
};
"""


def archive(folder):
    build_web(folder, "runtime")
    for name in ("remoteproc-runtime", "containerd-shim-remoteproc-v1"):
        shutil.copy(folder / "web", folder / name)
    sh(f"cd {folder} && tar -czf runtime.tar.gz remoteproc-runtime containerd-shim-remoteproc-v1")
    return folder / "runtime.tar.gz"


def check_install(check, board, folder):
    tar = archive(folder)
    ran = topo("install", "remoteproc-runtime", "--target", TARGET, "--from", tar)
    check.equal((ran.returncode, ran.stdout), (0, "✓ Installed remoteproc-runtime to /usr/local/bin\n✓ Installed containerd-shim-remoteproc-v1 to /usr/local/bin\n"), f"install: {ran.stderr}")
    check.equal(board.run("cksum < /usr/local/bin/remoteproc-runtime").stdout, subprocess.run(["cksum"], stdin=open(folder / "web", "rb"), capture_output=True, text=True).stdout, "the bytes")
    ran = topo("install", "remoteproc-runtime", "--target", TARGET, "--from", tar, "--json")
    check.equal(json.loads(ran.stdout)[0], {"path": "/usr/local/bin", "on_path": True, "binary": "remoteproc-runtime"}, "again, over the one that is there")
    # A whole ELF program for this machine that cannot be run (its interpreter is not there): the old one stays.
    sick = folder / "sick"
    sick.mkdir()
    shutil.copy(folder / "web", sick / "containerd-shim-remoteproc-v1")
    sh(f"cd {sick} && echo 'int main(void) {{ return 0; }}' > x.c && gcc -Wl,--dynamic-linker=/none -o remoteproc-runtime x.c && tar -czf r.tgz remoteproc-runtime containerd-shim-remoteproc-v1")
    ran = topo("install", "remoteproc-runtime", "--target", TARGET, "--from", sick / "r.tgz")
    check.that(ran.returncode == 1 and "the new remoteproc-runtime does not run on the target, and what was there stays" in ran.stderr, f"a program that does not run: {ran.stdout}{ran.stderr}")
    check.equal(board.run("cksum < /usr/local/bin/remoteproc-runtime").stdout, subprocess.run(["cksum"], stdin=open(folder / "web", "rb"), capture_output=True, text=True).stdout, "the old one")
    check.that("topo-new" not in board.run("ls -A /usr/local/bin").stdout, "nothing of the new one")
    board.run("rm /usr/local/bin/*remoteproc*")
    # A package's files stay as they are: what comes before them on PATH is written.
    board.run("mkdir -p /run/package/bin; cp /bin/true /run/package/bin/remoteproc-runtime; "
              "printf '#!/bin/sh\\n[ \"$2\" = /run/package/bin/remoteproc-runtime ] && echo \"board-runtime: $2\"\\n' > /usr/local/bin/dpkg-query; chmod 755 /usr/local/bin/dpkg-query; "
              "echo 'PATH=$PATH:/run/package/bin' > /root/.profile")
    before = board.run("cksum /run/package/bin/remoteproc-runtime").stdout
    ran = topo("install", "remoteproc-runtime", "--target", TARGET, "--from", tar)
    check.equal((ran.returncode, ran.stdout.count("to /usr/local/bin")), (0, 2), f"beside a package's: {ran.stdout}{ran.stderr}")
    check.has(ran.stderr, "/run/package/bin/remoteproc-runtime belongs to the package board-runtime and stays as it is", "beside a package's")
    check.equal(board.run("cksum /run/package/bin/remoteproc-runtime").stdout, before, "the package's file")
    board.run("rm /usr/local/bin/*remoteproc*; echo 'PATH=/run/package/bin:$PATH' > /root/.profile")
    ran = topo("install", "remoteproc-runtime", "--target", TARGET, "--from", tar)
    check.that(ran.returncode == 1 and "belongs to the package board-runtime, and /usr/local/bin does not come before it" in ran.stderr and "apt-get remove board-runtime" in ran.stderr,
               f"behind a package's: {ran.stdout}{ran.stderr}")
    check.equal((board.run("cksum /run/package/bin/remoteproc-runtime").stdout, board.run("ls /usr/local/bin").stdout.count("remoteproc")), (before, 0), "nothing was written")
    board.run("rm /usr/local/bin/dpkg-query /root/.profile; rm -r /run/package")
    # Where the system folders cannot be written it is the home folder (the original takes the refusal for one of ssh's).
    board.run("useradd -m -s /bin/sh guest; mkdir -p -m 700 ~guest/.ssh; cp /root/.ssh/authorized_keys ~guest/.ssh/; rm -f ~guest/.profile ~guest/.bash*; chown -R guest: ~guest; usermod -p '*' guest")
    ran = topo("install", "remoteproc-runtime", "--target", f"guest@127.0.0.1:{PORT}", "--from", tar)
    home = board.run("echo ~guest").stdout.strip()
    check.equal(ran.returncode, 0, f"install without rights: {ran.stderr}")
    check.has(ran.stdout, f"✓ Installed remoteproc-runtime to {home}/bin", "install without rights")
    check.has(ran.stdout, f'{home}/bin is not on your PATH. To use remoteproc-runtime, containerd-shim-remoteproc-v1:', "a folder that is not on PATH")
    (folder / "remoteproc-runtime").write_bytes(b"\x7fELF\x02\x01" + b"\0" * 12 + b"\xb7\0" + b"\0" * 100)
    sh(f"cd {folder} && tar -czf wrong.tar.gz remoteproc-runtime containerd-shim-remoteproc-v1; tar -czf half.tar.gz remoteproc-runtime")
    check.has(topo("install", "remoteproc-runtime", "--target", TARGET, "--from", folder / "wrong.tar.gz").stderr, "is for arm64, the target is amd64", "another architecture")
    check.has(topo("install", "remoteproc-runtime", "--target", TARGET, "--from", folder / "half.tar.gz").stderr, '"containerd-shim-remoteproc-v1" not found in archive', "half an archive")
    check.equal(topo("install", "remoteproc-runtime", "--target", TARGET, "--from", folder / "web").returncode, 1, "no archive")
    sh(f"cd {folder} && cp web remoteproc-runtime && head -c 200000 web > containerd-shim-remoteproc-v1 && tar -czf cut.tar.gz remoteproc-runtime containerd-shim-remoteproc-v1; "
       "ln -sf /etc/passwd remoteproc-runtime; tar -czf link.tar.gz remoteproc-runtime containerd-shim-remoteproc-v1; rm remoteproc-runtime; echo '#!/bin/sh' > remoteproc-runtime; "
       "tar -czf script.tar.gz remoteproc-runtime containerd-shim-remoteproc-v1")
    for name, part in (("cut", "containerd-shim-remoteproc-v1 of "), ("link", "is no ELF program (0 bytes)"), ("script", "is no ELF program (10 bytes)")):
        ran = topo("install", "remoteproc-runtime", "--target", TARGET, "--from", folder / f"{name}.tar.gz")
        check.that(ran.returncode == 1 and part in ran.stderr and ("cut off" in ran.stderr or name != "cut"), f"what is no whole program: {name}: {ran.stderr}")
    check.equal(board.run("ls /usr/local/bin").stdout.count("remoteproc"), 0, "nothing was installed by those")


def check_keys(check, board):
    board.run("echo root:secret | chpasswd")
    askpass = HOME / "askpass"
    askpass.write_text("#!/bin/sh\necho secret\n")
    askpass.chmod(0o755)
    env = {"SSH_ASKPASS": str(askpass), "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": ":0"}
    board.run("mv /root/.ssh/authorized_keys /root/.ssh/kept")
    (HOME / ".ssh/id_ed25519").rename(HOME / "key")
    (HOME / ".ssh/id_ed25519.pub").rename(HOME / "key.pub")
    sh(f"ssh-keygen -q -t ed25519 -N secret -f {HOME}/locked")
    ran = topo("setup-keys", "--target", TARGET, "--key-path", HOME / "locked", env=env)
    check.has(ran.stderr, f"ssh-add {HOME}/locked", f"a key with a passphrase: {ran.returncode}")
    board.run("rm /root/.ssh/authorized_keys")
    for _ in range(2):
        ran = topo("setup-keys", "--target", TARGET, "--key-path", HOME / "key", env=env)
        check.equal(ran.returncode, 0, f"setup-keys: {ran.stdout}{ran.stderr}")
    check.equal(board.run("cat /root/.ssh/authorized_keys").stdout, (HOME / "key.pub").read_text(), "the key stands there once")
    check.equal(board.run("stat -c %a /root/.ssh/authorized_keys /root/.ssh").stdout.split(), ["600", "700"], "modes")
    check.that((HOME / ".ssh/config").read_text().startswith("Include /root/.ssh/topo_config\n"), (HOME / ".ssh/config").read_text())
    check.equal(json.loads(topo("health", "--target", TARGET, "--json").stdout)["target"]["connectivity"]["status"], "ok", "the key is used")
    check.equal((HOME / ".ssh/topo_config").read_text().count("IdentityFile"), 1, (HOME / ".ssh/topo_config").read_text())
    (HOME / "askpass").write_text("#!/bin/sh\necho wrong\n")
    board.run("rm /root/.ssh/authorized_keys")
    ran = topo("setup-keys", "--target", TARGET, "--key-path", HOME / "fresh", env=env, stdin="\n\n")
    check.that(ran.returncode == 1 and not (HOME / "fresh").exists(), f"a fresh key goes again when the transfer fails: {ran.stderr}")
    board.run("mv /root/.ssh/kept /root/.ssh/authorized_keys")


def check_migrate(check):
    check.has(topo("migrate-ssh").stderr, "nothing to migrate", "nothing to migrate")
    (HOME / ".ssh/topo_config").unlink()
    (HOME / ".ssh/topo_config").mkdir()
    for name in ("b", "a"):
        (HOME / f".ssh/topo_config/{name}.conf").write_text(f"Host {name}\n  User {name}\n")
    (HOME / ".ssh/config").write_text("Include /root/.ssh/topo_config/*.conf\nHost x\n  User y\n")
    check.has(topo("setup-keys", "--target", TARGET).stderr, "run 'topo migrate-ssh'", "the old layout is noticed")
    ran = topo("migrate-ssh")
    check.equal((ran.returncode, ran.stdout, ran.stderr), (0, "", ""), "migrate")
    check.equal((HOME / ".ssh/topo_config").read_text(), "Host a\n  User a\nHost b\n  User b\n", "one file, in the order of names")
    check.equal((HOME / ".ssh/config").read_text(), "Include /root/.ssh/topo_config\n\nHost x\n  User y\n", "the include")
    (HOME / ".ssh/config").unlink()
    (HOME / "key").rename(HOME / ".ssh/id_ed25519")
    (HOME / "key.pub").rename(HOME / ".ssh/id_ed25519.pub")


def check_doctor(check, board, folder):
    if not shutil.which("fdtput"):
        print("device-tree-compiler is not installed: doctor's device tree was not tried")
        return
    (folder / "tree.dts").write_text(TREE)
    sh(f"dtc -q -I dts -O dtb -o {folder}/tree.dtb {folder}/tree.dts")
    board.run("mkdir -p /run/media/boot")
    subprocess.run(["nsenter", "-t", board.pid, "--mount", "/bin/sh", "-c", "cat > /run/media/boot/imx93-11x11-frdm.dtb"], stdin=open(folder / "tree.dtb", "rb"), check=True)
    ran = topo("doctor", "--target", TARGET)
    check.equal(ran.returncode, 1, f"doctor finds it: {ran.stdout}{ran.stderr}")
    for part in ("must reserve model@c0000000 (4 MiB)", "must reserve ethosu_region@A8000000", "must add iomem=relaxed", "+\t\tmodel@c0000000 {",
                 "must give /remoteproc-cm33 a power domain", "must reserve the memory of RPMsg", "must connect /remoteproc-cm33 to its mailbox", "+\t\tvdevbuffer@a4020000 {"):
        check.has(ran.stdout, part, "doctor")
    check.equal(board.run("ls /run/media/boot").stdout, "imx93-11x11-frdm.dtb\n", "and changes nothing unasked")
    ran = topo("doctor", "--target", TARGET, "--fix", "--yes")
    check.has(ran.stdout, "Reboot the board", f"doctor --fix: {ran.stderr}")
    check.equal(len(board.run("ls /run/media/boot").stdout.split()), 2, "the old tree is kept")
    tree = board.run("dtc -q -I dtb -O dts /run/media/boot/imx93-11x11-frdm.dtb").stdout
    for part in ("model@c0000000", "reg = <0x00 0xc0000000 0x00 0x400000>", "no-map", 'bootargs = "clk-imx93.mcore_booted iomem=relaxed"',
                 "vdev0vring0@a4000000", "rsc-table@2021e000", "power-domains = <", 'mbox-names = "tx\\0rx\\0rxdb"'):
        check.has(tree, part, "the patched tree")
    check.that("reusable" not in tree, "the NPU's region is not reusable")
    ran = topo("doctor", "--target", TARGET)
    check.that("Device tree" not in ran.stdout, f"and now it is well: {ran.stdout}")
    # An EVK, with both boards' trees in its boot partition.
    subprocess.run(["nsenter", "-t", board.pid, "--mount", "/bin/sh", "-c", "mount -t tmpfs tmpfs /sys/firmware && mkdir -p /sys/firmware/devicetree/base && "
                    "printf 'fsl,imx93-11x11-evk\\0fsl,imx93\\0' > /sys/firmware/devicetree/base/compatible && cat > /run/media/boot/imx93-11x11-evk.dtb"],
                   stdin=open(folder / "tree.dtb", "rb"), check=True)
    check.has(topo("doctor", "--target", TARGET).stdout, "Device tree /run/media/boot/imx93-11x11-evk.dtb:", "the board's own tree")
    subprocess.run(["nsenter", "-t", board.pid, "--mount", "umount", "/sys/firmware"], check=True)


def make_project(folder):
    (folder / "app").mkdir(parents=True)
    (folder / "compose.yaml").write_text("services:\n  app:\n    platform: linux/arm64\n    build: app\n    ports: [\"3006:3000\"]\n")
    build_web(folder / "app", "v1")
    (folder / "app" / "Dockerfile").write_text("FROM scratch\nCOPY web /web\nENTRYPOINT [\"/web\"]\n")


def check_many(check, board, project):
    (project / "targets").write_text(f"[lab]\nroot@127.0.0.1:{PORT}\nroot@localhost:{PORT}\n[down]\nroot@127.0.0.1:2299\n")
    ran = topo("deploy", "--targets", "targets", "--group", "lab", "--json", cwd=project)
    results = json.loads(ran.stdout.splitlines()[-1])["results"]
    check.equal([(r["target"], r["status"]) for r in results], [(f"root@127.0.0.1:{PORT}", 0), (f"root@localhost:{PORT}", 0)], f"two targets: {ran.stderr}")
    ran = topo("deploy", "--target", TARGET, "--target", "root@127.0.0.1:2299", cwd=project)
    check.equal(ran.returncode, 1, "one of two fails")
    check.that("ok" in ran.stdout and "failed (1)" in ran.stdout and "connection failed" in ran.stdout, f"the table says which: {ran.stdout}")
    check.has(topo("deploy", "--targets", "targets", "--group", "nope", cwd=project).stderr, 'there is no group "nope"', "a group that is not there")


def check_foreign(check, board, project):
    """A container that has the wanted name and belongs to somebody else is named, and stays."""
    before = board.run("podman ps --format '{{.ID}} {{.Names}}'").stdout
    check.has(before, "tools-app-1", "the container of another project")
    other = project.parent / "other"
    shutil.copytree(project, other)
    (other / "compose.yaml").write_text("name: other\nservices:\n  a: {platform: linux/arm64, build: app, scale: 1}\n  s: {platform: linux/arm64, build: app, container_name: tools-app-1, depends_on: [a]}\n")
    ran = topo("deploy", "--target", TARGET, cwd=other)
    check.that(ran.returncode == 1 and "a container tools-app-1 is on the target already, of the project tools" in ran.stderr and "Build images" not in ran.stdout, f"a taken name: {ran.stdout}{ran.stderr}")
    ran = topo("deploy", "--target", TARGET, "--skip-preflight", cwd=other)
    check.that(ran.returncode == 1 and "already in use" in ran.stderr, f"a taken name, seen by the engine: {ran.stdout}{ran.stderr}")
    check.equal(board.run("podman ps --format '{{.ID}} {{.Names}}'").stdout, before, "the other project's container runs on")
    board.run("podman rmi other-s other-a")  # its name for the same image


def check_architecture(check, board, project):
    """An image for another architecture is refused before anything is sent or started; Podman would start it with a warning."""
    other = project.parent / "arch"
    other.mkdir()
    (other / "compose.yaml").write_text("services: {a: {image: for-arm, platform: linux/arm64}}\n")
    sh(f"podman build -q --no-cache --platform linux/arm64 -t for-arm {project}/app", capture_output=True)
    before = board.run("podman images -aq; podman ps -aq").stdout
    ran = topo("deploy", "--target", TARGET, cwd=other)
    check.that(ran.returncode == 1 and 'the image for-arm of service "a" is linux/arm64' in ran.stderr and "the target is linux/amd64" in ran.stderr, f"another architecture: {ran.stdout}{ran.stderr}")
    check.equal(board.run("podman images -aq; podman ps -aq").stdout, before, "nothing was sent or started")


def check_status_prune(check, board, project):
    status = json.loads(topo("status", "--target", TARGET, "--json", cwd=project).stdout)
    check.equal((status["containers"][0]["state"], status["remoteProcessors"][0]["name"]), ("running", "imx-rproc"), "status")
    watching = subprocess.Popen([str(TOPO), "status", "--watch", "--target", TARGET, "--json"], cwd=project, stdout=subprocess.PIPE, text=True, env={**os.environ, "HOME": "/root"})
    looks = [json.loads(watching.stdout.readline()) for _ in range(2)]
    watching.send_signal(signal.SIGINT)
    watching.communicate(timeout=600)
    check.equal((watching.returncode, [look["containers"][0]["state"] for look in looks]), (130, ["running", "running"]), "status --watch")
    for version in ("v2", "v3"):
        build_web(project / "app", version)
        ran = topo("deploy", "--target", TARGET, "-q", cwd=project)
        check.equal((ran.returncode, "sha256" in ran.stdout, [line for line in ran.stdout.split() if len(line) == 64]), (0, False, []), f"deploy {version}: {ran.stdout}")
    before = board.run("podman images -aq --no-trunc | sort -u | wc -l").stdout
    check.equal(topo("prune", "--target", TARGET, cwd=project).returncode, 1, "prune does not do it unasked")
    # While it waits for an answer, others are not kept waiting.
    ours, theirs = pty.openpty()
    asking = subprocess.Popen([str(TOPO), "prune", "--target", TARGET], cwd=project, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "HOME": "/root"})
    os.close(theirs)
    said = b""
    while b"[y/N]" not in said:
        said += os.read(ours, 1000)
    ran = topo("deploy", "--target", TARGET, cwd=project)
    check.that(ran.returncode == 0 and "waiting" not in ran.stderr, f"a deployment beside a question: {ran.stdout}{ran.stderr}")
    os.write(ours, b"n\n")
    check.equal(asking.wait(timeout=600), 1, f"no is no: {said}")
    os.close(ours)
    ran = topo("prune", "--target", TARGET, "--yes", "--json", cwd=project)
    check.equal((ran.returncode, len(json.loads(ran.stdout)["images"])), (0, 1), f"v1 goes: {ran.stdout}{ran.stderr}")
    check.equal(int(board.run("podman images -aq --no-trunc | sort -u | wc -l").stdout), int(before) - 1, "one image less")
    check.equal(topo("rollback", "--target", TARGET, cwd=project).returncode, 0, "what rollback needs was kept")
    check.equal(topo("down", "--target", TARGET, cwd=project).returncode, 0, "down")


def check_local(check, project):
    """localhost: no SSH, no transfer; its remote processors are seen, and nothing is called $HOME."""
    ran = topo("deploy", "--target", "localhost", cwd=project)
    check.equal(ran.returncode, 0, f"localhost: {ran.stdout}{ran.stderr}")
    check.that("Transfer images" not in ran.stdout, "nothing is transferred")
    check.equal(json.loads(topo("ps", "--target", "localhost", "--json", cwd=project).stdout)["containers"][0]["address"], "localhost:3006", "ps")
    check.equal(topo("down", "--target", "localhost", cwd=project).returncode, 0, "down")
    report = json.loads(topo("health", "--target", "localhost", "--json", cwd=project).stdout)["target"]
    check.equal((report["isLocalhost"], report["processingDomainDriver"]["value"]), (True, "imx-rproc"), "the remote processor of this machine")
    ran = topo("install", "remoteproc-runtime", "--target", "localhost", "--from", project.parent / "install" / "runtime.tar.gz", cwd=project)
    check.that(ran.returncode == 0 and not (project / "$HOME").exists(), f"local install: {ran.stderr}")


def main():
    need_root()
    check = Checks()
    scratch = scratch_folder()
    sh("ip link set lo up")
    private_machine(scratch / "host", remoteproc=True)
    board = Board(scratch / "board", sshd_options=("PasswordAuthentication yes", "PermitRootLogin yes"))
    try:
        board.authorize()
        (scratch / "install").mkdir()
        check_install(check, board, scratch / "install")
        check_keys(check, board)
        check_migrate(check)
        check_doctor(check, board, scratch / "install")
        project = scratch / "tools"
        make_project(project)
        check_many(check, board, project)
        check_foreign(check, board, project)
        if os.uname().machine == "x86_64":
            check_architecture(check, board, project)
        check_status_prune(check, board, project)
        check_local(check, project)
    finally:
        board.stop()
        clean(scratch)
    check.finish()


main()
