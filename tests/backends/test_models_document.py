"""docs/reference/models.md says of every family what the code and the golden checkpoints have."""

import re

from ouzel.backends.openvino.models import supported_model_types
from ouzel.backends.openvino.weights.quantized.formats import FORMATS
from tools.documents import models


def test_the_document_is_that_of_the_code() -> None:
    assert models.PATH.read_text() == models.models_document(), f"renew it: {models.COMMAND}"


def test_every_family_has_a_golden_checkpoint() -> None:
    assert set(models.golden_checkpoints()) == set(supported_model_types())


def test_every_format_of_quantised_checkpoints_is_listed() -> None:
    table = models.models_document().split("## Quantised checkpoints")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `([\w-]+)` \|", table, re.M)) - {"quant_method"} == set(FORMATS)
