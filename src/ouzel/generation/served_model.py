"""What a server has for one model: everything that turns requests into text."""

import hashlib
from dataclasses import dataclass

from ouzel.engine_client import EngineClient
from ouzel.parsers.registry import OutputFormat
from ouzel.prompts.render import PromptRenderer
from ouzel.tokenizer.base import Tokenizer
from ouzel.tokenizer.model_files import SamplingDefaults
from ouzel.types import EngineInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    names: tuple[str, ...]  # the `model` values that clients may send; the first is the one in answers
    tokenizer: Tokenizer
    renderer: PromptRenderer
    sampling_defaults: SamplingDefaults
    engine: EngineClient
    output_format: OutputFormat
    created: int  # unix seconds
    system_fingerprint: str


def system_fingerprint(model_name: str, info: EngineInfo, version: str) -> str:
    """Changes when the same request might get another answer."""
    parts = (model_name, info.model_type, info.weights, info.precision, info.kv_cache_dtype, version)
    return "fp_" + hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
