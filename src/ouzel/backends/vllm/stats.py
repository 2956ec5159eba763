"""Converts the statistics of vLLM's scheduler after each step."""

from typing import Any  # vLLM is not installed where types are checked

from ouzel.types.engine_info import EngineStats


class StepStats:
    """Implements vLLM's `StatLogger`, an interface that vLLM calls unstable."""

    def __init__(self, vllm_config: Any, engine_index: int = 0) -> None:
        self._num_running = self._num_waiting = self._num_preemptions = 0
        self._num_query_tokens = self._num_hit_tokens = 0
        self._num_drafts = self._num_draft_tokens = self._num_accepted_tokens = 0
        self._used_share = 0.0

    def record(
        self,
        scheduler_stats: Any,
        iteration_stats: Any,
        mm_cache_stats: Any = None,
        engine_idx: int = 0,
    ) -> None:
        if scheduler_stats is not None:
            self._num_running = scheduler_stats.num_running_reqs
            self._num_waiting = (
                scheduler_stats.num_waiting_reqs + scheduler_stats.num_skipped_waiting_reqs
            )
            self._used_share = scheduler_stats.kv_cache_usage
            self._num_query_tokens += scheduler_stats.prefix_cache_stats.queries
            self._num_hit_tokens += scheduler_stats.prefix_cache_stats.hits
            if (drafts := scheduler_stats.spec_decoding_stats) is not None:
                self._num_drafts += drafts.num_drafts
                self._num_draft_tokens += drafts.num_draft_tokens
                self._num_accepted_tokens += drafts.num_accepted_tokens
        if iteration_stats is not None:
            self._num_preemptions += iteration_stats.num_preempted_reqs

    def log_engine_initialized(self) -> None: ...

    def log(self) -> None: ...

    def record_sleep_state(self, is_awake: int, level: int) -> None: ...

    def read(self, *, num_blocks: int, num_open: int) -> EngineStats:
        """Returns the statistics of the last step, limited by the open choices."""
        num_running = min(self._num_running, num_open)
        return EngineStats(
            num_running=num_running,
            num_waiting=min(self._num_waiting, num_open - num_running),
            num_used_blocks=round(self._used_share * num_blocks) if num_open else 0,
            num_blocks=num_blocks,
            num_prefix_query_tokens=self._num_query_tokens,
            num_prefix_hit_tokens=self._num_hit_tokens,
            num_preemptions=self._num_preemptions,
            num_drafts=self._num_drafts,
            num_draft_tokens=self._num_draft_tokens,
            num_accepted_tokens=self._num_accepted_tokens,
        )
