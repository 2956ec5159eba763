"""Grammar texts are compiled to prototypes of sessions, beside the engine's thread and with limits.

Rules
1. Native compilation recurses: a long chain of references overflows an ordinary stack and takes the process along. So
   it runs only in threads with a stack of 256 MiB (address space, not memory), and sizes are capped before.
2. It cannot be stopped. A job that takes longer than `timeout_s` is given up, its thread is replaced, and when too many
   are lost in this way further grammars are put off until some return. So is one that waits for its turn longer than
   twice that.
3. One grammar is compiled once, however many ask for it at a time, and kept (least recently used go first). A prototype
   is never stepped: sessions are copies, which share its warmed-up lexer.
"""

import re
import threading
import time
from collections import OrderedDict
from concurrent.futures import Future, wait
from contextlib import suppress
from queue import Empty, SimpleQueue

from llguidance import LLMatcher, LLParserLimits, LLTokenizer
from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask

from ouzel.engine.grammars.session import Session
from ouzel.grammar.caps import MAX_GRAMMAR_CHARS

_STACK_BYTES = 256 * 2**20
_NUM_THREADS = 2
_MAX_LOST_THREADS = 6
_MAX_CACHED = 256
_MAX_CACHED_S = 5.0  # of CPU time that compiling them took, for their size, which the library does not tell: 100 MB/s
_MAX_MESSAGE_CHARS = 1000
_PLACE = re.compile(r"^at \d+\(\d+\): (failed to compile JSON schema: )?")
_SOURCE_LINE = re.compile(r"\s*(\d+ \||\^\s*$|<non-verbose/>)")

LIMITS = LLParserLimits(
    max_items_in_row=5_000,  # an object with as many optional properties as we allow has 4,000
    step_max_items=20_000,  # a mask takes up to a third of a second then, for which all others wait
    max_lexer_states=100_000,
    max_grammar_size=60_000,  # symbols; as many properties as we allow have 50,000
    verbose_errors=False,
)


class GrammarRefused(Exception):
    """The grammar cannot be used; the message is for the client."""


class CompilerOverloaded(Exception):
    """The grammar may be compiled later; the message is for the client."""


class Compilation:
    """One grammar is being compiled, for any number of requests."""

    def __init__(self, grammar: str, timeout_s: float) -> None:
        self.grammar = grammar
        self.future: Future[LLMatcher] = Future()  # of the prototype
        self.started_at: float | None = None  # set by the thread that compiles it
        self.cpu_s = 0.0  # that it took
        self._submitted_at = time.monotonic()
        self._timeout_s = timeout_s

    @property
    def is_done(self) -> bool:
        """Whether a result is there, or time is up."""
        return self.future.done() or self.is_late

    @property
    def is_late(self) -> bool:
        """Whether it has been compiling, or waiting, for too long."""
        return time.monotonic() > self._due()

    def wait(self, timeout_s: float) -> None:
        """Waits up to `timeout_s` for the result, while it is not late."""
        wait((self.future,), min(timeout_s, max(self._due() - time.monotonic(), 0.0)))

    def _due(self) -> float:
        started_at = self.started_at
        return self._submitted_at + 2 * self._timeout_s if started_at is None else started_at + self._timeout_s

    def session(self) -> Session:
        """Returns a session, once `is_done`. Raises GrammarRefused, or CompilerOverloaded if its turn never came."""
        if self.future.done():
            return Session(self.future.result().deep_copy())
        if self.started_at is None:
            raise CompilerOverloaded("too many other grammars are being compiled; try again later")
        raise GrammarRefused(f"compiling the grammar takes longer than {self._timeout_s:g} s")


