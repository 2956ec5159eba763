"""Estimates the chance that a proposed token is accepted, by classes of proposals."""

from collections.abc import Sequence

_COMMON_MEMORY = 0.99  # factor on the weight of older tokens, with each new one


class AcceptanceRates:
    """Counts accepted tokens by class, for all sequences or for a single sequence."""

    def __init__(
        self,
        begin: "Sequence[float] | AcceptanceRates",
        *,
        own_weight: float = 4.0,
        own_memory: float = 0.9,
        inherits: float | None = None,
    ) -> None:
        """`begin` has the first chance of each class, or the rates of all sequences.

        After `own_weight` tokens, a sequence's own rate weighs as much as the common rate. With
        `inherits`, a class starts with this share of the chance of the class before it, not with
        its value in `begin`.
        """
        self._inherits = inherits
        self._own_weight, self._own_memory = own_weight, own_memory
        self._common = begin if isinstance(begin, AcceptanceRates) else None
        self._first = () if isinstance(begin, AcceptanceRates) else tuple(begin)
        num_classes = begin.num_classes if isinstance(begin, AcceptanceRates) else len(begin)
        self._num_tried = [0.0] * num_classes
        self._num_accepted = [0.0] * num_classes

    @property
    def num_classes(self) -> int:
        return len(self._num_tried)

    def chance(self, number: int) -> float:
        """Returns the probability that a token of this class is accepted if the tokens before it
        are.
        """
        if self._common is not None:
            begin = self._common.chance(number)
        elif number and self._inherits is not None:
            begin = self._inherits * self.chance(number - 1)
        else:
            begin = self._first[number]
        return (self._num_accepted[number] + self._own_weight * begin) / (
            self._num_tried[number] + self._own_weight
        )

    def note(self, number: int, *, accepted: bool) -> None:
        memory = _COMMON_MEMORY if self._common is None else self._own_memory
        self._num_tried[number] = memory * self._num_tried[number] + 1
        self._num_accepted[number] = memory * self._num_accepted[number] + accepted
        if self._common is not None:
            self._common.note(number, accepted=accepted)
