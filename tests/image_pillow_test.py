#!/usr/bin/env python3
"""Pictures of every kind and size: what talpa decodes, resizes and crops equals what Pillow makes of the same files.

Pillow is the oracle (Image.open, ImageOps.exif_transpose, convert("RGB"), resize(BILINEAR)). At most 1/255 off is the
promise; equality is what we get and ask for. Run with a number for a longer run: image_pillow_test.py 1000
"""
import io
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

try:
    import numpy
    from PIL import Image, ImageOps
except ImportError:
    print("skipped: needs Debian's python3-pil and python3-numpy")
    sys.exit(77)

Image.MAX_IMAGE_PIXELS = None
TOOL = pathlib.Path(os.environ.get("TALPA_BUILD", "build/release")) / "bin" / "talpa_image_tool"


class Tool:
    """talpa_image_tool, kept running: a job a line."""

    def __init__(self, folder):
        self.process = subprocess.Popen([TOOL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.out = folder / "out.rgb"

    def ask(self, job, path, *numbers):
        self.process.stdin.write(" ".join([job, str(path), *map(str, numbers), str(self.out)]) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer.startswith("ok "):
            return answer
        width, height = map(int, answer.split()[1:])
        return numpy.fromfile(self.out, numpy.uint8).reshape(height, width, 3)


def pillow_rgb(path):
    picture = Image.open(path)
    if picture.mode in ("I", "I;16"):  # 16-bit grey: Pillow saturates at 255, we keep the high byte
        grey = (numpy.asarray(picture).astype(numpy.uint32) >> 8).astype(numpy.uint8)
        return Image.fromarray(grey).convert("RGB")
    return ImageOps.exif_transpose(picture).convert("RGB")


def smooth(rng, width, height, channels):
    """Something like a photo: waves and noise, so that JPEG has work to do."""
    y, x = numpy.mgrid[0:height, 0:width]
    planes = []
    for _ in range(channels):
        fx, fy, phase = rng.uniform(0, 0.2), rng.uniform(0, 0.2), rng.uniform(0, 6)
        wave = 127 + 100 * numpy.sin(x * fx + y * fy + phase)
        noise = numpy.random.default_rng(rng.randrange(1 << 30)).integers(-40, 40, (height, width))
        planes.append(numpy.clip(wave + noise, 0, 255))
    return numpy.stack(planes, axis=-1).astype(numpy.uint8)


def exif_bytes(orientation, big_endian):
    order = ">" if big_endian else "<"
    return (b"Exif\0\0" + (b"MM" if big_endian else b"II") + struct.pack(order + "HI", 42, 8)
            + struct.pack(order + "HHHIHHI", 1, 0x0112, 3, 1, orientation, 0, 0))


def png_16bit(rng, width, height, colour):
    """A 16-bit RGB(A) PNG by hand: Pillow reads but does not write them."""
    import zlib
    channels = {2: 3, 6: 4, 4: 2}[colour]
    data = numpy.random.default_rng(rng.randrange(1 << 30)).integers(0, 65536, (height, width * channels)).astype(">u2")
    raw = b"".join(b"\0" + row.tobytes() for row in data)
    chunk = lambda kind, body: struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, colour, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def png_interlaced(picture):
    """Adam7 by hand (Pillow does not write it): RGB, no filters."""
    import zlib
    pixels = numpy.asarray(picture.convert("RGB"))
    raw = b""
    for x0, y0, dx, dy in ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)):
        part = pixels[y0::dy, x0::dx]
        if part.size:
            raw += b"".join(b"\0" + row.tobytes() for row in part)
    chunk = lambda kind, body: struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    height, width = pixels.shape[:2]
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 1))
            + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def bmp(rng, width, height, bits, header, top_down, masks=None):
    """A BMP by hand, with any header."""
    stride = (width * bits + 31) // 32 * 4
    pixels = numpy.random.default_rng(rng.randrange(1 << 30)).integers(0, 256, (height, stride)).astype(numpy.uint8)
    colours = 1 << bits if bits <= 8 else 0
    palette = bytes(rng.randrange(256) for _ in range(colours * (3 if header == 12 else 4)))
    if header == 12:
        info = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        info = struct.pack("<IiiHHIIiiII", header, width, -height if top_down else height, 1, bits, 3 if masks else 0, 0, 2835, 2835, 0, 0)
        if masks:
            info += struct.pack("<III", *masks)
        info = info.ljust(max(header, len(info)), b"\0")
    offset = 14 + len(info) + len(palette)
    return struct.pack("<2sIHHI", b"BM", offset + pixels.size, 0, 0, offset) + info + palette + pixels.tobytes()


