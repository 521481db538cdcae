#!/usr/bin/env python3
"""The web application on the virtual hardware: its API, its errors, what it gave up, how it takes bad clients, a stopped
firmware, and a load of many clients. Answers are held against `talpa run`."""
import concurrent.futures
import http.client
import json
import os
import pathlib
import socket
import struct
import subprocess
import tempfile
import threading
import time

from board_tree import BoardTree, need_firmware
from openapi import Described
from talpa_test import EMULATED, GOLDEN, REFERENCE, SANITIZED, SOURCE, UNMEASURED, Checks, talpa
from webapp_tool import Server, form

RESNET = GOLDEN / "models/resnet8_random/resnet8_random.pte"
PHOTO = SOURCE / "docs/pictures/chelsea.jpg"
CORPUS = SOURCE / "tests/corpus/image_fuzz"
CLIENTS = 64
LOAD_SECONDS = float(os.environ.get("TALPA_LOAD_SECONDS", 3))


def run_top(program, *pictures):
    ran = talpa("run", program, "--image", *pictures, "--json")
    assert ran.status == 0, ran.err
    document = json.loads(ran.out)
    return [r["top"] for r in document.get("results", [document])]


def api(check, server):
    picture = PHOTO.read_bytes()
    (top,) = run_top(RESNET, PHOTO)
    status, one = server.classify(("chelsea.jpg", picture))
    check.equal((status, one["top"]), (200, top), "one picture as form data")
    check.equal(one["image"], "chelsea.jpg", "its name")
    check.equal((one["picture"]["width"], one["picture"]["height"]), (451, 300), "its size")
    for phase in ("receive", "queue", "decode", "resize", "stage", "rpmsg", "crc", "load", "quantize", "npu", "dequantize", "run", "total"):
        check.that(one["time_ms"].get(phase, -1) >= 0, f"time of {phase}")
    check.that(one["time_ms"]["total"] >= one["time_ms"]["run"] > 0 and one["npu_cycles"] > 0, "times are plausible")
    status, raw = server.json("POST", "/api/classify?name=x.jpg&top=2&crop=1", picture, {"Content-Type": "image/jpeg"})
    check.equal((status, raw["top"], raw["image"]), (200, top[:2], "x.jpg"), "the picture as the body")
    check.that(raw["crop"].startswith("data:image/png;base64,"), "the crop")
    for kind in ("application/x-www-form-urlencoded", "text/plain"):  # curl --data-binary says the first
        status, raw = server.json("POST", "/api/classify?model=resnet8_random", picture, {"Content-Type": kind})
        check.equal((status, raw.get("top")), (200, top), f"a picture sent as {kind}, the model by its name")
    status, several = server.classify(("a.jpg", picture), ("b.txt", b"hello"), ("c.jpg", b""), ("d.jpg", picture))
    check.equal([r.get("top") for r in several["results"]], [top, None, None, top], "several pictures")
    check.equal([r.get("problem", {}).get("code") for r in several["results"]], [None, "invalid-picture", "empty-picture", None], "each with its problem")

    for what, body, headers, query, wanted in (
            ("text as a picture", *form(("image", "x.jpg", b"just text")), "", (415, "invalid-picture")),
            ("a picture cut short", *form(("image", "x.jpg", picture[:9000])), "", (415, "invalid-picture")),
            ("an empty file", *form(("image", "x.jpg", b"")), "", (400, "empty-picture")),
            ("no file chosen", *form(("image", "", b"")), "", (400, "no-picture")),
            ("another field", *form(("other", "x.jpg", picture)), "", (400, "no-picture")),
            ("no body", b"", {}, "", (400, "no-picture")),
            ("form data that ends early", b"--x\r\n", {"Content-Type": "multipart/form-data; boundary=x"}, "", (400, "bad-request")),
            ("an unknown model", *form(("image", "x.jpg", picture)), "?model=nosuch", (404, "no-such-model")),
            ("a form that is no picture", b"a=b&c=d", {"Content-Type": "application/x-www-form-urlencoded"}, "", (400, "no-picture")),
            ("too many pictures", *form(*[("image", "x.jpg", b"x")] * 65), "", (413, "too-many-pictures")),
            ("a wrong top", *form(("image", "x.jpg", picture)), "?top=0", (400, "bad-request")),
            ("too many pixels", bytes(bmp_head(20000, 20000)), {"Content-Type": "image/bmp"}, "", (413, "picture-too-large"))):
        status, problem = server.json("POST", "/api/classify" + query, body, headers)
        check.equal((status, problem["code"]), wanted, what)
        check.that(problem["title"] and problem["fix"] and problem["status"] == status, f"{what}: {problem}")
    response, data = server.request("POST", "/api/classify", b"x" * (3 << 20), {"Content-Type": "image/jpeg"})
    check.equal((response.status, json.loads(data)["code"]), (413, "too-large"), "an upload over the limit")
    check.equal(response.getheader("Content-Type"), "application/problem+json", "a problem document")
    for method, path, wanted in (("GET", "/api/classify", 405), ("GET", "/nothing", 404), ("GET", "/assets/../../etc/passwd", 404),
                                 ("GET", "/assets/%2e%2e%2fopenapi.json", 404), ("PUT", "/", 405), ("GET", "/api/models/x", 404), ("DELETE", "/api/models/x", 404)):
        response, _ = server.request(method, path)
        check.equal((response.status, response.getheader("Allow")), (wanted, {"/api/classify": "POST", "/": "GET, HEAD"}[path] if wanted == 405 else None), f"{method} {path}")
    check.equal(chunked(server, 3 << 20), (413, "too-large"), "an upload over the limit that does not say how long it is")
    check.equal(chunked(server, 1 << 20)[0], 415, "one below it is read to its end")

    status, sample = server.json("GET", "/api/samples")
    response, data = server.request("GET", sample["samples"][0]["url"])
    check.equal((response.status, data[:3]), (200, b"\xff\xd8\xff"), "a sample")
    response, page = server.request("GET", "/")
    policy = response.getheader("Content-Security-Policy")
    check.that(response.status == 200 and b"<script" in page and "default-src 'none'" in policy and "unsafe" not in policy, policy)
    check.equal(server.request("HEAD", "/")[1], b"", "HEAD has no body")
    check.equal(server.request("GET", "/healthz")[1], b"ok\n", "healthz")
    check.equal(server.request("GET", "/readyz")[1], b"ready\n", "readyz")


