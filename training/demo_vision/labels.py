"""What each token of a picture shows, for the encoder to learn from while the model learns to speak of it.

Every token that a thing covers knows which one; a letter of a text belongs to the token that its middle is in. Each
knows in which ninth of the picture it is, so that answers can name places by what the features say.
"""

import numpy as np
from numpy.typing import NDArray

from training.demo_vision.scene import Scene, Thing, letters
from training.demo_vision.values import CAPITALS, COLORS, DIGITS, LETTERS, PLACES, SHAPES

SHAPE_NAMES = ("", *SHAPES)
GLYPHS = ("", *DIGITS, *CAPITALS, *LETTERS)
COLOR_NAMES = ("", *COLORS)
SIZE_NAMES = ("", "small", "large")
NUM_CLASSES = tuple(map(len, (SHAPE_NAMES, GLYPHS, COLOR_NAMES, SIZE_NAMES, COLOR_NAMES, PLACES)))
BACKGROUND, PLACE = 4, 5  # which every token has

Labels = NDArray[np.uint8]  # [tokens, one for each of NUM_CLASSES]


def labels_of(scene: Scene, rows: int, columns: int) -> Labels:
    labels = np.zeros((rows, columns, len(NUM_CLASSES)), np.uint8)
    labels[:, :, BACKGROUND] = COLOR_NAMES.index(scene.background)
    thirds = [(6 * np.arange(number) + 3) // (2 * number) for number in (rows, columns)]
    labels[:, :, PLACE] = 3 * thirds[0][:, None] + thirds[1]
    for thing in scene.things:
        shape = SHAPE_NAMES.index(thing.name) if thing.kind == "shape" else 0
        covered = np.ix_(*_covered(scene, thing, rows, columns))
        for number, value in (
            (0, shape),
            (2, COLOR_NAMES.index(thing.color)),
            (3, SIZE_NAMES.index(thing.size)),
        ):
            labels[*covered, number] = value
    for thing in scene.texts:
        for name, x, y in letters(thing):
            labels[_token(y, scene.height, rows), _token(x, scene.width, columns), 1] = (
                GLYPHS.index(name)
            )
    return labels.reshape(rows * columns, len(NUM_CLASSES))


def _covered(
    scene: Scene, thing: Thing, rows: int, columns: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the rows and the columns of tokens whose middles are in the thing's box; those of its own middle too."""
    found = []
    for middle, half, length, number in (
        (thing.y, thing.half_height, scene.height, rows),
        (thing.x, thing.half_width, scene.width, columns),
    ):
        middles = (np.arange(number) + 0.5) * length / number
        is_inside = np.abs(middles - middle) < half
        is_inside[_token(middle, length, number)] = True
        found.append(np.flatnonzero(is_inside))
    return found[0], found[1]


def _token(place: float, length: float, number: int) -> int:
    return min(int(place / length * number), number - 1)
