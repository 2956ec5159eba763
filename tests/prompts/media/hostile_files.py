"""Makes hostile and broken files, each with a name."""

import gzip
import io
import pickle
import random
import struct
import zipfile
import zlib
from collections.abc import Iterator

from PIL import Image

from tests.prompts.media.files import PNG_SIGNATURE, chunk, exif, plain, png, saved

Files = Iterator[tuple[str, bytes]]


def noise(width: int = 60, height: int = 45) -> Image.Image:
    return Image.frombytes("RGB", (width, height), random.Random(0).randbytes(width * height * 3))


def png_header(width: int, height: int, depth: int = 8, colour: int = 2, *more: int) -> bytes:
    return chunk(
        b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, *(more or (0, 0, 0)))
    )


END = chunk(b"IEND", b"")
PIXEL = chunk(b"IDAT", zlib.compress(b"\0\1\2\3"))


def riff(content: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", len(content) + 4) + b"WEBP" + content


def extended_webp(width: int, height: int, rest: bytes = b"") -> bytes:
    size = struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
    return riff(b"VP8X" + struct.pack("<I", 10) + b"\x02\0\0\0" + size + rest)


def bmp(
    width: int, height: int, compression: int = 0, depth: int = 24, rest: bytes = bytes(64)
) -> bytes:
    info = struct.pack("<IiiHHIIiiII", 40, width, height, 1, depth, compression, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54 + len(rest), 0, 0, 54) + info + rest


def jpeg_of_size(width: int, height: int) -> bytes:
    whole = saved(noise(8, 8), "JPEG")
    at = whole.index(b"\xff\xc0")
    return whole[: at + 5] + struct.pack(">HH", height, width) + whole[at + 9 :]


def gif_of_size(width: int, height: int, frame: tuple[int, int, int, int] | None = None) -> bytes:
    whole = saved(noise(8, 8).quantize(4), "GIF")
    at = whole.index(b",", 13 + 3 * 2 ** ((whole[10] & 7) + 1))
    canvas = struct.pack("<HH", width, height)
    place = struct.pack("<HHHH", *(frame or (0, 0, 8, 8)))
    return whole[:6] + canvas + whole[10 : at + 1] + place + whole[at + 9 :]


def enormous() -> Files:
    """Yields files whose headers give a size that is too large, or zero."""
    for width, height in (
        (65535, 65535),
        (2**31 - 1, 2**31 - 1),
        (2**32 - 1, 1),
        (1001, 1000),
        (0, 1),
        (1, 0),
        (0, 0),
    ):
        yield f"PNG of {width}x{height}", PNG_SIGNATURE + png_header(width, height) + PIXEL + END
    for width, height in ((65535, 65535), (65535, 1), (0, 0), (1001, 1000), (0, 5)):
        yield f"GIF of {width}x{height}", gif_of_size(width, height)
        yield f"JPEG of {width}x{height}", jpeg_of_size(width, height)
    yield "GIF whose frame makes it larger", gif_of_size(8, 8, (0, 0, 65535, 65535))
    yield "GIF whose frame is far outside", gif_of_size(8, 8, (65000, 65000, 8, 8))
    yield "GIF whose frame has no size", gif_of_size(8, 8, (0, 0, 0, 0))
    for width, height in ((2**24, 2**24), (2**24, 1), (2**24, 255), (1001, 1000)):
        yield f"WebP of {width}x{height}", extended_webp(width, height)
        yield (
            f"WebP of {width}x{height} with a frame",
            extended_webp(width, height, saved(noise(), "WEBP")[12:]),
        )
    lossless = struct.pack("<I", 9) + b"\x2f" + struct.pack("<I", 0x0FFFFFFF) + bytes(8)
    yield "lossless WebP of 16384x16384", riff(b"VP8L" + lossless)
    lossy = (
        struct.pack("<I", 20)
        + b"\x30\x01\0\x9d\x01\x2a"
        + struct.pack("<HH", 16383, 16383)
        + bytes(20)
    )
    yield "lossy WebP of 16383x16383", riff(b"VP8 " + lossy)
    for width, height in (
        (2**31 - 1, 2**31 - 1),
        (-5, 5),
        (5, -5),
        (5, -(2**31)),
        (0, 0),
        (65535, 65535),
    ):
        yield f"BMP of {width}x{height}", bmp(width, height)
    yield "BMP with run lengths", bmp(1000, 1000, 1, 8, bytes(1024) + b"\1\1" * 5000)
    yield "BMP with unknown compression", bmp(5, 5, 9)
    yield "BMP of 7 bits", bmp(5, 5, 0, 7)
    yield (
        "BMP whose header is as long as can be",
        b"BM" + struct.pack("<IHHII", 54, 0, 0, 54, 2**32 - 1) + bytes(50),
    )


def inflating() -> Files:
    """Yields small files whose data decompress to far more than a picture of their size needs."""
    bomb = zlib.compress(bytes(100 * 2**20), 9)
    small = zlib.compress(bytes(2**20 - 100), 9)
    header = PNG_SIGNATURE + png_header(1, 1)
    yield "PNG of a pixel with 100 MiB of pixels", header + chunk(b"IDAT", bomb) + END
    yield (
        "PNG of a million pixels without any",
        PNG_SIGNATURE + png_header(1000, 1000) + chunk(b"IDAT", b"") + END,
    )
    yield "PNG with 100 MiB of text", header + chunk(b"zTXt", b"a\0\0" + bomb) + PIXEL + END
    yield (
        "PNG with 100 MiB of text behind its pixels",
        header + PIXEL + chunk(b"zTXt", b"a\0\0" + bomb) + END,
    )
    yield "PNG with 100 MiB of UTF-8", header + chunk(b"iTXt", b"a\0\1\0\0\0" + bomb) + PIXEL + END
    yield "PNG with 100 MiB of a profile", header + chunk(b"iCCP", b"a\0\0" + bomb) + PIXEL + END
    yield (
        "PNG with many texts of a MiB",
        header + chunk(b"zTXt", b"a\0\0" + small) * 500 + PIXEL + END,
    )
    yield (
        "PNG with many profiles of a MiB",
        header + chunk(b"iCCP", b"a\0\0" + small) * 500 + PIXEL + END,
    )
    yield "PNG of empty chunks", header + chunk(b"aaAa", b"") * 80_000 + PIXEL + END
    yield (
        "PNG of empty chunks behind its pixels",
        header + PIXEL + chunk(b"aaAa", b"") * 80_000 + END,
    )
    pieces = zlib.compress(random.Random(0).randbytes(30_001), 0)
    one_by_one = b"".join(chunk(b"IDAT", pieces[at : at + 1]) for at in range(len(pieces)))
    yield "PNG of pixels one by one", PNG_SIGNATURE + png_header(10_000, 1) + one_by_one + END
    whole = saved(noise(), "JPEG")
    yield "JPEG of empty segments", whole[:2] + b"\xff\xe5\0\2" * 200_000 + whole[2:]
    yield "JPEG of fill bytes", whole[:2] + b"\xff" * 900_000 + whole[2:]
    yield "JPEG with thousands of scans", many_scans(5000)
    picture = saved(noise(8, 8).quantize(4), "GIF")
    head = 13 + 3 * 2 ** ((picture[10] & 7) + 1)
    for name, extension in (
        ("comments", b"!\xfe\1x\0"),
        ("empty comments", b"!\xfe\0"),
        ("unknown blocks", b"!\x42\1x\0"),
    ):
        yield f"GIF of {name}", picture[:head] + extension * 150_000 + picture[head:]
    yield (
        "GIF with one long comment",
        picture[:head] + b"!\xfe" + b"\1x" * 400_000 + b"\0" + picture[head:],
    )
    yield (
        "GIF with a thousand frames",
        saved(
            noise(8, 8),
            "GIF",
            save_all=True,
            append_images=[noise(8, 8).rotate(90 * turn) for turn in range(1000)],
        ),
    )


def many_scans(count: int) -> bytes:
    """Returns a progressive JPEG with its last scan repeated; a scan visits all of its blocks."""
    whole = saved(Image.new("L", (1000, 900), 77), "JPEG", progressive=True)
    last = whole.rindex(b"\xff\xda")
    return whole[:last] + whole[last:-2] * count + whole[-2:]


def malformed() -> Files:
    header = PNG_SIGNATURE + png_header(1, 1)
    yield "PNG without a header", PNG_SIGNATURE + PIXEL + END
    yield "PNG with two headers", header + png_header(900, 900) + PIXEL + END
    yield "PNG with a header behind its pixels", header + PIXEL + png_header(60_000, 60_000) + END
    yield "PNG with a short header", PNG_SIGNATURE + chunk(b"IHDR", b"\0\0\0\1") + PIXEL + END
    yield "PNG without pixels", header + END
    yield (
        "PNG with a palette that is not there",
        PNG_SIGNATURE + png_header(1, 1, 8, 3) + PIXEL + END,
    )
    yield (
        "PNG with an index outside of its palette",
        png(1, 1, b"\0\xff", colour=3, before_data=chunk(b"PLTE", b"abc")),
    )
    yield "PNG with a wrong checksum", png(1, 1, b"\0\1\2\3").replace(b"IDAT", b"IDAU")
    yield "PNG with pixels whose checksum is wrong", header + PIXEL[:-1] + b"x" + END
    yield "PNG with a chunk that is too long", header + b"\xff\xff\xff\xff" + b"IDAT" + b"x" * 100
    yield "PNG whose pixels are no zlib", header + chunk(b"IDAT", b"x" * 100) + END
    yield "PNG with a filter that is none", png(1, 1, b"\x09\1\2\3")
    yield "PNG with more pixels than it says", png(1, 1, b"\0\1\2\3" * 1000)
    for depth, colour, *more in (
        (3, 2),
        (16, 3),
        (8, 1),
        (8, 9),
        (0, 0),
        (8, 2, 1, 0, 0),
        (8, 2, 0, 1, 0),
        (8, 2, 0, 0, 9),
    ):
        yield (
            f"PNG of kind {depth, colour, *more}",
            PNG_SIGNATURE + png_header(1, 1, depth, colour, *more) + PIXEL + END,
        )
    for length in (0, 1, 3, 300):
        for colour in (0, 2, 3):
            transparency = chunk(b"PLTE", b"abc") + chunk(b"tRNS", b"\x01" * length)
            yield (
                f"PNG of {colour} with {length} of transparency",
                png(1, 1, b"\0\0\0\0", colour=colour, before_data=transparency),
            )
    animation = chunk(b"acTL", struct.pack(">II", 2**31, 0)) + chunk(b"fcTL", b"\xff" * 26)
    yield "PNG with frames without end", header + animation + PIXEL + END
    yield (
        "PNG with a frame outside",
        header + chunk(b"acTL", bytes(7)) + chunk(b"fcTL", bytes(26)) + PIXEL + END,
    )
    for name in (b"gAMA", b"cHRM", b"sRGB", b"pHYs", b"iCCP", b"iTXt", b"tEXt", b"zTXt", b"eXIf"):
        for length in (0, 5):
            yield (
                f"PNG with {length} of {name.decode()}",
                header + chunk(name, b"\xff" * length) + PIXEL + END,
            )
    whole = saved(noise(), "JPEG")
    for marker in (0xC0, 0xC4, 0xDB, 0xDA):
        at = whole.index(bytes((0xFF, marker)))
        yield (
            f"JPEG without {marker:x}",
            whole[:at] + whole[at + 2 + int.from_bytes(whole[at + 2 : at + 4]) :],
        )
        yield f"JPEG with a long {marker:x}", whole[: at + 2] + b"\xff\xff" + whole[at + 4 :]
        yield f"JPEG with a short {marker:x}", whole[: at + 2] + b"\0\2" + whole[at + 4 :]
    for metadata in (
        exif(6)[:-1],
        b"Exif\0\0MM\0*" + b"\xff" * 60_000,
        b"MPF\0MM\0*" + b"\xff" * 100,
        b"Exif\0\0" * 2,
    ):
        segment = struct.pack(">H", len(metadata) + 2) + metadata
        yield (
            f"JPEG with broken metadata {metadata[:12]!r}",
            whole[:2] + b"\xff\xe1" + segment + whole[2:],
        )
        yield (
            f"JPEG with broken pictures {metadata[:12]!r}",
            whole[:2] + b"\xff\xe2" + segment + whole[2:],
        )
    yield "GIF without an end", saved(noise(8, 8).quantize(4), "GIF")[:-1]
    yield "GIF without a picture", b"GIF89a\5\0\5\0\0\0\0;"
    yield (
        "GIF with code sizes that are none",
        gif_of_size(8, 8).replace(b"\0\0\x08\0\x08\0", b"\0\0\x08\0\x08\0\xff"),
    )
    yield "WebP without a frame", extended_webp(5, 5)
    yield (
        "WebP of empty chunks",
        riff(b"VP8X" + struct.pack("<I", 10) + bytes(10) + b"abcd\0\0\0\0" * 1000),
    )
    yield "WebP that is longer than it says", saved(noise(), "WEBP") + bytes(1000)
    yield "WebP with a wrong length", b"RIFF\xff\xff\xff\xff" + saved(noise(), "WEBP")[8:]


def cut_off() -> Files:
    for name, data in whole_files():
        for part in (1, 4, 12, 29, 40, 60, 90, len(data) // 4, len(data) // 2, len(data) * 3 // 4):
            yield f"{name} cut off at {part}", data[:part]
        yield f"{name}, all but 20", data[:-20]


def damaged() -> Files:
    for name, data in whole_files():
        source = random.Random(name)
        for number in range(6):
            changed = bytearray(data)
            for _ in range(1 + 4 * number):
                changed[source.randrange(len(data))] = source.randrange(256)
            yield f"{name}, damaged {number}", bytes(changed)
        for length in (10, 30, 1000, 50_000):
            yield f"{name}, then {length} random bytes", data[:20] + source.randbytes(length)
        yield f"{name}, twice", data + data
        yield f"{name}, then zeros", data[: len(data) // 2] + bytes(len(data))


def whole_files() -> Files:
    image = noise()
    frames = [image.rotate(turn) for turn in (90, 180)]
    yield "PNG", saved(image, "PNG")
    yield "PNG with a palette", saved(image.quantize(16), "PNG", transparency=3)
    yield "PNG with frames", saved(image, "PNG", save_all=True, append_images=frames)
    yield "JPEG", saved(image, "JPEG", exif=exif(6))
    yield "progressive JPEG", saved(image, "JPEG", progressive=True)
    yield "MPO", saved(image, "MPO", save_all=True, append_images=frames)
    yield "WebP", saved(image, "WEBP")
    yield "lossless WebP", saved(image.convert("RGBA"), "WEBP", lossless=True, exif=exif(3))
    yield "WebP with frames", saved(image, "WEBP", save_all=True, append_images=frames)
    yield "GIF", saved(image, "GIF")
    yield "GIF with frames", saved(image, "GIF", save_all=True, append_images=frames)
    yield "BMP", saved(image, "BMP")


def no_pictures() -> Files:
    """Yields other files, among them pictures in formats that the server does not read."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("picture.png", plain())
    for kind in (
        "TIFF",
        "ICO",
        "PPM",
        "TGA",
        "PCX",
        "EPS",
        "PDF",
        "AVIF",
        "JPEG2000",
        "ICNS",
        "SGI",
        "DDS",
    ):
        yield kind, saved(noise(32, 32), kind)
    for kind in ("XBM", "MSP"):
        yield kind, saved(noise(32, 32).convert("1"), kind)
    yield "nothing", b""
    yield "zip", archive.getvalue()
    yield "gzip", gzip.compress(plain())
    yield "pickle", pickle.dumps({"a": 1})
    yield "PNG in a PNG's base64", b"data:image/png;base64,iVBORw0KGgo="
    for beginning in (
        b"\0",
        b"GIF89a",
        b"\x89PNG",
        PNG_SIGNATURE,
        b"\xff\xd8\xff",
        b"BM",
        b"RIFF",
        b"RIFF....WEBP",
    ):
        yield f"only {beginning!r}", beginning
    for text in (
        "<svg xmlns='http://www.w3.org/2000/svg'><image href='file:///etc/passwd'/></svg>",
        "push graphic-context\nviewbox 0 0 1 1\nimage over 0,0 0,0 'https://a.org'",
        "#define x_width 1\n#define x_height 1",
        *(
            "<html></html>",
            "%PDF-1.7",
            "%!PS-Adobe-3.0 EPSF-3.0",
            "P6 1 1 255",
            "8BPS\0\1",
            "II*\0",
            "MM\0*",
            "\x7fELF",
        ),
        *(
            "\0\0\0\x20ftypavif",
            "\0\0\0\x0cjP  \r\n",
            "OggS",
            "ID3",
            "fLaC",
            "SIMPLE  =  T",
            "#!/bin/sh",
            "text " * 99,
        ),
    ):
        yield f"text {text[:20]!r}", text.encode("latin-1") + bytes(100)


GROUPS = (enormous, inflating, malformed, cut_off, damaged, no_pictures)
