"""A response changes its stage only along the arrows of the drawing in `stage.py`."""

import itertools

import pytest

from ouzel.responses.stage import Stage, step

ALLOWED = {
    (Stage.NEW, Stage.QUEUED),
    (Stage.NEW, Stage.RUNNING),
    (Stage.NEW, Stage.ENDING),
    (Stage.NEW, Stage.REFUSED),
    (Stage.NEW, Stage.LOST),
    (Stage.QUEUED, Stage.RUNNING),
    (Stage.QUEUED, Stage.ENDING),
    (Stage.QUEUED, Stage.LEFT),
    (Stage.RUNNING, Stage.ENDING),
    (Stage.ENDING, Stage.ENDING),
    (Stage.ENDING, Stage.ENDED),
    (Stage.ENDING, Stage.LOST),
}


@pytest.mark.parametrize(("stage", "following"), list(itertools.product(Stage, Stage)))
def test_a_step_is_allowed_or_a_bug_of_ours(stage: Stage, following: Stage) -> None:
    if (stage, following) in ALLOWED:
        assert step(stage, following) is following
    else:
        with pytest.raises(AssertionError, match=f"{stage.value} cannot be {following.value}"):
            step(stage, following)
