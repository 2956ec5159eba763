"""The garbage collector rests during a run and has its old state afterwards."""

import gc

from ouzel.bench.run import collect_rarely


def test_the_collector_is_as_it_was_when_the_run_is_over() -> None:
    before = gc.get_threshold()
    with collect_rarely():
        assert gc.get_threshold()[0] > before[0]
        assert gc.get_freeze_count() > 0
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
