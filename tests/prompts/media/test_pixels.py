"""Decoded pixels are the pixels that a viewer shows."""

import struct
from io import BytesIO

import numpy as np
import pytest
from PIL import Image, ImageOps

from tests.prompts.media.files import Rgb, chunk, decoded, exif, plain, png, read, saved

WHITE, BLACK, RED, GREEN, BLUE = (255, 255, 255), (0, 0, 0), (255, 0, 0), (0, 255, 0), (0, 0, 255)


def pixels(data: bytes) -> list[list[Rgb]]:
    """Decodes a file and returns its rows of colours."""
    image = decoded(read(data))
    assert image.mode == "RGB"
    rows: list[list[list[int]]] = np.asarray(image).tolist()
    return [[(red, green, blue) for red, green, blue in row] for row in rows]


def quarters() -> Image.Image:
    """Returns a picture with a colour in each corner; JPEG keeps the colours at this size."""
    image = Image.new("RGB", (64, 32), RED)
    image.paste(GREEN, (32, 0, 64, 16))
    image.paste(BLUE, (0, 16, 32, 32))
    image.paste(WHITE, (32, 16, 64, 32))
    return image


@pytest.mark.parametrize(
    ("file_format", "options"),
    [("PNG", {}), ("BMP", {}), ("GIF", {}), ("WEBP", {"lossless": True})],
)
def test_a_lossless_file_gives_its_pixels(file_format: str, options: dict[str, object]) -> None:
    data = saved(quarters(), file_format, **options)

    picture = read(data)

    assert (picture.format, picture.width, picture.height) == (file_format, 64, 32)
    assert decoded(picture).tobytes() == quarters().tobytes()


# The colours of the turned picture: top left, top right, bottom left, bottom right
CORNERS = {
    1: (RED, GREEN, BLUE, WHITE),
    2: (GREEN, RED, WHITE, BLUE),
    3: (WHITE, BLUE, GREEN, RED),
    4: (BLUE, WHITE, RED, GREEN),
    5: (RED, BLUE, GREEN, WHITE),
    6: (BLUE, RED, WHITE, GREEN),
    7: (WHITE, GREEN, BLUE, RED),
    8: (GREEN, WHITE, RED, BLUE),
}


@pytest.mark.parametrize("orientation", list(CORNERS))
@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "WEBP"])
def test_a_picture_is_turned_as_the_camera_was_held(orientation: int, file_format: str) -> None:
    picture = read(saved(quarters(), file_format, exif=exif(orientation), quality=95))
    image = decoded(picture)

    corners = np.asarray(image)[[0, 0, -1, -1], [0, -1, 0, -1]]
    assert np.abs(corners.astype(int) - CORNERS[orientation]).max() <= 8
    assert (
        image.size == (picture.width, picture.height) == ((64, 32) if orientation < 5 else (32, 64))
    )


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_rotation_equals_pillows_for_the_same_metadata(orientation: int) -> None:
    data = saved(quarters(), "PNG", exif=exif(orientation))
    with Image.open(BytesIO(data)) as image:
        expected = ImageOps.exif_transpose(image)

    assert decoded(read(data)).tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    "metadata",
    [
        exif(0),
        exif(9),
        exif(6)[:-8],
        exif(6)[:12],
        b"Exif\0\0",
        b"no metadata",
        b"Exif\0\0MM\0*" + b"\xff" * 40,
        # The orientation must be one value of 16 bits: here it has 32 bits, or there are two.
        b"Exif\0\0II*\0" + struct.pack("<IHHHII", 8, 1, 0x0112, 4, 1, 6),
        b"Exif\0\0II*\0" + struct.pack("<IHHHII", 8, 1, 0x0112, 3, 2, 6),
    ],
)
@pytest.mark.parametrize("file_format", ["JPEG", "PNG"])
@pytest.mark.filterwarnings("ignore::UserWarning:PIL.TiffImagePlugin")  # the server ignores it
def test_broken_metadata_leave_a_picture_as_it_is(metadata: bytes, file_format: str) -> None:
    image = decoded(read(saved(quarters(), file_format, exif=metadata, quality=95)))

    assert image.size == (64, 32)
    assert np.abs(np.asarray(image)[0, 0].astype(int) - RED).max() <= 8