def chunked(server, size):
    """(status, code) of an upload in chunks, which may be answered before it was sent."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as s:
        s.sendall(b"POST /api/classify HTTP/1.1\r\nHost: x\r\nContent-Type: image/jpeg\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            for _ in range(size >> 14):
                s.sendall(b"4000\r\n" + b"x" * 0x4000 + b"\r\n")
            s.sendall(b"0\r\n\r\n")
        except OSError:
            pass
        response = http.client.HTTPResponse(s)
        response.begin()
        return response.status, json.loads(response.read())["code"]


def bmp_head(width, height):
    return struct.pack("<2sIHHIIiiHHIIiiII", b"BM", 100, 0, 0, 54, 40, width, height, 1, 24, 0, 0, 0, 0, 0, 0)


def gate(check, server):
    for headers, wanted in (({"Host": "evil.example"}, 421), ({"Origin": "http://evil.example"}, 403), ({"Sec-Fetch-Site": "cross-site"}, 403), ({}, 200)):
        check.equal(server.json("GET", "/api/status", headers=headers)[0], wanted, f"{headers}")


# Documented fields that this board and these programs do not show, with where they are tested.
SLOW_BOARD = {"Problem.known", "Problem.retry_after_s", "Queue.order[].id", "Queue.order[].pictures"}
NOT_HERE = {
    **dict.fromkeys(SLOW_BOARD, "slow_board below"),
    "Top.raw": "a program that does not say what its integers mean: ranking_test.cpp",
    **{f"Result.numbers{rest}": "outputs that are no tensors: cli_run_test.py" for rest in ("", "[].output", "[].type", "[].value")},
}


def description(check, server):
    """Every answer of the whole test was as documented, every documented field came, and metrics are Prometheus' text."""
    check.equal(server.described.problems, [], "answers that are not as documented")
    check.equal([f for f in server.described.never_came() if f not in NOT_HERE], [], "documented fields that never came")
    for path in ("/api/classify", "/api/checks", "/api/models", "/api/samples", "/api/status", "/api/events", "/metrics", "/healthz", "/readyz"):
        check.that(path in server.described.document["paths"], f"{path} is documented")
    openapi = server.described.document
    _, text = server.request("GET", "/metrics")
    lines = [line for line in text.decode().splitlines() if line and not line.startswith("#")]
    for line in lines:
        name, _, value = line.rpartition(" ")
        float(value)
        check.that(name.startswith("talpa_"), line)
        if name.startswith("talpa_requests_total") and 'route="other"' not in name:
            route = name.split('route="')[1].split('"')[0]
            status = name.split('status="')[1].split('"')[0]
            entry = openapi["paths"].get(route) or openapi["paths"].get(route + "{id}")
            check.that(entry is not None and any(status in op["responses"] for op in entry.values() if "responses" in op), f"{route} answers {status}")
    check.that(any(line.startswith("talpa_pictures_total") and not line.endswith(" 0") for line in lines), "pictures are counted")


