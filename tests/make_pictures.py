#!/usr/bin/env python3
"""Makes the small pictures of tests/corpus/image_fuzz/: one of each kind, and some that must be refused. They seed the fuzz
target and are what the unit tests of src/image read. Needs Debian's python3-pil and python3-numpy."""
import pathlib
import random
import struct
import zlib

from PIL import Image

from image_pillow_test import bmp, bmp_rle, exif_bytes, make_kinds, png_16bit, saved


def png_header(width, height):
    chunk = lambda kind, body: struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b""))


def with_jpeg_size(jpeg, width, height):
    at = jpeg.index(b"\xff\xc0") + 5
    return jpeg[:at] + struct.pack(">HH", height, width) + jpeg[at + 4:]


def with_webp_canvas(width, height):
    """VP8X with a canvas of that size and the frame of a small lossless picture."""
    frame = saved(Image.new("RGB", (4, 4)), format="WEBP", lossless=True)[12:]
    body = b"WEBP" + b"VP8X" + struct.pack("<I", 10) + b"\2\0\0\0" + struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
    body += b"ANIM" + struct.pack("<IIH", 6, 0, 0)
    anmf = b"\0" * 6 + struct.pack("<I", 3)[:3] + struct.pack("<I", 3)[:3] + b"\0" * 4 + frame
    body += b"ANMF" + struct.pack("<I", len(anmf)) + anmf
    return b"RIFF" + struct.pack("<I", len(body)) + body


def main():
    folder = pathlib.Path(__file__).parent / "corpus" / "image_fuzz"
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(7)
    kinds = make_kinds()
    extension = {"jpeg": "jpg"}
    for kind, make in kinds.items():
        if "header" in kind and "header 40" not in kind and "24 bits" not in kind:
            continue
        name = kind.replace(",", "").replace(" ", "_") + "." + extension.get(kind.split()[0], kind.split()[0])
        (folder / name).write_bytes(make(rng, 19, 13))
    red = Image.new("RGB", (16, 8), (255, 0, 0))
    files = {
        "huge.png": png_header(20000, 20000),
        "huge.jpg": with_jpeg_size(saved(red, format="JPEG"), 20000, 20000),
        "huge.webp": with_webp_canvas(20000, 20000),
        "huge.bmp": struct.pack("<2sIHHIIiiHHIIiiII", b"BM", 0, 0, 0, 54, 40, 20000, 20000, 1, 24, 0, 0, 0, 0, 0, 0),
        "huge_rle.bmp": struct.pack("<2sIHHIIiiHHIIiiII", b"BM", 0, 0, 0, 54, 40, 20000, 20000, 1, 8, 1, 0, 0, 0, 0, 0) + b"\0\1",
        "empty_size.bmp": struct.pack("<2sIHHIIiiHHIIiiII", b"BM", 54, 0, 0, 54, 40, 0, 5, 1, 24, 0, 0, 0, 0, 0, 0),
        "empty_size.png": png_header(0, 5),
        "red.jpg": saved(red, format="JPEG", quality=95),
        "red_cmyk.jpg": saved(red.convert("CMYK"), format="JPEG", quality=95),
        "red_frame_on_canvas.webp": with_webp_canvas(9, 7),
    }
    # Half red, half blue, so that each orientation is to be told from the others.
    quarter = Image.new("RGB", (32, 16), (0, 0, 0))
    quarter.paste((255, 0, 0), (0, 0, 16, 8))
    quarter.paste((0, 255, 0), (16, 0, 32, 8))
    quarter.paste((0, 0, 255), (0, 8, 16, 16))
    for orientation in range(1, 9):
        files[f"orientation_{orientation}.jpg"] = saved(quarter, format="JPEG", quality=95, subsampling=0,
                                                        exif=exif_bytes(orientation, orientation % 2 == 0))
    for name, data in files.items():
        (folder / name).write_bytes(data)


main()
