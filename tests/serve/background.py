"""Makes responses in the background, waits for them, and checks their ends."""

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
    """Creates a response in the background from each body; returns their ids."""
    answers = [
        http.post("responses", json=body | {"model": "ouzel-demo", "background": True})
        for body in bodies
    ]
    return [strict_response(answer.text).id for answer in answers]


def found(http: httpx.Client, response_id: str) -> Response:
    return strict_response(http.get(f"responses/{response_id}").text)


def with_text(http: httpx.Client, response_id: str) -> Response:
    """Waits until the response has some text; another server than its own shows stored text."""
    while len((response := found(http, response_id)).output_text) < 20:
        assert response.status in ("queued", "in_progress")
        time.sleep(0.02)
    return response


def ended(http: httpx.Client, response_id: str) -> Response:
    """Waits for the end of the response by reading its events, whose types are checked."""
    response = strict_end(http.get(f"responses/{response_id}", params={"stream": True}))
    assert found(http, response_id) == response
    return response


def check_failed(failed: Response, seen: Response) -> None:
    """Checks a response whose server stopped: its stored beginning is there, and it has ended.

    `seen` is the response shortly before the stop.
    """
    assert (
        failed.status == "failed"
        and failed.error is not None
        and failed.error.code == "server_error"
    )
    kept, shown = failed.output_text, seen.output_text
    assert kept and (kept.startswith(shown) or shown.startswith(kept))
    [item] = failed.output
    assert item.type == "message" and item.status == "incomplete" and item.id == seen.output[0].id
