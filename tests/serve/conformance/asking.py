"""Sends requests to an endpoint in its two modes, and reads its answers and refusals."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx

from tests.serve.answers import Json, put_together, read_chunks

QUESTION = "Count from 1 to 60."


class Refused(Exception):
    def __init__(self, param: str, status: int) -> None:
        super().__init__(param)
        self.param = param
        self.status = status


@dataclass(frozen=True)
class Endpoint:
    path: str
    fields: Json  # that every body has
    refused_param: Callable[[httpx.Response], str | None]  # None: not refused
    read: Callable[[httpx.Response], Json]  # returns a chat's answer, with `num_chunks`
    prompt: str = "messages"
    streaming: Json = field(
        default_factory=lambda: {"stream": True, "stream_options": {"include_usage": True}}
    )


def openai_param(response: httpx.Response) -> str | None:
    return response.json()["error"]["param"] or "?" if response.status_code == 400 else None


def lmi_param(response: httpx.Response) -> str | None:
    """LMI has no place for it but the message, which begins with it."""
    if response.status_code != 424:
        return None
    named = re.search(r"payload is valid\. ([\w.\[\]]+)", response.json()["error"])
    return named[1] if named else "?"


def ovms_param(response: httpx.Response) -> str | None:
    """Returns the parameter in the text of an error of OVMS's profile; None without an error."""
    if response.status_code != 400:
        return None
    named = re.search(r"failed: ([\w.\[\]]+)", response.json()["error"])
    return named[1] if named else "?"


def reading(chunks: Callable[[httpx.Response], list[Json]]) -> Callable[[httpx.Response], Json]:
    def read(response: httpx.Response) -> Json:
        if response.headers["content-type"] == "application/json":
            whole: Json = response.json()
            return whole | {"num_chunks": 1}
        streamed = chunks(response)
        return put_together(streamed) | {"num_chunks": len(streamed)}

    return read


def lmi_chunks(response: httpx.Response) -> list[Json]:
    return [json.loads(line) for line in response.iter_lines()]


OPENAI = Endpoint(
    "/v1/chat/completions", {"model": "ouzel-demo"}, openai_param, reading(read_chunks)
)
OVMS = Endpoint("/v3/chat/completions", {"model": "ouzel-demo"}, ovms_param, reading(read_chunks))
LMI = Endpoint("/invocations", {}, lmi_param, reading(lmi_chunks))


class Asker:
    """Chats in one of the two modes; greedy, and short, unless told otherwise."""

    def __init__(self, http: httpx.Client, endpoint: Endpoint, *, is_stream: bool) -> None:
        self.is_stream = is_stream
        self._http = http
        self._endpoint = endpoint

    def __call__(self, said: object = QUESTION, **fields: object) -> Json:
        """The answer, a stream's put together, with `num_chunks`."""
        endpoint = self._endpoint
        defaults = {
            endpoint.prompt: [{"role": "user", "content": said}],
            "temperature": 0,
            "max_tokens": 20,
        }
        streaming = endpoint.streaming if self.is_stream else {}
        body = defaults | {"logprobs": True} | endpoint.fields | streaming | fields
        response = self._http.post(endpoint.path, json=body)
        if (param := endpoint.refused_param(response)) is not None:
            raise Refused(param, response.status_code)
        response.raise_for_status()
        return endpoint.read(response)
