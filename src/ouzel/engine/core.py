"""Runs one model: takes requests, computes them step by step and returns outputs.

Rules
1. A fault in the forward pass ends the sequences of the batch. The engine continues.
2. The logprobs of the prompt belong to choice 0. They are given out as they are computed, each
   once, even after a preemption.
3. A request with a grammar is scheduled when its grammar is compiled. An output without tokens
   announces this before the forward pass. Tokens that the grammar forces are appended without a
   model step; so is the end mark of a reasoning whose budget is used up.
"""

import logging
import time
from collections.abc import Iterable
from heapq import merge
from itertools import count, islice
from operator import attrgetter

import msgspec
import numpy as np
from numpy.typing import NDArray

from ouzel.engine.adapter_trial import make_adapters
from ouzel.engine.alignments import Alignments
from ouzel.engine.base import AudioRunner, ForwardBatch, ImageRunner, ModelRunner
from ouzel.engine.beam import BeamSearch
from ouzel.engine.cache.block_manager import BlockManager
from ouzel.engine.cache.prefix_store import PrefixStore
from ouzel.engine.cache.state_slots import state_slots
from ouzel.engine.grammars.compilation import CompilerOverloaded
from ouzel.engine.grammars.compiler import GrammarCompiler
from ouzel.engine.grammars.matcher import GrammarRefused
from ouzel.engine.grammars.session import Session
from ouzel.engine.open_requests import OpenRequests
from ouzel.engine.outputs import encode_vector, make_output
from ouzel.engine.request_faults import find_faults
from ouzel.engine.sampling.constraints import Constraints, Refusal
from ouzel.engine.sampling.own_logprobs import score
from ouzel.engine.scheduling.audio_encoder import AudioEncoder
from ouzel.engine.scheduling.batch import build_batch, split_logits
from ouzel.engine.scheduling.chunks import Chunks
from ouzel.engine.scheduling.image_encoder import (
    NO_IMAGES,
    EncodingFailed,
    ImageEncoder,
    NoImages,
)
from ouzel.engine.scheduling.scheduler import Scheduled, Scheduler
from ouzel.engine.searches import advance_searches
from ouzel.engine.speculation.no_proposals import NoProposals
from ouzel.engine.speculation.proposals import Proposals, Speculation
from ouzel.engine.state.prompt_images import PromptImages
from ouzel.engine.state.sequence import Sequence
from ouzel.engine.state.two_way_tokens import find_two_way_spans
from ouzel.engine.stats import collect_stats
from ouzel.engine.token_taker import TokenTaker
from ouzel.errors import STOPS
from ouzel.types.engine_info import EngineInfo, EngineStats
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import FinishReason, StepOutput

logger = logging.getLogger(__name__)


