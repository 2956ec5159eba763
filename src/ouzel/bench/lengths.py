"""Draws the lengths of prompts and answers: a fixed number of tokens, or a random number."""

import math
import random
import re
from dataclasses import dataclass
from typing import assert_never

_FORMS = "must be N, A:B, uniform(A,B), normal(MEAN,STD) or lognormal(MEAN,STD)"
_NUMBER = r"\d+(?:\.\d+)?"
_MAX_LEN = 1_000_000


@dataclass(frozen=True, slots=True)
class Fixed:
    num_tokens: int

    def __str__(self) -> str:
        return str(self.num_tokens)


@dataclass(frozen=True, slots=True)
class Uniform:
    """Draws whole numbers from `low` to `high`, both included, with equal probability."""

    low: int
    high: int

    def __str__(self) -> str:
        return f"{self.low} to {self.high}"


@dataclass(frozen=True, slots=True)
class Normal:
    mean: float
    std: float

    def __str__(self) -> str:
        return f"normal({self.mean:g}, {self.std:g})"


@dataclass(frozen=True, slots=True)
class LogNormal:
    """Draws from a log-normal distribution; `mean` and `std` are of the length itself."""

    mean: float
    std: float

    def __str__(self) -> str:
        return f"lognormal({self.mean:g}, {self.std:g})"


Lengths = Fixed | Uniform | Normal | LogNormal


def read_lengths(text: str) -> Lengths:
    """Reads one of the forms in `_FORMS`. Raises ValueError."""
    lengths = _parse(text.replace(" ", ""))
    if lengths is None:
        raise ValueError(f"{_FORMS}, given {text!r}")
    smallest, largest = _bounds(lengths)
    if not (1 <= smallest <= largest <= _MAX_LEN):
        raise ValueError(f"lengths must be 1 to {_MAX_LEN}, the smaller one first, given {text!r}")
    return lengths


def _parse(text: str) -> Lengths | None:
    if re.fullmatch(r"\d+", text):
        return Fixed(int(text))
    if bounds := re.fullmatch(r"(\d+):(\d+)|uniform\((\d+),(\d+)\)", text):
        low, high = (int(number) for number in bounds.groups() if number is not None)
        return Uniform(low, high)
    if moments := re.fullmatch(rf"(normal|lognormal)\(({_NUMBER}),({_NUMBER})\)", text):
        kind = Normal if moments[1] == "normal" else LogNormal
        return kind(float(moments[2]), float(moments[3]))
    return None


def _bounds(lengths: Lengths) -> tuple[float, float]:
    match lengths:
        case Fixed(num_tokens):
            return num_tokens, num_tokens
        case Uniform(low, high):
            return low, high
        case Normal(mean, _) | LogNormal(mean, _):
            return mean, mean
        case _:
            assert_never(lengths)


def draw_length(lengths: Lengths, rng: random.Random) -> int:
    """Draws a length; a number below 1 becomes 1."""
    match lengths:
        case Fixed(num_tokens):
            return num_tokens
        case Uniform(low, high):
            return rng.randint(low, high)
        case Normal(mean, std):
            return max(1, round(rng.normalvariate(mean, std)))
        case LogNormal(mean, std):
            variance = math.log1p((std / mean) ** 2)
            length = rng.lognormvariate(math.log(mean) - variance / 2, math.sqrt(variance))
            return max(1, round(length))
        case _:
            assert_never(lengths)
