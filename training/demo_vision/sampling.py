"""Random choice with a held-out side, so that training and evaluation never meet on a phrasing or a value.

Every seventh phrasing of a list is held out, and about a tenth of the values: numbers, words, and pairs of a colour and
a shape. Lists of phrasings are only ever appended to.
"""

import functools
import random
import re
import zlib
from collections.abc import Sequence
from typing import TypeVar

from training.demo_vision.values import CAPITALS, COLORS, SHAPES, WORDS

PHRASING_STRIDE = 7
VALUE_STRIDE = 10
PLAIN_CAPITALS = CAPITALS.replace("I", "").replace("O", "")  # which look like 1 and 0
BRACKETS = re.compile(r"\[([^\[\]]*)\]")

Option = TypeVar("Option")


def is_held_out(value: str) -> bool:
    return zlib.crc32(value.encode()) % VALUE_STRIDE == 0


@functools.cache
def sides(templates: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Returns the templates that training draws from, and the held-out ones."""
    last = PHRASING_STRIDE - 1
    training = [
        text for position, text in enumerate(templates) if position % PHRASING_STRIDE != last
    ]
    return training, [
        text for position, text in enumerate(templates) if position % PHRASING_STRIDE == last
    ]


@functools.cache
def held_out_texts(templates: tuple[str, ...]) -> frozenset[str]:
    """Returns all that the held-out templates can become, in its bare form."""
    found, pending = set[str](), [*sides(templates)[1]]
    while pending:
        text = pending.pop()
        if match := BRACKETS.search(text):
            pending += [
                text[: match.start()] + option + text[match.end() :]
                for option in match[1].split("|")
            ]
        else:
            found.add(bare(text))
    return frozenset(found)


def bare(text: str) -> str:
    return " ".join(text.lower().split()).strip(" .?!,")


def fill(template: str, fields: dict[str, object]) -> str:
    """Puts fields into `{places}` by plain substitution, so that braces in values survive."""
    return re.sub(r"\{(\w+)\}", lambda match: str(fields[match[1]]), template)


class Sampler:
    """Draws from the training side or from the held-out side of every list."""

    def __init__(self, seed: int, *, held_out: bool = False) -> None:
        self.rng = random.Random(seed)
        self.held_out = held_out

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def between(self, low: float, high: float) -> float:
        return self.rng.uniform(low, high)

    def any(self, options: Sequence[Option]) -> Option:
        return self.rng.choice(options)

    def weighted(self, shares: dict[Option, float]) -> Option:
        return self.rng.choices([*shares], [*shares.values()])[0]

    def shuffled(self, options: Sequence[Option]) -> list[Option]:
        return self.rng.sample(options, len(options))

    def phrase(self, templates: Sequence[str], **fields: object) -> str:
        """Returns a phrasing as somebody in a hurry might type it, with its fields filled in."""
        text = fill(self._casual(self._template(tuple(templates))), fields)
        return text[:1].upper() + text[1:] if self.chance(0.9) else text

    def _template(self, templates: tuple[str, ...]) -> str:
        training, held_out = sides(templates)
        if self.held_out:
            return self._expanded(self.rng.choice(held_out or training))
        while bare(text := self._expanded(self.rng.choice(training))) in held_out_texts(templates):
            pass
        return text

    def _expanded(self, template: str) -> str:
        """Takes one of the alternatives of every `[a|b|]`."""
        while match := BRACKETS.search(template):
            template = (
                template[: match.start()]
                + self.rng.choice(match[1].split("|"))
                + template[match.end() :]
            )
        return template

    def _casual(self, text: str) -> str:
        if self.chance(0.06) and text[:1].isalpha():
            text = (
                self.rng.choice(("Please tell me: ", "Hey, ", "Look. ", "Hi! ", "Okay, ", "So, "))
                + text
            )
        if self.chance(0.04) and text[-1:] in ".?":
            text = text[:-1] + ", please" + text[-1]
        if self.chance(0.12) and text[-1:] in ".?":
            text = text[:-1]
        return text

    # Values

    def colored_shape(
        self, colors: Sequence[str], shapes: Sequence[str] = SHAPES
    ) -> tuple[str, str]:
        """Returns a colour and a shape; training never sees some pairs, of which evaluation takes every second."""
        wants_unseen = self.held_out and self.chance(0.5)
        pairs = [(color, shape) for color in colors for shape in shapes]
        right = [pair for pair in pairs if is_held_out(" ".join(pair)) == wants_unseen]
        return self.rng.choice(right or pairs)

    def other_color(self, avoided: Sequence[str]) -> str:
        return self.rng.choice([color for color in COLORS if color not in avoided])

    def number(self) -> str:
        """Returns one of up to four digits; single digits are on both sides."""
        num_digits = self.rng.choices((1, 2, 3, 4), (8, 7, 4, 1))[0]
        if num_digits == 1:
            return str(self.rng.randint(0, 9))
        low = 10 ** (num_digits - 1)
        while is_held_out(number := str(self.rng.randint(low, 10 * low - 1))) != self.held_out:
            pass
        return number

    def word(self) -> str:
        """Returns a word in capitals, small letters or both, or a few capitals that mean nothing."""
        if self.chance(0.3):
            return self._letters()
        word = self.rng.choice([word for word in WORDS if is_held_out(word) == self.held_out])
        return self.rng.choices((word.upper(), word, word.capitalize()), (6, 3, 1))[0]

    def _letters(self) -> str:
        while True:
            text = "".join(
                self.rng.choice(PLAIN_CAPITALS) for _ in range(self.rng.choice((1, 1, 2, 3, 4)))
            )
            if len(text) == 1 or is_held_out(text) == self.held_out:
                return text