def bmp_rle(rng, width, height, bits):
    """RLE8 or RLE4: runs, literal stretches, rows that end early. Jumps, empty rows and odd literal stretches of RLE4 are
    left to unit tests with the documentation's own examples: Pillow 9.4 misreads them."""
    palette = bytes(rng.randrange(256) for _ in range(4 << bits))
    code = bytearray()
    for _ in range(height):
        x = 0
        while x < width:
            if rng.random() < 0.5 or width - x < 4:
                n = rng.randint(1, min(255, width - x))
                code += bytes([n, rng.randrange(256)])
                x += n
            elif rng.random() < 0.9:
                n = rng.randint(4, min(254, width - x)) & ~1
                body = bytes(rng.randrange(256) for _ in range(n * bits // 8))
                code += bytes([0, n]) + body + b"\0" * (len(body) % 2)
                x += n
            elif x > 0:
                break
        code += b"\0\0"
    code += b"\0\1"
    offset = 14 + 40 + len(palette)
    info = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, 1 if bits == 8 else 2, len(code), 0, 0, 0, 0)
    return struct.pack("<2sIHHI", b"BM", offset + len(code), 0, 0, offset) + info + palette + bytes(code)


def gif(rng, width, height, interlaced, transparent):
    """A GIF by hand: the frame stands somewhere on a larger screen, has a palette of its own or the screen's, and codes that
    are never compressed (a clear code before the table grows)."""
    left, top = rng.randint(0, 3), rng.randint(0, 3)
    screen = (left + width + rng.randint(0, 3), top + height + rng.randint(0, 3))
    palettes = [bytes(rng.randrange(256) for _ in range(3 * 128)) for _ in range(2)]
    local = rng.random() < 0.5
    pixels = numpy.random.default_rng(rng.randrange(1 << 30)).integers(0, 128, (height, width)).astype(numpy.uint8)
    rows = [y for first, step in ((0, 8), (4, 8), (2, 4), (1, 2)) for y in range(first, height, step)] if interlaced else range(height)
    bits = used = 0
    data = bytearray()
    for i, value in enumerate(pixels[list(rows)].ravel()):
        for code in ([128] if i % 100 == 0 else []) + [int(value)]:
            bits |= code << used
            used += 8
            while used >= 8:
                data.append(bits & 255)
                bits, used = bits >> 8, used - 8
    data.append(129)
    blocks = b"".join(bytes([len(data[i:i + 255])]) + data[i:i + 255] for i in range(0, len(data), 255)) + b"\0"
    control = b"\x21\xf9\x04" + bytes([1 if transparent else 0, 0, 0, rng.randrange(128), 0])
    return (b"GIF89a" + struct.pack("<HHBBB", *screen, 0xF6, rng.randrange(128), 0) + palettes[0] + control + b"\x2c"
            + struct.pack("<HHHHB", left, top, width, height, (0x86 if local else 0) | (0x40 if interlaced else 0))
            + (palettes[1] if local else b"") + b"\7" + blocks + b"\x3b")


def saved(picture, **options):
    file = io.BytesIO()
    picture.save(file, **options)
    return file.getvalue()


def make_kinds():
    """name -> function(rng, width, height) -> bytes of a file."""
    rgb = lambda rng, w, h: Image.fromarray(smooth(rng, w, h, 3))
    grey = lambda rng, w, h: Image.fromarray(smooth(rng, w, h, 1)[:, :, 0])
    rgba = lambda rng, w, h: Image.fromarray(smooth(rng, w, h, 4), "RGBA")
    cmyk = lambda rng, w, h: Image.fromarray(smooth(rng, w, h, 4), "CMYK")
    kinds = {
        "jpeg": lambda r, w, h: saved(rgb(r, w, h), format="JPEG", quality=r.choice((30, 75, 95)), subsampling=r.choice((0, 1, 2))),
        "jpeg progressive": lambda r, w, h: saved(rgb(r, w, h), format="JPEG", progressive=True, optimize=True),
        "jpeg grey": lambda r, w, h: saved(grey(r, w, h), format="JPEG"),
        "jpeg cmyk": lambda r, w, h: saved(cmyk(r, w, h), format="JPEG"),
        "jpeg exif": lambda r, w, h: saved(rgb(r, w, h), format="JPEG", exif=exif_bytes(r.randint(0, 9), r.random() < 0.5)),
        "png": lambda r, w, h: saved(rgb(r, w, h), format="PNG"),
        "png grey": lambda r, w, h: saved(grey(r, w, h), format="PNG"),
        "png alpha": lambda r, w, h: saved(rgba(r, w, h), format="PNG"),
        "png grey alpha": lambda r, w, h: saved(rgba(r, w, h).convert("LA"), format="PNG"),
        "png palette": lambda r, w, h: saved(rgb(r, w, h).quantize(r.choice((2, 4, 16, 256))), format="PNG"),
        "png palette transparent": lambda r, w, h: saved(rgb(r, w, h).quantize(16), format="PNG", transparency=r.randrange(2)),
        "png transparent": lambda r, w, h: saved(rgb(r, w, h), format="PNG", transparency=(1, 2, 3)),
        "png 1 bit": lambda r, w, h: saved(grey(r, w, h).convert("1"), format="PNG"),
        "png 16 grey": lambda r, w, h: saved(Image.fromarray(smooth(r, w, h, 1)[:, :, 0].astype(numpy.uint16) * 257 % 65521), format="PNG"),
        "png 16 rgb": lambda r, w, h: png_16bit(r, w, h, 2),
        "png 16 rgba": lambda r, w, h: png_16bit(r, w, h, 6),
        "png interlaced": lambda r, w, h: png_interlaced(rgb(r, w, h)),
        "png exif": lambda r, w, h: saved(rgb(r, w, h), format="PNG", exif=exif_bytes(r.randint(1, 8), r.random() < 0.5)),
        "webp": lambda r, w, h: saved(rgb(r, w, h), format="WEBP", quality=r.choice((20, 80))),
        "webp lossless": lambda r, w, h: saved(rgb(r, w, h), format="WEBP", lossless=True),
        "webp alpha": lambda r, w, h: saved(rgba(r, w, h), format="WEBP"),
        "webp alpha lossless": lambda r, w, h: saved(rgba(r, w, h), format="WEBP", lossless=True, exact=True),
        "webp exif": lambda r, w, h: saved(rgb(r, w, h), format="WEBP", exif=exif_bytes(r.randint(1, 8), r.random() < 0.5)),
        "webp animation": lambda r, w, h: saved(rgb(r, w, h), format="WEBP", save_all=True, append_images=[rgb(r, w, h)]),
        "gif": lambda r, w, h: saved(rgb(r, w, h).quantize(r.choice((2, 4, 16, 256))), format="GIF"),
        "gif grey": lambda r, w, h: saved(grey(r, w, h), format="GIF"),
        "gif animation": lambda r, w, h: saved(rgb(r, w, h), format="GIF", save_all=True, append_images=[rgb(r, w, h)]),
        "gif by hand": lambda r, w, h: gif(r, w, h, False, False),
        "gif by hand, transparent": lambda r, w, h: gif(r, w, h, False, True),
        "gif by hand, interlaced": lambda r, w, h: gif(r, w, h, True, r.random() < 0.5),
        "bmp": lambda r, w, h: saved(rgb(r, w, h), format="BMP"),
        "bmp grey": lambda r, w, h: saved(grey(r, w, h), format="BMP"),
        "bmp rle8": lambda r, w, h: bmp_rle(r, w, h, 8),
        "bmp rle4": lambda r, w, h: bmp_rle(r, w, h, 4),
        "bmp 565": lambda r, w, h: bmp(r, w, h, 16, 40, False, (0xF800, 0x07E0, 0x001F)),
        "bmp fields": lambda r, w, h: bmp(r, w, h, 32, r.choice((108, 124)), False, (0xFF0000, 0xFF00, 0xFF)),
    }
    for header in (12, 40, 64, 108, 124):
        for bits in (1, 4, 8, 16, 24, 32):
            if header == 12 and bits in (16, 32):
                continue
            for top_down in (False, True):
                if header == 12 and top_down:
                    continue
                kinds[f"bmp {bits} bits, header {header}{', top down' if top_down else ''}"] = (
                    lambda r, w, h, b=bits, i=header, t=top_down: bmp(r, w, h, b, i, t))
    return kinds


SIZES = [(1, 1), (2, 1), (1, 2), (3, 5), (1, 300), (1000, 7), (255, 257)]


def difference(ours, theirs):
    if isinstance(ours, str):
        return ours
    theirs = numpy.asarray(theirs)
    if ours.shape != theirs.shape:
        return f"shape {ours.shape}, Pillow has {theirs.shape}"
    worst = numpy.abs(ours.astype(int) - theirs.astype(int)).max()
    return f"off by up to {worst}/255" if worst > 0 else None


def torchvision_fit(picture, shorter, width, height):
    """Resize(shorter) and CenterCrop((height, width)) of torchvision 0.x, on Pillow pictures."""
    w, h = picture.size
    if w <= h:
        size = (shorter, int(shorter * h / w))
    else:
        size = (int(shorter * w / h), shorter)
    left, top = int(round((size[0] - width) / 2.0)), int(round((size[1] - height) / 2.0))
    return picture.resize(size, Image.BILINEAR).crop((left, top, left + width, top + height))


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    rng = random.Random(rounds)
    failures = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tool = Tool(folder)
        path = folder / "picture"

        def check(what, job, expected, *numbers):
            wrong = difference(tool.ask(job, path, *numbers), expected)
            if wrong:
                failures.append(f"{what}: {job} {numbers}: {wrong}")
                print(failures[-1], flush=True)

        kinds = make_kinds()
        for kind, make in kinds.items():  # every kind in several sizes, decoded
            for width, height in SIZES if "header" not in kind else SIZES[:4]:
                path.write_bytes(make(rng, width, height))
                check(f"{kind} {width}x{height}", "decode", pillow_rgb(path))
        for _ in range(rounds):  # random sizes, resized
            kind = rng.choice(list(kinds))
            width, height = (int(2 ** rng.uniform(0, 10.5)) for _ in range(2))
            path.write_bytes(make_kinds()[kind](rng, width, height))
            to = [int(2 ** rng.uniform(0, 9)) for _ in range(2)]
            if rng.random() < 0.2:
                to[rng.randrange(2)] = (width, height)[rng.randrange(2)]
            check(f"{kind} {width}x{height}", "resize", pillow_rgb(path).resize(to, Image.BILINEAR), *to)
            shorter = rng.choice((256, 232, 224, 36, 300))
            crop = [rng.randint(1, shorter), rng.randint(1, shorter)] if rng.random() < 0.5 else [min(224, shorter)] * 2
            if max(width, height) * shorter / min(width, height) < 20000:  # Pillow makes the whole scaled picture
                check(f"{kind} {width}x{height}", "fit", torchvision_fit(pillow_rgb(path), shorter, *crop), shorter, *crop)
        for width, height in ((5472, 3648), (10000, 40), (40, 10000)):  # 20 megapixels; thin
            tile = Image.fromarray(smooth(rng, min(width, 800), min(height, 800), 3))
            path.write_bytes(saved(tile.resize((width, height), Image.NEAREST), format="JPEG", quality=80))
            check(f"large {width}x{height}", "fit", torchvision_fit(pillow_rgb(path), 256, 224, 224), 256, 224, 224)
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
