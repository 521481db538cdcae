"""A host and a target on one machine, for tests of topo: namespaces of their own, a real sshd on loopback, real Podman on both
sides, no network but lo, and nothing written outside of one scratch folder. Needs root; scripts exit 77 where that cannot be had."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import talpa_test

TOPO = pathlib.Path(os.environ.get("TALPA_BUILD", pathlib.Path(__file__).parent.parent / "build/release")) / "bin" / "topo"
TREE = pathlib.Path(__file__).resolve().parent.parent
PORT = 2222

WEB_C = r"""
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
static void bye(int s) { (void)s; _exit(0); }
int main(int argc, char** argv) {
    signal(SIGTERM, bye);
    if (argc > 1 && argv[1][0] == '-') return 0;
    if (argc > 1 && !strcmp(argv[1], "check")) return access("/sick", F_OK) == 0;
    if (argc > 1 && !strcmp(argv[1], "fail")) { printf("cannot go on\n"); return 3; }
    int s = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in a = {0};
    a.sin_family = AF_INET;
    a.sin_port = htons(3000);
    if (bind(s, (void*)&a, sizeof a) || listen(s, 5)) return 1;
    const char* who = getenv("GREETING");
    printf("serving %s\n", who ? who : VERSION);
    fflush(stdout);
    for (;;) {
        int c = accept(s, 0, 0);
        char in[1000], out[200];
        if (c < 0 || read(c, in, sizeof in) < 0) continue;
        int n = snprintf(out, sizeof out, "HTTP/1.0 200 OK\r\n\r\n%s %s\n", VERSION, who ? who : "-");
        if (write(c, out, n) != n) return 1;
        close(c);
    }
}
"""


def need_root():
    """Re-runs the calling script in its own namespaces; exits 77 where that is not possible."""
    if "--inside" in sys.argv:
        return
    for program in ("podman", "sshd", "unshare", "gcc", "ip"):
        if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
            print(f"skipped: {program} is not installed")
            sys.exit(77)
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "--net", "--pid", "--fork", "true"]).returncode != 0:
        print("skipped: needs root and namespaces")
        sys.exit(77)
    ran = subprocess.run(["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--propagation", "private",
                          sys.executable, *sys.argv, "--inside"])
    sys.exit(ran.returncode)


def sh(script, **more):
    return subprocess.run(["/bin/bash", "-ec", script], check=True, **more)


def private_machine(scratch, remoteproc=False):
    """Private /etc, /usr/local, /var, /run, /dev/shm, /root/.ssh and /proc in the mount namespace that we are in, and a private
    folder of control sockets: another test's connection to its own 127.0.0.1:PORT would be taken for ours."""
    script = "mount --make-rprivate /\nmount -t proc proc /proc\n"
    for name in ("etc", "usr/local", "var"):
        base = scratch / name.replace("/", "_")
        (base / "upper").mkdir(parents=True)
        (base / "work").mkdir()
        script += f"mount -t overlay overlay -o lowerdir=/{name},upperdir={base}/upper,workdir={base}/work /{name}\n"
    (scratch / "containers").mkdir()
    (scratch / "home").mkdir()
    (scratch / "control").mkdir(mode=0o700)
    script += f"""
mkdir -p /var/lib/containers /root/.ssh
mount --bind {scratch}/containers /var/lib/containers
mount -t tmpfs tmpfs /run; mkdir -p /run/sshd /run/lock
mount -t tmpfs tmpfs /dev/shm
exec 9< {TREE}; mount --bind {scratch}/home /root; mkdir -p -m 700 /root/.ssh
[ -e {TREE}/run ] || {{ mkdir -p {TREE}; mount --no-canonicalize --rbind /proc/self/fd/9 {TREE}; }}  # a tree in root's own home
exec 9<&-
if mountpoint -q /sys/fs/cgroup/unified; then umount /sys/fs/cgroup/unified; fi
mkdir -p -m 700 /tmp/topo-0; mount --bind {scratch}/control /tmp/topo-0
mkdir -p /etc/containers
n=$(ulimit -Hn); m=$(ulimit -Hu); [ "$m" != unlimited ] && [ "$m" -le 32768 ] || m=32768
printf '[containers]\\ndefault_ulimits = ["nofile=%s:%s", "nproc=%s:%s"]\\n' $n $n $m $m > /etc/containers/containers.conf
"""
    if remoteproc:
        (scratch / "sys" / "upper").mkdir(parents=True)
        (scratch / "sys" / "work").mkdir()
        script += f"""
mount -t overlay overlay -o lowerdir=/sys/class,upperdir={scratch}/sys/upper,workdir={scratch}/sys/work /sys/class
mkdir -p /sys/class/remoteproc/remoteproc0
echo imx-rproc > /sys/class/remoteproc/remoteproc0/name
echo offline > /sys/class/remoteproc/remoteproc0/state
"""
    sh(script)


