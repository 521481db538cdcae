"""A deployed classifier as its user meets it: the project assembled, the answer that is expected, and what must be true of the page,
of its API and of the board when it has gone."""
import http.client
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

import board_lib as lib
from inspect_html_test import Browser
from talpa_test import GOLDEN, REFERENCE, SOURCE, TALPA
from webapp_page_test import Page
from webapp_tool import form

MOBILENET = REFERENCE / "models/mobilenet_v2/mobilenet_v2.pte"
REAL = MOBILENET.exists()
PROGRAM = MOBILENET if REAL else GOLDEN / "models/resnet8_random/resnet8_random.pte"
PHOTO = SOURCE / "docs/pictures/chelsea.jpg"
TOPO = lib.BUILD / "bin/topo"
PROJECT = "imx93-npu-classifier"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def labels_file(folder):
    """ImageNet's names, or numbers where the reference set is absent."""
    if REAL:
        return REFERENCE / "imagenet_labels.txt"
    path = folder / "labels.txt"
    path.write_text("".join(f"class {i}\n" for i in range(10)))
    return path


def assemble(folder, program, labels):
    """The project with its artifacts, as ./run demo makes it."""
    project = folder / PROJECT
    subprocess.run([SOURCE / "scripts/assemble_project.sh", project, program, labels], check=True)
    return project


def expected_top(program, labels):
    """What the NPU model says of the same program and picture: class, label, probability to six places."""
    said = subprocess.run([TALPA, "run", program, "--image", PHOTO, "--labels", labels, "--json"], capture_output=True, text=True,
                          check=True).stdout
    return top_of(json.loads(said))


def top_of(answer):
    return [(c["class"], c["label"], round(c["probability"], 6)) for c in answer["top"]]


def topo(*words, cwd=None, env=None, timeout=900):  # the limit is for a hang, not for a busy machine
    return subprocess.run([TOPO, *map(str, words)], capture_output=True, text=True, cwd=cwd, timeout=timeout,
                          env={**os.environ, **(env or {})})


class Site:
    """A page at a port of this machine."""

    def __init__(self, port):
        self.port = port

    def json(self, method, path, body=None, headers=None, timeout=120):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def classify(self, data, name="photo.jpg"):
        body, headers = form(("image", name, data))
        return self.json("POST", "/api/classify", body, headers)

    def checks(self):
        return {c["id"]: c for c in self.json("GET", "/api/checks")[1]["checks"]}

    def wait(self, seconds=120):
        def answers():
            try:
                return self.json("GET", "/api/models")[0] == 200
            except (OSError, ValueError, http.client.HTTPException):
                return False
        lib.wait_for(answers, f"page at port {self.port}", seconds)


class Chromium:
    """A browser that looks at sites; `there` is False where none is installed."""

    def __init__(self):
        self.there = bool(shutil.which("chromium") and shutil.which("chromedriver"))
        self.profile = tempfile.mkdtemp(prefix="talpa-chromium-")
        self.browser = Browser() if self.there else None
        if self.there:
            self.browser.start(pathlib.Path(self.profile) / "profile")
        else:
            print("Chromium is not installed: the page was not opened")

    def open(self, site, model=True):
        page = Page(self.browser, site, None)
        page.open(model)
        return page

    def close(self):
        if self.there:
            self.browser.quit()
        shutil.rmtree(self.profile, ignore_errors=True)


def fine(site, expected, chromium):
    """All checks ok, the API's answer and the page's those that are expected."""
    status, answer = site.classify(PHOTO.read_bytes())
    lib.check(status == 200, f"classify: {status} {answer}")
    lib.equal(top_of(answer), expected, "the classes of talpa run, to six places")
    lib.equal({i: c["state"] for i, c in site.checks().items() if c["state"] != "ok"}, {}, "checks that are not ok")
    if chromium.there:
        page = chromium.open(site)
        page.choose(PHOTO)
        page.classify()
        page.settled()
        said = page.text(".top1")
        lib.check(expected[0][1] in said, f"the page says {said!r}, not {expected[0][1]}")
        lib.equal(page.browser.run("return document.querySelectorAll('.bars li').length"), 5, "bars")
        lib.equal(page.browser.run("return document.querySelectorAll('.checklist li[data-state=ok]').length"), 10, "checks that are ok, on the page")


def page_names(site, chromium, check, state, fix):
    """The check's state and fix in the API's answer, and to be read on the page."""
    found = Site(site.port).checks()[check]
    lib.equal(found["state"], state, f"check {check}: {found}")
    lib.check(fix in found["fix"], f"check {check}: {fix!r} is not in {found['fix']!r}")
    if chromium.there:
        page = chromium.open(site, model=False)
        lib.equal(page.browser.run("return document.querySelector(`[data-check=${arguments[0]}]`).dataset.state", check), state, f"{check} on the page")
        page.browser.run("document.querySelector(`[data-check=${arguments[0]}] details`).open = true", check)
        lib.check(fix in page.text(f"[data-check={check}]"), f"{check}: the page does not say {fix!r}")