class EngineCore:
    """Implements `Engine` on any `ModelRunner`: a continuous batch of generating sequences."""

    def __init__(
        self,
        runner: ModelRunner,
        *,
        prefix_caching: bool = True,
        grammars: GrammarCompiler | None = None,
        speculation: Speculation | None = None,
        store: PrefixStore | None = None,
    ) -> None:
        self._info = info = msgspec.structs.replace(
            runner.info,
            has_grammars=grammars is not None,
            has_prompt_lookup=speculation is not None and speculation.prompt_lookup,
            has_drafts=speculation is not None and speculation.drafts,
        )
        self._runner = runner
        self._blocks = BlockManager(
            num_blocks=info.num_blocks,
            block_size=info.block_size,
            prefix_caching=prefix_caching,
            states=state_slots(info, store),
            store=store,
        )
        self._images: ImageEncoder | NoImages = NO_IMAGES
        if info.has_encoder and isinstance(runner, ImageRunner):
            self._images = ImageEncoder(runner, self._blocks.num_cached_tokens)
        self._alignments: Alignments | None = None
        if info.audio is not None and isinstance(runner, AudioRunner):
            self._images = audio = AudioEncoder(runner, info.audio.num_slots)
            self._alignments = Alignments(runner, audio)
        self._scheduler = Scheduler(
            self._blocks,
            max_num_seqs=info.max_num_seqs,
            max_num_batched_tokens=info.max_num_batched_tokens,
            chunks=Chunks(self._blocks, self._images),
        )
        self._proposals: Proposals | NoProposals = NoProposals()
        if speculation is not None:
            self._proposals = Proposals(runner, self._blocks, speculation, self._images)
        self._requests = OpenRequests(self._scheduler)
        self._constraints = Constraints(grammars)
        self._taker = TokenTaker(
            self._requests, self._constraints, self._blocks, info.max_model_len
        )
        self._arrivals = count()
        self.adapters = make_adapters(runner, self._blocks)

    @property
    def info(self) -> EngineInfo:
        return msgspec.structs.replace(self._info, adapters=self.adapters.names)

    def add(self, request: EngineRequest) -> None:
        if request.request_id in self._requests:
            raise ValueError(f"request_id {request.request_id!r} is in use")
        adapter = self.adapters.find(request.adapter)
        fault = next(find_faults(request, adapter, self._info, self._blocks), None)
        arrival = next(self._arrivals)
        images = (
            PromptImages(request.images, len(request.prompt_token_ids))
            if request.images and not fault
            else None
        )
        two_way_spans = find_two_way_spans(
            self._info, len(request.prompt_token_ids), request.images
        )
        choices = [
            Sequence(
                request,
                index,
                arrival,
                images,
                adapter,
                keeps_kinds=self._info.separates_rows,
                two_way_spans=two_way_spans,
            )
            for index in range(request.n)
        ]
        if fault is not None:
            self._requests.refuse_new(choices, fault)
            return
        self._images.count_hits(choices[0])
        self._requests.add(choices)
        if request.grammar is None:
            self._start(choices)
        else:
            try:
                self._constraints.submit(request)
            except (GrammarRefused, CompilerOverloaded) as error:
                self._requests.refuse_unstarted(choices, error)

    def abort(self, request_id: str, index: int | None = None) -> None:
        for sequence in self._requests.choices(request_id):
            if index is None or sequence.index == index:
                self._requests.end(sequence, FinishReason.ABORT)

    def has_unfinished(self) -> bool:
        return bool(self._requests) or self.adapters.is_busy

    def stats(self) -> EngineStats:
        return collect_stats(self._scheduler, self._blocks, self._images, self._proposals)

    def use_idle_time(self) -> bool:
        return self._proposals.measure()

    def close(self) -> None:
        self._constraints.close()
        self.adapters.close()
        self._proposals.close()
        if self._blocks.store is not None:
            self._blocks.store.close()
        self._runner.close()

    def step(self) -> list[StepOutput]:
        if self._start_constrained():
            # The forward pass may take long: clients get the outputs of started requests first.
            return self._requests.take_outputs()
        self._encode_images()
        begin_s = time.monotonic()
        scheduled = self._scheduler.schedule()
        if scheduled:
            try:
                self._proposals.add_to(scheduled)
                self._compute(scheduled)
            except STOPS:
                raise
            # A fault of the device or of our code: the batch is lost, the engine is not.
            except BaseException as error:
                logger.exception("step failed with %d sequences", len(scheduled))
                for sequence in self._list_affected(scheduled):
                    self._requests.end_with_forks(
                        sequence, FinishReason.ERROR, f"the model step failed: {error}"
                    )
            self._note_background(scheduled, begin_s)
        self._proposals.note(scheduled)
        self._blocks.step_done()
        self.adapters.settle(self._requests.adapters, is_idle=not (scheduled or self._requests))
        return self._requests.take_outputs()

    def _note_background(self, scheduled: list[Scheduled], begin_s: float) -> None:
        """Gives the duration and the content of the step to the limits of background work."""
        others = [each for each in scheduled if not each.sequence.request.is_background]
        num_others_tokens = sum(each.num_new_tokens for each in others)
        waits_s = [
            sequence.first_token_at - sequence.added_at
            for sequence in (each.sequence for each in others)
            if sequence.first_token_at is not None and sequence.first_token_at >= begin_s
        ]
        self._scheduler.background.note_step(
            time.monotonic() - begin_s,
            num_tokens=sum(each.num_new_tokens for each in scheduled) - num_others_tokens,
            num_others_tokens=num_others_tokens,
            first_token_waits_s=waits_s,
        )

    def _encode_images(self) -> None:
        """Advances the encoder of images or sound; by a short part only, while a sequence
        decodes.
        """
        running, waiting = self._scheduler.running, self._scheduler.waiting
        someone_decodes = any(sequence.num_uncomputed_tokens == 1 for sequence in running)
        try:
            self._images.advance(
                merge(running, waiting, key=attrgetter("order")), someone_decodes=someone_decodes
            )
        except EncodingFailed as error:
            kind = "vision" if self._info.has_vision else "audio"
            logger.exception("the %s encoder failed", kind)
            for sequence in [*running, *waiting]:
                if error.digest in _list_digests(sequence.request):
                    self._requests.end_with_forks(
                        sequence, FinishReason.ERROR, f"the {kind} encoder failed: {error}"
                    )

    def _start(self, choices: list[Sequence], session: Session | None = None) -> None:
        request = choices[0].request
        if request.params.beam_search is not None and request.params.max_tokens > 0:
            search = BeamSearch(choices[0], self.info.max_model_len, session)
            self._requests.searches[request.request_id] = search
            self._scheduler.add(search.beams[0])
            return
        if session is not None:
            for choice in choices:
                choice.session = session.fork()
        first, *first.forks = choices
        self._scheduler.add(first)

    def _start_constrained(self) -> bool:
        """Schedules the requests whose grammars have been compiled; returns whether any started."""
        num_outputs = len(self._requests.outputs)
        is_idle = not (self._scheduler.running or self._scheduler.waiting or self._requests.outputs)
        for request, session in self._constraints.compiled(is_idle=is_idle):
            choices = [
                each
                for each in self._requests.choices(request.request_id)
                if each.request is request
            ]
            if isinstance(session, Refusal):
                self._requests.refuse_unstarted(choices, session)
            elif choices:  # empty if the request was aborted during compilation
                self._start(choices, session)
                self._requests.outputs.append(make_output(choices[0]))
        return len(self._requests.outputs) > num_outputs

    def _list_affected(self, scheduled: list[Scheduled]) -> list[Sequence]:
        """Returns the sequences of a failed step: its batch, and the forks it started without a
        token.
        """
        forks = [
            sequence for sequence in self._scheduler.running if sequence.num_uncomputed_tokens == 0
        ]
        return list(dict.fromkeys([entry.sequence for entry in scheduled] + forks))

    def _compute(self, scheduled: list[Scheduled]) -> None:
        batch = self._batch(scheduled)
        begin = time.perf_counter()
        logits = self._runner.run(batch)
        self._proposals.time_step(scheduled, time.perf_counter() - begin)
        sampled, scored = split_logits(scheduled, logits)
        if self._alignments is not None:
            self._alignments.note(scheduled)
        for entry in scheduled:
            if self._blocks.states is None or not entry.sequence.proposal:
                self._blocks.mark_computed(entry.sequence, entry.num_new_tokens)
        self._score_prompts(scheduled, scored)
        self._end_without_tokens(sampled)
        unfinished = [
            (sequence, own_rows) for sequence, own_rows in sampled if not sequence.is_finished
        ]
        rows = [(sequence, own_rows) for sequence, own_rows in unfinished if not sequence.beams]
        for sequence, own_rows in [each for each in rows if each[0].forks]:
            rows += [(fork, own_rows.copy()) for fork in self._start_forks(sequence)]
        self._taker.take(rows)
        self._drop_proposals(scheduled)
        if self._requests.searches:
            beam_rows = {
                sequence: own_rows[0] for sequence, own_rows in unfinished if sequence.beams
            }
            self._copy_blocks(
                advance_searches(beam_rows, self._requests, self._scheduler, self._constraints)
            )

    def _batch(self, scheduled: list[Scheduled]) -> ForwardBatch:
        states = self._blocks.states
        if states is not None:
            for entry in scheduled:
                states.take(entry.sequence)
        return build_batch(
            scheduled, self._blocks.block_size, self._images, has_states=states is not None
        )

    def _drop_proposals(self, scheduled: list[Scheduled]) -> None:
        for entry in scheduled:
            entry.sequence.proposal = ()
            if self._blocks.states is not None:
                self._blocks.states.go_back(entry.sequence)

    def _end_without_tokens(self, sampled: Iterable[tuple[Sequence, NDArray[np.float32]]]) -> None:
        """Ends the sequences with `max_tokens` 0, with a vector of the prompt if one was
        requested.
        """
        for sequence, rows in sampled:
            if sequence.params.max_tokens == 0:
                sequence.first_token_at = time.monotonic()
                sequence.vector = encode_vector(sequence.request.pooling, rows[0])
                if self._alignments is not None:
                    sequence.vector = self._alignments.finish(sequence)
                self._requests.end_with_forks(sequence, FinishReason.LENGTH)

    def _score_prompts(self, scheduled: list[Scheduled], logits: NDArray[np.float32]) -> None:
        """Adds the logprobs of prompt tokens to the outputs.

        `logits` has the scored rows of all entries, in the order of the entries; row i scores token
        i + 1.
        """
        rows = iter(logits)
        for sequence, scored_rows in (
            (entry.sequence, entry.scored_rows) for entry in scheduled if entry.scored_rows
        ):
            num_top = sequence.params.num_prompt_logprobs
            assert num_top is not None
            token_ids = sequence.token_ids[scored_rows.start + 1 : scored_rows.stop + 1]
            own_rows = list(islice(rows, len(scored_rows)))
            try:
                prompt_logprobs = score(own_rows, token_ids, num_top)
            except STOPS:
                raise
            except BaseException as error:  # one request's fault must not end its batch neighbours
                logger.exception(
                    "scoring the prompt failed for request %s", sequence.request.request_id
                )
                self._requests.end_with_forks(
                    sequence, FinishReason.ERROR, f"scoring the prompt failed: {error}"
                )
                continue
            sequence.num_unscored_tokens -= len(scored_rows)
            # A beam search goes on after choice 0 was aborted; the logprobs then have no reader.
            if self._requests.awaits(sequence.request.request_id, 0):
                self._requests.outputs.append(
                    make_output(sequence, prompt_logprobs=prompt_logprobs)
                )

    def _start_forks(self, parent: Sequence) -> list[Sequence]:
        """Starts the further choices of a request whose prompt has been computed.

        Choices for which there is no room join the waiting sequences.
        """
        started = []
        copies = []
        for child in parent.forks:
            if child.is_finished:
                continue  # aborted before it started
            if self._scheduler.can_fork():
                copies.append(self._scheduler.start_fork(parent, child))
                started.append(child)
            else:
                self._scheduler.add(child)
        parent.forks = []
        self._copy_blocks([copy for copy in copies if copy is not None])
        return started

    def _copy_blocks(self, sources_and_destinations: list[tuple[int, int]]) -> None:
        if sources_and_destinations:
            sources, destinations = zip(*sources_and_destinations, strict=True)
            self._runner.copy_blocks(list(sources), list(destinations))


def _list_digests(request: EngineRequest) -> list[bytes]:
    """Returns the digests of the images and the sound of the request."""
    audio = [] if request.audio is None else [request.audio.digest]
    return [*audio, *(image.digest for image in request.images)]
