#!/usr/bin/env python3
"""A fleet of virtual boards, each a node with containerd and our shim: docs/fleet's pods on them, a new model rolled out board by
board, then a new firmware, while a client that asks another board when one does not answer loses no answer; and topo deploy to
several boards at once. fleet_test.py [BOARDS [ROUNDS]]: the tests have the short form, ./run soak the long one."""
import os
import pathlib
import shutil
import sys
import tempfile

import board_lib as lib
import end_to_end_lib as whole
import fleet_lib as fleet
from board_lib import check, equal, wait_for
from talpa_test import GOLDEN, REFERENCE

BOARDS = int(sys.argv[1]) if len(sys.argv) > 1 else 2
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 1
SLOW = 600
# Two networks that take pictures. The second is what is rolled out.
FIRST = GOLDEN / "models/resnet8_random/resnet8_random.pte"
SECOND = GOLDEN / "models/ds_cnn_random/ds_cnn_random.pte"
if REFERENCE.exists() and BOARDS > 2:
    FIRST, SECOND = whole.MOBILENET, REFERENCE / "models/mobilenet_v2_sram384/mobilenet_v2_sram384.pte"


def labels_of(program, folder):
    if "mobilenet" in program.name:
        return whole.labels_file(folder)
    path = folder / "classes.txt"
    path.write_text("".join(f"class {i}\n" for i in range(12)))
    return path


def make_images(board, folder):
    """The project's own Dockerfiles, built on a board; podman only builds here."""
    for tag, program in (("v1", FIRST), ("v2", SECOND)):
        place = folder / tag
        place.mkdir()
        project = whole.assemble(place, program, labels_of(program, place))
        board.sh(f"""set -e; cd {project}; program=PROGRAM={program.name}
podman build -q --target webapp --build-arg $program -t webapp:{tag} webapp
podman build -q --target runner-runtime --label version={tag} -t runner:{tag} runner""", timeout=SLOW)
    board.sh(f"podman save -q -m -o {folder}/images.tar webapp:v1 webapp:v2 runner:v1 runner:v2", timeout=SLOW)
    return folder / "images.tar"


def roll(nodes, app, image, client, firmware=False):
    """A rolling update with maxUnavailable 1 and maxSurge 0: a core, and a port, is one."""
    for node in nodes:
        before = client.count()
        node.serving = False  # out of the endpoints as the pod begins to end, or its readiness probe fails
        node.end(app)
        node.run(app, image, firmware)
        fleet.probe(node)
        wait_for(lambda: client.count() > before, "answers go on", 120)  # noqa: B023


def a_rollout_loses_no_answer():
    grpc, pb = cri()
    with tempfile.TemporaryDirectory(prefix="fleet-") as name:
        folder = pathlib.Path(name)
        nodes = []
        try:
            for i in range(BOARDS):
                nodes.append(fleet.Node(f"fleet{i}", folder, pb, grpc))
            images, pause = make_images(nodes[0].board, folder), fleet.pause_image(folder)
            for node in nodes:
                node.up()
                node.load(pause)
                node.load(images)
                node.run("cm33-runner", "localhost/runner:v1", firmware=True)
                node.run("classifier", "localhost/webapp:v1")
            for node in nodes:
                fleet.probe(node)
            first = fleet.model_id(nodes[0].site)
            expected = {first: whole.expected_top(FIRST, labels_of(FIRST, folder))}
            second_id = f"{crc_of(SECOND):08x}"
            expected[second_id] = whole.expected_top(SECOND, labels_of(SECOND, folder))
            with fleet.Client(nodes, expected) as client:
                wait_for(lambda: client.count() >= 2 * BOARDS, "first answers", 120)
                for _ in range(ROUNDS):
                    roll(nodes, "classifier", "localhost/webapp:v2", client)
                    equal({fleet.model_id(node.site) for node in nodes}, {second_id}, "the model everywhere")
                    roll(nodes, "cm33-runner", "localhost/runner:v2", client, firmware=True)
                    unready_while_the_firmware_is_away(nodes[0], client)
                    if ROUNDS > 1:
                        roll(nodes, "classifier", "localhost/webapp:v1", client)
                        roll(nodes, "cm33-runner", "localhost/runner:v1", client, firmware=True)
            equal(client.lost, [], "lost answers")
            equal(client.wrong, [], "wrong answers")
            equal(set(client.answers), set(expected), "both models answered")
            print(f"  {BOARDS} boards: {client.count()} answers ({client.answers}), {client.retries} asked again, the slowest took {client.slowest:.1f} s")
        finally:
            for node in nodes:
                node.down()


