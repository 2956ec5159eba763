"""Represents the compilation of one grammar, which all waiting requests share."""

import time
from concurrent.futures import Future, wait

from ouzel.engine.grammars.matcher import GrammarRefused
from ouzel.engine.grammars.session import Prototype, Session

PUT_OFF = "too many other grammars are being compiled; try again later"


class CompilerOverloaded(Exception):
    """The grammar may be compiled later; the message is for the client."""


class Compilation:
    """The compilation of one grammar: waits for a thread, perhaps twice, and compiles.

    It ends with a prototype or with the reason why there is none. The reason is stored as a value;
    `session` raises a new exception each time. A stored exception would keep the frames alive
    through which it came.
    """

    def __init__(self, grammar: str, timeout_s: float) -> None:
        self.grammar = grammar
        self.future: Future[Prototype | GrammarRefused | CompilerOverloaded] = Future()
        self._timeout_s = timeout_s  # limit of one wait for a thread
        self._due: float | None = None  # end of the present wait; None: a thread works on it
        self.wait_for_turn()

    def wait_for_turn(self) -> None:
        self._due = time.monotonic() + self._timeout_s

    def take_turn(self) -> bool:
        """Ends the wait, because a thread starts the work.

        Returns False, and ends the compilation, if the wait was too long.
        """
        if self.is_late:
            self.future.set_result(CompilerOverloaded(PUT_OFF))
            return False
        self._due = None
        return True

    @property
    def is_done(self) -> bool:
        """Tells whether there is a result, or the wait for a thread was too long."""
        return self.future.done() or self.is_late

    @property
    def is_late(self) -> bool:
        due = self._due
        return due is not None and time.monotonic() > due

    def wait(self, timeout_s: float) -> None:
        """Waits up to `timeout_s` for the result, or until the compilation is late."""
        until = time.monotonic() + timeout_s
        while not self.is_done and (left_s := until - time.monotonic()) > 0:
            due = self._due
            wait(
                (self.future,),
                left_s if due is None else min(left_s, max(due - time.monotonic(), 0.0)),
            )

    def session(self) -> Session:
        """Returns a new session; callable once `is_done`.

        Raises GrammarRefused, or CompilerOverloaded if no thread was free in time.
        """
        result = self.future.result() if self.future.done() else CompilerOverloaded(PUT_OFF)
        if not isinstance(result, Prototype):
            raise type(result)(str(result))
        return result.session()
