"""No request that Schemathesis makes from the OpenAPI document gets a 5xx or an unknown answer.

Schemathesis's own pytest plugin makes the requests at collection, again in each process, and gives
all tests one name, of which pytest-xdist runs one. This module makes the requests of an operation
when the operation's test runs.
"""

import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any  # Any: JSON, and Schemathesis's own

import httpx
import pytest
import requests

from ouzel.api.document.openapi import build_document
from ouzel.api.operations import DOCUMENTED
from tests.api.requests import chat
from tests.api.server_setup import ALIAS
from tests.api.serving import RunningServer
from tests.release_only import release_only

if TYPE_CHECKING:
    from schemathesis import Case

pytestmark = pytest.mark.serves  # thousands of requests take as long as servers of their own
SAME_AS_INVOCATIONS = re.compile(r"^/(predictions|models)/")
METHODS = ("get", "post", "delete")
DOCUMENT: dict[str, Any] = json.loads(json.dumps(build_document(DOCUMENTED)))
PATHS = {
    path: item for path, item in DOCUMENT["paths"].items() if not SAME_AS_INVOCATIONS.match(path)
}
LABELS = [
    f"{method.upper()} {path}"
    for path, item in PATHS.items()
    for method in METHODS
    if method in item
]
# Making requests takes minutes of CPU for all operations. Each run tries one operation of each
# kind: a body with a chat's fields, a body of texts, a path with an id, and no parameter.
# test_malformed.py tries wrong values of each field.
IN_EACH_RUN = [
    "POST /v1/tokenize",
    "POST /v1/embeddings",
    "GET /v1/responses/{response_id}",
    "GET /v1/models",
]
CASES = [
    *IN_EACH_RUN,
    *release_only(
        "requests made from the schemas of all operations",
        *(label for label in LABELS if label not in IN_EACH_RUN),
    ),
]


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as session:
        yield session


def test_every_operation_can_be_read() -> None:
    assert sorted(operations()) == sorted(LABELS) and len(LABELS) > 25
    assert set(IN_EACH_RUN) <= set(LABELS)


@functools.cache
def operations() -> dict[str, Any]:
    """Returns Schemathesis's operations by label.

    The import takes seconds, so it is not at the top, where each collecting process would do it.
    """
    import schemathesis  # noqa: PLC0415
    from schemathesis.core.result import Ok  # noqa: PLC0415

    schema = schemathesis.openapi.from_dict(DOCUMENT | {"paths": PATHS})
    return {
        found.ok().label: found.ok()
        for found in schema.get_all_operations()
        if isinstance(found, Ok)
    }


@pytest.mark.parametrize("label", CASES)
def test_every_answer_is_as_documented(
    label: str, server: RunningServer, session: requests.Session, before_release: bool
) -> None:
    from schemathesis.generation.feedback import FeedbackSources  # noqa: PLC0415
    from schemathesis.pytest._test_builder import build_operation_test  # noqa: PLC0415

    operation = operations()[label]
    check_answers = build_operation_test(
        config=operation.schema.config,
        operation=operation,
        test_func=answer_check(20 if before_release else 3),
        given_kwargs={},
        feedback=FeedbackSources(),
    )
    check_answers(url=server.url, session=session)


def answer_check(max_examples: int) -> Callable[..., None]:
    """Returns a new test function each time, because hypothesis sets settings only once."""
    from hypothesis import HealthCheck, settings  # noqa: PLC0415
    from schemathesis.checks import not_a_server_error  # noqa: PLC0415
    from schemathesis.specs.openapi.checks import (  # noqa: PLC0415
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    checks = [
        not_a_server_error,
        status_code_conformance,
        content_type_conformance,
        response_schema_conformance,
    ]

    @settings(
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        max_examples=max_examples,
    )
    def check_answer(case: "Case[Any]", url: str, session: requests.Session) -> None:
        if isinstance(case.body, dict):
            case.body = tame_body(case.body)
        answer = case.call_and_validate(base_url=url, session=session, checks=checks)
        if isinstance(case.body, dict) and answer.status_code == 200:
            case.body["stream"] = True
            case.call_and_validate(base_url=url, session=session, checks=checks)

    return check_answer


def test_after_all_that_the_server_answers(http: httpx.Client) -> None:
    assert http.post("/v1/chat/completions", json=chat("Hi", max_tokens=1)).status_code == 200


def tame_body(body: Mapping[str, Any]) -> dict[str, Any]:
    """Sets an existing model and low limits, and removes "#", at which the parser fails."""
    tame: dict[str, Any] = json.loads(json.dumps(body).replace("#", "-"))
    if isinstance(tame.get("model"), str):
        tame["model"] = ALIAS
    for name, most in (
        ("max_tokens", 8),
        ("max_completion_tokens", 8),
        ("max_output_tokens", 8),
        ("n", 4),
    ):
        value = tame.get(name)
        if isinstance(value, int) and value > most:
            tame[name] = most
    return tame
