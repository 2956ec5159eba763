"""The fair server takes requests in the order of arrival and holds a limited number of models."""

from benchmarks.fair_wait import Arrival, compute_fair_waits

LOAD_S = {"a": 1.0, "b": 2.0, "c": 4.0}


def test_the_first_request_of_a_model_waits_for_its_load_and_the_next_does_not() -> None:
    arrivals = [Arrival("a", 0.0, 5.0), Arrival("a", 3.0, 5.0)]
    assert compute_fair_waits(arrivals, LOAD_S, 1) == [1.0, 0.0]


def test_a_request_for_a_loaded_model_waits_for_earlier_requests_of_other_models() -> None:
    arrivals = [Arrival("a", 0.0, 1.0), Arrival("c", 1.0, 1.0), Arrival("a", 2.0, 1.0)]
    assert compute_fair_waits(arrivals, LOAD_S, 2) == [1.0, 4.0, 3.0]


def test_a_model_makes_room_when_its_last_request_has_ended() -> None:
    arrivals = [Arrival("a", 0.0, 10.0), Arrival("b", 2.0, 1.0)]
    assert compute_fair_waits(arrivals, LOAD_S, 1) == [1.0, (11.0 - 2.0) + 2.0]


def test_an_idle_model_makes_room_before_a_busy_one() -> None:
    arrivals = [
        Arrival("a", 0.0, 100.0),
        Arrival("b", 2.0, 1.0),  # open from 4 to 5
        Arrival("c", 20.0, 1.0),  # takes the place of b, though a began earlier
    ]
    assert compute_fair_waits(arrivals, LOAD_S, 2) == [1.0, 2.0, 4.0]


def test_a_client_that_leaves_before_its_turn_delays_nobody() -> None:
    arrivals = [
        Arrival("a", 0.0, 1.0),
        Arrival("c", 0.2, 1.0, leaves_s=0.5),
        Arrival("a", 0.3, 1.0),
    ]
    assert compute_fair_waits(arrivals, LOAD_S, 1) == [1.0, None, 0.7]


def test_a_client_that_leaves_ends_its_open_request() -> None:
    arrivals = [Arrival("a", 0.0, 10.0, leaves_s=3.0), Arrival("b", 2.0, 1.0)]
    assert compute_fair_waits(arrivals, LOAD_S, 1) == [1.0, 1.0 + 2.0]
