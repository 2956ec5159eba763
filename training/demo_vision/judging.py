"""What an evaluation asks, and when an answer is right."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from training.demo_vision.conversations import LEVELS, SKILLS, ItemMaker
from training.demo_vision.drawing import draw, looks_of
from training.demo_vision.exchanges import Conversation
from training.demo_vision.rendering import Grid, Renderer
from training.demo_vision.sampling import Sampler

SEED = 77

Pixels = NDArray[np.uint8]  # [height, width, 3]


@dataclass(frozen=True, slots=True)
class Asked:
    conversation: Conversation
    pictures: list[Pixels]
    grids: list[Grid]


def asked_by_skill(renderer: Renderer, count: int, *, held_out: bool) -> dict[str, list[Asked]]:
    """Returns so many of each skill, the same ones at every call."""
    found: dict[str, list[Asked]] = {skill: [] for skill in SKILLS}
    for asked in _drawn(renderer, Sampler(SEED, held_out=held_out)):
        same = found[asked.conversation.skill]
        if len(same) < count:
            same.append(asked)
        elif min(map(len, found.values())) == count:
            break
    return found


def _drawn(renderer: Renderer, sampler: Sampler) -> Iterator[Asked]:
    """Gives two conversations of each item, so that there are many pictures."""
    maker = ItemMaker(sampler, LEVELS[-1])
    while True:
        item = maker.item()
        images = [
            draw(sampler, scene, looks_of(sampler, scene, LEVELS[-1])) for scene in item.scenes
        ]
        pictures, grids = (
            [renderer.pixels(image) for image in images],
            [renderer.grid(image) for image in images],
        )
        for conversation in sampler.shuffled(item.conversations)[:2]:
            yield Asked(conversation, pictures, grids)


def swapped(asked: list[Asked]) -> list[Asked]:
    """Shows each question the pictures of the one before: who does not look is right as often."""
    made = []
    for each, other in zip(asked, [asked[-1], *asked[:-1]], strict=True):
        shown = zip(each.pictures, other.pictures * len(each.pictures), strict=False)
        pictures = [_stretched(theirs, own.shape) for own, theirs in shown]
        made.append(Asked(each.conversation, pictures, each.grids))
    return made


def _stretched(pixels: Pixels, shape: tuple[int, ...]) -> Pixels:
    return np.asarray(Image.fromarray(pixels).resize((shape[1], shape[0])))


def is_right(conversation: Conversation, answer: str) -> bool:
    expected = str(conversation.messages[-1]["content"])
    if conversation.check == "json":
        return _parsed(answer) == _parsed(expected)
    return answer == expected


def _parsed(text: str) -> object:
    """Returns the JSON value of an answer, or the text itself where it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text
