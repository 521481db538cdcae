"""`docker` and `ssh` for tests of topo, without an engine and without a target: each call is written down, and answered as Docker
with the Compose plugin and buildx would. Two sides, HOST and TARGET, each with its images and containers in a JSON file; `ssh` runs
its command here, with TARGET's `docker` on PATH. Used as a program: fake_docker.py docker|ssh WORDS…, told by FAKE_DIR and FAKE_SIDE.

fake.json in FAKE_DIR says how they shall be: {"host": {"version", "compose", "buildx"}, "target": {…}, "fail": [words],
"exposed", "pushes", "hang": [words]: done, but not ended}. A container of an image that holds the word "die" ends at once."""
import fcntl
import hashlib
import io
import json
import os
import pathlib
import re
import sys

FOLDER = pathlib.Path(os.environ.get("FAKE_DIR", "/nonexistent"))


def install(folder, **how):
    """The programs in FOLDER/host/bin and FOLDER/target/bin. Returns the environment that finds them first."""
    folder = pathlib.Path(folder)
    default = {"version": "28.2.2", "compose": "2.32.4", "buildx": True}
    for side in ("host", "target"):
        (folder / side / "bin").mkdir(parents=True, exist_ok=True)
        (folder / side / "home").mkdir(exist_ok=True)
        for program in ("docker", "ssh"):
            path = folder / side / "bin" / program
            path.write_text(f"#!/bin/sh\nFAKE_DIR={folder} FAKE_SIDE={side} exec /usr/bin/python3 -SE {__file__} {program} \"$@\"\n")
            path.chmod(0o755)
    configure(folder, host=default, target=default, fail=[], exposed=False, pushes=True, hang=[], **how)
    return {**os.environ, "PATH": f"{folder}/host/bin:/usr/bin:/bin", "HOME": str(folder / "host/home"), "XDG_RUNTIME_DIR": "", "TOPO_TARGET": "", "TOPO_PORT": ""}


def configure(folder, **how):
    path = pathlib.Path(folder) / "fake.json"
    path.write_text(json.dumps({**(json.loads(path.read_text()) if path.exists() else {}), **how}))


def calls(folder, program="docker", clear=True):
    path = pathlib.Path(folder) / "calls.jsonl"
    all_calls = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    if clear:
        path.write_text("")
    return [c for c in all_calls if c["program"] == program]


class State:
    """Of one side; locked while it lives."""

    def __init__(self, side):
        self.file = open(FOLDER / f"{side}.json", "a+")
        fcntl.flock(self.file, fcntl.LOCK_EX)
        self.file.seek(0)
        self.data = json.loads(self.file.read() or '{"images": {}, "containers": {}, "objects": []}')

    def __enter__(self):
        return self.data

    def __exit__(self, *unused):
        self.file.seek(0)
        self.file.truncate()
        self.file.write(json.dumps(self.data))
        self.file.close()


def fail(text, status=1):
    print(text, file=sys.stderr)
    sys.exit(status)


def tag(name):
    name = name.removeprefix("docker.io/library/")
    return name if ":" in name.rsplit("/", 1)[-1] else name + ":latest"


