"""Writes the part of conformance.md about stored responses, conversations and chats."""

import httpx

from tests.api.responses.strict import named_events
from tests.serve.answers import Json

_INTRODUCTION = """
## Stored responses, conversations and chats

These operations are OpenAI's. OVMS has none of them.

| operation | result | observation |
|---|---|---|
"""


class Keeper:
    """Asks for a thing and gives it back."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def __call__(self, method: str, path: str, **body: object) -> Json:
        answer: Json = self._answer(method, path, body).json()
        return answer

    def is_gone(self, path: str) -> bool:
        return self._http.get(f"/v1/{path}").status_code == 404

    def names(self, path: str) -> list[str]:
        """Returns the names of a stream's events."""
        return [name for name, _ in named_events(self._answer("GET", path, {}))]

    def _answer(self, method: str, path: str, body: Json) -> httpx.Response:
        answer = self._http.request(method, f"/v1/{path}", json=body or None)
        answer.raise_for_status()
        return answer

    def response(self, **fields: object) -> Json:
        return self(
            "POST",
            "responses",
            model="ouzel-demo",
            **({"input": "Hello!", "temperature": 0} | fields),
        )

    def chat(self, labels: Json) -> Json:
        """Makes a stored chat with these labels."""
        messages = [{"role": "user", "content": "Hello!"}]
        return self(
            "POST",
            "chat/completions",
            model="ouzel-demo",
            messages=messages,
            store=True,
            metadata=labels,
        )

    def conversation(self) -> str:
        conversation_id: str = self("POST", "conversations", items=[SAID])["id"]
        return conversation_id


SAID: Json = {"type": "message", "role": "user", "content": "I am Olga."}
LONG: Json = {"background": True, "ignore_eos": True, "max_output_tokens": 3900}


def deleted(keep: Keeper) -> bool:
    made = keep.response()
    return bool(keep("DELETE", f"responses/{made['id']}")["deleted"]) and keep.is_gone(
        f"responses/{made['id']}"
    )


def cancelled(keep: Keeper) -> bool:
    return bool(
        keep("POST", f"responses/{keep.response(**LONG)['id']}/cancel")["status"] == "cancelled"
    )


def items_of_input(keep: Keeper) -> bool:
    second = keep.response(previous_response_id=keep.response()["id"])
    page = keep("GET", f"responses/{second['id']}/input_items?limit=2&order=asc")
    return [item["role"] for item in page["data"]] == ["user", "assistant"] and page["has_more"]


def counted(keep: Keeper) -> bool:
    count = keep("POST", "responses/input_tokens", model="ouzel-demo", input="Hello!")
    return bool(count["input_tokens"] == keep.response()["usage"]["input_tokens"])


def compacted(keep: Keeper) -> bool:
    short = keep("POST", "responses/compact", model="ouzel-demo", input="Count from 1 to 60.")
    continued = keep.response(input=short["output"])
    return bool(short["output"][-1]["type"] == "compaction" and continued["status"] == "completed")


def conversation_lives(keep: Keeper) -> bool:
    path = f"conversations/{keep.conversation()}"
    changed = keep("POST", path, metadata={"of": "owls"})
    is_changed = keep("GET", path) == changed
    return is_changed and bool(keep("DELETE", path)["deleted"]) and keep.is_gone(path)


def conversation_items(keep: Keeper) -> bool:
    path = f"conversations/{keep.conversation()}/items"
    [added] = keep("POST", path, items=[SAID])["data"]
    found, listed = keep("GET", f"{path}/{added['id']}"), keep("GET", path)["data"]
    keep("DELETE", f"{path}/{added['id']}")
    return found == added == listed[0] and keep.is_gone(f"{path}/{added['id']}")


def made_in_a_conversation(keep: Keeper) -> bool:
    conversation_id = keep.conversation()
    keep.response(conversation=conversation_id)
    listed = keep("GET", f"conversations/{conversation_id}/items?order=asc")["data"]
    return [item["role"] for item in listed] == ["user", "user", "assistant"]


def read(keep: Keeper) -> bool:
    made = keep.response()
    return keep("GET", f"responses/{made['id']}") == made


def replayed(keep: Keeper) -> bool:
    names = keep.names(f"responses/{keep.response()['id']}?stream=true&starting_after=1")
    return names[0] == "response.output_item.added" and names[-1] == "response.completed"


def chat_lives(keep: Keeper) -> bool:
    made = keep.chat({"of": "owls"})
    path = f"chat/completions/{made['id']}"
    changed = keep("POST", path, metadata={"of": "ouzels"})
    is_changed = keep("GET", path) == changed and changed["choices"] == made["choices"]
    return is_changed and bool(keep("DELETE", path)["deleted"]) and keep.is_gone(path)


def chats_listed(keep: Keeper) -> bool:
    made = keep.chat({"of": "jays"})
    [found] = keep("GET", "chat/completions?metadata[of]=jays")["data"]
    [message] = keep("GET", f"chat/completions/{made['id']}/messages")["data"]
    return bool(found["id"] == made["id"] and message["content"] == "Hello!")


OPERATIONS = (
    ("`GET /responses/{id}`", "what was answered", read),
    (
        "`GET /responses/{id}?stream=true&starting_after=1`",
        "the events from number 2 to the end",
        replayed,
    ),
    ("`DELETE /responses/{id}`", "then it is a 404", deleted),
    ("`POST /responses/{id}/cancel`", "a running response is cancelled", cancelled),
    ("`GET /responses/{id}/input_items`", "a page of the whole context", items_of_input),
    ("`POST /responses/input_tokens`", "what `usage` says of the same response", counted),
    ("`POST /responses/compact`", "a list that the next response takes", compacted),
    (
        "`POST /conversations`, `GET`, `POST` and `DELETE /conversations/{id}`",
        "found as changed; then a 404",
        conversation_lives,
    ),
    (
        "`POST` and `GET /conversations/{id}/items`, `GET` and `DELETE …/items/{id}`",
        "found, listed; then a 404",
        conversation_items,
    ),
    ("`conversation` in `POST /responses`", "it grows by input and output", made_in_a_conversation),
    (
        "`POST /chat/completions` with `store`, `GET`, `POST` and `DELETE /chat/completions/{id}`",
        "found as changed; then a 404",
        chat_lives,
    ),
    (
        "`GET /chat/completions?metadata[of]=jays`, `GET /chat/completions/{id}/messages`",
        "the chats with a label; the messages of the request",
        chats_listed,
    ),
)


def section(http: httpx.Client) -> str:
    keep, rows = Keeper(http), ""
    for operation, seen, holds in OPERATIONS:
        assert holds(keep), f"{operation} does not work"
        rows += f"| {operation} | works | {seen} |\n"
    return _INTRODUCTION + rows
