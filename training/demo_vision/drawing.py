"""Scenes become pictures: plain, shaded, striped or noisy, sharp or not, of many sizes."""

import io
import math
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

from training.demo_vision.sampling import Sampler
from training.demo_vision.scene import Scene, Thing
from training.demo_vision.values import COLORS, Rgb

JITTER = 10
NUM_TINTS, MIN_CONTRAST = 12, 100  # tints that are tried, and their distance from the background
SIDES = (64, 420)  # of a square with as many pixels
SMALL_SIDES = (64, 80)
POLYGONS: dict[str, list[tuple[float, float]]] = {
    "square": [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
    "rectangle": [(-1, -1), (1, -1), (1, 1), (-1, 1)],
    "triangle": [(0, -1), (1, 0.8), (-1, 0.8)],
    "diamond": [(0, -1), (0.75, 0), (0, 1), (-0.75, 0)],
    "star": [
        (length * math.sin(math.pi * point / 5), -length * math.cos(math.pi * point / 5))
        for point, length in zip(range(10), (1.05, 0.42) * 5, strict=True)
    ],
    "cross": [
        *((-0.3, -1), (0.3, -1), (0.3, -0.3), (1, -0.3), (1, 0.3), (0.3, 0.3)),
        *((0.3, 1), (-0.3, 1), (-0.3, 0.3), (-1, 0.3), (-1, -0.3), (-0.3, -0.3)),
    ],
    "heart": [
        (math.sin(step * math.pi / 16) ** 3, -_y / 17 - 0.1)
        for step in range(32)
        for _y in [
            sum(
                a * math.cos(n * step * math.pi / 16)
                for n, a in ((1, 13), (2, -5), (3, -2), (4, -1))
            )
        ]
    ],
}


@dataclass(frozen=True, slots=True)
class Looks:
    """Says how a scene is drawn; two pictures of a comparison share it."""

    side: int  # in pixels, of a square with as many
    scale: int  # it is drawn so many times larger, and reduced
    background: Rgb
    shade: Rgb  # the other end of a gradient, or the other stripes
    pattern: str
    noise: int
    quality: int  # of JPEG; 0 for none
    outline: bool


def looks_of(sampler: Sampler, scene: Scene, level: int) -> Looks:
    low, high = SMALL_SIDES if level == 1 else SIDES
    side = round(math.exp(sampler.between(math.log(low), math.log(high))))
    background = tint(sampler, scene.background)
    is_plain = level == 1 or sampler.chance(0.6)
    lighter = sampler.rng.randint(-26, 26)
    return Looks(
        side=side,
        scale=sampler.any((2, 3)) if side < 160 else sampler.any((1, 2)),
        background=background,
        shade=clipped(tuple(channel + lighter for channel in background)),
        pattern="plain" if is_plain else sampler.any(("across", "down", "stripes")),
        noise=0 if is_plain or sampler.chance(0.5) else sampler.rng.randint(4, 28),
        quality=0 if sampler.chance(0.8) else sampler.rng.randint(50, 90),
        outline=sampler.chance(0.1),
    )


def tint(sampler: Sampler, color: str) -> Rgb:
    return clipped(
        tuple(
            channel + sampler.rng.randint(-JITTER, JITTER) for channel in sampler.any(COLORS[color])
        )
    )


def apart_from(background: Rgb, sampler: Sampler, color: str) -> Rgb:
    """Returns a tint of a colour that can be seen on the background."""
    tints = [tint(sampler, color) for _ in range(NUM_TINTS)]
    return next((each for each in tints if math.dist(each, background) > MIN_CONTRAST), tints[-1])


def clipped(channels: tuple[int, ...]) -> Rgb:
    red, green, blue = (min(max(channel, 0), 255) for channel in channels)
    return red, green, blue


def draw(sampler: Sampler, scene: Scene, looks: Looks) -> Image.Image:
    size = max(16, round(looks.side * scene.width)), max(16, round(looks.side * scene.height))
    image = background(looks, (size[0] * looks.scale, size[1] * looks.scale))
    for thing in scene.things:
        color = apart_from(looks.background, sampler, thing.color)
        if thing.kind == "shape":
            draw_shape(image, thing, color, looks)
        else:
            draw_text(image, thing, color, looks)
    if looks.scale > 1:
        image = image.resize(size, Image.Resampling.BOX)
    return spoilt(image, looks, sampler)


def background(looks: Looks, size: tuple[int, int]) -> Image.Image:
    if looks.pattern == "plain":
        return Image.new("RGB", size, looks.background)
    width, height = size
    length = width if looks.pattern == "across" else height
    ramp = np.linspace(0, 1, length)
    if looks.pattern == "stripes":
        ramp = np.floor(9 * ramp) % 2
    row = np.array(looks.background) + ramp[:, None] * (
        np.array(looks.shade) - np.array(looks.background)
    )
    pixels = row[None] if looks.pattern == "across" else row[:, None]
    return Image.fromarray(np.broadcast_to(pixels.astype(np.uint8), (height, width, 3)).copy())


def draw_shape(image: Image.Image, thing: Thing, color: Rgb, looks: Looks) -> None:
    pen, pixels = ImageDraw.Draw(image), looks.side * looks.scale
    line = (0, 0, 0) if sum(color) > 200 else (255, 255, 255)
    width = max(1, round(0.012 * pixels)) if looks.outline else 0
    x, y, half_width, half_height = (
        pixels * each for each in (thing.x, thing.y, thing.half_width, thing.half_height)
    )
    if thing.name == "circle":
        pen.ellipse(
            (x - half_width, y - half_height, x + half_width, y + half_height), color, line, width
        )
    elif thing.name == "ring":
        pen.ellipse(
            (x - half_width, y - half_height, x + half_width, y + half_height),
            None,
            color,
            round(0.4 * half_width),
        )
    else:
        turn = math.radians(thing.turn)
        corners = [
            (
                x + across * half_width * math.cos(turn) + down * half_height * math.sin(turn),
                y + down * half_height * math.cos(turn) - across * half_width * math.sin(turn),
            )
            for across, down in POLYGONS[thing.name]
        ]
        pen.polygon(corners, color, line, width)


def draw_text(image: Image.Image, thing: Thing, color: Rgb, looks: Looks) -> None:
    assert thing.font is not None
    pixels = looks.side * looks.scale
    left, top, right, bottom = thing.font.box(thing.name)
    size = max(6, round(2 * thing.half_width * pixels / (right - left)))
    font = thing.font.of_size(size)
    width, height = math.ceil((right - left) * size) + 4, math.ceil((bottom - top) * size) + 4
    mask = Image.new("L", (width, height))
    ImageDraw.Draw(mask).text((2 - left * size, 2 - top * size), thing.name, 255, font)
    if thing.turn:
        mask = mask.rotate(thing.turn, Image.Resampling.BILINEAR, expand=True)
    corner = round(thing.x * pixels - mask.width / 2), round(thing.y * pixels - mask.height / 2)
    image.paste(color, corner, mask)


def spoilt(image: Image.Image, looks: Looks, sampler: Sampler) -> Image.Image:
    """Adds what cameras and JPEG add."""
    if looks.noise:
        generator = np.random.default_rng(sampler.rng.getrandbits(32))
        pixels = np.asarray(image).astype(np.int16)
        pixels += generator.integers(-looks.noise, looks.noise + 1, pixels.shape, np.int16)
        image = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
    if looks.quality:
        file = io.BytesIO()
        image.save(file, "JPEG", quality=looks.quality)
        image = Image.open(file).convert("RGB")
    return image
