#!/usr/bin/env python3
"""The web application's page in a real browser: pictures by file, by drop, by paste, by sample and many at once; every failure
that users meet; a server that restarts; keyboard; no request beyond the board, no console message, no layout shift; axe finds
nothing serious. --shots DIR keeps screenshots. Skipped (77) where Chromium or ChromeDriver is missing."""
import base64
import json
import pathlib
import shutil
import sys
import tempfile
import time

from board_tree import BoardTree, need_firmware
from inspect_html_test import KEY, Browser
from talpa_test import GOLDEN, REFERENCE, SKIPPED, SOURCE, Checks
from webapp_tool import Server

RESNET = GOLDEN / "models/resnet8_random/resnet8_random.pte"
MOBILENET = REFERENCE / "models/mobilenet_v2/mobilenet_v2.pte"
PHOTO = SOURCE / "docs/pictures/chelsea.jpg"
AXE = SOURCE / "build/webapp-page/work/node_modules/axe-core/axe.min.js"
REAL = MOBILENET.exists()


class Page:
    def __init__(self, browser, server, shots):
        self.browser, self.server, self.shots = browser, server, shots

    def open(self, model=True):
        self.browser.call("POST", "/url", {"url": f"http://127.0.0.1:{self.server.port}/"})
        self.wait("return document.querySelectorAll('.checklist li').length === 10")
        if model:
            self.wait("return document.querySelector('#model').value !== ''")

    def wait(self, script, *args, seconds=40):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.browser.run(script, *args):
                return True
            time.sleep(0.05)
        raise AssertionError(f"never true: {script} {args}\n" + self.text("body"))

    def text(self, css):
        return self.browser.run("return document.querySelector(arguments[0])?.innerText ?? ''", css)

    def choose(self, *paths):
        self.browser.type("#file", "\n".join(str(p) for p in paths))

    def classify(self):
        self.wait("return !document.querySelector('#classify').disabled")
        self.browser.click("#classify")

    def settled(self):
        self.wait("return !document.querySelector('.gallery button:not([data-state=done]):not([data-state=failed])') && !!document.querySelector('.gallery button')")

    def shot(self, name):
        if self.shots:
            height = self.browser.run("return document.documentElement.scrollHeight")
            width = self.browser.run("return innerWidth")
            metrics = {"width": width, "height": min(height, 3000), "deviceScaleFactor": 1, "mobile": False}
            self.devtools("Emulation.setDeviceMetricsOverride", metrics)
            (self.shots / f"{name}.png").write_bytes(base64.b64decode(self.browser.call("GET", "/screenshot")))
            self.devtools("Emulation.clearDeviceMetricsOverride", {})

    def devtools(self, command, parameters):
        return self.browser.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def axe(self, check, what):
        if not AXE.exists():
            print("axe-core is not there: accessibility was not checked")
            return
        self.browser.run(AXE.read_text() + "; window.axeDone = null; axe.run(document).then(r => window.axeDone = r.violations, e => window.axeDone = [{id: String(e), impact: 'critical', nodes: []}]);")
        self.wait("return window.axeDone !== null")
        found = self.browser.run("return window.axeDone.map(v => [v.impact, v.id, v.nodes.map(n => n.html).slice(0, 3)])")
        check.equal([v for v in found if v[0] in ("serious", "critical")], [], f"axe: {what}")
        if found:
            print(f"axe, {what}: {found}")


