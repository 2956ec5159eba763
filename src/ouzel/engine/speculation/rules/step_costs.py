"""What a step costs is measured on the machine: as a function of its rows, and of the tokens that these attend to."""

from bisect import bisect_left

import msgspec


class AttentionCosts(msgspec.Struct, frozen=True):
    """Seconds for each token of a sequence's context.

    Rows of a sequence can be subsequences of their own, each of which reads the context, the first one from memory and
    the others from the processor's cache; or one for all of them, which reads it once and is slower to begin with.
    """

    first_s: float = 0.0  # of the first row by itself,
    apart_s: float = 0.0  # and of each further one
    whole_s: float = float("inf")  # of several rows as a whole, and more for each of them:
    whole_row_s: float = 0.0

    def of(self, num_rows: int) -> float:
        """Returns the seconds for each token of the context of a sequence with so many rows."""
        return min(self._of_apart(num_rows), self._of_whole(num_rows))

    def is_apart(self, num_rows: int) -> bool:
        """Tells whether so many rows of a sequence cost less by themselves than as a whole."""
        return self._of_apart(num_rows) <= self._of_whole(num_rows)

    def _of_apart(self, num_rows: int) -> float:
        return self.first_s + self.apart_s * (num_rows - 1)

    def _of_whole(self, num_rows: int) -> float:
        return self.whole_s + self.whole_row_s * num_rows


class SeveralCosts(msgspec.Struct, frozen=True):
    """Seconds where sequences have several rows, of a model that computes these otherwise than single ones."""

    first_s: float  # of a step that has any,
    each_s: float  # of each such sequence,
    row_s: float  # and of each of its rows

    def of(self, num_sequences: float, num_rows: float) -> float:
        return (
            self.first_s + self.each_s * num_sequences + self.row_s * num_rows
            if num_sequences
            else 0.0
        )


class StepCosts(msgspec.Struct, frozen=True):
    num_rows: tuple[int, ...]  # ascending, from 1 on; two at least
    seconds: tuple[
        float, ...
    ]  # that a step of so many rows takes behind one of as many, whose contexts are short
    attention: AttentionCosts = AttentionCosts()
    several: SeveralCosts | None = None  # None: rows cost the same, whichever sequences they are of
    unsampled_row_s: float | None = None  # of a row whose logits nobody wants; None: as others
    change_s: float = 0.0  # more, where the step before had another number of rows

    def of(self, num_rows: float, attention_s: float = 0.0) -> float:
        """Returns the seconds of a step behind one of as many rows; `attention_s` is for what lies in the cache.

        A number of rows that is expected need not be whole.
        """
        above = self._above(num_rows)
        (low, high), (less, more) = (
            self.num_rows[above - 1 : above + 1],
            self.seconds[above - 1 : above + 1],
        )
        slope = (more - less) / (high - low)
        return less + slope * (num_rows - low) + attention_s

    def of_step(self, num_rows: int, num_several: int, num_rows_of_several: int) -> float:
        """Returns what `of` does, where so many of the rows are of so many sequences that have several."""
        if self.several is None:
            return self.of(num_rows)
        return self.of(num_rows - num_rows_of_several) + self.several.of(
            num_several, num_rows_of_several
        )

    def of_unsampled(self, num_rows: int) -> float:
        """Returns the seconds of a step of so many rows, of which the last one's logits are wanted."""
        if self.unsampled_row_s is None:
            return self.of(num_rows)
        return self.of(1) + self.unsampled_row_s * (num_rows - 1)

    def corrected(self, num_rows: int, factor: float) -> "StepCosts":
        """Returns the costs after steps of so many rows turned out to take `factor` of what they should."""
        above = self._above(num_rows)
        low, high = self.num_rows[above - 1 : above + 1]
        share = min(
            (num_rows - low) / (high - low), 1.0
        )  # of the upper one in what such a step should take
        seconds = list(self.seconds)
        seconds[above - 1] *= 1 + (1 - share) * (factor - 1)
        seconds[above] *= 1 + share * (factor - 1)
        return msgspec.structs.replace(self, seconds=tuple(rising(seconds)))

    def _above(self, num_rows: float) -> int:
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
