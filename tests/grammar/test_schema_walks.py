"""What a model that knows nothing writes under a schema's masks is valid under that schema."""

import json

import jsonschema
import numpy as np
import pytest

from tests.grammar.runs import random_walk, started
from tests.grammar.schemas import SCHEMAS

NUM_WALKS = 10


@pytest.mark.parametrize("strict", [False, True], ids=["plain", "strict"])
@pytest.mark.parametrize("schema", [schema for _, schema in SCHEMAS], ids=[name for name, _ in SCHEMAS])
def test_random_walks_give_valid_instances(schema: dict[str, object], strict: bool) -> None:
    session = started({"type": "json_schema", "json_schema": schema}, strict=strict)
    validator = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    walks = [random_walk(session, np.random.Generator(np.random.PCG64(seed))) for seed in range(NUM_WALKS)]
    finished = [text for text in walks if text is not None]
    assert finished
    for text in finished:
        validator(schema, format_checker=validator.FORMAT_CHECKER).validate(json.loads(text))
