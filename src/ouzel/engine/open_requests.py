"""Holds the requests that the engine has taken and not yet ended, and the outputs of the step.

Rules
1. A choice is in here until its final output. The event that ends it (token, abort, error) makes
   that output and calls `retire`, which releases the blocks at once.
2. The further choices of a request wait with the first choice (`forks`) until it has computed the
   prompt, or has ended.
3. The choices of a beam search are never scheduled; its beams are. The search ends with the last of
   its choices.
"""

from typing import assert_never

from ouzel.engine.beam import BeamSearch
from ouzel.engine.grammars.compilation import CompilerOverloaded
from ouzel.engine.grammars.matcher import GrammarRefused
from ouzel.engine.grammars.session import GrammarBroken
from ouzel.engine.outputs import make_output
from ouzel.engine.request_faults import Fault
from ouzel.engine.sampling.constraints import Refusal
from ouzel.engine.scheduling.scheduler import Scheduler
from ouzel.engine.state.adapters import Adapter
from ouzel.engine.state.sequence import Sequence
from ouzel.types.step_output import FinishReason, StepOutput


class OpenRequests:
    """The choices that owe their final outputs, and the outputs of the present step."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.outputs: list[StepOutput] = []  # outputs of the present step
        self.searches: dict[str, BeamSearch] = {}  # searches by request id
        self._scheduler = scheduler
        self._choices: dict[str, dict[int, Sequence]] = {}  # choices by request id and index

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._choices

    def __bool__(self) -> bool:
        """Tells whether any choice or output is left."""
        return bool(self._choices or self.outputs)

    def add(self, choices: list[Sequence]) -> None:
        self._choices[choices[0].request.request_id] = {choice.index: choice for choice in choices}

    def choices(self, request_id: str) -> list[Sequence]:
        """Returns the choices that have no final output yet."""
        return list(self._choices.get(request_id, {}).values())

    def awaits(self, request_id: str, index: int) -> bool:
        """Tells whether this choice of an open request has no final output yet."""
        return index in self._choices[request_id]

    def take_outputs(self) -> list[StepOutput]:
        outputs, self.outputs = self.outputs, []
        return outputs

    def end(self, sequence: Sequence, reason: FinishReason, error: str | None = None) -> None:
        """Ends a choice without a further token."""
        if sequence.is_finished:
            return  # ended by its last token, before its batch failed
        sequence.finish(reason, error)
        self.outputs.append(make_output(sequence))
        self.retire(sequence)

    def end_with_forks(
        self, sequence: Sequence, reason: FinishReason, error: str | None = None
    ) -> None:
        """Ends a sequence with its dependants: its forks, or all choices of its beam search."""
        for each in (
            self.choices(sequence.request.request_id)
            if sequence.beams
            else (*sequence.forks, sequence)
        ):
            self.end(each, reason, error)

    def adapters(self) -> set[Adapter | None]:
        """Returns the adapters that open choices use."""
        return {choice.adapter for choices in self._choices.values() for choice in choices.values()}

    def refuse_new(self, choices: list[Sequence], fault: Fault) -> None:
        """Makes the final outputs of a request that was never added."""
        for choice in choices:
            choice.error_param = fault.param
            choice.finish(FinishReason.REFUSED, fault.message)
            self.outputs.append(make_output(choice))

    def refuse(self, choices: list[Sequence], why: str) -> None:
        """Refuses choices of a request whose grammar cannot be honoured."""
        for choice in choices:
            assert choice.request.grammar is not None
            choice.error_param = choice.request.grammar.param
            self.end(choice, FinishReason.REFUSED, f"{choice.request.grammar.param}: {why}")

    def refuse_unstarted(self, choices: list[Sequence], why: Refusal) -> None:
        """Ends the choices of a request whose grammar could not be compiled."""
        match why:
            case GrammarRefused():
                self.refuse(choices, str(why))
            case CompilerOverloaded():
                for choice in choices:
                    self.end(choice, FinishReason.OVERLOADED, str(why))
            case unreachable:
                assert_never(unreachable)

    def end_broken(self, choices: list[Sequence], why: GrammarBroken) -> None:
        """Ends choices whose grammar failed during the generation.

        A grammar that is too complex or has no matching text is the request's fault, as at
        compilation.
        """
        if why.is_too_complex:
            self.refuse(choices, f"the grammar is too complex: {str(why).splitlines()[0]}")
            return
        if why.is_dead_end:
            self.refuse(choices, "no text fits the grammar")
            return
        for choice in choices:
            self.end(choice, FinishReason.ERROR, f"the grammar can go no further: {why}")

    def retire(self, sequence: Sequence) -> None:
        """Removes a finished choice; starts the next of the choices that were to fork from it."""
        request_id = sequence.request.request_id
        choices = self._choices[request_id]
        del choices[sequence.index]
        if not choices:
            del self._choices[request_id]
            search = self.searches.pop(request_id, None)
            for beam in search.beams if search is not None else ():
                self._scheduler.remove(beam)
        self._scheduler.remove(sequence)
        forks = [fork for fork in sequence.forks if not fork.is_finished]
        if forks:
            first, *first.forks = forks
            self._scheduler.add(first)
