#!/usr/bin/env python3
"""The HTML report in a real browser: it opens from a file without a request or a console message, shows every operation, and
search, selection, layers, zoom and theme work. Skipped (77) where Chromium or ChromeDriver is missing."""
import http.client
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ.get("TALPA_SOURCE", pathlib.Path(__file__).parent.parent))
BUILD = pathlib.Path(os.environ.get("TALPA_BUILD", SOURCE / "build" / "release"))
TOOL = BUILD / "bin" / "talpa_report_tool"
GOLDEN = SOURCE / "tests" / "golden"
CHROME_FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
                "--disable-component-update", "--disable-sync", "--window-size=1300,1000"]
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEY = {"right": "\ue014", "escape": "\ue00c", "enter": "\ue007"}


class Browser:
    """A W3C WebDriver session over ChromeDriver's HTTP interface."""

    def __init__(self):
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.session = None
        self.port = next(int(line.rsplit(" ", 1)[1].rstrip(".\n")) for line in self.driver.stdout if "successfully on port" in line)

    def start(self, profile):
        options = {"binary": shutil.which("chromium"), "args": CHROME_FLAGS + [f"--user-data-dir={profile}"]}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        self.session = self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}}, bare=True)["sessionId"]

    def call(self, method, path, body=None, bare=False):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path if bare else f"/session/{self.session}{path}", json.dumps(body) if body is not None else None)
        value = json.loads(connection.getresponse().read())["value"]
        if isinstance(value, dict) and "error" in value:
            raise RuntimeError(f"{path}: {value['error']}: {value['message']}")
        return value

    def open(self, url):
        self.call("POST", "/url", {"url": "about:blank"})
        self.call("POST", "/url", {"url": url})

    def run(self, script, *args):
        return self.call("POST", "/execute/sync", {"script": script, "args": list(args)})

    def find(self, css):
        return self.call("POST", "/element", {"using": "css selector", "value": css})[ELEMENT]

    def click(self, css):
        self.call("POST", f"/element/{self.find(css)}/click", {})

    def type(self, css, text):
        self.call("POST", f"/element/{self.find(css)}/value", {"text": text})

    def log(self, kind):
        return self.call("POST", "/se/log", {"type": kind})

    def quit(self):
        try:
            if self.session:
                self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()


def report(program, folder, name):
    out = folder / f"{name}.html"
    subprocess.run([TOOL, program, out], check=True)
    return out.as_uri()


def quiet(browser, what):
    """No console message, and nothing requested but the file itself."""
    messages = [m for m in browser.log("browser") if m["level"] in ("SEVERE", "WARNING")]
    assert not messages, f"{what}: {messages}"
    for entry in browser.log("performance"):
        event = json.loads(entry["message"])["message"]
        if event["method"] == "Network.requestWillBeSent":
            if not event["params"]["documentURL"].startswith("file:"):
                continue  # the browser's own start page
            url = event["params"]["request"]["url"]
            assert url.startswith(("file:", "about:", "data:")), f"{what} requests {url}"


def visible_rows(browser):
    return browser.run("return [...document.querySelectorAll('#operation-table tbody tr')].filter(r => !r.hidden).length")


def check_network(browser, url, operations, layers):
    browser.open(url)
    assert visible_rows(browser) == operations, (visible_rows(browser), operations)
    assert browser.run("return document.querySelectorAll('.layer').length") == layers
    assert browser.run("return document.getElementById('operation-count').textContent") == f"{operations} operations"
    # Something is drawn: the charts are not one colour.
    for canvas in ("timeline-canvas", "memory-canvas"):
        colours = browser.run("""const c = document.getElementById(arguments[0]), p = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
            const seen = new Set(); for (let i = 0; i < p.length; i += 4) seen.add(p[i] << 16 | p[i + 1] << 8 | p[i + 2]); return seen.size;""", canvas)
        assert colours > 5, (canvas, colours)


