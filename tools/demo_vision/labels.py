"""What each token of a picture shows, for the encoder to learn from while the model learns to speak of it.

The middle of a thing, or of each letter of a text, belongs to one token: there its kind, colour and size are learned.
"""

import numpy as np
from numpy.typing import NDArray

from tools.demo_vision.scene import Scene, letters
from tools.demo_vision.values import CAPITALS, COLORS, DIGITS, LETTERS, SHAPES

KINDS = ("", *SHAPES, *DIGITS, *CAPITALS, *LETTERS)
COLOR_NAMES = ("", *COLORS)
SIZE_NAMES = ("", "small", "large")
NUM_CLASSES = (len(KINDS), len(COLOR_NAMES), len(SIZE_NAMES), len(COLOR_NAMES))  # the last: of the background

Labels = NDArray[np.uint8]  # [tokens, one for each of NUM_CLASSES]


def labels_of(scene: Scene, rows: int, columns: int) -> Labels:
    labels = np.zeros((rows, columns, len(NUM_CLASSES)), np.uint8)
    labels[:, :, 3] = COLOR_NAMES.index(scene.background)
    for thing in scene.things:
        marks = [(thing.name, thing.x, thing.y)] if thing.kind == "shape" else [*letters(thing)]
        for name, x, y in marks:
            row = min(int(y / scene.height * rows), rows - 1)
            column = min(int(x / scene.width * columns), columns - 1)
            labels[row, column, :3] = KINDS.index(name), COLOR_NAMES.index(thing.color), SIZE_NAMES.index(thing.size)
    return labels.reshape(rows * columns, len(NUM_CLASSES))
