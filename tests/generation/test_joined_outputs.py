"""Joined outputs lose nothing, and are the same for every grouping of the tokens."""

import itertools
from collections.abc import Sequence

from ouzel.generation.output_joining import join_outputs
from ouzel.generation.records import Output
from ouzel.parsers.base import ContentDelta, Delta, ReasoningDelta, ToolCallDelta
from ouzel.types.step_output import PositionLogprobs, TokenLogprob

KINDS: dict[str, Delta | None] = {
    "c": ContentDelta("c"),
    "r": ReasoningDelta("r"),
    "t": ToolCallDelta(0, arguments="t"),
    "-": None,  # held back
}


def make_outputs(kinds: str) -> list[Output]:
    """Makes outputs of one token each."""
    return [
        Output(
            0,
            [delta] if (delta := KINDS[kind]) else [],
            [at],
            [PositionLogprobs(TokenLogprob(at, 0.0), ())],
        )
        for at, kind in enumerate(kinds)
    ]


def find_owners(outputs: Sequence[Output]) -> list[tuple[type[Delta], int]]:
    """Pairs each token's logprobs with the type of the next delta, which carries them."""
    pending: list[int] = []
    owned: list[tuple[type[Delta], int]] = []
    for output in outputs:
        pending += [position.sampled.token_id for position in output.logprobs]
        if output.deltas:
            owned += [(type(output.deltas[0]), token_id) for token_id in pending]
            pending = []
    return owned


def test_logprobs_go_with_the_same_kind_of_delta_wherever_the_tokens_are_cut() -> None:
    for kinds in map("".join, itertools.product(KINDS, repeat=5)):
        single = make_outputs(kinds)
        for cut in range(len(kinds) + 1):
            joined = join_outputs(single[:cut]) + join_outputs(single[cut:])
            assert find_owners(joined) == find_owners(single), (kinds, cut)


def test_neighbours_of_one_kind_become_one_with_all_their_tokens() -> None:
    joined = join_outputs(make_outputs("cc-crr-"))
    assert [output.token_ids for output in joined] == [[0, 1, 2, 3], [4, 5], [6]]
    assert [output.deltas for output in joined] == [
        [ContentDelta("ccc")],
        [ReasoningDelta("rr")],
        [],
    ]