def models(check, server):
    status, listed = server.json("GET", "/api/models")
    check.equal([m["name"] for m in listed["models"]], ["resnet8_random"], "the models")
    check.equal(listed["models"][0]["target"], "ethos-u65-256", "its target")
    status, detail = server.json("GET", f"/api/models/{listed['models'][0]['id']}")
    check.that(len(detail["layers"]) > 5 and sum(layer["cycles"] for layer in detail["layers"]) > 1000, "its layers")
    status, problem = server.json("POST", "/api/models", *form(("program", "x.pte", b"nothing")))
    check.equal((status, problem["code"]), (422, "invalid-model"), "no program at all")
    other = GOLDEN / "models/ds_cnn_random/ds_cnn_random.pte"
    labels = b"\n".join(b"word %d" % i for i in range(12))
    status, added = server.json("POST", "/api/models", *form(("program", "mine.pte", other.read_bytes()), ("labels", "l.txt", labels)))
    check.equal((status, added["name"], added["uploaded"]), (201, "mine", True), f"a model of one's own: {added}")
    (top,) = run_top(other, PHOTO)
    status, answer = server.classify(("a.jpg", PHOTO.read_bytes()), query=f"?model={added['id']}")
    check.equal([(t["class"], t["probability"], t["label"]) for t in answer["top"]], [(t["class"], t["probability"], f"word {t['class']}") for t in top], "it is used")
    status, problem = server.json("POST", "/api/models", *form(("program", "mine.pte", other.read_bytes()), ("labels", "l.txt", b"too few")))
    check.equal((status, problem["code"]), (422, "invalid-model"), "labels that are too few")
    check.equal([server.json("DELETE", f"/api/models/{added['id']}")[0] for _ in range(2)], [200, 404], "removed")
    check.equal(server.json("DELETE", f"/api/models/{listed['models'][0]['id']}")[0], 404, "that of the command line stays")
    # The program that is there already, with labels of its own: beside it.
    labels = b"\n".join(b"thing %d" % i for i in range(10))
    status, added = server.json("POST", "/api/models", *form(("program", "again.pte", RESNET.read_bytes()), ("labels", "l.txt", labels)))
    check.equal((status, added["labels"], added["uploaded"]), (201, 10, True), f"the same program with labels: {added}")
    check.equal([m["labels"] for m in server.json("GET", "/api/models")[1]["models"]], [0, 10], "both are there")
    status, answer = server.classify(("a.jpg", PHOTO.read_bytes()), query=f"?model={added['id']}")
    check.equal(answer["top"][0]["label"], f"thing {answer['top'][0]['class']}", "its labels count")
    server.json("DELETE", f"/api/models/{added['id']}")
    status, same = server.json("POST", "/api/models", *form(("program", "again.pte", RESNET.read_bytes())))
    check.equal((status, same), (201, server.json("GET", "/api/models")[1]["models"][0]), "without labels it is the one that is there")
    status, problem = server.json("POST", "/api/models", *form(("program", "u55.pte", (GOLDEN / "pte_variants/two_u55.pte").read_bytes())))
    check.equal((status, problem["code"]), (422, "invalid-model"), f"another NPU's program: {problem}")
    check.that("ethos-u55" in problem["detail"] and "ethos-u65-256" in problem["fix"], f"{problem}")
    status, added = server.json("POST", "/api/models", *form(("program", "fallback.pte", (GOLDEN / "pte_variants/fallback.pte").read_bytes())))
    check.that(status == 201 and "aten::flip.out" in added["note"] and "refuse" in added["note"], f"an operator that the firmware lacks: {status} {added}")
    server.json("DELETE", f"/api/models/{added['id']}")


