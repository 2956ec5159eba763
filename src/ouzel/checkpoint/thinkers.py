"""Reads config.json of checkpoints whose model is one part, the thinker, of a larger one.

Qwen's releases have the parts that read under `thinker_config`, and beside it the parts that speak.
Transformers saves some of these models without the larger one, with the keys of the thinker at the
first level. Ouzel serves the thinker, and reads both forms as the second one.

Reference: transformers, models/qwen3_asr/convert_qwen3_asr_to_hf.py.
"""

from typing import Any

_THINKER = "thinker_config"
# model_type -> the family of its language model, where the releases have a name of their own
_TEXT_TYPES = {"qwen3_asr": "qwen3"}


# Any: JSON values, which hf_config.py checks
def promote_thinker(values: dict[str, Any]) -> dict[str, Any]:
    """Returns the values with the keys of `thinker_config` at the first level.

    Keys of the first level count first.
    """
    thinker = values.get(_THINKER)
    if not isinstance(thinker, dict):
        return values
    promoted = thinker | {key: value for key, value in values.items() if key != _THINKER}
    text, text_type = promoted.get("text_config"), _TEXT_TYPES.get(str(promoted.get("model_type")))
    if isinstance(text, dict) and text_type is not None:
        promoted["text_config"] = text | {"model_type": text_type}
    return promoted
