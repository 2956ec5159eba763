"""A request may say how tokens are guessed for it, and so how soon its answer comes."""

import msgspec

from ouzel.checkpoint.model_files import SamplingDefaults
from ouzel.prompts.render import PromptRenderer
from ouzel.types.engine_request import SpeculationParams

MAX_ASSISTANT_TOKENS = 64  # in a step: more rows than that never pay
PREDICTION_PARAM = "prediction.content"


class SpeculationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The fields are OpenVINO GenAI's, but for the prediction, which is OpenAI's. `None` is "not given"."""

    num_assistant_tokens: int | None = None  # most tokens proposed in a step
    # a draft model proposes what it finds at least so probable
    assistant_confidence_threshold: float | None = None
    # most tokens that are compared to find where the text stood before
    max_ngram_size: int | None = None
    prediction: str = ""  # the output, as the client expects it


def speculation_params(
    options: SpeculationOptions, defaults: SamplingDefaults, renderer: PromptRenderer
) -> SpeculationParams:
    """Takes what the request says of a draft's length from it alone, else from generation_config.json.

    Raises InvalidRequest for a prediction that is longer than the model's context.
    """
    max_tokens: float | None
    max_tokens, threshold = options.num_assistant_tokens, options.assistant_confidence_threshold
    if max_tokens is None and threshold is None:
        max_tokens, threshold = (
            defaults.num_assistant_tokens,
            defaults.assistant_confidence_threshold,
        )
    predicted_token_ids: list[int] = []
    if options.prediction:
        predicted_token_ids = renderer.encode_output(options.prediction, param=PREDICTION_PARAM)
    return SpeculationParams(
        max_proposed_tokens=None
        if max_tokens is None
        else int(min(max_tokens, MAX_ASSISTANT_TOKENS)),
        confidence_threshold=threshold,
        max_ngram_size=options.max_ngram_size,
        predicted_token_ids=predicted_token_ids,
    )
