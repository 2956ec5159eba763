"""Loads a draft model beside its model, in the engine's process."""

from pathlib import Path

import msgspec

from ouzel.backends.openvino import create_runner
from ouzel.checkpoint.draft_head import refuse_ir_of_draft_head
from ouzel.checkpoint.draft_tokens import refuse_other_tokens
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import ModelRunner
from ouzel.errors import ModelLoadError
from ouzel.types.engine_info import EngineInfo


def create_draft_runner(model: ModelConfig, engine: EngineConfig, large: EngineInfo) -> ModelRunner:
    """Loads the draft model. Raises ModelLoadError if it does not fit the model."""
    draft = Path(model.draft_model)
    refuse_ir_of_draft_head(draft)
    refuse_other_tokens(Path(model.model), draft)
    # No answer depends on the bits of a draft: the model accepts or rejects each token.
    engine = msgspec.structs.replace(engine, deterministic=False)
    runner = create_runner(model.make_draft_config(), engine, num_blocks=large.num_blocks)
    info = runner.info
    if info.num_state_slots:
        raise ModelLoadError(
            f"draft_model: must have no recurrent layers, given a {info.model_type}"
        )
    if info.attends_to_whole_prompts:
        raise ModelLoadError(
            "draft_model: must not have tokens of a prompt that see later ones, given a "
            f"{info.model_type}"
        )
    if info.block_size != large.block_size:
        raise ModelLoadError(
            f"draft_model: must have blocks of {large.block_size} tokens, found {info.block_size}"
        )
    return runner
