"""A draft model is loaded beside the model for which it drafts; the engine's process does it."""

import json
from pathlib import Path

import msgspec

from ouzel.backends.openvino import create_runner
from ouzel.checkpoint.model_files import read_tokenizer_json
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import ModelRunner
from ouzel.errors import ModelLoadError
from ouzel.types.engine_info import EngineInfo


def draft_runner(model: ModelConfig, engine: EngineConfig, large: EngineInfo) -> ModelRunner:
    """Loads the draft model. Raises ModelLoadError where it cannot draft for this one."""
    directories = Path(model.model), Path(model.draft_model)
    of_large, of_draft = map(tokens_of, directories)
    if of_large != of_draft:
        differing = sum(
            of_large.get(each) != of_draft.get(each) for each in of_large.keys() | of_draft.keys()
        )
        raise ModelLoadError(
            f"draft_model: its tokens must be those of the model, but {differing} of {len(of_large)} differ in "
            f"{directories[1]}"
        )
    alone = {"draft_model": "", "max_model_len": None, "lora": (), "max_loras": None}
    config = msgspec.structs.replace(model, model=model.draft_model, **alone)
    # The model decides what comes, and no answer depends on the bits of a draft.
    engine = msgspec.structs.replace(engine, deterministic=False)
    runner = create_runner(config, engine, num_blocks=large.num_blocks)
    info = runner.info
    if info.num_state_slots:
        raise ModelLoadError(
            f"draft_model: a {info.model_type} has recurrent layers, and cannot draft"
        )
    if info.block_size != large.block_size:
        raise ModelLoadError(
            f"draft_model: its blocks have {info.block_size} tokens, the model's {large.block_size}"
        )
    return runner


def tokens_of(directory: Path) -> dict[str, int]:
    """Returns the ids of all tokens by their texts. Raises ModelLoadError where there is no tokenizer.json to tell."""
    path = directory / "tokenizer.json"
    try:
        content = json.loads(read_tokenizer_json(path))
    except (OSError, ValueError) as error:
        raise ModelLoadError(
            f"draft_model: the tokens of {path} cannot be compared: {error}"
        ) from error
    vocabulary = content.get("model", {}).get("vocab", {})
    if isinstance(vocabulary, list):  # of a unigram model, as pairs of text and score
        vocabulary = {text: token_id for token_id, (text, _) in enumerate(vocabulary)}
    return dict(vocabulary) | {
        token["content"]: token["id"] for token in content.get("added_tokens", [])
    }
