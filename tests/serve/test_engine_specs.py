"""The description of an engine has its part of the memory, which decides the KV cache's type."""

import pytest

from ouzel.machine.processors import num_processors
from ouzel.model_store.model_directory import find_or_download
from ouzel.options.options import read_options
from ouzel.serve.engine_specs import engine_specs


def test_replicas_choose_by_the_same_memory() -> None:
    if num_processors() < 2:
        pytest.skip("two replicas need two processors")
    options = read_options({"replicas": 2})
    first, second = engine_specs(options, find_or_download(options.model), memory_share=0.5)
    assert first.options["free_bytes"] == second.options["free_bytes"]
    assert first.options["memory_share"] == second.options["memory_share"] == 0.25
