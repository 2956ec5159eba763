"""Joins outputs that are sent together: neighbours of one kind become one."""

from collections.abc import Sequence

from ouzel.generation.records import Output
from ouzel.parsers.base import ContentDelta, Delta, ReasoningDelta


def join_outputs(outputs: Sequence[Output]) -> list[Output]:
    """Joins outputs of one choice. Tokens without deltas are joined with the next outputs."""
    if len(outputs) < 2:
        return list(outputs)
    groups: list[list[Output]] = []
    pending: list[Output] = []
    for output in outputs:
        pending.append(output)
        kind = _kind(output)
        if kind and groups and len(kind) == 1 and _kind(groups[-1][-1]) == kind:
            groups[-1] += pending
        elif kind:
            groups.append(pending)
        pending = [] if kind else pending
    return [_join(group) for group in (*groups, pending) if group]


def _kind(output: Output) -> set[type[Delta]]:
    return {type(delta) for delta in output.deltas}


def _join(outputs: Sequence[Output]) -> Output:
    return Output(
        outputs[0].index,
        join_deltas([delta for output in outputs for delta in output.deltas]),
        [token_id for output in outputs for token_id in output.token_ids],
        [position for output in outputs for position in output.logprobs],
    )


def join_deltas(deltas: Sequence[Delta]) -> list[Delta]:
    """Joins neighbouring deltas of content, and neighbouring deltas of reasoning."""
    if len(deltas) < 2:
        return list(deltas)
    joined: list[Delta] = []
    for delta in deltas:
        match (joined[-1] if joined else None, delta):
            case (ContentDelta(before), ContentDelta(text)):
                joined[-1] = ContentDelta(before + text)
            case (ReasoningDelta(before), ReasoningDelta(text)):
                joined[-1] = ReasoningDelta(before + text)
            case _:
                joined.append(delta)
    return joined