def test_metadata_may_be_little_endian() -> None:
    metadata = b"Exif\0\0II*\0" + struct.pack("<IHHHIHHI", 8, 1, 0x0112, 3, 1, 6, 0, 0)

    assert read(saved(quarters(), "JPEG", exif=metadata)).width == 32


def test_transparent_pixels_are_white() -> None:
    rows = b"\0" + bytes((100, 50, 0, 255)) + bytes((100, 50, 0, 0)) + bytes((100, 50, 0, 128))

    assert pixels(png(3, 1, rows, colour=6)) == [[(100, 50, 0), WHITE, (177, 152, 127)]]


def test_grey_with_transparency_is_on_white() -> None:
    assert pixels(png(3, 1, b"\0" + bytes((100, 255, 100, 0, 100, 128)), colour=4)) == [
        [(100, 100, 100), WHITE, (177, 177, 177)]
    ]


PALETTE = chunk(b"PLTE", bytes((*RED, *GREEN, *BLUE)))


@pytest.mark.parametrize(
    ("transparency", "shown"),
    [
        (b"", [RED, GREEN, BLUE]),
        (chunk(b"tRNS", b"\0"), [WHITE, GREEN, BLUE]),
        (chunk(b"tRNS", b"\xff\x80\0"), [RED, (127, 255, 127), WHITE]),
        (chunk(b"tRNS", b"\xff\xff\0"), [RED, GREEN, WHITE]),
    ],
)
@pytest.mark.parametrize(
    ("depth", "row"), [(8, b"\0\x00\x01\x02"), (4, b"\0\x01\x20"), (2, b"\0\x18")]
)
def test_a_palette_may_be_transparent(
    transparency: bytes, shown: list[Rgb], depth: int, row: bytes
) -> None:
    data = png(3, 1, row, depth=depth, colour=3, before_data=PALETTE + transparency)

    assert pixels(data) == [shown]


def grey(level: int) -> Rgb:
    return level, level, level


@pytest.mark.parametrize(
    ("depth", "row", "shown"),
    [
        (1, b"\0\x40", [BLACK, WHITE]),
        (2, b"\0\x60", [grey(85), grey(170)]),
        (4, b"\0\x4e", [grey(68), grey(238)]),
        (8, b"\0\x07\xc8", [grey(7), grey(200)]),
        (16, b"\0\x07\x08\xc8\x09", [grey(7), grey(200)]),
    ],
)
def test_grey_of_every_depth(depth: int, row: bytes, shown: list[Rgb]) -> None:
    assert pixels(png(2, 1, row, depth=depth, colour=0)) == [shown]


@pytest.mark.parametrize(
    ("depth", "row", "level", "shown"),
    [
        (1, b"\0\x40", 0, [WHITE, WHITE]),
        (2, b"\0\x60", 1, [WHITE, grey(170)]),
        (4, b"\0\x4e", 4, [WHITE, grey(238)]),
        (8, b"\0\x07\xc8", 7, [WHITE, grey(200)]),
        (16, b"\0\x07\x08\xc8\x09", 0x0708, [WHITE, grey(200)]),
        (16, b"\0\x07\x08\xc8\x09", 0x0709, [grey(7), grey(200)]),
    ],
)
def test_a_grey_level_may_be_transparent(
    depth: int, row: bytes, level: int, shown: list[Rgb]
) -> None:
    data = png(
        2, 1, row, depth=depth, colour=0, before_data=chunk(b"tRNS", struct.pack(">H", level))
    )

    assert pixels(data) == [shown]


@pytest.mark.parametrize(("depth", "scale"), [(8, 1), (16, 256)])
def test_a_colour_may_be_transparent(depth: int, scale: int) -> None:
    colours = [(10, 20, 30), (40, 50, 60)]
    row = b"\0" + struct.pack(
        f">6{'B' if depth == 8 else 'H'}",
        *(scale * level for colour in colours for level in colour),
    )
    transparent = chunk(b"tRNS", struct.pack(">3H", *(scale * level for level in colours[0])))

    assert pixels(png(2, 1, row, depth=depth, before_data=transparent)) == [[WHITE, colours[1]]]
    assert pixels(png(2, 1, row, depth=depth)) == [colours]


