#!/usr/bin/env python3
"""The way that talpa-webapp is measured against: Flask, Pillow, NumPy, mmap on /dev/mem and pyserial on the RPMsg tty, as a
Python page for this board does it: program and tensor are written for each picture, then RUN, and the reply is parsed.
flask_app.py ROOT PROGRAM PORT"""
import io
import logging
import mmap
import os
import sys
import time

import flask
import numpy
import serial
from PIL import Image, ImageOps

ROOT, PROGRAM, PORT = sys.argv[1], sys.argv[2], int(sys.argv[3])
MODEL, TENSOR = 0xC0000000, 0x36D000
app = flask.Flask(__name__)


def tensor_of(data):
    picture = ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB")
    width, height = picture.size
    scale = 256 / min(width, height)
    picture = picture.resize((int(width * scale), int(height * scale)), Image.BILINEAR)
    left, top = (picture.width - 224) // 2, (picture.height - 224) // 2
    pixels = numpy.asarray(picture.crop((left, top, left + 224, top + 224)), numpy.float32)
    return numpy.ascontiguousarray((pixels / 127.5 - 1).transpose(2, 0, 1)[None])


@app.post("/api/classify")
def classify():
    tensor = tensor_of(flask.request.files["image"].read())
    with open(PROGRAM, "rb") as file:
        program = file.read()
    fd = os.open(f"{ROOT}/dev/mem", os.O_RDWR | os.O_SYNC)
    with mmap.mmap(fd, 4 << 20, offset=MODEL) as memory:
        memory[0:len(program)] = program
        memory[TENSOR:TENSOR + tensor.nbytes] = tensor.tobytes()
    os.close(fd)
    top = []
    with serial.Serial(f"{ROOT}/dev/ttyRPMSG0", 115200, timeout=30) as tty:
        started = time.monotonic()
        tty.write(b"RUN\n")
        while True:
            line = tty.readline().decode()
            if line.startswith("TOP "):
                top.append({"class": int(line.split("class=")[1].split()[0]), "probability": float(line.split("score=")[1].split()[0])})
            if line.startswith(("OK RUN", "ERR")) or not line:
                break
        run_ms = (time.monotonic() - started) * 1000
    return {"top": top, "time_ms": {"run": run_ms}}


logging.getLogger("werkzeug").setLevel(logging.ERROR)
app.run("127.0.0.1", PORT, threaded=False)
