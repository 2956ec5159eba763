import pytest

from ouzel.engine.speculation.rules.trials import TIME_SHARE, Trials


def test_trials_take_a_share_of_the_time() -> None:
    trials, num_tried = Trials(), 0
    for _ in range(10_000):
        trials.save(0.02)
        num_tried += trials.is_due(0.05, is_promising=False)
    assert num_tried * 0.05 == pytest.approx(TIME_SHARE * 10_000 * 0.02, rel=0.05)


def test_expensive_trials_wait_longer() -> None:
    def seconds_until(trial_s: float) -> float:
        trials, seconds = Trials(), 0.0
        while not trials.is_due(trial_s, is_promising=False):
            trials.save(0.01)
            seconds += 0.01
        return seconds

    assert seconds_until(0.1) == pytest.approx(10 * seconds_until(0.01), rel=0.05)


def test_a_promising_trial_goes_on_at_once_but_not_for_ever() -> None:
    trials, num_tried = Trials(), 0
    while trials.is_due(0.03, is_promising=True):
        num_tried += 1
    assert 2 <= num_tried < 10
    assert not trials.is_due(0.001, is_promising=False)


def test_a_long_time_without_trials_does_not_let_all_come_at_once() -> None:
    trials = Trials()
    for _ in range(1000):
        trials.save(10.0)
    assert sum(trials.is_due(0.05, is_promising=False) for _ in range(100)) <= 11
