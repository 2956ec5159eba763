"""A response goes through these stages while this server makes it. The ways through:

    NEW ───────────> RUNNING ─> ENDING ─> ENDED      a client waits for it, or follows it
    NEW ─> QUEUED ─> RUNNING ─> ENDING ─> ENDED      it is made in the background
    NEW ────────────────────> ENDING ─> ENDED        cancelled before it began
    NEW ─> QUEUED ──────────> ENDING ─> ENDED        cancelled or failed in the queue
    NEW ─> QUEUED ─> LEFT                            no engine took it here: the next server may
    NEW ─> REFUSED                                   failed before it began
    NEW ─> LOST, ENDING ─> LOST                      the store could not be told

1.  A response takes the steps of `STEPS` and no others. Its stage decides what a failure comes to.
2.  NEW: no client has seen an event of it, and its failure is an HTTP status. The store has it already where a client
    may ask for it by its id. It stays NEW until the engine has accepted its request where a client follows it, else
    until its first output.
3.  QUEUED: its first events are out, and the store has them and the request: a server that finds it queued makes it.
    So the store hears first that it runs, then everybody else.
4.  RUNNING: its events are seen as they are made, the first two perhaps long before the first token. A stop then ends
    it: it has begun, and its failure is its last event.
5.  ENDING: its last events are made, but it looks as before until the store has them: who has seen a response end can
    read it and go on from it. An end that meets a fault of ours is made anew: the response has failed.
6.  ENDED and REFUSED are settled: nothing more is to be done. What is LEFT or LOST the store still takes to be ours;
    it is released, and whichever server finds it makes it or fails it.
"""

from enum import Enum


class Stage(Enum):
    NEW = "new"
    QUEUED = "queued"
    RUNNING = "running"
    ENDING = "ending"
    ENDED = "ended"
    REFUSED = "refused"
    LEFT = "left"
    LOST = "lost"


STEPS: dict[Stage, frozenset[Stage]] = {
    Stage.NEW: frozenset({Stage.QUEUED, Stage.RUNNING, Stage.ENDING, Stage.REFUSED, Stage.LOST}),
    Stage.QUEUED: frozenset({Stage.RUNNING, Stage.ENDING, Stage.LEFT}),
    Stage.RUNNING: frozenset({Stage.ENDING}),
    Stage.ENDING: frozenset({Stage.ENDING, Stage.ENDED, Stage.LOST}),
    Stage.ENDED: frozenset(),
    Stage.REFUSED: frozenset(),
    Stage.LEFT: frozenset(),
    Stage.LOST: frozenset(),
}


def step(current: Stage, following: Stage) -> Stage:
    """Returns the stage that follows, and asserts that it may."""
    assert following in STEPS[current], (
        f"a response that is {current.value} cannot be {following.value} next"
    )
    return following
