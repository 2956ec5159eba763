"""Grammar texts are compiled to prototypes of sessions, beside the engine's thread and with limits.

Rules
1. Native compilation cannot be stopped. So a grammar is compiled in a limited process first, and only what kept to the
   limits there is compiled in this one: the same work, of which it is now known what it takes.
2. There are two lanes, each with threads of its own. A grammar begins in the quick one; one that takes too long there
   goes to the slow one, where few may wait: however many of these come, ordinary ones get their turn.
3. Who waits for its turn twice as long as a grammar may take is put off.
4. One grammar is compiled once, however many ask for it at a time, and kept (`prototypes.py`). How a trial ended is
   remembered, without the text: what is compiled anew is not tried anew, and a refusal is given again. A fault of the
   machine is no refusal: it puts off, and nothing of it is kept.
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
# compilations: each thread has a heap of its own, with holes where forgotten ones were
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
        """`timeout_s` is of CPU time, for one grammar; `quick_s` of it may pass in the quick lane."""
        self._tokenizer = tokenizer
        self._timeout_s = timeout_s
        self._quick_s = min(quick_s, timeout_s)
        self._trials = Trials(tokenizer.source, max_bytes)
        self._quick: Queue = SimpleQueue()
        self._slow: Queue = SimpleQueue()
        self._lock = threading.Lock()  # of all that follows
        self._prototypes = Prototypes()
        self._remembered: OrderedDict[bytes, Trial] = OrderedDict()  # by digest of the grammar
        self._numbers = itertools.count()
        self._threads: list[threading.Thread] = []
        self._is_closed = False

    @property
    def vocab_size(self) -> int:
        return self._tokenizer.vocab_size

    def compile(self, grammar: str) -> Compilation:
        """Raises GrammarRefused for one that is too long."""
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
        """Forgets a grammar whose session broke: a limit that one copy meets is met by all that share its lexer."""
        with self._lock:
            self._prototypes.forget(grammar)

    def close(self) -> None:
        """Ends trials, and waits for what is being compiled here: a thread may not leave native code as Python ends.

        What has not been begun never will be.
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
            prototype = self._compiled(
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
                why = "too many grammars that take long are being compiled; try again later"
                self._end(compilation, CompilerOverloaded(why))
        except (GrammarRefused, CompilerOverloaded) as error:
            self._end(compilation, type(error)(str(error)))  # not itself, see `Compilation`
        except (TrialPutOff, OSError, MemoryError):
            self._end(compilation, CompilerOverloaded(PUT_OFF))
        except BaseException as error:  # who waits must hear of it
            self._end(compilation, GrammarRefused(f"the grammar cannot be compiled: {error}"))
        else:
            compilation.future.set_result(prototype)

    def _end(self, compilation: Compilation, why: GrammarRefused | CompilerOverloaded) -> None:
        """Ends one without a prototype. Only these are worth keeping with their texts."""
        self.forget(compilation.grammar)
        compilation.future.set_result(why)

    def _compiled(self, grammar: str, cpu_s: float) -> Prototype:
        trial = self._tried(grammar, cpu_s)
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

    def _tried(self, grammar: str, cpu_s: float) -> Trial:
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
