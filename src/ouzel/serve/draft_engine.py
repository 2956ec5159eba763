"""Loads a draft model beside its model, in the engine's process."""

import msgspec

from ouzel.backends.openvino import create_runner
from ouzel.backends.openvino.drafts import refuse_draft_files, refuse_unfit_draft
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import ModelRunner
from ouzel.errors import ModelLoadError
from ouzel.types.engine_info import EngineInfo


def create_draft_runner(model: ModelConfig, engine: EngineConfig, large: EngineInfo) -> ModelRunner:
    """Loads the draft model. Raises ModelLoadError if it does not fit the model."""
    refuse_draft_files(model)
    # No answer depends on the bits of a draft: the model accepts or rejects each token.
    engine = msgspec.structs.replace(engine, deterministic=False)
    runner = create_runner(model.make_draft_config(), engine, num_blocks=large.num_blocks)
    info = runner.info
    refuse_unfit_draft(info)
    if info.block_size != large.block_size:
        raise ModelLoadError(
            f"draft_model: must have blocks of {large.block_size} tokens, found {info.block_size}"
        )
    return runner
