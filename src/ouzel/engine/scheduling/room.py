"""Counts the room that the prompts of one step share."""

from ouzel.engine.state.sequence import Sequence

MAX_SCORED_ROWS = 64  # 39 MB of logits with Qwen3's vocabulary


class Room:
    """Counts the tokens, scored rows and places that the prompts of one step share."""

    def __init__(self, num_tokens: int, *, num_free_places: int, num_background: int) -> None:
        self.num_tokens = num_tokens
        self.num_background = num_background  # the part that prompts in the background may take
        self.num_rows = MAX_SCORED_ROWS
        self.num_free_places = num_free_places
        self.held_up: Sequence | None = None  # the oldest prompt that waits for blocks or places
        self.may_start = True  # whether another waiting sequence may start in this step

    def hold_up(self, sequence: Sequence) -> None:
        """Notes that a waiting sequence does not fit into this step.

        After the first such sequence, the scheduler still tries another one; after the second, no
        more sequence starts in this step.
        """
        if self.held_up is None:
            self.held_up = sequence
        else:
            self.may_start = False
