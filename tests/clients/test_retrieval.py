"""The program of docs/how-to/retrieval.md with LlamaIndex asks three models of one server."""

from pathlib import Path

import pytest

from tests.clients.clients import LOCAL, NO_NETWORK, packages
from tests.serve.retrieval import MODELS, find_program, serving_retrieval

pytestmark = [
    pytest.mark.release("the program with LlamaIndex in docs/how-to/retrieval.md"),
    pytest.mark.serves,
]


def test_the_program_with_llama_index_answers_from_the_documents(tmp_path: Path) -> None:
    python = packages("llama-index") / "bin" / "python"
    environment = {"PATH": "", "HOME": str(tmp_path), **NO_NETWORK, **LOCAL}

    with serving_retrieval(tmp_path) as retrieval:
        *answer, sources = retrieval.run(python, find_program("llama_index"), environment)
        counts = retrieval.count_answers()

    assert "".join(answer)
    assert sorted(sources.split()) == ["Sources:", "bread.txt", "dippers.txt", "kingfishers.txt"]
    assert [counts[model] for model in MODELS] == [1, 2, 1]
