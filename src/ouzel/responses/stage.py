"""A response goes through these stages while this server makes it:

    NEW ───────────> RUNNING ─> ENDING ─> ENDED      a client waits for it, or follows it
    NEW ─> QUEUED ─> RUNNING ─> ENDING ─> ENDED      the response is made in the background
    NEW ────────────────────> ENDING ─> ENDED        cancelled before it began
    NEW ─> QUEUED ──────────> ENDING ─> ENDED        cancelled or failed in the queue
    NEW ─> QUEUED ─> LEFT                            no engine took it here; another server may
    NEW ─> REFUSED                                   failed before it began
    NEW ─> LOST, ENDING ─> LOST                      the store did not take the write

1.  A response takes the steps of `STEPS` and no others. The stage decides how a failure is shown.
2.  NEW: no client has seen an event, and a failure is an HTTP status. The store already has the
    response if a client may ask for it by its id. A response that a client follows stays NEW until
    the engine has accepted the request; every other response stays NEW until its first output.
3.  QUEUED: the first events are visible. The store has these events and the request, so any server
    that finds the response queued can make it. The start is therefore written to the store before
    clients see it.
4.  RUNNING: clients see each event at once; the first two may come long before the first token.
    A failure or a stop is shown as the last event.
5.  ENDING: the last events are made, but clients see the state before them until the store has
    them. A client that has seen the end can therefore read the response and continue it. If
    writing the end meets a bug, the end is made again, as a failure.
6.  ENDED and REFUSED are settled: nothing is left to do. In the store, this server still owns a
    response that is LEFT or LOST; `Runs` releases it, and the next server that finds it makes it or
    fails it.
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
    """Returns `following`; asserts that it may follow the current stage."""
    assert following in STEPS[current], (
        f"a response that is {current.value} cannot be {following.value} next"
    )
    return following