def test_sixteen_bits_with_transparency() -> None:
    row = b"\0" + struct.pack(">8H", 25600, 12800, 0, 65535, 25600, 12800, 0, 0)

    assert pixels(png(2, 1, row, depth=16, colour=6)) == [[(100, 50, 0), WHITE]]


def test_levels_of_sixteen_bits_are_scaled_and_not_clipped() -> None:
    levels = np.linspace(0, 65535, 256).astype(np.uint16).reshape(16, 16)

    shown = np.asarray(decoded(read(saved(Image.fromarray(levels), "PNG"))))

    assert (shown == (levels >> 8)[:, :, None]).all()


@pytest.mark.parametrize(
    ("ink", "shown"),
    [
        ((0, 0, 0, 0), WHITE),
        ((0, 255, 255, 0), RED),
        ((255, 255, 0, 0), BLUE),
        ((0, 0, 0, 255), BLACK),
    ],
)
def test_inks_of_a_printer_are_colours(ink: tuple[int, int, int, int], shown: Rgb) -> None:
    image = decoded(read(saved(Image.new("CMYK", (16, 16), ink), "JPEG", quality=100)))

    assert np.abs(np.asarray(image).astype(int) - shown).max() <= 3


def test_a_grey_jpeg() -> None:
    assert pixels(saved(Image.new("L", (1, 1), 77), "JPEG")) == [[grey(77)]]


@pytest.mark.parametrize("file_format", ["GIF", "WEBP", "PNG"])
def test_the_first_frame_is_the_picture(file_format: str) -> None:
    frames = [Image.new("RGB", (5, 5), colour) for colour in (RED, GREEN, BLUE)]
    data = saved(frames[0], file_format, save_all=True, append_images=frames[1:], lossless=True)

    assert pixels(data) == [[RED] * 5] * 5


@pytest.mark.parametrize("file_format", ["GIF", "WEBP"])
def test_a_transparent_first_frame_is_on_white(file_format: str) -> None:
    first = Image.new("RGBA", (2, 1), (*RED, 255))
    first.putpixel((1, 0), (*RED, 0))
    data = saved(
        first,
        file_format,
        save_all=True,
        append_images=[Image.new("RGBA", (2, 1), BLUE)],
        lossless=True,
    )

    assert pixels(data) == [[RED, WHITE]]


def test_pixels_outside_a_first_frame_are_white() -> None:
    whole = saved(Image.new("P", (2, 1), 1), "GIF")
    image_at = whole.index(b",\0\0\0\0")  # its place and size follow
    canvas = struct.pack("<HH", 4, 2)
    data = (
        whole[:6]
        + canvas
        + whole[10 : image_at + 1]
        + struct.pack("<HH", 1, 1)
        + whole[image_at + 5 :]
    )

    colour = pixels(whole)[0][0]
    assert pixels(data) == [[WHITE] * 4, [WHITE, colour, colour, WHITE]]


def test_metadata_may_come_behind_the_pixels_of_a_png() -> None:
    whole = saved(quarters(), "PNG")
    data = whole[:-12] + chunk(b"eXIf", exif(6).removeprefix(b"Exif\0\0")) + whole[-12:]

    assert (read(data).width, decoded(read(data)).size) == (32, (32, 64))


def test_texts_and_profiles_of_a_png_are_not_read() -> None:
    others = chunk(b"zTXt", b"no zlib") + chunk(b"iCCP", b"no profile") + chunk(b"tEXt", b"\xff")

    assert pixels(png(1, 1, b"\0\1\2\3", before_data=others)) == [[(1, 2, 3)]]


def test_a_phones_picture_is_read_as_its_first_jpeg() -> None:
    data = saved(
        quarters(), "MPO", save_all=True, append_images=[Image.new("RGB", (8, 8))], exif=exif(6)
    )

    picture = read(data)

    assert (picture.format, picture.width, picture.height, decoded(picture).size) == (
        "JPEG",
        32,
        64,
        (32, 64),
    )


def test_a_picture_of_the_same_file_is_the_same() -> None:
    one, other = read(plain()), read(plain())

    assert one == other
    assert len(one.digest) == 16
    assert one.digest != read(plain(colour=BLUE)).digest


def test_a_picture_does_not_show_its_file() -> None:
    assert "data" not in repr(read(plain()))