def unready_while_the_firmware_is_away(node, client):
    """The readiness probe follows the firmware, with no restart of the page's pod; the client goes on."""
    node.end("cm33-runner")
    wait_for(lambda: not node.ready(), "an unready page", 60)
    equal(node.board.sh("cat /sys/class/remoteproc/remoteproc0/state"), "offline\n", "the core")
    before = client.count()
    wait_for(lambda: client.count() > before + 2, "answers of the others, though nobody took this one off the list", 120)
    node.run("cm33-runner", "localhost/runner:v2", firmware=True)
    fleet.probe(node)


def topo_deploys_to_all_at_once():
    if not shutil.which("podman"):
        print("  podman is not installed: not tried")
        return
    with tempfile.TemporaryDirectory(prefix="fleet-topo-") as name:
        folder = pathlib.Path(name)
        labels = labels_of(FIRST, folder)
        project = whole.assemble(folder, FIRST, labels)
        ports, boards = [], []
        try:
            for i in range(BOARDS):
                ports.append(whole.free_port())
                boards.append(lib.NamespaceBoard(f"fleet-topo{i}", "--startup-delay", 0, "--publish", f"{ports[-1]}:3001", "--ssh", 0))
                done = whole.topo("install", "remoteproc-runtime", "--target", f"board://fleet-topo{i}")
                equal(done.returncode, 0, f"install: {done.stderr}")
            targets = folder / "boards.txt"
            targets.write_text("[fleet]\n" + "".join(f"board://fleet-topo{i}\n" for i in range(BOARDS)))
            done = whole.topo("deploy", "--targets", targets, "--group", "fleet", cwd=project, timeout=3000)
            equal(done.returncode, 0, f"deploy: {done.stdout}{done.stderr}")
            expected = whole.expected_top(FIRST, labels)
            for i, port in enumerate(ports):
                site = whole.Site(port)
                site.wait()
                status, answer = site.classify(whole.PHOTO.read_bytes())
                equal((status, whole.top_of(answer)), (200, expected), f"answer of board {i}")
                check(f"board://fleet-topo{i}" in done.stdout, f"board {i} in the summary: {done.stdout}")
        finally:
            for board in boards:
                board.down()


def crc_of(path):
    import zlib
    return zlib.crc32(path.read_bytes())


def cri():
    """grpc and the messages of CRI, made by protoc from tests/remoteproc/cri.proto."""
    import importlib
    import subprocess
    import grpc
    here = pathlib.Path(__file__).parent / "remoteproc"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["protoc", f"-I{here}", f"--python_out={folder}", "cri.proto"], check=True)
        sys.path.insert(0, folder)
        return grpc, importlib.import_module("cri_pb2")


def main():
    if not lib.FIRMWARE.exists():
        lib.skip("the firmware is not built (./run build)")
    if os.geteuid() != 0:
        lib.skip("engines on boards want root")
    for program in ("containerd", "ctr", "runc", "podman", "protoc", "gcc"):
        if not shutil.which(program):
            lib.skip(f"{program} is not installed")
    try:
        cri()
    except ImportError as problem:
        lib.skip(str(problem))
    return lib.run_all([a_rollout_loses_no_answer, topo_deploys_to_all_at_once], namespaces=True)


if __name__ == "__main__":
    sys.exit(main())