def by_file(check, page):
    page.open()
    page.shot("empty")
    page.axe(check, "empty page")
    page.choose(PHOTO)
    page.classify()
    page.settled()
    if REAL:
        check.that("Egyptian cat" in page.text(".top1") or "tabby" in page.text(".top1") or "tiger cat" in page.text(".top1"), page.text(".top1"))
    check.equal(page.browser.run("return document.querySelectorAll('.bars li').length"), 5, "five bars")
    check.that(page.browser.run("return document.querySelector('.best img').naturalWidth") in (32, 224), "the crop that the network saw")
    check.that("ms" in page.text(".legend") and "NPU" in page.text(".legend"), page.text(".legend"))
    page.wait("return document.querySelectorAll('.analysis tbody tr').length > 4")
    check.that("cycles" in page.text(".analysis"), "cycles")
    check.that(page.text("#said") != "", "a screen reader is told")
    page.shot("done-light")
    page.axe(check, "with a result")
    page.browser.run("for (const d of document.querySelectorAll('details')) d.open = true")
    page.axe(check, "everything open")
    page.devtools("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
    page.shot("done-dark")
    page.axe(check, "dark")
    page.devtools("Emulation.setEmulatedMedia", {"features": []})


DROP = """const [kind, name, base] = arguments, bytes = Uint8Array.from(atob(base), c => c.charCodeAt(0));
    const data = new DataTransfer(); data.items.add(new File([bytes], name, {type: 'image/jpeg'}));
    document.body.dispatchEvent(kind === 'paste' ? new ClipboardEvent('paste', {clipboardData: data, bubbles: true}) : new DragEvent(kind, {dataTransfer: data, bubbles: true, cancelable: true}));"""


def by_other_ways(check, page):
    data = base64.b64encode(PHOTO.read_bytes()).decode()
    for kind in ("drop", "paste"):
        page.open()
        page.browser.run(DROP, kind, f"{kind}.jpg", data)
        page.classify()
        page.settled()
        check.equal(page.browser.run("return document.querySelector('.gallery button').dataset.state"), "done", f"by {kind}")
    page.open()
    page.wait("return document.querySelectorAll('.samples button').length >= 2")
    page.browser.click(".samples button")
    page.classify()
    page.settled()
    check.equal(page.browser.run("return document.querySelector('.gallery button').dataset.state"), "done", "a sample")
    # By keyboard alone: to the button and Enter.
    page.browser.run("document.querySelector('#classify').focus()")
    page.browser.type("#classify", KEY["enter"])
    page.settled()
    check.equal(page.browser.run("return document.querySelector('input[capture]').accept"), "image/*", "the camera")


def many(check, page, folder):
    page.open()
    paths = []
    for i in range(7):
        paths.append(folder / f"many{i}.jpg")
        paths[-1].write_bytes(PHOTO.read_bytes())
    bad = folder / "text.jpg"
    bad.write_text("not a picture")
    empty = folder / "empty.png"
    empty.write_bytes(b"")
    huge = folder / "huge.jpg"
    huge.write_bytes(PHOTO.read_bytes() + bytes(3 << 20))
    page.choose(*paths, bad, empty, huge)
    check.that("10 pictures" in page.text("#classify"), page.text("#classify"))
    page.classify()
    page.settled()
    states = page.browser.run("return [...document.querySelectorAll('.gallery button')].map(b => [b.title, b.dataset.state])")
    check.equal(sorted(s for _, s in states), ["done"] * 7 + ["failed"] * 3, f"many at once: {states}")
    for name, code in (("text.jpg", "invalid-picture"), ("empty.png", "empty-picture"), ("huge.jpg", "too-large")):
        page.browser.run("[...document.querySelectorAll('.gallery button')].find(b => b.title === arguments[0]).click()", name)
        page.wait("return document.querySelector('.answer .problem .code')?.innerText.includes(arguments[0])", code)
    page.shot("many")
    page.axe(check, "many")


def broken_board(check, page, board):
    page.open()
    page.wait("return document.querySelector('.board').innerText.includes('running')")
    board.stop()
    page.wait("return document.querySelector('.board').innerText.includes('offline')")
    page.wait("return document.querySelector('[data-check=firmware]').dataset.state === 'failed'")
    page.choose(PHOTO)
    page.classify()
    page.settled()
    check.that("echo start" in page.text(".answer .problem"), page.text(".answer"))
    page.browser.run("document.querySelector('[data-check=firmware] details').open = true")
    check.that("echo start" in page.text("[data-check=firmware]"), "the check says what to do")
    page.shot("stopped")
    page.axe(check, "a stopped board")
    board.start()
    page.wait("return document.querySelector('[data-check=firmware]').dataset.state === 'ok'")
    page.classify()  # again
    page.wait("return document.querySelector('.gallery button').dataset.state === 'done'")


def restarted_server(check, page, arguments):
    page.open()
    port = page.server.port
    page.server.stop()
    page.wait("return !!document.querySelector('.banner')")
    page.choose(PHOTO)
    page.classify()
    page.settled()
    check.that("does not answer" in page.text(".answer .problem"), page.text(".answer"))
    page.shot("reconnecting")
    page.server = Server(*arguments, port=port)
    page.wait("return !document.querySelector('.banner')")
    page.classify()
    page.wait("return document.querySelector('.gallery button').dataset.state === 'done'")


def upload(check, page):
    page.open()
    page.browser.run("document.querySelector('.models details').open = true")
    page.browser.type("#pte", str(SOURCE / "README.md"))
    page.browser.click(".models form button")
    page.wait("return document.querySelector('.models .problem')?.innerText.includes('invalid-model')")
    if REAL:
        page.browser.run("document.querySelector('#pte').value = ''")
        page.browser.type("#pte", str(RESNET))
        page.browser.click(".models form button")
        page.wait("return document.querySelector('#model').selectedOptions[0].text.includes('(uploaded)')")
        page.choose(PHOTO)
        page.classify()
        page.settled()
        check.equal(page.browser.run("return document.querySelector('.best img').naturalWidth"), 32, "the uploaded network's crop")


def phone(check, page):
    page.devtools("Emulation.setDeviceMetricsOverride", {"width": 390, "height": 800, "deviceScaleFactor": 2, "mobile": True})
    page.open()
    page.choose(PHOTO)
    page.classify()
    page.settled()
    check.that(page.browser.run("return document.documentElement.scrollWidth <= innerWidth"), "no sideways scrolling on a phone")
    small = page.browser.run("return [...document.querySelectorAll('button, select')].filter(b => b.getBoundingClientRect().height < 24).map(b => b.outerHTML)")
    check.equal(small, [], "targets for a finger")
    if page.shots:
        (page.shots / "phone.png").write_bytes(base64.b64decode(page.devtools("Page.captureScreenshot", {"captureBeyondViewport": True})["data"]))
    page.axe(check, "phone")
    page.devtools("Emulation.clearDeviceMetricsOverride", {})


def steady(check, page):
    """Nothing moves while the page comes up, and nothing is asked of anybody else."""
    page.browser.log("performance")
    page.browser.log("browser")
    page.open()
    shift = page.browser.run("""return new Promise(done => new PerformanceObserver(list => done(list.getEntries().reduce((s, e) => s + e.value, 0))).observe({type: 'layout-shift', buffered: true}) || setTimeout(() => done(0), 500))""")
    check.that(shift < 0.1, f"layout shift {shift}")
    messages = [m for m in page.browser.log("browser") if m["level"] in ("SEVERE", "WARNING")]
    check.equal(messages, [], "console messages")
    for entry in page.browser.log("performance"):
        event = json.loads(entry["message"])["message"]
        if event["method"] != "Network.requestWillBeSent" or not event["params"]["documentURL"].startswith("http"):
            continue  # the browser's own start page
        url = event["params"]["request"]["url"]
        check.that(url.startswith((f"http://127.0.0.1:{page.server.port}/", "blob:", "data:", "about:")), f"requested {url}")


def main():
    need_firmware()
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        print("skipped: needs Chromium and ChromeDriver")
        sys.exit(SKIPPED)
    shots = pathlib.Path(sys.argv[2]) if sys.argv[1:2] == ["--shots"] else None
    if shots:
        shots.mkdir(parents=True, exist_ok=True)
    check = Checks()
    browser = Browser()
    with tempfile.TemporaryDirectory() as folder, BoardTree() as board:
        arguments = ["--root", board.root, "--program", MOBILENET if REAL else RESNET, "--upload-limit", 3]
        if REAL:
            arguments += ["--labels", REFERENCE / "imagenet_labels.txt"]
        page = Page(browser, Server(*arguments), shots)
        try:
            browser.start(pathlib.Path(folder) / "profile")
            steady(check, page)
            by_file(check, page)
            by_other_ways(check, page)
            many(check, page, pathlib.Path(folder))
            upload(check, page)
            phone(check, page)
            broken_board(check, page, board)
            restarted_server(check, page, arguments)
        finally:
            browser.quit()
            page.server.process.kill()
            page.server.process.wait()
    check.finish()


if __name__ == "__main__":
    main()
