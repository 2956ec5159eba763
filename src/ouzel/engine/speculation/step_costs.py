"""What a step costs is measured on the machine: as a function of its rows, and of the tokens that these attend to."""

from bisect import bisect_left

import msgspec


class StepCosts(msgspec.Struct, frozen=True):
    num_rows: tuple[int, ...]  # ascending, from 1 on; two at least
    seconds: tuple[float, ...]  # that a step of so many rows takes, whose contexts are short
    seconds_per_context_token: float = 0.0  # more, for each token that a row attends to

    def of(self, num_rows: int, num_context_tokens: int = 0) -> float:
        """Returns the seconds of a step whose rows attend to so many tokens, summed over its rows."""
        above = self._above(num_rows)
        (low, high), (less, more) = self.num_rows[above - 1 : above + 1], self.seconds[above - 1 : above + 1]
        slope = (more - less) / (high - low)
        return less + slope * (num_rows - low) + self.seconds_per_context_token * num_context_tokens

    def corrected(self, num_rows: int, factor: float) -> "StepCosts":
        """Returns the costs after steps of so many rows turned out to take `factor` of what they should."""
        above = self._above(num_rows)
        low, high = self.num_rows[above - 1 : above + 1]
        share = min((num_rows - low) / (high - low), 1.0)  # of the upper one in what such a step should take
        seconds = list(self.seconds)
        seconds[above - 1] *= 1 + (1 - share) * (factor - 1)
        seconds[above] *= 1 + share * (factor - 1)
        return StepCosts(self.num_rows, tuple(rising(seconds)), self.seconds_per_context_token)

    def _above(self, num_rows: int) -> int:
        """Returns the place of the measured count from which to reckon downwards, not the first."""
        return min(max(bisect_left(self.num_rows, num_rows), 1), len(self.num_rows) - 1)


def rising(seconds: list[float]) -> list[float]:
    """Makes a measured curve rise: more rows never cost less, where they seem to, something disturbed."""
    lowest = float("inf")
    risen = []
    for each in reversed(seconds):
        lowest = min(lowest, each)
        risen.append(lowest)
    return risen[::-1]
