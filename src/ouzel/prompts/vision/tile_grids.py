"""Chooses the grid of tiles that is closest to a picture's shape."""

import math
from collections.abc import Sequence


def list_grids(min_tiles: int, max_tiles: int) -> list[tuple[int, int]]:
    """Returns (columns, rows) of all grids with tiles in this range, the smallest grid first."""
    sides = range(1, max_tiles + 1)
    grids = [(columns, rows) for columns in sides for rows in sides]
    return sorted(
        (grid for grid in grids if min_tiles <= math.prod(grid) <= max_tiles), key=math.prod
    )


def choose_grid(
    grids: Sequence[tuple[int, int]], width: int, height: int, tile_area: int
) -> tuple[int, int]:
    """Returns the (columns, rows) of `grids` whose ratio is closest to the picture's.

    Several grids may have this ratio: it takes the largest grid of which the picture fills more
    than half, else the smallest. `tile_area` is the number of pixels of a tile. Without grids it
    returns (1, 1).
    """
    ratio, area = width / height, width * height
    best, smallest = (1, 1), float("inf")
    for columns, rows in grids:
        distance = abs(ratio - columns / rows)
        is_filled = area > 0.5 * tile_area * columns * rows
        if distance < smallest or (distance == smallest and is_filled):
            best, smallest = (columns, rows), distance
    return best
