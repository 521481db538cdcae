#!/usr/bin/env python3
"""Picture in to answer out on the virtual board, less the time from writing RUN to its last line: talpa-webapp beside the Flask
way, in turns, on the same pictures and the same board. compare.py [ROUNDS]"""
import pathlib
import socket
import statistics
import subprocess
import sys
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SOURCE / "tests"))
from board_tree import BoardTree  # noqa: E402
from talpa_test import REFERENCE  # noqa: E402
from webapp_tool import Server, form  # noqa: E402

MODEL = REFERENCE / "models/mobilenet_v2/mobilenet_v2.pte"
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 40
GOAL_MS = 25


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main():
    if not MODEL.exists():
        print("bench webapp: the reference set is absent; skipped")
        return 0
    photos = [(p.name, p.read_bytes()) for p in (REFERENCE / "photos" / n for n in ("cat.bmp", "cat_720p.jpg", "parrot.jpg", "hot_dog.jpg"))]
    with BoardTree() as board, Server("--root", board.root, "--program", MODEL) as ours:
        port = free_port()
        flask = subprocess.Popen(["/usr/bin/python3", pathlib.Path(__file__).parent / "flask_app.py", board.root, MODEL, str(port)],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        theirs = type("Theirs", (Server,), {"__init__": lambda self: None, "__exit__": lambda *_: None})()
        theirs.port, theirs.process = port, flask
        try:
            while socket.socket().connect_ex(("127.0.0.1", port)) != 0:
                time.sleep(0.05)
            beyond, runs, same = {"talpa-webapp": [], "Flask": []}, {"talpa-webapp": [], "Flask": []}, 0
            for i in range(ROUNDS + 2):
                name, data = photos[i % len(photos)]
                body, headers = form(("image", name, data))
                best = []
                for who, server in (("talpa-webapp", ours), ("Flask", theirs)):
                    started = time.monotonic()
                    status, answer = server.json("POST", "/api/classify", body, headers)
                    took = (time.monotonic() - started) * 1000
                    assert status == 200, answer
                    best.append(answer["top"][0]["class"])
                    if i >= 2:  # warm
                        beyond[who].append(took - answer["time_ms"]["run"])
                        runs[who].append(answer["time_ms"]["run"])
                same += best[0] == best[1]
            print(f"{ROUNDS} pictures each, in turns; the same class for {same} of {ROUNDS + 2}")
            print(f"{'':14} {'beyond RUN: median':>20} {'p90':>8} {'RUN: median':>12} {'memory':>10}")
            for who, server in (("talpa-webapp", ours), ("Flask", theirs)):
                b = sorted(beyond[who])
                print(f"{who:14} {statistics.median(b):17.1f} ms {b[int(len(b) * .9)]:5.1f} ms {statistics.median(runs[who]):9.1f} ms {server.resident_kib() / 1024:6.1f} MiB")
            ratio = statistics.median(beyond["Flask"]) / statistics.median(beyond["talpa-webapp"])
            ours, theirs = statistics.median(beyond["talpa-webapp"]), statistics.median(beyond["Flask"])
            print(f"figure: picture to answer less RUN (peer: Flask) | {ours:.1f} ms | {theirs:.1f} ms | {ours / theirs:.2f}")
            print(f"talpa-webapp is {ratio:.1f} times as fast; the goal of {GOAL_MS} ms median is {'met' if statistics.median(beyond['talpa-webapp']) < GOAL_MS else 'MISSED'}")
        finally:
            flask.kill()
            flask.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
