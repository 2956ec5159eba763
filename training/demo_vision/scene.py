"""What a picture shows, before it is drawn.

Lengths are in units: a picture has an area of one square unit, whatever its aspect ratio. Small and large shapes are
so in proportion to the picture, and never between the two; places keep off the borders between thirds. So whoever looks
can know the answer.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from training.demo_vision.fonts import Font, fonts
from training.demo_vision.sampling import Sampler
from training.demo_vision.values import BACKGROUND_SHARES, COLORS, PLACES, SHAPES, TOO_ALIKE

Kind = Literal["shape", "number", "word"]

RADII = {"small": (0.065, 0.09), "large": (0.14, 0.19)}
LARGEST_ALONE = 0.42
RADII_IN_CROWDS = {4: (0.065, 0.13), 9: (0.06, 0.085)}  # by how many there are at most
MARGIN = 0.015
NEAR = 0.36  # of a third's width: so far from its middle a thing in it may be
NUM_TRIES = 40


@dataclass(frozen=True, slots=True)
class Thing:
    kind: Kind
    name: str  # of the shape, or what is written
    color: str
    size: str  # small or large; "" of what is written
    place: str  # "" in a crowd
    x: float
    y: float
    half_width: float
    half_height: float
    turn: float = 0.0  # in degrees
    font: Font | None = None

    def overlaps(self, other: "Thing") -> bool:
        across = abs(self.x - other.x) < self.half_width + other.half_width + MARGIN
        return across and abs(self.y - other.y) < self.half_height + other.half_height + MARGIN


@dataclass(frozen=True, slots=True)
class Scene:
    things: tuple[Thing, ...]  # in reading order
    background: str
    aspect_ratio: float  # width by height
    has_places: bool

    @property
    def width(self) -> float:
        return math.sqrt(self.aspect_ratio)

    @property
    def height(self) -> float:
        return 1 / self.width

    @property
    def shapes(self) -> list[Thing]:
        return [thing for thing in self.things if thing.kind == "shape"]

    @property
    def texts(self) -> list[Thing]:
        return [thing for thing in self.things if thing.kind != "shape"]


def in_reading_order(things: Sequence[Thing]) -> tuple[Thing, ...]:
    """Sorts by places where there are some, else from top to bottom."""
    return tuple(
        sorted(
            things,
            key=lambda thing: (PLACES.index(thing.place) if thing.place else 0, thing.y, thing.x),
        )
    )


class SceneMaker:
    """Makes scenes of one level: 1 has single things, 2 a few, 3 everything."""

    def __init__(self, sampler: Sampler, level: int) -> None:
        self._sampler = sampler
        self._level = level

    def scene(self) -> Scene:
        return (
            self.crowd()
            if self._sampler.chance((0.0, 0.2, 0.35)[self._level - 1])
            else self.placed()
        )

    def placed(self, num_things: int = 0) -> Scene:
        """Makes one of up to four things, each in a place of its own."""
        sampler = self._sampler
        scene = self._empty(has_places=True)
        num_things = num_things or sampler.any(
            ((1,), (1, 2, 2, 3), (1, 2, 2, 3, 3, 4))[self._level - 1]
        )
        has_text = sampler.chance(0.55 if num_things == 1 else 0.4)
        return self._filled(scene, num_things, has_text=has_text)

    def only_shapes(self, num_things: int) -> Scene:
        return self._filled(self._empty(has_places=True), num_things, has_text=False)

    def crowd(self, num_things: int = 0) -> Scene:
        """Makes one of many small shapes of up to three kinds, anywhere."""
        sampler = self._sampler
        scene = self._empty(has_places=False)
        num_things = num_things or sampler.rng.randint(1, 4 if self._level == 2 else 9)
        kinds = [
            sampler.colored_shape(colors_on(scene.background))
            for _ in range(sampler.any((1, 2, 2, 3, 3)))
        ]
        if len(kinds) > 1 and sampler.chance(0.3):
            kinds[1] = (
                (kinds[0][0], kinds[1][1]) if sampler.chance(0.5) else (kinds[1][0], kinds[0][1])
            )
        radii = next(radii for most, radii in RADII_IN_CROWDS.items() if num_things <= most)
        for _ in range(num_things):
            color, shape = sampler.any(kinds)
            scene = self._with_thing(scene, self._shape(color, shape, "small", radii), [""])
        return scene

    def _empty(self, *, has_places: bool) -> Scene:
        sampler = self._sampler
        shares = {color: float(BACKGROUND_SHARES.get(color, 1)) for color in COLORS}
        aspect_ratio = sampler.any(
            (1.0, 1.0, 1.0, 4 / 3, 3 / 4, 3 / 2, 2 / 3, 16 / 9, 9 / 16, sampler.between(0.5, 2.2))
        )
        return Scene((), sampler.weighted(shares), aspect_ratio, has_places)

    def _filled(self, scene: Scene, num_things: int, *, has_text: bool) -> Scene:
        sampler = self._sampler
        is_alone = num_things == 1
        if has_text:  # before the shapes, for it needs more room
            scene = self._with_thing(scene, self._text(scene, is_alone=is_alone), PLACES)
        for _ in range(num_things - has_text):
            color, shape = self._kind_beside(scene)
            size = sampler.any(("small", "large"))
            radii = (
                (RADII["large"][0], LARGEST_ALONE) if is_alone and size == "large" else RADII[size]
            )
            scene = self._with_thing(scene, self._shape(color, shape, size, radii), PLACES)
        return scene if scene.things else self._filled(scene, num_things, has_text=False)

    def _kind_beside(self, scene: Scene) -> tuple[str, str]:
        """Often repeats the colour or the shape of another, so that neither tells the other."""
        colors, shapes, others = colors_on(scene.background), [*SHAPES], scene.shapes
        if others and self._sampler.chance(0.35):
            other = self._sampler.any(others)
            if self._sampler.chance(0.5):
                colors = [other.color]
            else:
                shapes = [other.name]
        return self._sampler.colored_shape(colors, shapes)

    def _shape(self, color: str, shape: str, size: str, radii: tuple[float, float]) -> Thing:
        sampler = self._sampler
        radius = sampler.between(*radii)
        half_width = half_height = radius
        if shape == "rectangle":
            half_width, half_height = sampler.any(((1.25, 0.6), (0.6, 1.25)))
            half_width, half_height = half_width * radius, half_height * radius
        turn = sampler.between(-12, 12) if sampler.chance(0.5) and shape != "diamond" else 0.0
        return Thing("shape", shape, color, size, "", 0, 0, half_width, half_height, turn)

    def _text(self, scene: Scene, *, is_alone: bool) -> Thing:
        """Makes a number or a word, whose letters are large enough to be read."""
        sampler = self._sampler
        kind: Kind = sampler.any(("number", "word"))
        text = sampler.number() if kind == "number" else sampler.word()
        font = sampler.any(fonts())
        ratio = font.ratio(text)
        widest = 0.9 * scene.width
        lowest = min(max(0.11 * len(text), 0.13 * ratio), widest)
        width = sampler.between(
            lowest, widest if is_alone else min(widest, max(0.22 * len(text), lowest))
        )
        width = min(width, 0.6 * scene.height * ratio)
        turn = sampler.between(-6, 6) if sampler.chance(0.3) else 0.0
        color = sampler.any(colors_on(scene.background))
        return Thing(kind, text, color, "", "", 0, 0, width / 2, width / ratio / 2, turn, font)

    def _with_thing(self, scene: Scene, thing: Thing, places: Sequence[str]) -> Scene:
        """Puts a thing where it fits; returns the scene as it was where it fits nowhere."""
        taken = {other.place for other in scene.things} - {""}
        free = [place for place in places if place not in taken]
        for _ in range(NUM_TRIES if free else 0):
            spot = self._spot(scene, thing, self._sampler.any(free))
            if spot is not None and not any(spot.overlaps(other) for other in scene.things):
                return replace(scene, things=in_reading_order([*scene.things, spot]))
        return scene

    def _spot(self, scene: Scene, thing: Thing, place: str) -> Thing | None:
        """Returns the thing somewhere in a place, or anywhere for ""; None where it would stand between two places."""
        row, column = divmod(PLACES.index(place), 3) if place else (0, 0)
        spots = []
        for length, half, number in (
            (scene.width, thing.half_width, column),
            (scene.height, thing.half_height, row),
        ):
            low, high = half + MARGIN, length - half - MARGIN
            if low > high:
                return None
            if not place:
                spots.append(self._sampler.between(low, high))
                continue
            middle, reach = (number + 0.5) * length / 3, NEAR * length / 3
            spot = min(max(middle + self._sampler.between(-reach, reach), low), high)
            if abs(spot - middle) > reach:
                return None
            spots.append(spot)
        return replace(thing, place=place, x=spots[0], y=spots[1])


def colors_on(background: str) -> list[str]:
    return [
        color
        for color in COLORS
        if color != background and frozenset((color, background)) not in TOO_ALIKE
    ]


def letters(thing: Thing) -> Iterator[tuple[str, float, float]]:
    """Gives each character of a text with its middle."""
    assert thing.font is not None
    turn = math.radians(thing.turn)
    for character, share in thing.font.middles(thing.name):
        along = (share - 0.5) * 2 * thing.half_width
        yield character, thing.x + along * math.cos(turn), thing.y - along * math.sin(turn)
