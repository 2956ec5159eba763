"""Compiles grammar texts to prototypes of sessions, beside the engine's thread and with limits.

Rules
1. Native compilation cannot be stopped. So a grammar is first compiled in a limited process. Only a
   grammar that keeps the limits there is compiled in this process: the same work, at a known cost.
2. There are two lanes with threads of their own. A grammar begins in the quick lane; if it takes
   too long there, it goes to the slow lane, where few may wait. So many slow grammars do not delay
   ordinary ones.
3. A grammar that waits for a thread longer than twice the time limit of a compilation is put off.
4. Equal grammars are compiled once and kept (`prototypes.py`). The result of a trial is kept
   without the text: a later compilation needs no second trial, and a refusal is repeated. A fault
   of the machine is no refusal: the compilation is put off, and nothing of it is kept.
"""

import hashlib
import itertools
import threading
from collections import OrderedDict
from contextlib import suppress
from queue import Empty, SimpleQueue

from ouzel.engine.grammars.compilation import PUT_OFF, Compilation, CompilerOverloaded
from ouzel.engine.grammars.matcher import STACK_BYTES, GrammarRefused, compile_matcher
from ouzel.engine.grammars.native_memory import give_back_memory
from ouzel.engine.grammars.prototypes import Prototypes
from ouzel.engine.grammars.session import Prototype
from ouzel.engine.grammars.tokenizer import GrammarTokenizer
from ouzel.engine.grammars.trial import MAX_BYTES, Trial, TrialPutOff, Trials, TrialTooLong
from ouzel.grammar.caps import MAX_GRAMMAR_CHARS

_NUM_QUICK_THREADS = 3
_MAX_SLOW_WAITING = 6
_MAX_REMEMBERED = 4096  # trials, of up to 4 KiB
# Number of compilations between two trims: freed prototypes leave holes in the heap of each thread.
_TRIM_EVERY = 50

Queue = SimpleQueue[Compilation | None]


