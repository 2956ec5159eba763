"""What is known of one sequence's drafts."""

from itertools import accumulate
from operator import mul

from ouzel.engine.speculation.rules.acceptance import AcceptanceRates
from ouzel.engine.speculation.rules.step_costs import StepCosts

DEFAULT_NUM_DRAFTED = 5  # as OpenVINO GenAI and its servers have it
FIRST_CHANCES = (0.6,)
# A sequence has many drafts: one that was lucky a few times is not better than others.
_OWN_WEIGHT, _OWN_MEMORY = 8.0, 0.97
_STEPS_OF_CATCHING_UP = 128  # that gain by it, where no fewer are left: half an answer, perhaps


class Drafting:
    """Guesses are of classes by their depth, of which the last one is all further ones', too."""

    def __init__(self, common_rates: AcceptanceRates, num_cached_tokens: int) -> None:
        self.rates = AcceptanceRates(common_rates, own_weight=_OWN_WEIGHT, own_memory=_OWN_MEMORY)
        # the draft model has the first ones in its cache, as they are
        self.num_cached_tokens = num_cached_tokens
        self.num_noted_blocks = 0
        self.came_true = False  # the last one, as a whole

    def chances(self, number: int) -> list[float]:
        """Returns for each of so many guesses the probability that it and all before it come true."""
        chances = (self.rates.chance(self._class(depth)) for depth in range(number))
        return list(accumulate(chances, mul))

    def num_missing_tokens(self, num_tokens: int) -> int:
        """Returns how many of a sequence's tokens the draft model has still to compute."""
        return num_tokens - self.num_cached_tokens

    def catch_up_s(self, num_tokens: int, num_left: int, costs: StepCosts) -> float:
        """Returns what it takes to compute what lacks of a sequence's tokens, spread over the steps that gain by it."""
        missing_s = costs.of_unsampled(self.num_missing_tokens(num_tokens)) - costs.of(1)
        return missing_s / min(num_left, _STEPS_OF_CATCHING_UP)

    def note(self, num_tried: int, num_came: int) -> None:
        self.came_true = num_tried == num_came > 0
        for number in range(min(num_tried, num_came + 1)):
            self.rates.note(self._class(number), came=number < num_came)

    def _class(self, depth: int) -> int:
        return min(depth, self.rates.num_classes - 1)