def check_search(browser):
    browser.type("#search", "Conv 3x3")
    found = visible_rows(browser)
    assert 0 < found < 58, found
    assert browser.run("return document.getElementById('found').textContent") == f"{found} found"
    titles = browser.run("return [...document.querySelectorAll('#operation-table tbody tr')].filter(r => !r.hidden).map(r => r.cells[1].textContent)")
    assert all(t.startswith("Conv 3x3") for t in titles), titles
    browser.type("#search", KEY["enter"])
    assert browser.run("return document.querySelector('#detail h3').textContent").endswith(titles[0])
    browser.type("#search", " nosuchthing")
    assert visible_rows(browser) == 0
    browser.type("#search", KEY["escape"])
    assert visible_rows(browser) == 58


def check_layers_and_keys(browser):
    browser.click("#layer-3 > button")
    assert browser.run("return document.querySelectorAll('#layer-3 tr[data-op]').length") == 2
    browser.click("#layer-3 > button")
    assert browser.run("return document.querySelectorAll('#layer-3 tr[data-op]').length") == 0
    browser.click("#open-all")
    assert browser.run("return document.querySelectorAll('#layer-list tr[data-op]').length") == 58
    browser.click("#close-all")
    assert browser.run("return document.querySelectorAll('#edges path').length") > 16
    browser.type("body", KEY["right"])
    first = browser.run("return document.querySelector('#detail h3').textContent")
    browser.type("body", KEY["right"])
    assert browser.run("return document.querySelector('#detail h3').textContent") != first
    pixels = "const c = document.getElementById('timeline-canvas'); return c.toDataURL()"
    before = browser.run(pixels)
    browser.type("body", "+")
    assert browser.run(pixels) != before
    theme = "return document.documentElement.dataset.theme + getComputedStyle(document.body).backgroundColor"
    light = browser.run(theme)
    browser.type("body", "t")
    assert browser.run(theme) != light
    browser.type("body", KEY["escape"])


def hostile(folder):
    """A program whose compile specs try to break out of the page."""
    data = (GOLDEN / "models" / "resnet8_random" / "resnet8_random.pte").read_bytes()
    spec, attack = b"TOSA-1.0+INT+int16+int4+u55", b"</script><script>evil()<!--"
    assert spec in data and len(spec) == len(attack)
    path = folder / "a<b>&{{JS}}.pte"
    path.write_bytes(data.replace(spec, attack))
    return path


def main():
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        print("chromium or chromedriver is missing")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        browser = Browser()
        try:
            browser.start(folder / "profile")
            resnet = report(GOLDEN / "models" / "resnet8_random" / "resnet8_random.pte", folder, "resnet8")
            check_network(browser, resnet, 58, 16)
            check_search(browser)
            check_layers_and_keys(browser)
            quiet(browser, "resnet8")
            browser.open(resnet + "#q=add&theme=dark")
            assert visible_rows(browser) == 3 and browser.run("return document.documentElement.dataset.theme") == "dark"

            browser.open(report(GOLDEN / "pte_variants" / "fallback.pte", folder, "two_delegates"))
            assert browser.run("return document.getElementById('delegate').options.length") == 2
            browser.open(report(GOLDEN / "pte_variants" / "two_u85.pte", folder, "another_npu"))
            assert "ethos-u85" in browser.run("return document.getElementById('problem').textContent")
            browser.open(report(GOLDEN / "pte_variants" / "cond.pte", folder, "no_delegate"))
            assert "if not %0" in browser.run("return document.querySelector('#file-facts pre').textContent")

            browser.open(report(hostile(folder), folder, "hostile"))
            assert browser.run("return document.scripts.length") == 2
            assert visible_rows(browser) == 58
            assert browser.run("return document.getElementById('file').textContent") == "a<b>&{{JS}}.pte"
            assert "</script><script>evil()<!--" in browser.run("return document.getElementById('file-facts').textContent")
            quiet(browser, "the other reports")
        finally:
            browser.quit()
    print("58 operations, 16 layers; search, keys, layers, themes; no request, no message")
    return 0


if __name__ == "__main__":
    sys.exit(main())
