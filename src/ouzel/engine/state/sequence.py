"""A sequence is the engine's state for one choice or one beam: the only mutable type, and it never leaves `engine/`.

Of its tokens, `[0, num_computed_tokens)` are in the KV cache; the rest are still to be computed. A sequence with
exactly one token left to compute decodes; with more it prefills (after a preemption, its own tokens too).
"""

import time
from enum import Enum, auto
from itertools import takewhile

from ouzel.engine.grammars.session import Session
from ouzel.engine.speculation.rules.drafting import Drafting
from ouzel.engine.speculation.rules.prompt_lookup import PromptLookup
from ouzel.engine.state.adapters import Adapter
from ouzel.engine.state.prompt_images import PromptImages
from ouzel.engine.state.reasoning_limit import ReasoningLimit
from ouzel.engine.state.row_kinds import LEAST_TOGETHER
from ouzel.engine.state.token_bans import TokenBans
from ouzel.engine.state.token_counts import TokenCounts
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import FinishReason, PositionLogprobs, RequestTiming


class SequenceStatus(Enum):
    WAITING = auto()
    RUNNING = auto()
    FINISHED = auto()


class Sequence:
    vector: bytes | None = None  # of the prompt, where that is asked for, once it is computed
    keeps_kinds = False  # of rows (`row_kinds`)

    def __init__(
        self,
        request: EngineRequest,
        index: int,
        arrival: int,
        images: PromptImages | None = None,
        adapter: Adapter | None = None,
    ) -> None:
        self.request = request
        self.images = images
        self.adapter = adapter  # that was loaded under the request's name for it, when it came
        self.params = request.params
        self.index = index
        self.arrival = arrival  # order of add(); choices of one request share it
        self.status = SequenceStatus.WAITING
        self.token_ids = list(request.prompt_token_ids)
        self.num_prompt_tokens = len(self.token_ids)
        self.num_computed_tokens = 0
        scores_prompt = self.params.num_prompt_logprobs is not None and index == 0
        self.num_unscored_tokens = (
            self.num_prompt_tokens - 1 if scores_prompt else 0
        )  # the prompt's last ones
        self.num_expected_tokens = 0  # so many the prefix cache had when it came to wait
        self.num_cached_tokens = 0  # prompt tokens the prefix cache gave at the first scheduling
        self.block_table: list[int] = []
        self.block_keys: list[bytes] = []  # prefix cache keys of the first full blocks
        # of the state behind the computed tokens, which the next step reads (`state_slots`)
        self.state_slot = 0
        self.next_state_slot = 0  # that the coming step writes
        self.boundary_slot = 0  # of the state behind the first `num_boundary_tokens`, whole blocks
        self.num_boundary_tokens = 0
        # so many of the prompt the store was asked to keep, for this one or another
        self.num_offered_tokens = 0
        # so many had their blocks cached, when it started, but no state
        self.num_diverged_tokens = 0
        self.forks: list[Sequence] = []  # further choices that join when the prompt is computed
        self.beams: list[
            Sequence
        ] = []  # of a beam: all of its search that are alive, itself among them
        self.score = 0.0  # of a beam: the log probability of its output, as adjusted and penalised
        self.logprobs: list[PositionLogprobs] = []  # of a beam: of its output, when asked for
        self.proposal: tuple[
            int, ...
        ] = ()  # tokens that may come next, which the step in progress computes,
        self.is_apart = True  # each as a subsequence of its own
        self.lookup: PromptLookup | None = None  # kept by `proposals`
        self.drafting: Drafting | None = None  # kept by `draft_model`
        self.num_proposed_tokens = 0
        self.num_accepted_tokens = 0
        # of a beam that starts again: what its search had when it ran out of blocks
        self.num_blocks_wanted = 0
        self.finish_reason: FinishReason | None = None
        self.stop_token_id: int | None = None
        self.error: str | None = None
        self.error_param: str | None = None
        self.session: Session | None = None  # of a request with a grammar, once that is compiled
        budget = request.reasoning_budget
        self.reasoning_limit = None if budget is None else ReasoningLimit(budget)
        eos_token_ids = () if self.params.ignore_eos else request.eos_token_ids
        self.stop_token_ids = frozenset((*self.params.stop_token_ids, *eos_token_ids))
        # kept by the sampler when a penalty asks for it
        self.token_counts: TokenCounts | None = None
        self.token_bans: TokenBans | None = None  # kept by the sampler when a ban asks for it
        self.added_at = time.monotonic()
        self.scheduled_at: float | None = None
        self.first_token_at: float | None = None  # with max_tokens 0, when the prompt was computed

    @property
    def num_tokens(self) -> int:
        return len(self.token_ids)

    @property
    def num_output_tokens(self) -> int:
        return len(self.token_ids) - self.num_prompt_tokens

    @property
    def num_uncomputed_tokens(self) -> int:
        return len(self.token_ids) - self.num_computed_tokens

    @property
    def is_past_prompt(self) -> bool:
        return self.num_computed_tokens >= self.num_prompt_tokens

    @property
    def num_missing_tokens(self) -> int:
        """Estimates how many tokens come before the next sampled one; none for who is past its prompt.

        What the prefix cache has may change until it starts.
        """
        if self.is_past_prompt:
            return 0
        return len(self.token_ids) - max(self.num_computed_tokens, self.num_expected_tokens)

    @property
    def first_unscored_row(self) -> int:
        """Returns the position whose logits give the logprob of the next unscored token."""
        return self.num_prompt_tokens - 1 - self.num_unscored_tokens

    def scoring_limit(self, num_rows: int) -> int:
        """Returns how many tokens can be computed without scoring more than so many."""
        if self.num_unscored_tokens <= num_rows:
            return self.num_uncomputed_tokens
        return self.first_unscored_row + num_rows - self.num_computed_tokens

    def scored_rows(self, num_new_tokens: int) -> range:
        """Returns which of the next `num_new_tokens` positions score the token after them for the first time."""
        end = self.num_computed_tokens + num_new_tokens
        return range(self.first_unscored_row, min(end, self.num_prompt_tokens - 1))

    @property
    def num_shareable_tokens(self) -> int:
        """Counts the first tokens, whose logits nobody asks for: the prefix cache may give them.

        Where rows have kinds, these are tokens of the prompt only, and leave enough of it to be computed together.
        """
        num_tokens = self.first_unscored_row if self.num_unscored_tokens else self.num_tokens - 1
        return (
            max(0, min(num_tokens, self.num_prompt_tokens - LEAST_TOGETHER))
            if self.keeps_kinds
            else num_tokens
        )

    @property
    def num_findable_tokens(self) -> int:
        """Counts the tokens whose blocks the prefix cache may give to others."""
        return self.num_prompt_tokens if self.keeps_kinds else self.num_tokens

    @property
    def order(self) -> tuple[int, int, int]:
        """Says who goes first: priority, then arrival, then index."""
        return (self.request.priority, self.arrival, self.index)

    @property
    def num_places(self) -> int:
        """Counts its places of `max_num_seqs`: the first beam keeps those of all, also while it is the only one."""
        if self.params.beam_search is None or not self.beams:
            return 1
        return self.params.beam_search.width if self.beams[0] is self else 0

    @property
    def due_token_ids(self) -> tuple[int, ...]:
        """Returns what must come next, for the reasoning has to end."""
        limit = self.reasoning_limit
        return () if limit is None or limit.is_put_off else limit.due

    @property
    def is_finished(self) -> bool:
        return self.status is SequenceStatus.FINISHED

    def mark_scheduled(self) -> None:
        """Notes the first scheduling: waiting ends, and what the prefix cache gave is known."""
        self.scheduled_at = time.monotonic()
        self.num_cached_tokens = min(self.num_computed_tokens, self.num_prompt_tokens)

    def append(self, token_id: int, max_model_len: int) -> None:
        """Takes a token and finishes the sequence when it ends it."""
        self.token_ids.append(token_id)
        if self.reasoning_limit is not None:
            self.reasoning_limit.note(self.token_ids)
        if self.first_token_at is None:
            self.first_token_at = time.monotonic()
        num_output_tokens = self.num_output_tokens
        if token_id in self.stop_token_ids and num_output_tokens > self.params.min_tokens:
            self.stop_token_id = token_id
            self.finish(FinishReason.STOP)
        elif num_output_tokens >= self.params.max_tokens or self.num_tokens >= max_model_len:
            self.finish(FinishReason.LENGTH)

    def propose(self, token_ids: tuple[int, ...], *, is_apart: bool) -> None:
        """Lets the coming step compute these as well, as subsequences of their own or as one with the known ones."""
        self.proposal = token_ids
        self.is_apart = is_apart
        self.num_proposed_tokens += len(token_ids)

    def compare_with_proposal(self, begin: int) -> int:
        """Counts how many of the new tokens, those from `begin` on, came as they were proposed; the rest is left."""
        pairs = zip(self.token_ids[begin:], self.proposal, strict=False)
        num_accepted = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        self.num_accepted_tokens += num_accepted
        self.proposal = (
            self.proposal[num_accepted:] if begin + num_accepted == len(self.token_ids) else ()
        )
        return num_accepted

    def anew(self) -> "Sequence":
        """Returns another beam of the same search, which has the prompt only and holds nothing."""
        beam = Sequence(self.request, self.index, self.arrival, self.images, self.adapter)
        beam.keeps_kinds = self.keeps_kinds
        beam.beams = self.beams
        beam.num_unscored_tokens = self.num_unscored_tokens
        beam.num_cached_tokens = self.num_cached_tokens
        beam.added_at, beam.scheduled_at = self.added_at, self.scheduled_at
        return beam

    def finish(self, reason: FinishReason, error: str | None = None) -> None:
        self.status = SequenceStatus.FINISHED
        self.finish_reason = reason
        self.error = error

    def timing(self) -> RequestTiming:
        """Holds for a sequence that has its first token, or needs none."""
        assert self.scheduled_at is not None
        assert self.first_token_at is not None
        return RequestTiming(
            queue_s=self.scheduled_at - self.added_at,
            prefill_s=self.first_token_at - self.scheduled_at,
        )
