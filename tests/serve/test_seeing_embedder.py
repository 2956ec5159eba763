"""A model that sees makes vectors of texts and pictures, as sentence-transformers does."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any  # JSON

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.backends.seeing_embedder import (
    DOCUMENTS,
    INPUTS,
    INSTRUCTION,
    QUERY,
    QUESTION,
    write_embedder,
    write_reranker,
)
from tests.backends.seeing_family import GOLDEN
from tests.backends.test_seeing_families import make_part
from tests.serve.running import RunningServer, failure, serving

EXPECTED: dict[str, list[float]] = json.loads(
    (GOLDEN.parent / "golden_seeing_sentences.json").read_text()
)
TEXTS = [name for name, parts in INPUTS.items() if len(parts) == 1 and isinstance(parts[0], str)]
EXACT = ("--weights", "f32", "--precision", "f32", "--kv-cache-dtype", "f32")
PROMPTS = {"document": INSTRUCTION, "query": QUERY}
Chat = list[dict[str, object]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    directory = write_embedder(tmp_path_factory.mktemp("embedder"))
    with serving(str(directory), *EXACT, cache_dir=directory / "cache") as server:
        yield server


def post(server: RunningServer, path: str, **body: object) -> httpx.Response:
    return httpx.post(server.root + path, json=body, timeout=None)


def read_vectors(server: RunningServer, **body: object) -> NDArray[np.float64]:
    response = post(server, "/v1/embeddings", **body)
    assert response.status_code == 200, response.text
    return np.array([entry["embedding"] for entry in response.json()["data"]])


def make_chat(name: str, instruction: str) -> Chat:
    content = [make_part(part) for part in INPUTS[name]]
    return [
        {"role": "system", "content": instruction},
        {"role": "user", "content": content},
    ]


@pytest.mark.parametrize("prompt", PROMPTS)
def test_vectors_of_texts_equal_sentence_transformers(server: RunningServer, prompt: str) -> None:
    texts = [INPUTS[name][0] for name in TEXTS]

    vectors = read_vectors(server, input=texts, prompt_name=prompt)

    expected = [EXPECTED[f"{prompt}:{name}"] for name in TEXTS]
    np.testing.assert_allclose(vectors, expected, atol=2e-5)


def test_the_default_prompt_precedes_texts_of_every_api(server: RunningServer) -> None:
    text, expected = INPUTS["text"][0], EXPECTED["document:text"]

    vectors = read_vectors(server, input=text)
    of_ollama = post(server, "/api/embed", model=server_model(server), input=text).json()

    np.testing.assert_allclose(vectors, [expected], atol=2e-5)
    np.testing.assert_allclose(of_ollama["embeddings"], [expected], atol=2e-5)


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("name", INPUTS)
def test_vectors_of_chats_with_pictures_equal_sentence_transformers(
    server: RunningServer, name: str, prompt: str
) -> None:
    vectors = read_vectors(server, messages=make_chat(name, PROMPTS[prompt]))

    np.testing.assert_allclose(vectors, [EXPECTED[f"{prompt}:{name}"]], atol=2e-5)


def test_a_chat_ends_as_vllms_clients_end_it(server: RunningServer) -> None:
    """The examples of vLLM end a chat with an empty answer, which is then not closed."""
    chat = make_chat("both", INSTRUCTION)
    answer = {"role": "assistant", "content": [{"type": "text", "text": ""}]}

    open_end = read_vectors(server, messages=[*chat, answer], continue_final_message=True)
    closed = read_vectors(server, messages=chat, add_generation_prompt=False)

    expected = EXPECTED["document:both"]
    np.testing.assert_allclose(open_end, [expected], atol=2e-5)
    assert np.abs(closed - expected).max() > 1e-3


def test_the_end_of_a_chat_may_be_among_the_variables_of_its_template(
    server: RunningServer,
) -> None:
    """The variable replaces the end in the model's files, which is no field of the request."""
    chat = make_chat("text", INSTRUCTION)

    default = read_vectors(server, messages=chat)
    closed = read_vectors(server, messages=chat, add_generation_prompt=False)
    by_variable = {
        is_open: read_vectors(
            server, messages=chat, chat_template_kwargs={"add_generation_prompt": is_open}
        )
        for is_open in (True, False)
    }

    np.testing.assert_allclose(by_variable[True], default, atol=1e-6)
    np.testing.assert_allclose(by_variable[False], closed, atol=1e-6)
    assert np.abs(default - closed).max() > 1e-3


def test_special_tokens_can_be_left_out(server: RunningServer) -> None:
    chat, text = make_chat("text", INSTRUCTION), INPUTS["text"][0]

    of_chat = read_vectors(server, messages=chat, add_special_tokens=False)
    of_text = read_vectors(server, input=text, add_special_tokens=False)

    np.testing.assert_allclose(of_chat, of_text, atol=1e-6)
    assert np.abs(of_chat - EXPECTED["document:text"]).max() > 1e-3


def test_a_long_text_is_cut_inside_of_the_chat(server: RunningServer) -> None:
    [text] = INPUTS["long"]
    assert isinstance(text, str)
    whole = post(server, "/v1/embeddings", input="").json()["usage"]["prompt_tokens"]

    cut = read_vectors(server, input=text, truncate_prompt_tokens=whole + 3)

    np.testing.assert_allclose(cut, read_vectors(server, input=text[:3]), atol=1e-6)