class Board:
    """The target: a process tree of its own with an sshd on 127.0.0.1:PORT."""

    def __init__(self, scratch, remoteproc=True, sshd_options=()):
        self.scratch = pathlib.Path(scratch)
        self.scratch.mkdir()
        options = "".join(f"{line}\n" for line in sshd_options)
        (self.scratch / "sshd_config").write_text(
            f"{options}ListenAddress 127.0.0.1:{PORT}\nListenAddress [::1]:{PORT}\nHostKey {self.scratch}/host_key\nPidFile none\nStrictModes no\nMaxSessions 2\n"
            f"MaxStartups 2\nUsePAM no\nPrintMotd no\n")  # the first word counts
        sh(f"ssh-keygen -q -t ed25519 -N '' -f {self.scratch}/host_key")
        self.log = open(self.scratch / "sshd.log", "w")
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private", "/usr/bin/python3", __file__, str(self.scratch), "1" if remoteproc else "0"],
            stdout=self.log, stderr=self.log, start_new_session=True)
        self.pid = None
        for _ in range(300):
            if self.process.poll() is not None:
                continue
            try:
                with socket.create_connection(("127.0.0.1", PORT), timeout=2) as connection:
                    if connection.recv(4) == b"SSH-":
                        break
            except OSError:
                pass
            time.sleep(0.05)
        else:
            raise SystemExit(f"the board did not come up:\n{(self.scratch / 'sshd.log').read_text()}")
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        self.pid = children[0]

    def run(self, script, check=True):
        """As root on the board itself, not over ssh."""
        return subprocess.run(["nsenter", "-t", self.pid, "--mount", "--pid", "--wd=/root", "/bin/sh", "-c", script], capture_output=True, text=True, check=check,
                              env={**os.environ, "HOME": "/root"})

    def authorize(self):
        """A key of the host's own, known to the board, and the board's host key known here."""
        sh("[ -f /root/.ssh/id_ed25519 ] || ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519")
        key = pathlib.Path("/root/.ssh/id_ed25519.pub").read_text()
        subprocess.run(["nsenter", "-t", self.pid, "--mount", "/bin/sh", "-c", "umask 077; mkdir -p /root/.ssh; cat >> /root/.ssh/authorized_keys"], input=key, text=True, check=True)
        self.trust()

    def trust(self):
        kind, key = (self.scratch / "host_key.pub").read_text().split()[:2]
        pathlib.Path("/root/.ssh/known_hosts").write_text("".join(f"[{host}]:{PORT} {kind} {key}\n" for host in ("127.0.0.1", "::1", "localhost")))

    def stop(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


DOCKERD = ("dockerd --data-root {folder}/docker --exec-root {folder}/exec --pidfile /run/docker.pid --host unix:///run/docker.sock {options} "
           "> {folder}/dockerd.log 2>&1 < /dev/null")


def start_docker(run, folder, *options):
    """A dockerd of our own, by what runs scripts on that machine; its data on a real disk. Ends with the namespace."""
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    run(f"setsid {DOCKERD.format(folder=folder, options=' '.join(options))} &")
    for _ in range(600):
        if run("docker info >/dev/null 2>&1 && echo up || true").strip() == "up":
            return
        time.sleep(0.1)
    raise SystemExit(f"dockerd did not come up:\n{(pathlib.Path(folder) / 'dockerd.log').read_text()[-3000:]}")


def topo(*words, env=None, cwd=None, timeout=600, stdin=None):  # the limit is for a hang, not for a busy machine
    ran = subprocess.run([str(TOPO), *map(str, words)], capture_output=True, text=True, env={**os.environ, "HOME": "/root", **(env or {})}, cwd=cwd, timeout=timeout,
                         input=stdin)
    return ran


def build_web(folder, version):
    """The static web server of the tests, its version in its bytes."""
    source = pathlib.Path(folder) / "web.c"
    source.write_text(WEB_C)
    subprocess.run(["gcc", "-O1", "-static", f'-DVERSION="{version}"', "-o", pathlib.Path(folder) / "web", source], check=True)
    source.unlink()


class Checks(talpa_test.Checks):
    def has(self, text, part, what):
        self.that(part in text, f"{what}: {part!r} is not in\n{text}")


def scratch_folder():
    """On a real disk: overlay upper folders cannot lie on an overlay."""
    return pathlib.Path(tempfile.mkdtemp(prefix="topo-test-", dir=os.environ.get("TOPO_TEST_SCRATCH", "/tmp")))


def clean(scratch):
    """Mounts end with the namespace; the folder may hold files that are still in use by them."""
    subprocess.run(["rm", "-rf", str(scratch)], stderr=subprocess.DEVNULL)


if __name__ == "__main__":  # pid 1 of the board
    folder = pathlib.Path(sys.argv[1])
    private_machine(folder / "private", remoteproc=sys.argv[2] == "1")
    server = subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", str(folder / "sshd_config")], stderr=sys.stderr)
    while True:  # reap what the containers leave behind
        try:
            if os.wait()[0] == server.pid:
                break
        except ChildProcessError:
            break
