"""Loads a draft model beside its model, in the engine's process."""

import json
from pathlib import Path

import msgspec

from ouzel.backends.openvino import create_runner
from ouzel.checkpoint.draft_head import is_ir_of_draft_head
from ouzel.checkpoint.model_files import read_tokenizer_json
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import ModelRunner
from ouzel.errors import ModelLoadError
from ouzel.types.engine_info import EngineInfo


def create_draft_runner(model: ModelConfig, engine: EngineConfig, large: EngineInfo) -> ModelRunner:
    """Loads the draft model. Raises ModelLoadError if it does not fit the model."""
    directories = Path(model.model), Path(model.draft_model)
    if is_ir_of_draft_head(directories[1]):
        raise ModelLoadError(
            f"draft_model: {directories[1]} is an EAGLE-3 head as OpenVINO IR, which cannot be "
            "read; name the directory of the original head, with safetensors"
        )
    of_large, of_draft = map(read_token_ids, directories)
    if of_large != of_draft:
        differing = sum(
            of_large.get(each) != of_draft.get(each) for each in of_large.keys() | of_draft.keys()
        )
        raise ModelLoadError(
            f"draft_model: must have the tokens of the model, but {differing} of {len(of_large)} "
            f"differ in {directories[1]}"
        )
    alone = {
        "draft_model": "",
        "max_model_len": None,
        "lora": (),
        "max_loras": None,
        "lora_parts": (),
    }
    config = msgspec.structs.replace(model, model=model.draft_model, **alone)
    # No answer depends on the bits of a draft: the model accepts or rejects each token.
    engine = msgspec.structs.replace(engine, deterministic=False)
    runner = create_runner(config, engine, num_blocks=large.num_blocks)
    info = runner.info
    if info.num_state_slots:
        raise ModelLoadError(
            f"draft_model: must have no recurrent layers, given a {info.model_type}"
        )
    if info.block_size != large.block_size:
        raise ModelLoadError(
            f"draft_model: must have blocks of {large.block_size} tokens, found {info.block_size}"
        )
    return runner


def read_token_ids(directory: Path) -> dict[str, int]:
    """Returns the id of each token of `tokenizer.json` by its text.

    Raises ModelLoadError if the file is missing or broken.
    """
    path = directory / "tokenizer.json"
    try:
        content = json.loads(read_tokenizer_json(path))
    except (OSError, ValueError) as error:
        raise ModelLoadError(
            f"draft_model: the tokens of {path} cannot be compared: {error}"
        ) from error
    vocabulary = content.get("model", {}).get("vocab", {})
    if isinstance(vocabulary, list):  # a unigram model: pairs of text and score
        vocabulary = {text: token_id for token_id, (text, _) in enumerate(vocabulary)}
    return dict(vocabulary) | {
        token["content"]: token["id"] for token in content.get("added_tokens", [])
    }