def test_documents_are_ranked_within_chats(server: RunningServer) -> None:
    query, documents = INPUTS["text"][0], [INPUTS[name][0] for name in TEXTS]

    results = post(server, "/v1/rerank", query=query, documents=documents).json()["results"]

    scores = {result["index"]: result["relevance_score"] for result in results}
    expected = [
        float(np.dot(EXPECTED["query:text"], EXPECTED[f"document:{name}"])) for name in TEXTS
    ]
    np.testing.assert_allclose([scores[index] for index in range(len(TEXTS))], expected, atol=1e-4)


CHAT = make_chat("text", INSTRUCTION)
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no input": ({}, "input is required, or messages"),
    "two inputs": ({"input": "a", "messages": CHAT}, "messages must not be given beside input"),
    "a prompt beside messages": (
        {"messages": CHAT, "prompt_name": "query"},
        "prompt_name goes with input, given messages",
    ),
    "a cut of messages": (
        {"messages": CHAT, "truncate_prompt_tokens": 9},
        "truncate_prompt_tokens goes with input, given messages",
    ),
    "a field of chats beside input": (
        {"input": "a", "add_generation_prompt": True},
        "add_generation_prompt goes with messages, given input",
    ),
    "no cut of messages": (
        {"messages": CHAT, "truncate_prompt_tokens": 0},
        "truncate_prompt_tokens goes with input, given messages",
    ),
    "a task without a name": (
        {"messages": CHAT, "task": ""},
        "task goes with input, given messages",
    ),
    "a prompt without a name": (
        {"messages": CHAT, "prompt_name": ""},
        "prompt_name goes with input, given messages",
    ),
    "a closed chat beside input": (
        {"input": "a", "add_generation_prompt": False},
        "add_generation_prompt goes with messages, given input",
    ),
    "a chat without a role": ({"messages": [{"content": "a"}]}, "messages[0].role"),
    "two ends": (
        {"messages": CHAT, "add_generation_prompt": True, "continue_final_message": True},
        "continue_final_message must not be true when add_generation_prompt is true",
    ),
    "two ends, one among the variables": (
        {
            "messages": CHAT,
            "continue_final_message": True,
            "chat_template_kwargs": {"add_generation_prompt": True},
        },
        "continue_final_message must not be true when add_generation_prompt is true",
    ),
    "a part of another kind": (
        {"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]},
        "messages[0].content[0]",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_names_the_field(server: RunningServer, case: str) -> None:
    body, message = REFUSED[case]

    response = post(server, "/v1/embeddings", **body)

    assert response.status_code == 400
    assert message in response.json()["error"]["message"]


def test_a_setting_that_the_chat_template_does_not_read_stops_the_start(tmp_path: Path) -> None:
    path = write_embedder(tmp_path) / "sentence_bert_config.json"
    reading = json.loads(path.read_text())
    reading["processing_kwargs"] = {"chat_template": {"colour": "red"}}
    path.write_text(json.dumps(reading))

    errors = failure(str(tmp_path), cache_dir=tmp_path / "cache")

    assert "sentence_bert_config.json: texts cannot be written as chats with the prompt" in errors
    assert "does not read colour" in errors


def test_a_template_without_the_models_prompts_stops_the_start(tmp_path: Path) -> None:
    directory, template = write_embedder(tmp_path), tmp_path / "template.jinja"
    template.write_text(
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}"
        "{% endif %}{% for part in m.content %}{{ part.text }}{% endfor %}{% endfor %}"
    )

    errors = failure(
        *(str(directory), "--chat-template", str(template)), cache_dir=tmp_path / "cache"
    )

    assert f'texts cannot be written as chats with the prompt "{INSTRUCTION}"' in errors


@pytest.fixture(scope="module")
def reranker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    directory = write_reranker(tmp_path_factory.mktemp("reranker"))
    options = (str(directory), "--task", "score", *EXACT)
    with serving(*options, cache_dir=directory / "cache") as server:
        yield server


def test_scores_of_texts_equal_the_code_on_the_models_card(reranker: RunningServer) -> None:
    answer = post(reranker, "/v1/score", text_1=QUESTION, text_2=DOCUMENTS).json()

    scores = [entry["score"] for entry in answer["data"]]
    np.testing.assert_allclose(scores, EXPECTED["scores"], atol=2e-5)
    assert np.ptp(EXPECTED["scores"]) > 0.01


def test_the_prompt_around_a_pair_may_come_from_the_client(reranker: RunningServer) -> None:
    """Clients of vLLM and OVMS write it themselves."""
    before = (
        "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query "
        'and the Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n'
        "<|im_start|>user\n<Instruct>: Given a search query, retrieve relevant candidates that "
        f"answer the query.<Query>:{QUESTION}\n"
    )
    document = f"<Document>:{DOCUMENTS[0]}<|im_end|>\n<|im_start|>assistant\n"

    answer = post(reranker, "/v1/score", text_1=before, text_2=document).json()

    assert answer["data"][0]["score"] == pytest.approx(EXPECTED["scores"][0], abs=2e-5)


def test_pictures_of_pairs_are_refused(reranker: RunningServer) -> None:
    picture = {"content": [make_part((30, 75))]}

    response = post(reranker, "/v1/score", text_1=QUESTION, text_2=picture)

    assert response.status_code == 400
    assert response.json()["error"]["param"] == "text_2"


def server_model(server: RunningServer) -> str:
    name: str = httpx.get(f"{server.root}/v1/models", timeout=None).json()["data"][0]["id"]
    return name
