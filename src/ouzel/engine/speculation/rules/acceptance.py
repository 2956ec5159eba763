"""How often a guess comes true is counted, by how good the reason for it was."""

from collections.abc import Sequence

_COMMON_MEMORY = 0.99  # by which older guesses count less, with each new one


class AcceptanceRates:
    """Counts for all sequences, or for one of them, which begins with what is known of all."""

    def __init__(
        self,
        begin: "Sequence[float] | AcceptanceRates",
        *,
        own_weight: float = 4.0,
        own_memory: float = 0.9,
        inherits: float | None = None,
    ) -> None:
        """`begin` has a chance for each class of guesses.

        It takes `own_weight` guesses to believe a sequence rather than all of them. With `inherits` a class begins with
        so much of the chance that the one before it has, whatever `begin` says.
        """
        self._inherits = inherits
        self._own_weight, self._own_memory = own_weight, own_memory
        self._common = begin if isinstance(begin, AcceptanceRates) else None
        self._first = () if isinstance(begin, AcceptanceRates) else tuple(begin)
        num_classes = begin.num_classes if isinstance(begin, AcceptanceRates) else len(begin)
        self._num_tried = [0.0] * num_classes
        self._num_came = [0.0] * num_classes

    @property
    def num_classes(self) -> int:
        return len(self._num_tried)

    def chance(self, number: int) -> float:
        """Returns the probability that a guess of this class comes true, if those before it did."""
        if self._common is not None:
            begin = self._common.chance(number)
        elif number and self._inherits is not None:
            begin = self._inherits * self.chance(number - 1)
        else:
            begin = self._first[number]
        return (self._num_came[number] + self._own_weight * begin) / (
            self._num_tried[number] + self._own_weight
        )

    def note(self, number: int, *, came: bool) -> None:
        memory = _COMMON_MEMORY if self._common is None else self._own_memory
        self._num_tried[number] = memory * self._num_tried[number] + 1
        self._num_came[number] = memory * self._num_came[number] + came
        if self._common is not None:
            self._common.note(number, came=came)
