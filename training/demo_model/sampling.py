"""Random choice with a held-out share, so that training and evaluation never meet on a phrasing or a value."""

from __future__ import annotations

import functools
import random
import re
import zlib
from collections.abc import Sequence

from training.demo_model import values

PHRASING_STRIDE = 7
VALUE_STRIDE = 10
BRACKETS = re.compile(r"\[([^\[\]]*)\]")


def is_held_out(value: str) -> bool:
    """Whether a value belongs to the tenth that training never draws."""
    return zlib.crc32(value.encode()) % VALUE_STRIDE == 0


@functools.cache
def sides(templates: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """The templates that training draws from, and the held-out ones."""
    last = PHRASING_STRIDE - 1
    training = [
        text for position, text in enumerate(templates) if position % PHRASING_STRIDE != last
    ]
    return training, [
        text for position, text in enumerate(templates) if position % PHRASING_STRIDE == last
    ]


@functools.cache
def expansions(templates: tuple[str, ...]) -> frozenset[str]:
    """Everything that the templates can become, in its bare form."""
    found: set[str] = set()
    pending = list(templates)
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
    """The text without capitals, outer marks and doubled spaces."""
    return " ".join(text.lower().split()).strip(" .?!,")


class Sampler:
    """A random generator that draws from the training side or from the held-out side of every list."""

    def __init__(self, seed: int, held_out: bool = False) -> None:
        self.rng = random.Random(seed)
        self.held_out = held_out

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return self.rng.random() < probability

    def any(self, options: Sequence[str]) -> str:
        """One of the options, without a held-out side."""
        return self.rng.choice(options)

    def pick(self, options: Sequence[str]) -> str:
        """One of the options on this sampler's side (all of them where that side is empty)."""
        side = [option for option in options if is_held_out(option) == self.held_out]
        return self.rng.choice(side or options)

    def pair(
        self, low: int, high: int, second_low: int, second_high: int, operator: str
    ) -> tuple[int, int]:
        """Two operands whose combination lies on this sampler's side."""
        while True:
            first, second = self.rng.randint(low, high), self.rng.randint(second_low, second_high)
            if is_held_out(f"{first}{operator}{second}") == self.held_out:
                return first, second

    def expand(self, template: str) -> str:
        """The template with every `[a|b|]` replaced by one of its alternatives."""
        while match := BRACKETS.search(template):
            template = (
                template[: match.start()]
                + self.rng.choice(match[1].split("|"))
                + template[match.end() :]
            )
        return template

    def template(self, templates: Sequence[str]) -> str:
        """An expanded template of this sampler's side: every seventh template is held out, whatever it expands to."""
        training, held_out = sides(tuple(templates))
        if self.held_out:
            return self.expand(self.rng.choice(held_out or training))
        forbidden = expansions(tuple(held_out))
        while bare(text := self.expand(self.rng.choice(training))) in forbidden:
            pass
        return text

    def casual(self, text: str, has_values: bool = False) -> str:
        """The text as somebody in a hurry might type it: sometimes without a capital or a final mark."""
        if self.chance(0.12) and not has_values:
            text = text.lower()
        elif self.chance(0.2) and not text.startswith("I "):
            text = text[:1].lower() + text[1:]
        if self.chance(0.25) and text[-1:] in ".?!":
            text = text[:-1]
        return text

    def framed(self, text: str) -> str:
        """The text, sometimes with a word before or after it that changes nothing."""
        if self.chance(0.08) and text[:1].isalpha():
            rest = text if text.startswith("I ") else text[:1].lower() + text[1:]
            text = self.rng.choice(values.LEAD_INS) + rest
        if self.chance(0.06) and text[-1:] in ".?" and text[-2:-1] != "}":
            text = text[:-1] + self.rng.choice((", please", " please", ", thanks")) + text[-1]
        return text

    def phrase(self, templates: Sequence[str], **fields: object) -> str:
        """A casual phrasing with its `{field}` places filled in."""
        return fill(self.casual(self.framed(self.template(templates))), fields)

    def invented_word(self, syllables: int = 0) -> str:
        """A pronounceable word that does not exist."""
        while True:
            count = syllables or self.rng.randint(1, 3)
            word = "".join(
                self.rng.choice(values.ONSETS) + self.rng.choice(values.VOWELS)
                for _ in range(count)
            ) + self.rng.choice(values.CODAS)
            if is_held_out(word) == self.held_out:
                return word

    def random_code(self) -> str:
        """A string of random characters such as an order number or a password."""
        alphabet = self.rng.choice(values.CODE_ALPHABETS)
        while True:
            code = "".join(self.rng.choice(alphabet) for _ in range(self.rng.randint(3, 9)))
            if self.chance(0.3):
                code = f"{self.rng.choice('ABCDEFGHIJKLMNOPQRSTUVWXYZ')}{code[1:3]}-{self.rng.randint(1, 999)}"
            if is_held_out(code) == self.held_out:
                return code

    def foreign_word(self) -> str:
        """A random string in another script, an accent-rich word or an emoji."""
        first, last = self.rng.choice(values.SCRIPTS)
        return "".join(chr(self.rng.randint(first, last)) for _ in range(self.rng.randint(2, 5)))

    def word(self) -> str:
        """An everyday or an invented word."""
        return (
            self.invented_word()
            if self.chance(0.3)
            else self.pick(values.NOUNS + values.ADJECTIVES + values.VERBS)
        )

    def name(self) -> str:
        """A first name, sometimes invented, sometimes with a family name."""
        name = (
            self.invented_word(2).capitalize()
            if self.chance(0.15)
            else self.pick(values.FIRST_NAMES)
        )
        if self.chance(0.2):
            name += " " + (
                self.invented_word(2).capitalize()
                if self.chance(0.3)
                else self.pick(values.LAST_NAMES)
            )
        return name

    def city(self) -> str:
        """A city, sometimes invented."""
        return self.invented_word().capitalize() if self.chance(0.12) else self.pick(values.CITIES)

    def sentence(self) -> str:
        """A simple statement made from the word lists."""
        return fill(
            self.expand(self.rng.choice(values.SENTENCES)),
            {
                "noun": self.pick(values.NOUNS),
                "other": self.pick(values.NOUNS),
                "adjective": self.pick(values.ADJECTIVES),
                "adjective2": self.pick(values.ADJECTIVES),
                "verb": self.pick(values.VERBS),
                "verb2": self.pick(values.VERBS),
                "name": self.name(),
                "city": self.city(),
                "number": self.rng.randint(2, 99),
                "invented": self.invented_word(),
            },
        )

    def words(self, low: int, high: int) -> str:
        """A few words in a row that need not make sense."""
        return " ".join(self.word() for _ in range(self.rng.randint(low, high)))

    def date(self) -> str:
        """A date, as ISO or in words."""
        day, month, year = (
            self.rng.randint(1, 28),
            self.rng.randint(1, 12),
            self.rng.randint(1990, 2035),
        )
        if self.chance(0.5):
            return f"{year}-{month:02d}-{day:02d}"
        return (
            f"{day} {values.MONTHS[month - 1]} {year}"
            if self.chance(0.5)
            else f"{values.MONTHS[month - 1]} {day}"
        )

    def time(self) -> str:
        """A time of day."""
        if self.chance(0.5):
            return f"{self.rng.randint(0, 23):02d}:{self.rng.choice((0, 15, 30, 45, self.rng.randint(0, 59))):02d}"
        return f"{self.rng.randint(1, 12)} {self.rng.choice(('am', 'pm'))}"

    def email(self) -> str:
        """An e-mail address at a reserved example domain or an invented one."""
        user = self.pick(values.FIRST_NAMES).lower() if self.chance(0.5) else self.invented_word()
        if self.chance(0.3):
            user += f"{self.rng.choice(('.', '_', ''))}{self.rng.randint(1, 99)}"
        host = self.rng.choice(
            ("example.com", "example.org", "mail.test", f"{self.invented_word()}.com")
        )
        return f"{user}@{host}"

    def price(self) -> float:
        """An amount of money with at most two decimals."""
        return self.rng.randint(1, 999) if self.chance(0.4) else self.rng.randint(100, 99999) / 100

    def product(self) -> str:
        """Something that can be bought, with or without an adjective."""
        noun = self.invented_word() if self.chance(0.12) else self.pick(values.PRODUCTS)
        return f"{self.pick(values.ADJECTIVES)} {noun}" if self.chance(0.3) else noun


def fill(template: str, fields: dict[str, object]) -> str:
    """The template with `{field}` places replaced by plain substitution, so that braces in values survive."""
    pattern = re.compile(r"\{(" + "|".join(map(re.escape, fields)) + r")\}") if fields else None
    return pattern.sub(lambda match: str(fields[match[1]]), template) if pattern else template
