"""An axis maps values to coordinates, and has ticks at round numbers."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

_NUM_TICKS = 5
_ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)
_MANY_DECADES = 3.0


@dataclass(frozen=True, slots=True)
class Axis:
    """Maps values from `low` to `high` to coordinates from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    is_logarithmic: bool = False

    def at(self, value: float) -> float:
        low, high, place = self.low, self.high, value
        if self.is_logarithmic:
            low, high, place = math.log10(low), math.log10(high), math.log10(max(value, self.low))
        return self.start + (place - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        if self.is_logarithmic:
            return _decade_ticks(self.low, self.high)
        return _even_ticks(self.low, self.high)


def linear_axis(values: Sequence[float], *, start: float, end: float) -> Axis:
    """Makes an axis from 0 to the first tick at or above the largest value."""
    largest = max(values, default=0.0) or 1.0
    step = _step(largest)
    return Axis(0.0, step * math.ceil(largest / step - 1e-9), start, end)


def logarithmic_axis(values: Sequence[float], *, start: float, end: float) -> Axis:
    """Makes an axis for the positive values; at least one value must be positive."""
    positive = [value for value in values if value > 0]
    low, high = min(positive), max(positive)
    return Axis(low * 0.9, high * 1.1, start, end, is_logarithmic=True)


def _step(largest: float) -> float:
    power = 10.0 ** math.floor(math.log10(largest / _NUM_TICKS))
    return next(
        power * each for each in _ROUND if power * each * _NUM_TICKS >= largest * (1 - 1e-9)
    )


def _even_ticks(low: float, high: float) -> list[float]:
    step = _step(high - low)
    return [low + step * number for number in range(round((high - low) / step) + 1)]


def _decade_ticks(low: float, high: float) -> list[float]:
    digits = (1,) if math.log10(high / low) > _MANY_DECADES else (1, 2, 5)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = (digit * 10.0**power for power, digit in itertools.product(powers, digits))
    return [tick for tick in ticks if low <= tick <= high]


def tick_text(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"
