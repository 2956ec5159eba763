"""Requests that Schemathesis makes from our OpenAPI document: no 5xx, and every answer is as the document says."""

import json
from collections.abc import Iterator, Mapping
from typing import Any  # JSON, and Schemathesis's own

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from ouzel.api.document.openapi import document
from ouzel.api.operations import DOCUMENTED
from tests.api.requests import chat
from tests.api.serving import ALIAS, RunningServer

SCHEMA = schemathesis.openapi.from_dict(json.loads(json.dumps(document(DOCUMENTED))))
SAME_AS_INVOCATIONS = r"^/(predictions|models)/"
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as session:
        yield session


@SCHEMA.exclude(path_regex=SAME_AS_INVOCATIONS).parametrize()
@settings(max_examples=10, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_answer_is_as_documented(case: Case[Any], server: RunningServer, session: requests.Session) -> None:
    if isinstance(case.body, dict):
        case.body = tamed(case.body)
    answer = case.call_and_validate(base_url=server.url, session=session, checks=CHECKS)
    if isinstance(case.body, dict) and answer.status_code == 200:
        case.body["stream"] = True
        case.call_and_validate(base_url=server.url, session=session, checks=CHECKS)


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