class GrammarCompiler:
    """Compiles grammars; `compile` may be called from any thread."""

    def __init__(
        self,
        tokenizer: GrammarTokenizer,
        *,
        timeout_s: float = 5.0,
        quick_s: float = 0.5,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """`timeout_s` limits the CPU time of one grammar, `quick_s` its share in the quick lane."""
        self._tokenizer = tokenizer
        self._timeout_s = timeout_s
        self._quick_s = min(quick_s, timeout_s)
        self._trials = Trials(tokenizer.source, max_bytes)
        self._quick: Queue = SimpleQueue()
        self._slow: Queue = SimpleQueue()
        self._lock = threading.Lock()  # guards all attributes below
        self._prototypes = Prototypes()
        # results of trials by digest of the grammar
        self._remembered: OrderedDict[bytes, Trial] = OrderedDict()
        self._numbers = itertools.count()
        self._threads: list[threading.Thread] = []
        self._is_closed = False

    @property
    def vocab_size(self) -> int:
        return self._tokenizer.vocab_size

    def compile(self, grammar: str) -> Compilation:
        """Returns the running or finished compilation of a grammar.

        Raises GrammarRefused if it is too long.
        """
        if len(grammar) > MAX_GRAMMAR_CHARS:
            raise GrammarRefused(
                f"the grammar must be <= {MAX_GRAMMAR_CHARS} characters long, given {len(grammar)}"
            )
        with self._lock:
            compilation = self._prototypes.get(grammar)
            if compilation is None:
                compilation = Compilation(grammar, 2 * self._timeout_s)
                self._prototypes.put(compilation)
                self._start_threads()
                self._quick.put(compilation)
            return compilation

    def forget(self, grammar: str) -> None:
        """Drops a grammar whose session broke.

        All sessions share the lexer, so they would break at the same limit.
        """
        with self._lock:
            self._prototypes.forget(grammar)

    def close(self) -> None:
        """Ends trials, drops waiting compilations and waits for running ones.

        A thread may not be in native code when Python ends.
        """
        self._trials.close()
        for queue in (self._quick, self._slow):
            with suppress(Empty):
                while True:
                    queue.get_nowait()
        with self._lock:
            threads, self._threads = self._threads, []
            self._is_closed = True
        for _ in threads:
            self._quick.put(None)
            self._slow.put(None)
        for thread in threads:
            thread.join()

    def _start_threads(self) -> None:
        if self._threads or self._is_closed:
            return
        before = threading.stack_size(STACK_BYTES)
        try:
            for queue in (*[self._quick] * _NUM_QUICK_THREADS, self._slow):
                thread = threading.Thread(
                    target=self._work, args=(queue,), name="ouzel-grammar", daemon=True
                )
                self._threads.append(thread)
                thread.start()
        finally:
            threading.stack_size(before)

    def _work(self, queue: Queue) -> None:
        while (compilation := queue.get()) is not None:
            if compilation.take_turn():
                self._advance(compilation, is_quick=queue is self._quick)
            else:
                self.forget(compilation.grammar)

    def _advance(self, compilation: Compilation, *, is_quick: bool) -> None:
        """Ends a compilation, or sends it to the slow lane."""
        try:
            prototype = self._compile(
                compilation.grammar, self._quick_s if is_quick else self._timeout_s
            )
        except TrialTooLong:
            if not is_quick or self._quick_s == self._timeout_s:
                why = f"compiling the grammar takes longer than {self._timeout_s:g} s"
                self._remember(_digest(compilation.grammar), Trial.refused(why))
                self._end(compilation, GrammarRefused(why))
            elif self._slow.qsize() < _MAX_SLOW_WAITING:
                compilation.wait_for_turn()
                self._slow.put(compilation)
            else:
                why = "too many slow grammars are being compiled; try again later"
                self._end(compilation, CompilerOverloaded(why))
        except (GrammarRefused, CompilerOverloaded) as error:
            self._end(compilation, type(error)(str(error)))  # a copy, see `Compilation`
        except (TrialPutOff, OSError, MemoryError):
            self._end(compilation, CompilerOverloaded(PUT_OFF))
        except BaseException as error:  # waiting requests need an end
            self._end(compilation, GrammarRefused(f"the grammar cannot be compiled: {error}"))
        else:
            compilation.future.set_result(prototype)

    def _end(self, compilation: Compilation, why: GrammarRefused | CompilerOverloaded) -> None:
        """Ends a compilation without a prototype.

        Only prototypes are worth keeping with their texts.
        """
        self.forget(compilation.grammar)
        compilation.future.set_result(why)

    def _compile(self, grammar: str, cpu_s: float) -> Prototype:
        trial = self._try_grammar(grammar, cpu_s)
        if trial.refusal is not None:
            raise GrammarRefused(trial.refusal)
        with self._lock:
            if not self._prototypes.has_room(trial.num_bytes):
                raise CompilerOverloaded(
                    "the grammars in use take too much memory; try again later"
                )
        if next(self._numbers) % _TRIM_EVERY == _TRIM_EVERY - 1:
            give_back_memory()
        matcher = compile_matcher(self._tokenizer.native, grammar)
        prototype = Prototype(matcher, num_bytes=trial.num_bytes, cpu_s=trial.cpu_s)
        with self._lock:
            self._prototypes.add(prototype)
        return prototype

    def _try_grammar(self, grammar: str, cpu_s: float) -> Trial:
        digest = _digest(grammar)
        with self._lock:
            trial = self._remembered.get(digest)
        if trial is not None and trial.refusal is None and trial.cpu_s > cpu_s:
            raise TrialTooLong
        if trial is None:
            trial = self._trials.run(grammar, cpu_s=cpu_s)
            self._remember(digest, trial)
        return trial

    def _remember(self, digest: bytes, trial: Trial) -> None:
        with self._lock:
            self._remembered[digest] = trial
            if len(self._remembered) > _MAX_REMEMBERED:
                self._remembered.popitem(last=False)


def _digest(grammar: str) -> bytes:
    return hashlib.sha256(grammar.encode()).digest()