def make_image(content):
    """Of one layer; the ID is that of its configuration, as real ones are."""
    import tarfile
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        info = tarfile.TarInfo("content")
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
    config = json.dumps({"architecture": "arm64", "os": "linux",
                         "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer.getvalue()).hexdigest()]}})
    return {"config": config, "layer": layer.getvalue().hex(), "names": []}


def image_id(image):
    return hashlib.sha256(image["config"].encode()).hexdigest()


def add_image(data, image, name):
    for other in data["images"].values():
        other["names"] = [n for n in other["names"] if n != tag(name)]
    data["images"].setdefault(image_id(image), {**image, "names": []})["names"].append(tag(name))


def find_image(data, name):
    for ident, image in data["images"].items():
        if ident == name.removeprefix("sha256:") or tag(name) in image["names"] or name in image["names"]:
            return image
    return None


def shown_image(image):
    config = json.loads(image["config"])
    return {"Id": "sha256:" + image_id(image), "RepoTags": image["names"], "Os": "linux", "Architecture": config["architecture"], "Size": len(image["layer"]) // 2,
            "RootFS": {"Layers": config["rootfs"]["diff_ids"]}}


def project_of(file):
    sys.path.append("/usr/lib/python3/dist-packages")  # -S leaves it out, and is quicker
    import yaml
    text = pathlib.Path(file).read_text()
    document = yaml.safe_load(re.sub(r"\$\{(\w+)\}", lambda m: os.environ.get(m[1], ""), text))
    return document.get("name", pathlib.Path(file).resolve().parent.name), document["services"]


def find_container(data, name):
    return next((c for c in data["containers"].values() if name in (c["name"], c["id"])), None)


def add_container(data, name, image, labels, ports=()):
    data["counter"] = data.get("counter", 0) + 1
    ident = hashlib.sha256(f"{name}{data['counter']}".encode()).hexdigest()
    dies = b"die" in bytes.fromhex(find_image(data, image)["layer"])
    data["containers"][ident] = {"id": ident, "name": name, "image": image_id(find_image(data, image)), "asked": image, "labels": labels, "state": "exited" if dies else "running",
                                 "code": 3 if dies else 0, "ports": list(ports)}


def compose(words, side, on_target, how):
    if how[side]["compose"] is None:
        fail("docker: 'compose' is not a docker command.")
    if words[:1] == ["version"]:
        print(json.dumps({"version": "v" + how[side]["compose"]}))
        return
    file = words[words.index("-f") + 1]
    words = words[words.index("-f") + 2:]
    while words[:1] == ["--profile"]:
        words = words[2:]
    if words[0] in how["fail"]:
        fail(f"compose {words[0]} broke", 17)
    name, services = project_of(file)
    with State("target" if on_target else side) as data:
        if words[0] == "build":
            for service, body in services.items():
                if "build" in body:
                    context = body["build"] if isinstance(body["build"], str) else body["build"]["context"]
                    content = b"".join(p.read_bytes() for p in sorted((pathlib.Path(file).parent / context).iterdir()))
                    add_image(data, make_image(content + service.encode()), body.get("image", f"{name}-{service}"))
        elif words[0] == "pull":
            for service in words[1:]:
                add_image(data, make_image(services[service]["image"].encode()), services[service]["image"])
        elif words[0] == "up":
            print("Container up")
            for service, body in services.items():
                if body.get("scale", 1) == 0:
                    continue
                image = find_image(data, body.get("image", f"{name}-{service}"))
                if image is None:
                    fail(f"No such image: {name}-{service}")
                old = find_container(data, f"{name}-{service}-1")
                if old and old["image"] == image_id(image) and "--force-recreate" not in words:
                    continue
                if old:
                    del data["containers"][old["id"]]
                labels = {"com.docker.compose.project": name, "com.docker.compose.service": service, "com.docker.compose.container-number": "1",
                          "com.docker.compose.oneoff": "False", "com.docker.compose.config-hash": "of-compose"}
                add_container(data, f"{name}-{service}-1", body.get("image", f"{name}-{service}"), labels)


def shown_container(c):
    return {"Id": c["id"], "Name": "/" + c["name"], "Image": "sha256:" + c["image"], "State": {"Status": c["state"], "ExitCode": c["code"]},
            "Config": {"Image": c["asked"], "Labels": c["labels"]}, "NetworkSettings": {"Ports": {}},
            "HostConfig": {"NetworkMode": "bridge", "Runtime": "runc", "PortBindings": {"5000/tcp": [{"HostIp": "127.0.0.1", "HostPort": p.split(":")[1]}] for p in c["ports"]}}}


def run(words, data, how):
    value_flags = {"--name", "--label", "--network", "--network-alias", "--env", "-p", "--publish", "--restart", "--volume"}
    name, labels, ports, image, i = "", {}, [], None, 1
    while i < len(words) and image is None:
        word = words[i]
        if word in value_flags:
            i += 1
            if word == "--name":
                name = words[i]
            elif word == "--label":
                labels.update([words[i].split("=", 1)])
            elif word in ("-p", "--publish"):
                ports.append(words[i])
        elif not word.startswith("-"):
            image = word
        i += 1
    if find_image(data, image) is None:
        fail(f"no such image: {image}")
    if "run" in how["fail"]:
        add_container(data, name, image, labels, ports)
        find_container(data, name)["state"] = "created"
        return "Bind for 127.0.0.1 failed: port is already allocated"
    add_container(data, name, image, labels, ports)
    return None


def save(words, data):
    import tarfile
    names = [w for w in words[1:] if not w.startswith("-") and words[words.index(w) - 1] != "-o"]
    out = open(words[words.index("-o") + 1], "wb") if "-o" in words else sys.stdout.buffer
    manifest = []
    with tarfile.open(fileobj=out, mode="w|") as tar:
        def put(name, content):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        for name in names:
            image = find_image(data, name)
            if image is None:
                fail(f"reference does not exist: {name}")
            put(image_id(image) + ".json", image["config"].encode())
            layer = bytes.fromhex(image["layer"])
            put(hashlib.sha256(layer).hexdigest() + "/layer.tar", layer)
            manifest.append({"Config": image_id(image) + ".json", "RepoTags": [tag(name)], "Layers": [hashlib.sha256(layer).hexdigest() + "/layer.tar"]})
        put("manifest.json", json.dumps(manifest).encode())


def load(data):
    import tarfile
    with tarfile.open(fileobj=io.BytesIO(sys.stdin.buffer.read())) as tar:
        files = {m.name.removeprefix("./"): tar.extractfile(m).read() for m in tar if m.isfile()}
        links = {m.name.removeprefix("./"): m.linkname.removeprefix("./") for m in tar if m.islnk()}
    for one in json.loads(files["manifest.json"]):
        layer = files.get(one["Layers"][0], files.get(links.get(one["Layers"][0], "")))
        add_image(data, {"config": files[one["Config"]].decode(), "layer": layer.hex(), "names": []}, one["RepoTags"][0])


def docker(words, side):
    how = json.loads((FOLDER / "fake.json").read_text())
    on_target = side == "target"
    if words[:1] == ["-H"]:
        host = re.fullmatch(r"ssh://(?:(.*)@)?(\[?[^\]]*\]?)(?::(\d+))?", words[1])
        user, name, port = host.groups()
        # docker's own way of running ssh.
        import subprocess
        subprocess.run(["ssh", "-o", "ConnectTimeout=30", "-T", *(["-l", user] if user else []), *(["-p", port] if port else []), "--", name, "docker", "system", "dial-stdio"], check=True)
        words, on_target = words[2:], True
    engine = how["target" if on_target else "host"]
    if words[0] == "compose":
        return compose(words[1:], side, on_target, how)
    if words[0] == "buildx":
        if not engine["buildx"]:
            fail("docker: 'buildx' is not a docker command.")
        return print("github.com/docker/buildx v0.19.3")
    if words[0] == "version":
        return print(engine["version"])
    if words[0] == "--version":
        return print(f"Docker version {engine['version']}, build x")
    if words[0] == "info":
        return print(json.dumps({"ServerVersion": engine["version"], "OSType": "linux", "Architecture": "aarch64", "DockerRootDir": "/tmp", "Runtimes": {"runc": {}}}))
    if words[0] == "system":
        return None
    trouble = None
    with State("target" if on_target else "host") as data:
        if words[:2] == ["image", "inspect"]:
            print(json.dumps([shown_image(i) for i in map(lambda n: find_image(data, n), words[2:]) if i]))
        elif words[0] == "images":
            print("\n".join("sha256:" + i for i in data["images"]))
        elif words[0] == "build":
            context = pathlib.Path(words[-1])
            content = b"".join(p.read_bytes() for p in sorted(context.iterdir()))
            add_image(data, make_image(content), words[words.index("--tag") + 1])
        elif words[0] == "ps":
            wanted = [w.split("=", 2)[1:] for w in words if w.startswith("label=")]
            for c in data["containers"].values():
                if all(c["labels"].get(k) == v for k, v in wanted):
                    print(c["id"] + ("" if "-aq" in words else "|Up"))
        elif words[0] == "inspect" and "--format" in words:
            for name in words[words.index("--format") + 2:]:
                c = find_container(data, name)
                if c is None:
                    fail(f"No such container: {name}")
                print(f"{c['state']}||{c['code']}|")
        elif words[0] == "inspect":
            found = [find_container(data, n) for n in words[1:] if not n.startswith("-") and n != "container"]
            print(json.dumps([shown_container(c) for c in found if c]))
            if None in found:
                fail("No such container")
        elif words[0] in ("network", "volume"):
            if words[1] == "inspect" and words[2] not in data["objects"]:
                fail("no such object")
            if words[1] == "create":
                data["objects"].append(words[-1])
        elif words[0] == "tag":
            add = find_image(data, words[1])
            if add is None:
                fail(f"No such image: {words[1]}")
            add_image(data, add, words[2])
        elif words[0] == "rmi":
            for image in data["images"].values():
                image["names"] = [n for n in image["names"] if n not in (words[-1], tag(words[-1]))]
        elif words[0] == "push":
            registry = find_container(data, "topo-registry")
            if not registry or registry["state"] != "running" or not how["pushes"]:
                fail("connection refused")
            image = find_image(data, words[-1])
            digest = hashlib.sha256(json.dumps(image["config"]).encode() + b"manifest").hexdigest()
            (FOLDER / "registry").mkdir(exist_ok=True)
            (FOLDER / "registry" / digest).write_text(json.dumps(image))
            print(f"The push refers to repository [{words[-1]}]\nlatest: digest: sha256:{digest} size: 528")
        elif words[0] == "pull":
            if "@sha256:" in words[-1]:
                port = words[-1].split(":")[1].split("/")[0]
                if not (FOLDER / f"tunnel-{port}").exists():
                    fail("connection refused")
                data["images"].setdefault(image_id(image := json.loads((FOLDER / "registry" / words[-1].split("@sha256:")[1]).read_text())), {**image, "names": []})["names"].append(words[-1])
            elif "pull" in how["fail"]:
                fail("no network")
            else:
                add_image(data, make_image(words[-1].encode()), words[-1])
        elif words[0] == "save":
            save(words, data)
        elif words[0] == "load":
            load(data)
        elif words[0] == "run":
            trouble = run(words, data, how)
        elif words[0] in ("start", "stop", "rename", "rm"):
            for name in [w for w in words[1:] if not w.startswith("-")][:1 if words[0] == "rename" else None]:
                c = find_container(data, name)
                if c is None:
                    fail(f"No such container: {name}")
                if words[0] == "rm":
                    del data["containers"][c["id"]]
                elif words[0] == "rename":
                    c["name"] = words[2]
                else:
                    c["state"] = "running" if words[0] == "start" else "exited"
        elif words[0] == "logs":
            print("its last words")
        else:
            fail(f"fake docker: {words}", 99)
    if trouble:
        fail(trouble, 125)
    if words[0] in how.get("hang", []):
        import time
        sys.stdout.flush()
        (FOLDER / "hangs").write_text(words[-1])
        time.sleep(120)
    return None


def ssh(words):
    """OpenSSH's client, to a target that is this machine with another PATH and HOME."""
    how = json.loads((FOLDER / "fake.json").read_text())
    flags, i = {}, 0
    while i < len(words) and words[i] != "--":
        if words[i] in ("-o", "-F", "-S", "-l", "-p", "-R", "-O"):
            flags.setdefault(words[i], []).append(words[i + 1])
            i += 1
        elif words[i] == "-fMS":
            flags["-f"] = [words[i + 1]]
            i += 1
        else:
            flags[words[i]] = []
        i += 1
    if "-G" in flags:
        return print("hostname board.example\nuser root\nport 22")
    if "-O" in flags:
        socket = pathlib.Path(flags["-S"][0])
        for tunnel in FOLDER.glob("tunnel-*"):
            if tunnel.read_text() == str(socket):
                tunnel.unlink()
        socket.unlink(missing_ok=True)
        return None
    if "-N" in flags:
        if "tunnel" in how["fail"]:
            fail("Error: remote port forwarding failed for listen port 12737", 255)
        port = flags["-R"][0].split(":")[1]
        pathlib.Path(flags["-f"][0]).write_text("")
        (FOLDER / f"tunnel-{port}").write_text(flags["-f"][0])
        return None
    command = " ".join(words[i + 2:])
    if "boot_id" in command:
        return print("another machine")
    if how["exposed"] and "/proc/net/tcp" in command and "begin" not in command:
        return print("  0: 00000000:31C1 00000000:0000 0A 0\n  1: 0100007F:31C1 00000000:0000 0A 0")
    os.execve("/bin/sh", ["sh", "-c", command], {"PATH": f"{FOLDER}/target/bin:/usr/bin:/bin", "HOME": f"{FOLDER}/target/home", "SHELL": "/bin/sh"})


if __name__ == "__main__":
    record = {"program": sys.argv[1], "side": os.environ["FAKE_SIDE"], "words": sys.argv[2:], "env": {k: v for k, v in os.environ.items() if k.startswith("TOPO_")}}
    with open(FOLDER / "calls.jsonl", "a") as log:
        log.write(json.dumps(record) + "\n")
    if sys.argv[1] == "ssh":
        ssh(sys.argv[2:])
    else:
        docker(sys.argv[2:], os.environ["FAKE_SIDE"])