def events(check, server, board):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request("GET", "/api/events")
    stream = connection.getresponse()
    seen = []

    def listen():
        event = None
        try:
            for line in stream:
                line = line.decode().strip()
                if line.startswith("event: "):
                    event = line[7:]
                elif line.startswith("data: "):
                    seen.append((event, json.loads(line[6:])))
        except (OSError, ValueError, AttributeError):
            pass

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    server.classify(("a.jpg", PHOTO.read_bytes()), query="?id=job-1")
    deadline = time.monotonic() + 10
    phases = []
    while phases[-1:] != ["done"] and time.monotonic() < deadline:
        phases = [data["phase"] for event, data in list(seen) if event == "job" and data["id"] == "job-1"]
        time.sleep(0.02)
    check.equal(phases, ["staging", "running", "done"], "what is told of a job")
    check.equal(seen[0][0], "hello", "the greeting")
    board.stop()
    deadline = time.monotonic() + 10
    while not any(event == "board" and data["state"] == "offline" for event, data in list(seen)) and time.monotonic() < deadline:
        time.sleep(0.05)
    check.that(any(event == "board" and data["state"] == "offline" for event, data in seen), "a stop is told")
    for event, data in list(seen):
        schema = {"hello": "EventHello", "queue": "Queue", "job": "EventJob", "board": "Board"}.get(event)
        server.described.value(data, server.described.named(schema) if schema else {"type": "object"}, f"event {event}")
    status, problem = server.classify(("a.jpg", PHOTO.read_bytes()))
    check.equal((status, problem["code"]), (503, "firmware-not-running"), "a stopped firmware")
    status, problem = server.json("GET", "/readyz")
    check.equal((status, problem["code"], server.request("GET", "/healthz")[0].status), (503, "firmware-not-running", 200), "alive, not ready")
    check.that("echo start" in problem["fix"], problem["fix"])
    _, checks = server.json("GET", "/api/checks")
    states = {c["id"]: c["state"] for c in checks["checks"]}
    check.equal((states["firmware"], states["tty"], states["runner"]), ("failed", "failed", "failed"), "the checks see it")
    board.start()
    status, answer = server.classify(("a.jpg", PHOTO.read_bytes()))
    check.equal(status, 200, f"started again, it is found again: {answer}")
    _, checks = server.json("GET", "/api/checks")
    states = {c["id"]: c["state"] for c in checks["checks"]}
    check.equal((states["memory"], states["remoteproc"], states["firmware"], states["tty"], states["runner"], states["program"], states["labels"]),
                ("ok", "ok", "ok", "ok", "ok", "ok", "warning"), f"the checks: {checks}")
    connection.sock and connection.sock.close()


def hardened(check, server):
    _, status = server.json("GET", "/api/status")
    steps = {s["what"]: s for s in status["sandbox"]}
    if SANITIZED:
        return
    if EMULATED:  # qemu 7.2 has neither seccomp nor Landlock: that they are left out is told
        check.equal({w: s["applied"] for w, s in steps.items()}, {"user": False, "capabilities": True, "landlock": False, "seccomp": False}, f"{steps}")
        return
    check.that(steps["capabilities"]["applied"] and steps["seccomp"]["applied"], f"{steps}")
    with open(f"/proc/{server.process.pid}/status") as file:
        fields = dict(line.split(":\t", 1) for line in file.read().splitlines() if ":\t" in line)
    check.equal(int(fields["CapEff"], 16), 0, "no capability is left")
    check.equal(fields["Seccomp"].strip(), "2", "system calls are filtered")
    if os.geteuid() == 0:
        check.equal(fields["Uid"].split(), ["65534"] * 4, "it is nobody")


