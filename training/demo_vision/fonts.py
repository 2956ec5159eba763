"""Fonts for what is written in pictures: Pillow's own one, and those that the system has in the usual place."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from PIL import ImageFont

SYSTEM_FONTS = Path("/usr/share/fonts")
UNREADABLE = ("Math", "ExtraLight", "Emoji", "Symbol", "Icon")
MEASURED_SIZE = 64


@dataclass(frozen=True, slots=True)
class Font:
    path: str  # "" is Pillow's own one

    def of_size(self, size: int) -> ImageFont.FreeTypeFont:
        return _loaded(self.path, size)

    def box(self, text: str) -> tuple[float, float, float, float]:
        """Returns left, top, right and bottom of the ink, in sizes of the font."""
        left, top, right, bottom = self.of_size(MEASURED_SIZE).getbbox(text)
        return (
            left / MEASURED_SIZE,
            top / MEASURED_SIZE,
            right / MEASURED_SIZE,
            bottom / MEASURED_SIZE,
        )

    def ratio(self, text: str) -> float:
        """Returns the width of a text by its height."""
        left, top, right, bottom = self.box(text)
        return (right - left) / (bottom - top)

    def middles(self, text: str) -> Iterator[tuple[str, float]]:
        """Gives each character with the share of the text's width at which its middle is."""
        font = self.of_size(MEASURED_SIZE)
        left, _, right, _ = font.getbbox(text)
        for number, character in enumerate(text):
            begin, end = font.getlength(text[:number]), font.getlength(text[: number + 1])
            yield character, ((begin + end) / 2 - left) / (right - left)


@functools.cache
def fonts() -> tuple[Font, ...]:
    found = sorted(SYSTEM_FONTS.glob("**/*.ttf"))
    named = [path for path in found if not any(part in path.name for part in UNREADABLE)]
    return (Font(""), *(Font(str(path)) for path in named))


@functools.lru_cache(maxsize=512)
def _loaded(path: str, size: int) -> ImageFont.FreeTypeFont:
    if path:
        return ImageFont.truetype(path, size)
    font = ImageFont.load_default(size)
    assert isinstance(font, ImageFont.FreeTypeFont), "Pillow is built without FreeType"
    return font
