"""The table of states is complete: every state is left, and only the listed events are possible."""

import itertools

import pytest

from ouzel.lifecycle.states import TRANSITIONS, Event, ImpossibleEvent, ModelState, next_state


def test_every_state_can_be_reached_and_left() -> None:
    assert {before for before, _ in TRANSITIONS} == set(ModelState)
    assert set(TRANSITIONS.values()) == set(ModelState)
    assert {event for _, event in TRANSITIONS} == set(Event)


@pytest.mark.parametrize(("state", "event"), [*itertools.product(ModelState, Event)])
def test_other_events_are_impossible(state: ModelState, event: Event) -> None:
    if (state, event) in TRANSITIONS:
        assert next_state(state, event) is TRANSITIONS[state, event]
    else:
        with pytest.raises(ImpossibleEvent):
            next_state(state, event)


def test_a_model_with_open_requests_is_never_unloaded() -> None:
    with pytest.raises(ImpossibleEvent):
        next_state(ModelState.READY, Event.UNLOAD)
