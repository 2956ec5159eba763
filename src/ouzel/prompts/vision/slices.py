"""MiniCPM-V reads a picture in its own shape, and a large one in slices of a grid as well.

Sources: transformers, models/minicpmv4_6/image_processing_pil_minicpmv4_6.py and
processing_minicpmv4_6.py; for older versions the checkpoints' own image_processing_minicpmv.py and
processing_minicpmv.py.
"""

import math
from dataclasses import dataclass

from PIL import Image

from ouzel.prompts.vision.base import (
    Detail,
    ImageLayout,
    Normalisation,
    Tiles,
    check_aspect_ratio,
)
from ouzel.prompts.vision.resizing import grid_tiles, one_tile, resized


@dataclass(frozen=True, slots=True)
class SliceMarks:
    """Special tokens around a picture, its slices and its number."""

    image: tuple[str, str]
    slice: tuple[str, str]
    number: tuple[str, str] | None  # None: without numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicingImageProcessor:
    """Prepares the whole picture as the first piece, and its slices as the second."""

    placeholder: str
    feature_token: str
    marks: SliceMarks
    normalisation: Normalisation
    resample: int
    scale: int  # side of a square whose pixels the whole picture and each slice have
    unit: int  # the sides of the whole picture and of slices are multiples of it, in pixels
    max_slices: int  # 0 or 1: a picture is never cut
    token_area: int  # pixels of a token; 0: a picture and a slice have `num_queries` tokens
    num_queries: int = 0
    writes_pictures_as_lines: bool = False  # the chat template reads texts only

    def number_text(self, number: int) -> str:
        if self.marks.number is None:
            return ""
        return f"{number}".join(self.marks.number)

    def layout(self, width: int, height: int, detail: Detail) -> ImageLayout:
        grid = self._grid(width, height, detail)
        num_whole = self._num_tokens(self._scaled(width, height))
        text = (self.feature_token * num_whole).join(self.marks.image)
        if grid is None:
            return ImageLayout(text, num_whole)
        columns, rows = grid
        num_slice = self._num_tokens(self._slice_size(width, height, grid))
        one = (self.feature_token * num_slice).join(self.marks.slice)
        text += "\n".join([one * columns] * rows)
        num_slices = rows * columns * num_slice
        return ImageLayout(text, num_whole + num_slices, piece_tokens=(num_whole, num_slices))

    def pieces(self, image: Image.Image, detail: Detail) -> list[Tiles]:
        grid = self._grid(*image.size, detail)
        whole = one_tile(resized(image, self._scaled(*image.size), self.resample))
        if grid is None:
            return [whole]
        width, height = self._slice_size(*image.size, grid)
        large = resized(image, (width * grid[0], height * grid[1]), self.resample)
        return [whole, grid_tiles(large, (width, height))]

    def _num_tokens(self, size: tuple[int, int]) -> int:
        return math.prod(size) // self.token_area if self.token_area else self.num_queries

    def _grid(self, width: int, height: int, detail: Detail) -> tuple[int, int] | None:
        """Returns the columns and rows of slices; None if the picture is not cut.

        Of equally close shapes the one with the most rows is chosen.
        """
        check_aspect_ratio(width, height)
        num = min(math.ceil(width * height / self.scale**2), self.max_slices)
        if detail == "low" or num <= 1:
            return None
        log_ratio = math.log(width / height)
        best, smallest = (1, 1), float("inf")
        for num_slices in (num - 1, num, num + 1):
            if num_slices == 1 or num_slices > self.max_slices:
                continue
            for rows in range(1, num_slices + 1):
                if num_slices % rows:
                    continue
                distance = abs(log_ratio - math.log(num_slices // rows / rows))
                if distance < smallest or (distance == smallest and rows > best[1]):
                    best, smallest = (num_slices // rows, rows), distance
        return best

    def _slice_size(self, width: int, height: int, grid: tuple[int, int]) -> tuple[int, int]:
        columns, rows = grid
        return self._scaled(_round_to(width, columns) / columns, _round_to(height, rows) / rows)

    def _scaled(self, width: float, height: float) -> tuple[int, int]:
        """Returns (width, height) of this shape with the pixels of the square, in whole units."""
        ratio = width / height
        scaled_height = int(self.scale / math.sqrt(ratio))
        return _round_to(int(scaled_height * ratio), self.unit), _round_to(scaled_height, self.unit)


def _round_to(length: float, unit: int) -> int:
    """Returns the nearest multiple of the unit, at least one unit."""
    return max(round(length / unit) * unit, unit)
