"""What an engine counts, read from where it is counted."""

from ouzel.engine.block_manager import BlockManager
from ouzel.engine.image_encoder import ImageEncoder
from ouzel.engine.scheduler import Scheduler
from ouzel.types import EngineStats


def stats_of(scheduler: Scheduler, blocks: BlockManager, images: ImageEncoder | None) -> EngineStats:
    return EngineStats(
        num_running=len(scheduler.running),
        num_waiting=len(scheduler.waiting),
        num_used_blocks=blocks.num_used_blocks,
        num_blocks=blocks.num_blocks,
        num_prefix_query_tokens=blocks.num_query_tokens,
        num_prefix_hit_tokens=blocks.num_hit_tokens,
        num_preemptions=scheduler.num_preemptions,
        num_used_state_slots=0 if blocks.states is None else blocks.states.num_used,
        num_images_encoded=0 if images is None else images.num_encoded,
        num_image_hits=0 if images is None else images.num_hits,
        encoding_s=0.0 if images is None else images.encoding_s,
    )
