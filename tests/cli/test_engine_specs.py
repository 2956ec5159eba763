"""An engine is described with its part of the memory, by which it chooses the type of its KV cache."""

import pytest

from ouzel.cli.engine_specs import engine_specs
from ouzel.cli.model_directory import located
from ouzel.cli.options import read_options
from ouzel.cli.processors import num_processors


def test_replicas_choose_by_the_same_memory() -> None:
    if num_processors() < 2:
        pytest.skip("two replicas need two processors")
    options = read_options({"replicas": 2})
    first, second = engine_specs(options, located(options.model), memory_share=0.5)
    assert first.options["free_bytes"] == second.options["free_bytes"]
    assert first.options["memory_share"] == second.options["memory_share"] == 0.25
