"""docs/reference/models.md lists every family of the code with its golden checkpoints."""

import re

import pytest

from ouzel.backends.openvino.models import supported_model_types
from ouzel.backends.openvino.weights.quantized.formats import FORMATS
from tools.documents import models


@pytest.fixture(scope="module")
def document() -> str:
    return models.models_document()


def test_the_document_agrees_with_the_code(document: str) -> None:
    assert models.PATH.read_text() == document, f"renew it: {models.COMMAND}"


def test_every_family_has_a_golden_checkpoint() -> None:
    assert set(models.golden_checkpoints()) == set(supported_model_types())


def test_every_format_of_quantised_checkpoints_is_listed(document: str) -> None:
    table = document.split("## Quantised checkpoints")[1].split("\n## ", maxsplit=1)[0]
    assert set(re.findall(r"^\| `([\w-]+)` \|", table, re.M)) - {"quant_method"} == set(FORMATS)
