"""Requests that Schemathesis makes from our OpenAPI document: no 5xx, and every answer is as the document says.

Schemathesis would make them when tests are collected, in each process again, and give all its tests one name, of which
pytest-xdist runs one. So they are made here, when an operation's test runs.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any  # JSON, and Schemathesis's own

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.pytest._test_builder import build_operation_test
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from ouzel.api.document.openapi import document
from ouzel.api.operations import DOCUMENTED
from tests.api.requests import chat
from tests.api.serving import ALIAS, RunningServer

pytestmark = pytest.mark.serves  # ten thousand requests take as long as servers of their own
SAME_AS_INVOCATIONS = r"^/(predictions|models)/"
SCHEMA = schemathesis.openapi.from_dict(json.loads(json.dumps(document(DOCUMENTED))))
FOUND = list(SCHEMA.exclude(path_regex=SAME_AS_INVOCATIONS).get_all_operations())
OPERATIONS = {found.ok().label: found.ok() for found in FOUND if isinstance(found, Ok)}
# Requests of so many kinds take half a minute of CPU to make; chats are left, of which others have the fields.
TAKE_LONG = re.compile("/messages|/api/(chat|generate)|/invocations|/render|/input_tokens|/compact")
OF_RELEASES = pytest.mark.release("requests made from the largest schemas")
LABELS = [pytest.param(label, marks=OF_RELEASES) if TAKE_LONG.search(label) else label for label in OPERATIONS]
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]

SETTINGS = settings(derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as session:
        yield session


def test_every_operation_can_be_read() -> None:
    assert len(OPERATIONS) == len(FOUND) > 25


@pytest.mark.parametrize("label", LABELS)
def test_every_answer_is_as_documented(
    label: str, server: RunningServer, session: requests.Session, before_release: bool
) -> None:
    check_answers = build_operation_test(
        config=SCHEMA.config,
        operation=OPERATIONS[label],
        test_func=answer_check(20 if before_release else 3),
        given_kwargs={},
        feedback=FeedbackSources(),
    )
    check_answers(url=server.url, session=session)


def answer_check(max_examples: int) -> Callable[..., None]:
    """Returns a new function each time: settings can be given to one only once."""

    @settings(SETTINGS, max_examples=max_examples)
    def check_answer(case: Case[Any], url: str, session: requests.Session) -> None:
        if isinstance(case.body, dict):
            case.body = tamed(case.body)
        answer = case.call_and_validate(base_url=url, session=session, checks=CHECKS)
        if isinstance(case.body, dict) and answer.status_code == 200:
            case.body["stream"] = True
            case.call_and_validate(base_url=url, session=session, checks=CHECKS)

    return check_answer


def test_after_all_that_the_server_answers(http: httpx.Client) -> None:
    assert http.post("/v1/chat/completions", json=chat("Hi", max_tokens=1)).status_code == 200


def tamed(body: Mapping[str, Any]) -> dict[str, Any]:
    """A model that exists, short answers, and not the character that the parrot stumbles over."""
    tame: dict[str, Any] = json.loads(json.dumps(body).replace("#", "-"))
    if isinstance(tame.get("model"), str):
        tame["model"] = ALIAS
    for name, most in (("max_tokens", 8), ("max_completion_tokens", 8), ("max_output_tokens", 8), ("n", 4)):
        value = tame.get(name)
        if isinstance(value, int) and value > most:
            tame[name] = most
    return tame