class GrammarCompiler:
    """Compiles grammars; `compile` may be called from any thread."""

    def __init__(self, tokenizer: LLTokenizer, *, timeout_s: float = 5.0) -> None:
        self._tokenizer = tokenizer
        self._timeout_s = timeout_s
        self._jobs: SimpleQueue[Compilation | None] = SimpleQueue()
        self._cache: OrderedDict[str, Compilation] = OrderedDict()
        self._lock = threading.Lock()  # of all that follows, and of `_cache`
        self._jobs_by_thread: dict[threading.Thread, Compilation] = {}
        self._lost_threads: set[threading.Thread] = set()
        self._threads: list[threading.Thread] = []
        for _ in range(_NUM_THREADS):
            self._start_thread()

    @property
    def vocab_size(self) -> int:
        return self._tokenizer.vocab_size

    def compile(self, grammar: str) -> Compilation:
        """Raises GrammarRefused for one that is too long, CompilerOverloaded when too many take long already."""
        if len(grammar) > MAX_GRAMMAR_CHARS:
            raise GrammarRefused(f"the grammar must be <= {MAX_GRAMMAR_CHARS} characters long, given {len(grammar)}")
        with self._lock:
            self._replace_late_threads()
            if grammar not in self._cache:
                self._cache[grammar] = self._submit(grammar)
            self._cache.move_to_end(grammar)
            self._forget_oldest()
            return self._cache[grammar]

    def go_on(self) -> None:
        """Must be called now and then while anybody waits: jobs must not wait behind one that has been given up."""
        with self._lock:
            self._replace_late_threads()

    def forget(self, grammar: str) -> None:
        """Forgets a grammar whose session broke: a limit that one copy meets is met by all that share its lexer."""
        with self._lock:
            self._cache.pop(grammar, None)

    def close(self) -> None:
        """Waits for what is being compiled: a thread that returns from native code while Python ends takes it down.

        What has not been begun never will be.
        """
        with suppress(Empty):
            while True:
                self._jobs.get_nowait()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _forget_oldest(self) -> None:
        """Forgets compilations until there is room for the last."""
        total_s = sum(job.cpu_s for job in self._cache.values())
        while len(self._cache) > 1 and (len(self._cache) > _MAX_CACHED or total_s > _MAX_CACHED_S):
            _, job = self._cache.popitem(last=False)
            total_s -= job.cpu_s

    def _submit(self, grammar: str) -> Compilation:
        if len(self._lost_threads) >= _MAX_LOST_THREADS:
            raise CompilerOverloaded("too many grammars that take long are being compiled; try again later")
        job = Compilation(grammar, self._timeout_s)
        self._jobs.put(job)
        return job

    def _replace_late_threads(self) -> None:
        late = {thread for thread, job in self._jobs_by_thread.items() if job.is_late} - self._lost_threads
        for _ in late:
            self._start_thread()
        self._lost_threads |= late

    def _start_thread(self) -> None:
        before = threading.stack_size(_STACK_BYTES)
        try:
            thread = threading.Thread(target=self._work, name="ouzel-grammar", daemon=True)
            self._threads = [*filter(threading.Thread.is_alive, self._threads), thread]
            thread.start()
        finally:
            threading.stack_size(before)

    def _work(self) -> None:
        thread = threading.current_thread()
        while thread not in self._lost_threads and (job := self._jobs.get()) is not None:
            job.started_at = time.monotonic()
            with self._lock:
                self._jobs_by_thread[thread] = job
            began_s = time.thread_time()
            try:
                matcher = self._compiled(job.grammar)
                job.cpu_s = time.thread_time() - began_s
                job.future.set_result(matcher)
            except GrammarRefused as error:
                job.future.set_exception(error)
            except BaseException as error:  # the library's panics are no Exceptions
                job.future.set_exception(GrammarRefused(f"the grammar cannot be compiled: {error}"))
            with self._lock:
                del self._jobs_by_thread[thread]
        with self._lock:
            self._lost_threads.discard(thread)  # another one has taken its place

    def _compiled(self, grammar: str) -> LLMatcher:
        """Compiles a grammar and makes its first mask: some limits are met only there."""
        matcher = LLMatcher(self._tokenizer, grammar, log_level=0, limits=LIMITS)
        if not matcher.is_error():
            fill_next_token_bitmask(matcher, allocate_token_bitmask(1, self._tokenizer.vocab_size))
        if matcher.is_error():
            raise GrammarRefused(_for_client(matcher.get_error()))
        return matcher


def _for_client(message: str) -> str:
    """Drops the place in the grammar text and its lines, which the client did not write, and the engine's options."""
    if "coerce_one_of" in message:
        return "the schemas of oneOf must be such that one value cannot be valid by two of them"
    if "NoExtensionBias" in message:
        return "no text fits the grammar"
    lines = [line for line in message.splitlines() if line.strip() and not _SOURCE_LINE.match(line)]
    return _PLACE.sub("", "\n".join(lines))[:_MAX_MESSAGE_CHARS]
