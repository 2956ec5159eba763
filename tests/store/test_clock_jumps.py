"""A clock that was set forward, or a machine that has slept, makes no living server a dead one."""

from ouzel.store.clock_jumps import ClockJumps

LEASE_S = 10.0


def check_settled(*times: tuple[float, float]) -> list[bool]:
    """Returns a server's verdict at each pair of times: the database's clock and its own."""
    jumps = ClockJumps(LEASE_S)
    return [jumps.are_settled(unix_s, monotonic_s) for unix_s, monotonic_s in times]


def test_a_clock_that_goes_as_the_other_is_settled() -> None:
    assert check_settled((1000, 5), (1002, 7), (1100, 105), (1104, 107)) == [True] * 4


def test_after_a_jump_forward_a_whole_lease_has_to_pass() -> None:
    assert check_settled((1000, 5), (4602, 7), (4604, 9), (4611, 16), (4612, 17)) == [
        True,
        False,
        False,
        False,
        True,
    ]


def test_another_jump_starts_another_lease() -> None:
    assert check_settled((1000, 5), (4602, 7), (8204, 9), (8212, 17), (8214, 19)) == [
        True,
        False,
        False,
        False,
        True,
    ]


def test_a_clock_that_is_set_back_ends_no_lease() -> None:
    assert check_settled((5000, 5), (1002, 7), (1004, 9)) == [True] * 3
