"""The engine's state of one choice or one beam: the only mutable type, which never leaves the
engine.

The first `num_computed_tokens` of its tokens are in the KV cache. A sequence with exactly one token
left to compute decodes; with more it prefills (after a preemption also its own output).
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
from ouzel.engine.state.token_bans import TokenBans
from ouzel.engine.state.token_counts import TokenCounts
from ouzel.engine.state.two_way_tokens import Span
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import FinishReason, PositionLogprobs, RequestTiming

LEAST_TOGETHER = 2  # minimum number of rows of a prompt in a subsequence (`row_kinds`)


class SequenceStatus(Enum):
    WAITING = auto()
    RUNNING = auto()
    FINISHED = auto()


class Sequence:
    """One choice or one beam of a request."""

    vector: bytes | None = None  # vector of the prompt, if requested, once it is computed

    def __init__(
        self,
        request: EngineRequest,
        index: int,
        arrival: int,
        images: PromptImages | None = None,
        adapter: Adapter | None = None,
        *,
        keeps_kinds: bool = False,
        two_way_spans: tuple[Span, ...] = (),
    ) -> None:
        self.request = request
        self.images = images
        self.adapter = adapter  # the adapter that had the request's adapter name on arrival
        self.keeps_kinds = keeps_kinds  # whether its rows have kinds (`row_kinds`)
        self.two_way_spans = two_way_spans  # spans of the prompt whose tokens attend to each other
        self.params = request.params
        self.index = index
        self.arrival = arrival  # number of the call of add(); choices of one request share it
        self.status = SequenceStatus.WAITING
        self.token_ids = list(request.prompt_token_ids)
        self.num_prompt_tokens = len(self.token_ids)
        self.num_computed_tokens = 0
        scores_prompt = self.params.num_prompt_logprobs is not None and index == 0
        # the prompt's last ones
        self.num_unscored_tokens = self.num_prompt_tokens - 1 if scores_prompt else 0
        self.num_expected_tokens = 0  # tokens in the prefix cache when it began to wait
        self.num_cached_tokens = 0  # prompt tokens from the prefix cache at the first scheduling
        self.block_table: list[int] = []
        self.block_keys: list[bytes] = []  # prefix cache keys of the first full blocks
        # slot of the state after the computed tokens, which the next step reads (`state_slots`)
        self.state_slot = 0
        self.next_state_slot = 0  # slot that the coming step writes
        # slot of the state after the first `num_boundary_tokens`, whole blocks
        self.boundary_slot = 0
        self.num_boundary_tokens = 0
        # prompt tokens that were offered to the store, by this sequence or another
        self.num_offered_tokens = 0
        # tokens whose blocks were cached at the start, but without a state
        self.num_diverged_tokens = 0
        self.forks: list[Sequence] = []  # further choices that start when the prompt is computed
        # In a beam: all running beams of its search, with itself.
        self.beams: list[Sequence] = []
        self.score = 0.0  # only in a beam: log probability of its output, as adjusted and penalised
        # only in a beam: logprobs of its output, if requested
        self.logprobs: list[PositionLogprobs] = []
        self.proposal: tuple[int, ...] = ()  # proposed tokens that the present step computes
        self.is_apart = True  # each proposed token is a subsequence of its own
        self.lookup: PromptLookup | None = None  # owned by `proposals`
        self.drafting: Drafting | None = None  # owned by the source of drafts
        self.num_proposed_tokens = 0
        self.num_accepted_tokens = 0
        # in a beam of a restarted search: blocks that the search had when it was preempted
        self.num_blocks_wanted = 0
        self.finish_reason: FinishReason | None = None
        self.stop_token_id: int | None = None
        self.error: str | None = None
        self.error_param: str | None = None
        # session of the request's grammar, once that is compiled
        self.session: Session | None = None
        budget = request.reasoning_budget
        self.reasoning_limit = None if budget is None else ReasoningLimit(budget)
        eos_token_ids = () if self.params.ignore_eos else request.eos_token_ids
        self.stop_token_ids = frozenset((*self.params.stop_token_ids, *eos_token_ids))
        # owned by the sampler, for penalties
        self.token_counts: TokenCounts | None = None
        self.token_bans: TokenBans | None = None  # owned by the sampler, for bans
        self.added_at = time.monotonic()
        self.scheduled_at: float | None = None
        self.first_token_at: float | None = (
            None  # time of the first token, or (max_tokens 0) of the computed prompt
        )

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
        """Estimates the number of tokens to compute before the next sampled token; 0 past the
        prompt.

        The prefix cache may change until the sequence starts.
        """
        if self.is_past_prompt:
            return 0
        return len(self.token_ids) - max(self.num_computed_tokens, self.num_expected_tokens)

    @property
    def first_unscored_row(self) -> int:
        """Returns the position whose logits give the logprob of the next unscored token."""
        return self.num_prompt_tokens - 1 - self.num_unscored_tokens

    def scoring_limit(self, num_rows: int) -> int:
        """Returns how many tokens can be computed with at most `num_rows` scored rows."""
        if self.num_unscored_tokens <= num_rows:
            return self.num_uncomputed_tokens
        return self.first_unscored_row + num_rows - self.num_computed_tokens

    def scored_rows(self, num_new_tokens: int) -> range:
        """Returns the positions among the next `num_new_tokens` that score the token after them."""
        end = self.num_computed_tokens + num_new_tokens
        return range(self.first_unscored_row, min(end, self.num_prompt_tokens - 1))

    @property
    def num_shareable_tokens(self) -> int:
        """Counts the first tokens that may come from the prefix cache: their logits are not needed.

        Where rows have kinds, these are prompt tokens only, and enough of the prompt stays to be
        computed together.
        """
        num_tokens = self.first_unscored_row if self.num_unscored_tokens else self.num_tokens - 1
        if self.keeps_kinds:
            return max(0, min(num_tokens, self.num_prompt_tokens - LEAST_TOGETHER))
        return num_tokens

    @property
    def num_findable_tokens(self) -> int:
        """Counts the tokens whose blocks other sequences may find in the prefix cache."""
        return self.num_prompt_tokens if self.keeps_kinds else self.num_tokens

    @property
    def order(self) -> tuple[int, int, int]:
        """Returns the order of service: priority, then arrival, then index; smaller goes first."""
        return (self.request.priority, self.arrival, self.index)

    @property
    def num_places(self) -> int:
        """Counts the places of `max_num_seqs` that it takes.

        The first beam takes the places of all beams.
        """
        if self.params.beam_search is None or not self.beams:
            return 1
        return self.params.beam_search.width if self.beams[0] is self else 0

    @property
    def due_token_ids(self) -> tuple[int, ...]:
        """Returns the tokens that must come next to end the reasoning."""
        limit = self.reasoning_limit
        return () if limit is None or limit.is_put_off else limit.due

    @property
    def is_finished(self) -> bool:
        return self.status is SequenceStatus.FINISHED

    def mark_scheduled(self) -> None:
        """Records the first scheduling: the end of the wait and the cached tokens."""
        self.scheduled_at = time.monotonic()
        self.num_cached_tokens = min(self.num_computed_tokens, self.num_prompt_tokens)

    def append(self, token_id: int, max_model_len: int) -> None:
        """Appends a token; finishes the sequence if the token or a length limit ends it."""
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
        """Sets the proposed tokens of the coming step.

        With `is_apart`, each as its own subsequence.
        """
        self.proposal = token_ids
        self.is_apart = is_apart
        self.num_proposed_tokens += len(token_ids)

    def compare_with_proposal(self, begin: int) -> int:
        """Counts the new tokens, from `begin` on, that equal the proposal, and keeps the rest of
        the proposal.

        The rest stays only if all new tokens are equal.
        """
        pairs = zip(self.token_ids[begin:], self.proposal, strict=False)
        num_accepted = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        self.num_accepted_tokens += num_accepted
        self.proposal = (
            self.proposal[num_accepted:] if begin + num_accepted == len(self.token_ids) else ()
        )
        return num_accepted

    def make_beam(self) -> "Sequence":
        """Returns another beam of the same search, with the prompt only and without blocks."""
        beam = Sequence(
            self.request,
            self.index,
            self.arrival,
            self.images,
            self.adapter,
            keeps_kinds=self.keeps_kinds,
            two_way_spans=self.two_way_spans,
        )
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
        """Returns the times of a sequence that has its first token, or needs none."""
        assert self.scheduled_at is not None
        assert self.first_token_at is not None
        return RequestTiming(
            queue_s=self.scheduled_at - self.added_at,
            prefill_s=self.first_token_at - self.scheduled_at,
        )
