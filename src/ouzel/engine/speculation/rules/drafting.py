"""Holds the state of one sequence's drafts."""

from itertools import accumulate
from operator import mul

from ouzel.engine.speculation.rules.acceptance import AcceptanceRates
from ouzel.engine.speculation.rules.step_costs import StepCosts

DEFAULT_NUM_DRAFTED = 5  # the default of OpenVINO GenAI and its servers
FIRST_CHANCES = (0.6,)
# A sequence has many drafts: a few lucky ones say little about it.
_OWN_WEIGHT, _OWN_MEMORY = 8.0, 0.97
# steps that profit from a caught-up cache, if no fewer are left: about half an answer
_STEPS_OF_CATCHING_UP = 128


class Drafting:
    """The rates of acceptance and the cache state of a sequence's drafts.

    The class of a drafted token is its depth; the last class has all further depths.
    """

    def __init__(self, common_rates: AcceptanceRates, num_cached_tokens: int) -> None:
        self.rates = AcceptanceRates(common_rates, own_weight=_OWN_WEIGHT, own_memory=_OWN_MEMORY)
        # first tokens that are in the draft model's cache
        self.num_cached_tokens = num_cached_tokens
        self.num_noted_blocks = 0
        self.was_accepted = False  # whether the last draft was accepted completely

    def chances(self, number: int) -> list[float]:
        """Returns for each of `number` tokens the probability that it and all before it are
        accepted.
        """
        chances = (self.rates.chance(self._class(depth)) for depth in range(number))
        return list(accumulate(chances, mul))

    def num_missing_tokens(self, num_tokens: int) -> int:
        """Returns the number of a sequence's tokens that the draft model has not computed."""
        return num_tokens - self.num_cached_tokens

    def catch_up_s(self, num_tokens: int, num_left: int, costs: StepCosts) -> float:
        """Returns the seconds to compute the missing tokens, divided by the steps that profit."""
        missing_s = costs.estimate_unsampled(self.num_missing_tokens(num_tokens)) - costs.estimate(
            1
        )
        return missing_s / min(num_left, _STEPS_OF_CATCHING_UP)

    def note(self, num_tried: int, num_accepted: int) -> None:
        self.was_accepted = num_tried == num_accepted > 0
        for number in range(min(num_tried, num_accepted + 1)):
            self.rates.note(self._class(number), accepted=number < num_accepted)

    def _class(self, depth: int) -> int:
        return min(depth, self.rates.num_classes - 1)
