"""docs/reference/lmi.md describes each field of the standard schema."""

import re
from pathlib import Path

from ouzel.api.lmi.standard import Parameters, StandardRequest
from ouzel.wire.fields import CompletionFields

DOCUMENT = (Path(__file__).parents[3] / "docs" / "reference" / "lmi.md").read_text()


def test_the_document_names_every_field_of_the_standard_schema() -> None:
    section = DOCUMENT.split("## Standard schema")[1].split("\n## ")[0]
    named = set(re.findall(r"`(\w+)`", section))
    own = set(Parameters.__struct_fields__) - set(CompletionFields.__struct_fields__)
    assert own | set(StandardRequest.__struct_fields__) <= named
