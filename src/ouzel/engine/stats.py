"""Collects the counters of an engine."""

from collections.abc import Iterable

from ouzel.engine.cache.block_manager import BlockManager
from ouzel.engine.scheduling.image_encoder import ImageEncoder, NoImages
from ouzel.engine.scheduling.scheduler import Scheduler
from ouzel.engine.speculation.no_proposals import NoProposals
from ouzel.engine.speculation.proposals import Proposals
from ouzel.engine.state.sequence import Sequence
from ouzel.types.engine_info import EngineStats


def collect_stats(
    scheduler: Scheduler,
    blocks: BlockManager,
    images: ImageEncoder | NoImages,
    proposals: Proposals | NoProposals,
) -> EngineStats:
    store = blocks.store
    return EngineStats(
        num_running=len(scheduler.running),
        # Autoscalers read it; requests in the background need no further server.
        num_waiting=sum(not each.request.is_background for each in scheduler.waiting),
        num_used_blocks=blocks.num_used_blocks,
        num_blocks=blocks.num_blocks,
        num_prefix_query_tokens=blocks.num_query_tokens,
        num_prefix_hit_tokens=blocks.num_hit_tokens,
        num_preemptions=scheduler.num_preemptions,
        num_used_state_slots=0 if blocks.states is None else blocks.states.num_used,
        num_images_encoded=images.num_encoded,
        num_image_hits=images.num_hits,
        num_drafts=proposals.num_drafts,
        num_draft_tokens=proposals.num_draft_tokens,
        num_accepted_tokens=proposals.num_accepted_tokens,
        encoding_s=images.encoding_s,
        num_store_bytes=0 if store is None else store.num_bytes,
        num_store_written=0 if store is None else store.num_written,
        num_store_loaded=0 if store is None else store.num_loaded,
        num_store_damaged=0 if store is None else store.num_damaged,
        num_store_skipped=0 if store is None else store.num_skipped,
        running_adapters=_list_adapters(scheduler.running),
        waiting_adapters=_list_adapters(scheduler.waiting),
    )


def _list_adapters(sequences: Iterable[Sequence]) -> tuple[str, ...]:
    return tuple(
        sorted({sequence.request.adapter for sequence in sequences if sequence.request.adapter})
    )
