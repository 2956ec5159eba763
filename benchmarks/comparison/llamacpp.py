"""Runs llama.cpp by its low-level batches, with the best settings of a trial at loading.

Contexts are made anew for every turn, outside of the measured time. Sequences of one turn have the
same prompt: it is computed once and copied into each sequence's memory. For the steps this makes no
difference.
"""

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar  # Any: JSON

import numpy as np

from benchmarks.comparison.llama_choosers import chooser
from benchmarks.comparison.llama_library import Context, Model, Rows, Setting
from benchmarks.comparison.llama_proposals import Draft, PromptLookup, Proposer, speculative_step
from benchmarks.comparison.product import Contender, NotAvailable, Turn
from benchmarks.comparison.workloads import Decode, Prefill, Requests, Workload, prompts

SETTINGS = (Setting(False, False), Setting(True, False), Setting(True, True))
NUM_UBATCHES = (512, 128)
TRIAL_DECODE, TRIAL_PREFILL = Decode(8, 128, 4), Prefill(512)
NUM_PROPOSED = (2, 4, 8)
MARGIN = 64  # longest addition of a step, proposals included, beyond the counted tokens
Proposals = Literal["none", "lookup", "draft"]
Way = TypeVar("Way", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Best:
    decode: Setting
    prefill: Setting


class LlamaCpp:
    """The product. Option of a run: `proposals`. Option of loading: `draft_model`, a path."""

    def __init__(self, contender: Contender, num_threads: int) -> None:
        self._model = Model(Path(contender.model), num_threads)
        draft = contender.options.get("draft_model")
        self._draft = None if draft is None else Model(Path(draft), num_threads)
        self._num_proposed: dict[tuple[Decode, Proposals], int] = {}
        self._best = self._try_settings()
        self.settings = {"decode": str(self._best.decode), "prefill": str(self._best.prefill)}

    def run(self, workload: Workload, seed: int, options: dict[str, Any]) -> Turn:
        proposals: Proposals = options.get("proposals", "none")
        match workload:
            case Decode() if proposals == "none":
                return self._decode(workload, seed, self._best.decode)
            case Decode():
                return self._speculate(workload, seed, proposals)
            case Prefill():
                return self._prefill(workload, seed, self._best.prefill)
            case Requests():
                return self._requests(workload, seed)

    def close(self) -> None:
        self._model.close()

    def _try_settings(self) -> Best:
        """Returns the fastest setting for each kind of work; a failing one counts as slow."""
        decode = _find_fastest(SETTINGS, lambda setting: self._decode(TRIAL_DECODE, 0, setting))
        prefill = _find_fastest(SETTINGS, lambda setting: self._prefill(TRIAL_PREFILL, 0, setting))
        sizes = [replace(prefill, num_ubatch=size) for size in NUM_UBATCHES]
        return Best(
            decode, _find_fastest(sizes, lambda setting: self._prefill(TRIAL_PREFILL, 0, setting))
        )

    def _prefill(self, workload: Prefill, seed: int, setting: Setting) -> Turn:
        [token_ids] = prompts(workload, seed)
        context = Context(self._model, setting, 1, len(token_ids))
        before = time.perf_counter()
        context.prefill(token_ids).argmax()
        seconds = time.perf_counter() - before
        context.close()
        return Turn(seconds, workload.num_tokens, 1)

    def _decode(self, workload: Decode, seed: int, setting: Setting) -> Turn:
        batch, first = workload.batch, workload.context_len
        context = self._prefill_context(workload, seed, setting)
        choose = chooser(workload.chooser, self._model, batch, seed)
        token_ids = [1 + prompts(workload, seed)[0][-1]] * batch
        everyone, has_logits = np.arange(batch, dtype=np.int32), np.ones(batch, np.bool_)
        before = 0.0
        for step in range(workload.output_len + 1):
            if step == 1:  # the first one copies the prompt's memory, too
                before = time.perf_counter()
            positions = np.full(batch, first + step, np.int32)
            logits = context.decode(
                Rows(np.array(token_ids, np.int32), positions, everyone, has_logits)
            )
            token_ids = choose.choose(context, logits)
        seconds = time.perf_counter() - before
        choose.close()
        context.close()
        return Turn(seconds, batch * workload.output_len, workload.output_len)

    def _prefill_context(self, workload: Decode, seed: int, setting: Setting) -> Context:
        num_tokens = workload.context_len + workload.output_len + MARGIN
        context = Context(self._model, setting, workload.batch, num_tokens)
        context.prefill(prompts(workload, seed)[0])
        for sequence in range(1, workload.batch):
            context.copy(0, sequence)
        return context

    def _speculate(self, workload: Decode, seed: int, proposals: Proposals) -> Turn:
        """Runs with proposals; the first run of a workload tries numbers of proposals."""
        if (best := self._num_proposed.get((workload, proposals))) is None:
            trial = replace(workload, output_len=workload.output_len // 2)
            best = _find_fastest(
                NUM_PROPOSED, lambda count: self._run_proposals(trial, seed, proposals, count)
            )
            self._num_proposed[workload, proposals] = best
            what = f"{proposals} at batch {workload.batch}, {workload.text}"
            self.settings[what] = f"{best} tokens proposed"
        return self._run_proposals(workload, seed, proposals, best)

    def _run_proposals(
        self, workload: Decode, seed: int, proposals: Proposals, num_proposed: int
    ) -> Turn:
        context = self._prefill_context(workload, seed, self._best.decode)
        prompt = prompts(workload, seed)[0]
        histories = [[*prompt, prompt[-1] + 1] for _ in range(workload.batch)]
        proposer = self._proposer(workload, proposals, num_proposed)
        # The first step copies the prompt's memory and fills the draft's.
        speculative_step(context, histories, proposer.propose)
        num_tokens = num_steps = 0
        before = time.perf_counter()
        while num_tokens < workload.batch * workload.output_len:
            num_tokens += speculative_step(context, histories, proposer.propose)
            num_steps += 1
        seconds = time.perf_counter() - before
        proposer.close()
        context.close()
        return Turn(seconds, num_tokens, num_steps)

    def _proposer(self, workload: Decode, proposals: Proposals, num_proposed: int) -> Proposer:
        if proposals == "lookup":
            return PromptLookup(num_proposed)
        if self._draft is None or workload.batch > 1:
            raise NotAvailable("the draft model proposes for one sequence")
        num_tokens = workload.context_len + workload.output_len + MARGIN
        context = Context(self._draft, self._best.decode, 1, num_tokens)
        return Draft(context, num_proposed)

    def _requests(self, workload: Requests, seed: int) -> Turn:
        """Runs the requests; the common part of the prompts is computed once and shared."""
        rows, shared_len = prompts(workload, seed), workload.shared_len
        each = workload.prompt_len - shared_len + workload.output_len
        context = Context(
            self._model,
            self._best.decode,
            workload.batch,
            shared_len + each * len(rows),
            unified=True,
        )
        before = time.perf_counter()
        if shared_len:
            context.prefill(rows[0][:shared_len])
            for sequence in range(1, len(rows)):
                context.copy(0, sequence)
        token_ids = context.decode(_own_parts(rows, shared_len)).argmax(axis=1)
        everyone = np.arange(len(rows), dtype=np.int32)
        has_logits = np.ones(len(rows), np.bool_)
        for step in range(workload.output_len - 1):
            positions = np.full(len(rows), workload.prompt_len + step, np.int32)
            token_ids = context.decode(
                Rows(token_ids.astype(np.int32), positions, everyone, has_logits)
            ).argmax(axis=1)
        seconds = time.perf_counter() - before
        context.close()
        return Turn(seconds, workload.batch * workload.output_len, workload.output_len)


def _own_parts(rows: list[list[int]], shared_len: int) -> Rows:
    """Returns the prompts behind their common part, one after the other."""
    own = np.array([row[shared_len:] for row in rows], np.int32)
    num_rows, length = own.shape
    has_logits = np.zeros_like(own, np.bool_)
    has_logits[:, -1] = True
    return Rows(
        token_ids=own.ravel(),
        positions=np.tile(np.arange(shared_len, shared_len + length, dtype=np.int32), num_rows),
        sequences=np.repeat(np.arange(num_rows, dtype=np.int32), length),
        has_logits=has_logits.ravel(),
    )


def _find_fastest(ways: Sequence[Way], run: Callable[[Way], Turn]) -> Way:
    """Returns the fastest way. Raises NotHad if none runs."""
    seconds: dict[Way, float] = {}
    faults = []
    for way in ways:
        try:
            turn = run(way)
        except RuntimeError as error:
            faults.append(str(error))
        else:
            seconds[way] = turn.seconds / turn.num_tokens
    if not seconds:
        raise NotAvailable("; ".join(faults))
    return min(seconds, key=lambda way: seconds[way])
