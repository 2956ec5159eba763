"""Tries the documents' statements, apart from names of parameters, on servers with each profile."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any  # JSON

import httpx

from tests.peer_documents.peer import Peer
from tests.peer_documents.streams import read_chunks, read_data_lines
from tests.serve.answers import Json
from tests.serve.conformance.asking import QUESTION


class Left:
    """Stands for a field that is left out of a body."""


LEFT_OUT = Left()


BY_DEFAULT = ("default",)
EVERYWHERE = ("default", "ovms", "lmi")


@dataclass(frozen=True)
class Statement:
    says: str
    listed: str
    holds: Callable[[Peer], bool]
    reason: str = ""  # why a server differs; empty where none does
    instead: Callable[[Peer], bool] | None = None  # checks the other behaviour of such a server
    differs: tuple[str, ...] = BY_DEFAULT  # the profiles with which a server may differ


def check_statement(statement: Statement, peer: Peer) -> str:
    place = f"{statement.says} ({peer.profile})"
    if statement.holds(peer):
        return "as it says"
    assert statement.reason, f"{place}: does not hold, and no reason is given"
    assert peer.profile in statement.differs, f"{place}: does not hold"
    assert statement.instead is not None, f"{place}: say how the other behaviour is seen"
    assert statement.instead(peer), f"{place}: neither the statement holds nor what is done instead"
    return "differs"


def table(statements: Sequence[Statement], peers: Sequence[Peer]) -> str:
    rows = []
    for statement in statements:
        cells = [check_statement(statement, peer) for peer in peers]
        assert ("differs" in cells) == bool(statement.reason), (
            f"{statement.says}: the reason is needless"
        )
        row = [statement.says, statement.listed, *cells, statement.reason]
        rows.append(f"| {' | '.join(row)} |\n")
    return "".join(rows)


def post(peer: Peer, path: str, body: Json) -> httpx.Response:
    kept = {name: value for name, value in body.items() if value is not LEFT_OUT}
    return httpx.post(f"{peer.root}{path}", json=kept, timeout=None)


def chat(peer: Peer, *, path: str = "/v3/chat/completions", **fields: Any) -> httpx.Response:
    """Sends a chat: greedy, and short, unless told otherwise."""
    messages = [{"role": "user", "content": QUESTION}]
    return post(
        peer,
        path,
        {"model": "llama3", "messages": messages, "temperature": 0, "max_tokens": 20} | fields,
    )


def answer(response: httpx.Response) -> Json:
    assert response.status_code == 200, response.text
    whole: Json = response.json()
    return whole


def texts(peer: Peer, **fields: Any) -> list[str]:
    """Returns the text of each choice of a whole chat."""
    return [choice["message"]["content"] for choice in answer(chat(peer, **fields))["choices"]]


def chunks(peer: Peer, **fields: Any) -> list[Json]:
    return read_chunks(chat(peer, stream=True, **fields))


def streamed_text(peer: Peer, **fields: Any) -> str:
    choices = [choice for chunk in chunks(peer, **fields) for choice in chunk["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


def respond(peer: Peer, *, path: str = "/v3/responses", **fields: Any) -> httpx.Response:
    """Asks for a response: greedy, and short, unless told otherwise."""
    return post(
        peer,
        path,
        {"model": "llama3", "input": QUESTION, "temperature": 0, "max_output_tokens": 20} | fields,
    )


def events(peer: Peer, **fields: Any) -> list[Json]:
    *read, done = read_data_lines(respond(peer, stream=True, **fields))
    assert done == "[DONE]"
    return read


def output_texts(peer: Peer, **fields: Any) -> list[str]:
    """Returns the text of each message of a whole response."""
    items = answer(respond(peer, **fields))["output"]
    return [item["content"][0]["text"] for item in items if item["type"] == "message"]


def is_refused(response: httpx.Response, name: str) -> bool:
    return response.status_code in (400, 424) and name in response.text
