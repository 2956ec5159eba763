"""What must come next in a sequence is said by its grammar, and by the limit of its reasoning.

The grammars of requests are compiled before these are scheduled, and then followed token by token.
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

_WAIT_S = 0.005  # while nothing else is to do


class Constraints:
    def __init__(self, compiler: GrammarCompiler | None) -> None:
        self._compiler = compiler
        self._masks = Masks(compiler.vocab_size if compiler else 0)
        self._compiling: list[tuple[EngineRequest, Compilation]] = []

    def submit(self, request: EngineRequest) -> None:
        """Raises GrammarRefused and CompilerOverloaded."""
        assert request.grammar is not None
        if self._compiler is None:
            raise GrammarRefused("this engine does not know grammars")
        self._compiling.append((request, self._compiler.compile(request.grammar.text)))

    def compiled(self, *, is_idle: bool) -> Iterator[tuple[EngineRequest, Session | Refusal]]:
        """Gives the requests whose compilation is over, each with its session or with why it has none."""
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
        """Forbids what does not fit, in place; returns why the grammars of some can go no further."""
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
        """Does the same for the beams of one search. Raises GrammarBroken."""
        sessions = [beam.session for beam in rows if beam.session is not None]
        if not sessions:
            return
        errors = self._masks.apply(list(rows.values()), sessions)
        for error in filter(None, errors):
            raise GrammarBroken(error)

    def follow(self, sequence: Sequence, max_model_len: int) -> None:
        """Takes note of the last token, and appends those that must come next. Raises GrammarBroken.

        They are what sampling would give, so no model step is spent on them; logprobs would need one, and where tokens
        are banned the sampler has to see whether they are among them.
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
                        break  # what comes next may be something else now
        except GrammarBroken:
            self.forget(sequence.request)
            raise
        if session is not None and session.is_complete:
            sequence.finish(FinishReason.STOP)

    def forget(self, request: EngineRequest) -> None:
        """Is called after the request's grammar broke: it is compiled anew for the next one."""
        assert self._compiler is not None
        assert request.grammar is not None
        self._compiler.forget(request.grammar.text)

    def close(self) -> None:
        if self._compiler is not None:
            self._compiler.close()


def _put_off_end(sequence: Sequence, session: Session) -> None:
    """Notes whether the grammar takes the end of a reasoning that is due: what it forces may be something else."""
    limit = sequence.reasoning_limit
    if limit is not None:
        limit.is_put_off = bool(limit.due) and not session.allows(limit.due[0])


def _next_token_ids(sequence: Sequence) -> Iterable[int]:
    """Returns what must come next, as far as that is known. Raises GrammarBroken."""
    session = sequence.session
    if sequence.due_token_ids:
        return sequence.due_token_ids
    return () if session is None or session.is_complete else session.forced()
