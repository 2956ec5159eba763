"""One grammar is being compiled, for any number of requests."""

import time
from concurrent.futures import Future, wait

from ouzel.engine.grammars.matcher import GrammarRefused
from ouzel.engine.grammars.session import Prototype, Session

PUT_OFF = "too many other grammars are being compiled; try again later"


class CompilerOverloaded(Exception):
    """The grammar may be compiled later; the message is for the client."""


class Compilation:
    """It waits for a turn, perhaps twice, and ends with a prototype or with why there is none.

    That is not raised where it is kept: an exception holds on to the frames that it has come through.
    """

    def __init__(self, grammar: str, timeout_s: float) -> None:
        self.grammar = grammar
        self.future: Future[Prototype | GrammarRefused | CompilerOverloaded] = Future()
        self._timeout_s = timeout_s  # of a wait
        self._due: float | None = None  # None: somebody works at it
        self.wait_for_turn()

    def wait_for_turn(self) -> None:
        self._due = time.monotonic() + self._timeout_s

    def take_turn(self) -> bool:
        """Tells whether it still may; else it is over."""
        if self.is_late:
            self.future.set_result(CompilerOverloaded(PUT_OFF))
            return False
        self._due = None
        return True

    @property
    def is_done(self) -> bool:
        """Whether a result is there, or its turn did not come in time."""
        return self.future.done() or self.is_late

    @property
    def is_late(self) -> bool:
        due = self._due
        return due is not None and time.monotonic() > due

    def wait(self, timeout_s: float) -> None:
        """Waits up to `timeout_s` for the result, while it is not late."""
        until = time.monotonic() + timeout_s
        while not self.is_done and (left_s := until - time.monotonic()) > 0:
            due = self._due
            wait(
                (self.future,),
                left_s if due is None else min(left_s, max(due - time.monotonic(), 0.0)),
            )

    def session(self) -> Session:
        """Returns a session, once `is_done`. Raises GrammarRefused, or CompilerOverloaded if its turn never came."""
        result = self.future.result() if self.future.done() else CompilerOverloaded(PUT_OFF)
        if not isinstance(result, Prototype):
            raise type(result)(str(result))
        return result.session()
