"""The system fingerprint names the model, the engine's settings and the version."""

import msgspec

from ouzel.generation import (
    system_fingerprint,
)
from tests.generation.generations import ROOM


def test_an_engine_with_other_answers_has_another_fingerprint() -> None:
    """With `--deterministic` another kernel computes the tokens."""
    others = (
        {"precision": "bf16"},
        {"kv_cache_dtype": "u8"},
        {"weights": "int8"},
        {"is_deterministic": True},
    )
    engines = [ROOM, *(msgspec.structs.replace(ROOM, **other) for other in others)]

    assert len({system_fingerprint("m", engine, "1") for engine in engines}) == len(engines)
    assert system_fingerprint("m", ROOM, "1") == system_fingerprint("m", ROOM, "1")