def bad_clients(check, server):
    """Slow, half-closed and garbage connections; meanwhile a good client is served."""
    address = ("127.0.0.1", server.port)
    held = []
    for i in range(100):
        s = socket.create_connection(address)
        s.sendall((b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ", b"POST /api/classify HTTP/1.1\r\nHost: x\r\nContent-Type: image/jpeg\r\nContent-Length: 50000\r\n\r\nabc")[i % 2])
        held.append(s)
    rng = __import__("random").Random(3)
    for _ in range(60):
        s = socket.create_connection(address)
        s.sendall(bytes(rng.randrange(256) for _ in range(rng.randrange(1, 400))))
        if rng.random() < 0.5:
            s.shutdown(socket.SHUT_WR)
        else:
            s.close()
            continue
        held.append(s)
    for text, wanted in ((b"NONSENSE\r\n\r\n", b"400"), (b"GET x HTTP/1.1\r\nHost: a\r\n\r\n", b"400"), (b"GET / HTTP/1.1\r\n\r\n", b"421"),
                         (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 20000 + b"\r\n\r\n", b"431")):
        with socket.create_connection(address, timeout=10) as s:
            s.sendall(text)
            check.that(s.recv(4096)[9:12] == wanted, f"{text[:40]} is answered with {wanted}")
    for text, wanted in ((b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", b"200"), (b"GET /api/checks HTTP/1.1\r\nHost: x\r\n\r\n", b"200"),
                         (b"GET /healthz HTTP/1.0\r\n\r\n", b"200"), (b"GET /api/status HTTP/1.0\r\n\r\n", b"421"), (b"HEAD /api/events HTTP/1.1\r\nHost: x\r\n\r\n", b"200"),
                         (b"POST /api/classify HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n", b"400")):
        with socket.create_connection(address, timeout=60) as s:
            s.sendall(text)
            s.shutdown(socket.SHUT_WR)
            check.equal(s.recv(4096)[9:12], wanted, f"half-closed: {text}")
    started = time.monotonic()
    status, _ = server.classify(("a.jpg", PHOTO.read_bytes()))
    check.equal(status, 200, "a good client among bad ones")
    check.that(time.monotonic() - started < 10, "and soon")
    for s in held:
        s.close()


def leave(check, server):
    """A client that leaves while its pictures wait does not cost the board a run each."""
    body, headers = form(*[("image", f"{i}.jpg", PHOTO.read_bytes()) for i in range(40)])
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("POST", "/api/classify", body, headers)
    connection.close()
    deadline = time.monotonic() + 30
    dropped = False
    while not dropped and time.monotonic() < deadline:
        dropped = b'talpa_picture_failures_total{code="cancelled"}' in server.request("GET", "/metrics")[1]
        time.sleep(0.05)
    check.that(dropped, "pictures of a client that left are dropped")


def load(check, server):
    """Many clients at once, each answer checked: none lost, none mixed up."""
    files = [p for p in sorted(CORPUS.iterdir()) if p.suffix in (".bmp", ".gif", ".png", ".jpg", ".webp") and talpa("run", RESNET, "--image", p).status == 0][:8]
    files.append(PHOTO)
    expected = dict(zip(files, run_top(RESNET, *files), strict=True))
    end = time.monotonic() + LOAD_SECONDS
    done, wrong, busy = [], [], [0]

    def client(number):
        path = files[number % len(files)]
        data = path.read_bytes()
        count = 0
        while time.monotonic() < end or count == 0:
            status, answer = server.classify((path.name, data))
            if status == 503 and answer["code"] == "queue-full":
                busy[0] += 1
                time.sleep(0.05)
                continue
            if status != 200 or answer["top"] != expected[path] or answer["image"] != path.name:
                wrong.append((path.name, status, answer))
            count += 1
        done.append(count)

    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        for future in [pool.submit(client, i) for i in range(CLIENTS)]:
            future.result()
    check.equal(wrong[:2], [], "answers that are wrong")
    check.equal(len(done), CLIENTS, "clients that were served")
    check.that(max(done) <= 4 * min(done) + 4, f"fair: from {min(done)} to {max(done)} pictures a client")
    print(f"load: {CLIENTS} clients, {sum(done)} pictures in {LOAD_SECONDS:.0f} s, {busy[0]} times full; peak {server.resident_kib('VmHWM') / 1024:.1f} MiB")
    if not UNMEASURED:
        check.that(server.resident_kib("VmHWM") < 250 * 1024, "bounded memory")


def two_servers(check, board):
    """Two of them on one board, with different programs: each gets its own answers."""
    if not (REFERENCE / "models").exists():
        print("the reference set is absent: two servers were not tried")
        return
    programs = (RESNET, REFERENCE / "models/mobilenet_v2/mobilenet_v2.pte")
    expected = [run_top(p, PHOTO)[0] for p in programs]
    with Server("--root", board.root, "--program", programs[0]) as a, Server("--root", board.root, "--program", programs[1]) as b:
        def many(server, top):
            return [server.classify(("a.jpg", PHOTO.read_bytes()))[1].get("top") == top for _ in range(6)]

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            results = [f.result() for f in [pool.submit(many, s, t) for s, t in zip((a, b), expected, strict=True)]]
        check.equal(results, [[True] * 6] * 2, "two servers on one board")


def photos(check, board):
    if not (REFERENCE / "models").exists():
        print("the reference set is absent: no photographs were classified")
        return
    names = {"cat.bmp": 285, "cat_720p.jpg": 285, "parrot.jpg": 88, "hot_dog.jpg": 934, "dragonfly.bmp": 319, "bird.bmp": 19, "sunflower.bmp": 985}
    program = REFERENCE / "models/mobilenet_v2/mobilenet_v2.pte"
    expected = run_top(program, *[REFERENCE / "photos" / n for n in names])
    with Server("--root", board.root, "--program", program, "--labels", REFERENCE / "imagenet_labels.txt") as server:
        idle = server.resident_kib()
        print(f"idle: {idle / 1024:.1f} MiB resident, of which {server.resident_kib('RssFile') / 1024:.1f} MiB file pages")
        if not UNMEASURED:
            check.that(idle < 20 * 1024, f"idle memory {idle} KiB")
        for name, wanted in zip(names, expected, strict=True):
            status, answer = server.classify((name, (REFERENCE / "photos" / name).read_bytes()))
            check.equal(status, 200, f"{name}: {answer}")
            check.equal([(t["class"], t["probability"]) for t in answer["top"]], [(t["class"], t["probability"]) for t in wanted], name)
            check.equal(answer["top"][0]["class"], names[name], f"the reference's class of {name}")
        files = server.open_files()
        for _ in range(5):
            server.classify(("cat.bmp", (REFERENCE / "photos/cat.bmp").read_bytes()))
        check.that(abs(server.open_files() - files) <= 1, "no file is opened anew for a picture")
        _, text = server.request("GET", "/metrics")
        check.that(b"talpa_programs_staged_total 1\n" in text, "the program was staged once")
        seconds = server.stop()
        check.that(seconds < 1 or UNMEASURED, f"SIGTERM took {seconds:.2f} s")


def slow_board(check):
    """A run that goes on: SIGTERM ends it within a second, a full queue is told, a timeout says what is known."""
    with BoardTree("--npu-hangs") as board:
        with Server("--root", board.root, "--program", RESNET, "--queue", 2, "--timeout", 4) as server:
            described = server.described = Described(server.json("GET", "/api/openapi.json")[1])
            status, problem = server.classify(("a.jpg", PHOTO.read_bytes()))
            # Whoever's time is over first on a busy machine: the firmware's or ours.
            check.that(problem["code"] in ("runner-error-6", "no-answer"), f"an NPU that hangs: {problem}")
            check.that(any("imx-rproc" in line for line in problem["known"]), "what is known")
        with Server("--root", board.root, "--program", RESNET, "--queue", 2, "--timeout", 60) as server:
            server.described = described
            body, headers = form(("image", "a.jpg", PHOTO.read_bytes()))

            def post():
                response, data = server.request("POST", "/api/classify", body, headers)
                return response.status, json.loads(data), response.getheader("Retry-After")

            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                futures = [pool.submit(post) for _ in range(8)]
                said, deadline = {"order": []}, time.monotonic() + 20
                while not said["order"] and time.monotonic() < deadline:
                    said = server.json("GET", "/api/status")[1]["queue"]
                check.that(said["waiting"] > 0 and all(job["pictures"] == 1 for job in said["order"]), f"what waits is told: {said}")
                time.sleep(1)
                full = [f.result() for f in futures if f.done()]
                check.that(full and all((s, a["code"], a["retry_after_s"], later) == (503, "queue-full", 1, "1") for s, a, later in full), f"a full queue: {full}")
                seconds = server.stop()
                check.that(seconds < 1 or UNMEASURED, f"SIGTERM in the middle of a run took {seconds:.2f} s")
                for future in futures:
                    try:
                        status, answer, _ = future.result()
                        check.that(status == 503, f"{status} {answer}")
                    except (OSError, http.client.HTTPException):
                        pass
    check.equal(described.problems, [], "answers that are not as documented")
    check.equal(SLOW_BOARD - described.came, set(), "documented fields that never came")


def restricted(check, board):
    with Server("--root", board.root, "--program", RESNET, env={"TALPA_WEBAPP_TOKEN": "secret"}) as server:
        check.equal(server.json("GET", "/api/status")[0], 401, "without the token")
        check.equal(server.json("GET", "/api/status", headers={"Authorization": "Bearer secret"})[0], 200, "with it")
        for query in ("", "?token=wrong"):
            response, page = server.request("GET", "/" + query, headers={"Accept": "text/html,*/*"})
            check.that(response.status == 401 and b'name="token"' in page and "form-action 'self'" in response.getheader("Content-Security-Policy"), f"a person is asked for it: {page}")
        check.that("clients must know the token" in server.more_log(), "the log says so")
        check.equal(server.request("GET", "/healthz")[0].status, 200, "healthz needs none")
        check.equal(server.request("GET", "/readyz")[0].status, 200, "readyz needs none")
        response, _ = server.request("GET", "/?token=secret")
        cookie = response.getheader("Set-Cookie").split(";")[0]
        check.equal(server.request("GET", "/", headers={"Cookie": cookie})[0].status, 200, "by the cookie")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as labels:
        labels.write("".join(f"thing {i}\n" for i in range(10)))
        labels.flush()
        with Server("--root", board.root, "--program", RESNET, "--program", GOLDEN / "models/ds_cnn_random/ds_cnn_random.pte", "--labels", labels.name) as server:
            check.equal([m["labels"] for m in server.json("GET", "/api/models")[1]["models"]], [10, 0], "ten labels are not those of twelve classes")
            check.that("anyone who can reach this server may ask" in "".join(server.log), "the log says that there is no token")
    with Server("--root", board.root) as server:
        status, problem = server.classify(("a.jpg", PHOTO.read_bytes()))
        check.equal((status, problem["code"]), (404, "no-such-model"), "without a program")
        status, problem = server.json("GET", "/readyz")
        check.equal((status, problem["status"], problem["code"]), (503, 503, "no-such-model"), "not ready without a program")


def usage(check):
    from webapp_tool import WEBAPP
    for arguments, wanted in ((["--listen", "nonsense"], 2), (["--nosuch"], 2), (["--help"], 0), (["--version"], 0), (["--listen", "203.0.113.1:1"], 1), (["--token", ""], 2),
                              (["--root", "/nonexistent"], 1)):
        ran = subprocess.run([WEBAPP, *arguments], capture_output=True, text=True)
        check.equal(ran.returncode, wanted, f"{arguments}: {ran.stderr}")
    if not SANITIZED:
        headers = subprocess.run(["readelf", "-lW", WEBAPP], capture_output=True, text=True, check=True).stdout
        check.that("LOAD" in headers and "INTERP" not in headers, f"it is static: {headers}")


def main():
    need_firmware()
    check = Checks()
    usage(check)
    with BoardTree() as board:
        with Server("--root", board.root, "--program", RESNET, "--upload-limit", 2) as server:
            server.described = Described(server.json("GET", "/api/openapi.json")[1])
            for part in (api, gate, models, hardened, bad_clients, leave, load):
                part(check, server)
            events(check, server, board)
            description(check, server)
            log = server.more_log()
            check.that("check ok: Memory device" in log and (SANITIZED or "sandbox: seccomp" in log), log)
            seconds = server.stop()
            check.that(seconds < 1 or UNMEASURED, f"SIGTERM took {seconds:.2f} s")
        restricted(check, board)
        two_servers(check, board)
        photos(check, board)
    slow_board(check)
    check.finish()


if __name__ == "__main__":
    main()
