"""Makes the inputs that give a step's rows the features of images (graph/images.py)."""

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.library import ov
from ouzel.engine.base import ForwardBatch

Inputs = dict[str, NDArray[np.generic]]


def features_shape(compiled: ov.CompiledModel) -> tuple[int, int] | None:
    """Returns levels and hidden size of the features that the model takes.

    Returns None if the model takes no images.
    """
    for port in compiled.inputs:
        if port.get_any_name() == "image_features":
            levels, _, hidden_size = port.get_partial_shape()
            return levels.get_length(), hidden_size.get_length()
    return None


def image_inputs(batch: ForwardBatch, shape: tuple[int, int]) -> Inputs:
    levels, hidden_size = shape
    if batch.image_rows is None or batch.image_features is None:
        return {
            "image_rows": np.zeros(0, np.int64),
            "image_features": np.zeros((levels, 0, hidden_size), np.float32),
        }
    features = batch.image_features
    if missing := levels - len(features):  # a step with sounds alone has no further features
        features = np.pad(features, ((0, missing), (0, 0), (0, 0)))
    return {"image_rows": batch.image_rows, "image_features": features}
