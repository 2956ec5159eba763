"""The server keeps answers valid by JSON schemas; at temperature 1 only the grammar does so."""

import re
from collections.abc import Iterator

import httpx
import pytest

from tests.grammar.schemas import CASES, REFUSED
from tests.grammar.schemas.cases import Case, Refused
from tests.grammar.validity import exactly, make_validator
from tests.serve.answers import Answered, Json, ask_all
from tests.serve.running import RunningServer, serving

SAMPLE = {case.name: case for case in CASES[::9]}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with serving(cache_dir=tmp_path_factory.mktemp("cache")) as server:
        yield server


def body_for(case: Case | Refused, *, strict: bool, **more: object) -> Json:
    declared = {"name": "answer", "schema": case.schema, "strict": strict}
    return {
        "model": "ouzel-demo",
        "messages": [{"role": "user", "content": "Tell me something."}],
        "max_tokens": 400,
        "response_format": {"type": "json_schema", "json_schema": declared},
        "metadata": {"case": case.name},
        **more,
    }


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_answers_are_valid(server: RunningServer, stream: bool, before_release: bool) -> None:
    bodies = [
        body_for(case, strict=strict, temperature=1, seed=seed, stream=stream)
        for case in SAMPLE.values()
        for strict in case.modes
        for seed in range(3 if before_release else 1)
    ]
    answers = ask_all(server.url, bodies)
    finished = [
        answer for answer in answers if answer.whole["choices"][0]["finish_reason"] == "stop"
    ]
    assert len(finished) > len(answers) * 0.9
    for answer in finished:
        check(answer)


def check(answer: Answered) -> None:
    case = SAMPLE[answer.body["metadata"]["case"]]
    content = answer.whole["choices"][0]["message"]["content"]
    make_validator(case.schema).validate(exactly(content))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_schema_that_cannot_be_honoured_is_a_400_with_the_reason(
    server: RunningServer, stream: bool, before_release: bool
) -> None:
    with httpx.Client(base_url=server.url, timeout=None) as http:
        for case in REFUSED[:: 4 if before_release else 12]:
            response = http.post(
                "chat/completions", json=body_for(case, strict=case.modes[-1], stream=stream)
            )
            error = response.json()["error"]
            assert (response.status_code, error["param"]) == (
                400,
                "response_format.json_schema.schema",
            ), case.name
            assert re.search(case.message, error["message"]), case.name
