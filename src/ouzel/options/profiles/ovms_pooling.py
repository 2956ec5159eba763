"""Finds encoder models whose files do not name a pooling method."""

from pathlib import Path

from ouzel.checkpoint.model_files import read_config_json
from ouzel.errors import ModelLoadError


def is_encoder_without_pooling(directory: Path) -> bool:
    """Tells whether the model is an encoder whose files name no pooling.

    A decoder needs no named pooling: its last token has read all others.
    """
    from ouzel.backends.openvino.models import supported_model_types  # noqa: PLC0415
    from ouzel.checkpoint.sentence_files import names_pooling  # noqa: PLC0415

    if names_pooling(directory):
        return False
    try:
        model_type = read_config_json(directory).get("model_type")
    except ModelLoadError:
        return False  # the load of the model reports the error
    return isinstance(model_type, str) and model_type not in supported_model_types()
