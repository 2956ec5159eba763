"""Turns a request's fields on proposals of tokens into parameters of the engine."""

import msgspec

from ouzel.checkpoint.model_files import SamplingDefaults
from ouzel.prompts.render import PromptRenderer
from ouzel.types.engine_request import SpeculationParams

MAX_ASSISTANT_TOKENS = 64  # limit of one step: more rows never pay
PREDICTION_PARAM = "prediction.content"


class SpeculationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """OpenVINO GenAI's fields, and OpenAI's `prediction`. `None`: not given."""

    num_assistant_tokens: int | None = None  # maximum of proposed tokens in a step
    # a draft model proposes tokens with at least this probability
    assistant_confidence_threshold: float | None = None
    # maximum of tokens to compare in a look-up
    max_ngram_size: int | None = None
    prediction: str = ""  # the output that the client expects


def make_speculation_params(
    options: SpeculationOptions, defaults: SamplingDefaults, renderer: PromptRenderer
) -> SpeculationParams:
    """Takes both limits of drafts from the request, or else both from generation_config.json.

    Raises InvalidRequest for a prediction longer than the model's context.
    """
    max_tokens: float | None
    max_tokens, threshold = options.num_assistant_tokens, options.assistant_confidence_threshold
    if max_tokens is None and threshold is None:
        max_tokens = defaults.num_assistant_tokens
        threshold = defaults.assistant_confidence_threshold
    predicted_token_ids: list[int] = []
    if options.prediction:
        predicted_token_ids = renderer.encode_output(options.prediction, param=PREDICTION_PARAM)
    if max_tokens is not None:
        max_tokens = int(min(max_tokens, MAX_ASSISTANT_TOKENS))
    return SpeculationParams(
        max_proposed_tokens=max_tokens,
        confidence_threshold=threshold,
        max_ngram_size=options.max_ngram_size,
        predicted_token_ids=predicted_token_ids,
    )
