"""Limits the next tokens of sequences by their grammars and their reasoning budgets.

The grammar of a request is compiled before the request is scheduled, and then followed token by
token.
"""

from collections.abc import Iterable, Iterator, Mapping

from ouzel.engine.grammars.compilation import Compilation, CompilerOverloaded
from ouzel.engine.grammars.compiler import GrammarCompiler
from ouzel.engine.grammars.matcher import GrammarRefused
from ouzel.engine.grammars.session import GrammarBroken, Masks, Session
from ouzel.engine.sampling.sampler import PreparedRow
from ouzel.engine.state.columns import Row
from ouzel.engine.state.sequence import Sequence
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import FinishReason

Refusal = GrammarRefused | CompilerOverloaded

_WAIT_S = 0.005  # wait for a compilation, while the engine is idle


class Constraints:
    """The grammars and masks of the engine's requests."""

    def __init__(self, compiler: GrammarCompiler | None) -> None:
        self._compiler = compiler
        self._masks = Masks(compiler.vocab_size if compiler else 0)
        self._compiling: list[tuple[EngineRequest, Compilation]] = []

    def submit(self, request: EngineRequest) -> None:
        """Starts the compilation of the request's grammar.

        Raises GrammarRefused and CompilerOverloaded.
        """
        assert request.grammar is not None
        if self._compiler is None:
            raise GrammarRefused("this engine does not support grammars")
        self._compiling.append((request, self._compiler.compile(request.grammar.text)))

    def compiled(self, *, is_idle: bool) -> Iterator[tuple[EngineRequest, Session | Refusal]]:
        """Yields each request whose compilation has ended, with its session or the refusal."""
        if not self._compiling or self._compiler is None:
            return
        if is_idle:
            self._compiling[0][1].wait(_WAIT_S)
        for entry in [entry for entry in self._compiling if entry[1].is_done]:
            self._compiling.remove(entry)
            request, compilation = entry
            try:
                yield request, compilation.session()
            except (GrammarRefused, CompilerOverloaded) as error:
                yield request, error

    def mask(self, prepared: list[PreparedRow]) -> dict[Sequence, GrammarBroken]:
        """Sets forbidden tokens to -inf in place; returns the sequences whose grammars broke."""
        constrained = [
            (each, each.sequence.session) for each in prepared if each.sequence.session is not None
        ]
        if not constrained:
            return {}
        errors = self._masks.apply(
            [each.row for each, _ in constrained], [session for _, session in constrained]
        )
        faults = zip(constrained, errors, strict=True)
        broken = {each.sequence: GrammarBroken(error) for (each, _), error in faults if error}
        for sequence in broken:
            self.forget(sequence.request)
        return broken

    def mask_beams(self, rows: Mapping[Sequence, Row]) -> None:
        """Masks the rows of a search's beams in place. Raises GrammarBroken."""
        sessions = [beam.session for beam in rows if beam.session is not None]
        if not sessions:
            return
        errors = self._masks.apply(list(rows.values()), sessions)
        for error in filter(None, errors):
            raise GrammarBroken(error)

    def follow(self, sequence: Sequence, max_model_len: int) -> None:
        """Passes the last token to the grammar, and appends the tokens that must come next. Raises
        GrammarBroken.

        Sampling would choose the same tokens, so no model step is spent on them. Logprobs need a
        step, and with bans the sampler must check whether a forced token is banned.
        """
        session, params, limit = sequence.session, sequence.params, sequence.reasoning_limit
        needs_steps = params.num_logprobs is not None or params.bans_tokens
        try:
            if session is not None:
                session.accept(sequence.token_ids[-1])
                _put_off_end(sequence, session)
            while not needs_steps and (token_ids := _next_token_ids(sequence)):
                for token_id in token_ids:
                    if session is not None:
                        session.accept(token_id)
                    sequence.append(token_id, max_model_len)
                    if sequence.is_finished:
                        return
                    if session is not None:
                        _put_off_end(sequence, session)
                    if limit is not None and limit.due:
                        break  # the next tokens may be others now
        except GrammarBroken:
            self.forget(sequence.request)
            raise
        if session is not None and session.is_complete:
            sequence.finish(FinishReason.STOP)

    def forget(self, request: EngineRequest) -> None:
        """Drops the compiled grammar of a request whose session broke, so that it is compiled
        again.
        """
        assert self._compiler is not None
        assert request.grammar is not None
        self._compiler.forget(request.grammar.text)

    def close(self) -> None:
        if self._compiler is not None:
            self._compiler.close()


def _put_off_end(sequence: Sequence, session: Session) -> None:
    """Puts the due end of a reasoning off while the grammar does not allow its first token."""
    limit = sequence.reasoning_limit
    if limit is not None:
        limit.is_put_off = bool(limit.due) and not session.allows(limit.due[0])


def _next_token_ids(sequence: Sequence) -> Iterable[int]:
    """Returns the tokens that must come next, as far as they are known. Raises GrammarBroken."""
    session = sequence.session
    if sequence.due_token_ids:
        return sequence.due_token_ids
    return () if session is None or session.is_complete else session.forced()
