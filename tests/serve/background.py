"""Responses made in the background, and what became of them."""

import time

import httpx
from openai.types.responses import Response

from tests.api.responses.strict import strict_end, strict_response
from tests.serve.answers import Json

ENDLESS: Json = {
    "input": "Count from 1 to 200.",
    "ignore_eos": True,
    "max_output_tokens": 3900,
    "temperature": 0,
}
SHORT: Json = {"input": "Hello!", "temperature": 0}


def begin(http: httpx.Client, *bodies: Json) -> list[str]:
    """Ids of them."""
    answers = [
        http.post("responses", json=body | {"model": "ouzel-demo", "background": True})
        for body in bodies
    ]
    return [strict_response(answer.text).id for answer in answers]


def found(http: httpx.Client, response_id: str) -> Response:
    return strict_response(http.get(f"responses/{response_id}").text)


def with_text(http: httpx.Client, response_id: str) -> Response:
    """Waits until some of it is there; asked of another server than the one that makes it: until some is kept."""
    while len((response := found(http, response_id)).output_text) < 20:
        assert response.status in ("queued", "in_progress")
        time.sleep(0.02)
    return response


def ended(http: httpx.Client, response_id: str) -> Response:
    """Waits for its end by following its events, which are told to the letter."""
    response = strict_end(http.get(f"responses/{response_id}", params={"stream": True}))
    assert found(http, response_id) == response
    return response


def check_failed(failed: Response, seen: Response) -> None:
    """`seen`: somewhat before the server stopped. Of what it had made the beginning is kept, closed."""
    assert (
        failed.status == "failed"
        and failed.error is not None
        and failed.error.code == "server_error"
    )
    kept, shown = failed.output_text, seen.output_text
    assert kept and (kept.startswith(shown) or shown.startswith(kept))
    [item] = failed.output
    assert item.type == "message" and item.status == "incomplete" and item.id == seen.output[0].id
