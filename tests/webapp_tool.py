"""What tests of the web application share: the server on a free port, requests to it."""
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import uuid

from talpa_test import BUILD, SANITIZED

WEBAPP = pathlib.Path(os.environ.get("TALPA_WEBAPP", BUILD / "bin" / "talpa-webapp"))


class Server:
    described = None  # an openapi.Described that looks at every answer

    def __init__(self, *arguments, port=0, env=None):
        command = [str(WEBAPP), "--listen", f"127.0.0.1:{port}", *map(str, arguments)]
        if SANITIZED:
            command.append("--no-sandbox")  # the sanitizers' runtime wants system calls that the server does not
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})})
        self.log = []
        self.port = None
        while self.port is None:
            line = self.process.stderr.readline()
            assert line, "the server ended: " + "".join(self.log)
            self.log.append(line)
            found = re.search(r"serving on .*:(\d+)", line)
            if found:
                self.port = int(found.group(1))
        os.set_blocking(self.process.stderr.fileno(), False)

    def more_log(self):
        try:
            self.log.append(self.process.stderr.read() or "")
        except (BlockingIOError, TypeError):
            pass
        return "".join(self.log)

    def request(self, method, path, body=None, headers=None, timeout=120):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        data = response.read()
        connection.close()
        if self.described:
            self.described.answer(method, path, response.status, response.getheader("Content-Type"), data)
        return response, data

    def json(self, method, path, body=None, headers=None):
        response, data = self.request(method, path, body, headers)
        return response.status, json.loads(data)

    def classify(self, *pictures, query=""):
        body, headers = form(*[("image", name, data) for name, data in pictures])
        return self.json("POST", "/api/classify" + query, body, headers)

    def resident_kib(self, field="VmRSS"):
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(rf"{field}:\s+(\d+)", status.read()).group(1))

    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def stop(self):
        """Ends it as a container engine does; seconds that it took."""
        started = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=20)
        return time.monotonic() - started

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stderr.close()


def form(*fields):
    """multipart/form-data of (name, file name, bytes)."""
    boundary = uuid.uuid4().hex
    body = b"".join(
        b"--" + boundary.encode() + f'\r\nContent-Disposition: form-data; name="{name}"'.encode()
        + (f'; filename="{filename}"\r\nContent-Type: application/octet-stream'.encode() if filename is not None else b"") + b"\r\n\r\n" + data + b"\r\n"
        for name, filename, data in fields) + b"--" + boundary.encode() + b"--\r\n"
    return body, {"Content-Type": f"multipart/form-data; boundary={boundary}"}
