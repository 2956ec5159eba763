"""Estimates the cost of a step from measured steps, by its rows and their contexts."""

from bisect import bisect_left

import msgspec


class AttentionCosts(msgspec.Struct, frozen=True):
    """The seconds of attention per token of a sequence's context.

    The rows of a sequence can be apart: each is a subsequence that reads the context, the first
    from memory and the others from the processor's cache. Or they are one subsequence (whole),
    which reads the context once and has a higher base cost.
    """

    first_s: float = 0.0  # the first row
    apart_s: float = 0.0  # each further row, apart
    whole_s: float = float("inf")  # several rows as a whole, plus `whole_row_s` for each of them
    whole_row_s: float = 0.0

    def estimate(self, num_rows: int) -> float:
        """Returns the seconds per token of context of a sequence with `num_rows` rows."""
        return min(self._estimate_apart(num_rows), self._estimate_whole(num_rows))

    def is_apart(self, num_rows: int) -> bool:
        """Tells whether the rows of a sequence cost less apart than as a whole."""
        return self._estimate_apart(num_rows) <= self._estimate_whole(num_rows)

    def _estimate_apart(self, num_rows: int) -> float:
        return self.first_s + self.apart_s * (num_rows - 1)

    def _estimate_whole(self, num_rows: int) -> float:
        return self.whole_s + self.whole_row_s * num_rows


class SeveralCosts(msgspec.Struct, frozen=True):
    """The added seconds of sequences with several rows."""

    first_s: float  # a step that has any such sequence
    each_s: float  # each such sequence
    row_s: float  # each row of such a sequence

    def estimate(self, num_sequences: float, num_rows: float) -> float:
        if not num_sequences:
            return 0.0
        return self.first_s + self.each_s * num_sequences + self.row_s * num_rows


class StepCosts(msgspec.Struct, frozen=True):
    """The seconds of steps on this machine, for one model."""

    num_rows: tuple[int, ...]  # measured row counts, ascending from 1; at least two
    # seconds of a step with each count after a step with the same count, with short contexts
    seconds: tuple[float, ...]
    attention: AttentionCosts = AttentionCosts()
    several: SeveralCosts | None = None  # None: a row costs the same in every sequence
    unsampled_row_s: float | None = None  # a row without logits; None: as any other
    change_s: float = 0.0  # added if the step before had another number of rows

    def estimate(self, num_rows: float, attention_s: float = 0.0) -> float:
        """Returns the seconds of a step, if the step before it had the same number of rows.

        `attention_s`, the time to read the cached context, is added. `num_rows` may be a fraction,
        as the mean of an expectation.
        """
        above = self._above(num_rows)
        low, high = self.num_rows[above - 1 : above + 1]
        less, more = self.seconds[above - 1 : above + 1]
        slope = (more - less) / (high - low)
        return less + slope * (num_rows - low) + attention_s

    def estimate_step(self, num_rows: int, num_several: int, num_rows_of_several: int) -> float:
        """Returns the seconds of a step of which some rows belong to sequences with several
        rows.
        """
        if self.several is None:
            return self.estimate(num_rows)
        return self.estimate(num_rows - num_rows_of_several) + self.several.estimate(
            num_several, num_rows_of_several
        )

    def estimate_unsampled(self, num_rows: int) -> float:
        """Returns the seconds of a step that computes the logits of its last row only."""
        if self.unsampled_row_s is None:
            return self.estimate(num_rows)
        return self.estimate(1) + self.unsampled_row_s * (num_rows - 1)

    def correct(self, num_rows: int, factor: float) -> "StepCosts":
        """Returns the costs after steps of `num_rows` rows took `factor` times the estimate."""
        above = self._above(num_rows)
        low, high = self.num_rows[above - 1 : above + 1]
        # weight of the upper count in the estimate of such a step
        share = min((num_rows - low) / (high - low), 1.0)
        seconds = list(self.seconds)
        seconds[above - 1] *= 1 + (1 - share) * (factor - 1)
        seconds[above] *= 1 + share * (factor - 1)
        return msgspec.structs.replace(self, seconds=tuple(make_rising(seconds)))

    def _above(self, num_rows: float) -> int:
        """Returns the index of the upper of the two counts to interpolate between."""
        return min(max(bisect_left(self.num_rows, num_rows), 1), len(self.num_rows) - 1)


def make_rising(seconds: list[float]) -> list[float]:
    """Lowers each time to the smallest time of more rows, so that more rows never cost less.

    A larger time for fewer rows means that the measurement was disturbed.
    """
    lowest = float("inf")
    risen = []
    for each in reversed(seconds):
        lowest = min(lowest, each)
        risen.append(lowest)
    return risen[::-1]
