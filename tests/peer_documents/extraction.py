"""Extracts a document's facts: requests, snippets, examples, names of fields, orders of events."""

import json
import re
from typing import Any  # JSON

from tests.peer_documents.curl import find_curl_lines
from tests.peer_documents.shapes import build_shape
from tests.peer_documents.tables import field_tables, parameter_tables, read_bullets_after

Json = dict[str, Any]

_EVENT_TABLES = {
    "standard": "Standard text generation events",
    "reasoning": "Reasoning events",
    "function_call": "Function call events",
}
_EVENT_KEYS = {  # a phrase of the description, and the key that an event with this phrase has
    r"output_index": "output_index",
    r"content_index": "content_index",
    r"summary_index": "summary_index",
    r"item_id": "item_id",
    r", and call_id": "call_id",
    r"item object": "item",
    r"part object": "part",
    r"response object": "response",
    r"text delta": "delta",
    r"full accumulated (?:reasoning )?text": "text",
    r"full accumulated arguments": "arguments",
}
_EXAMPLES = (  # the first entry whose keys an object has gives the object's name
    ("response", {"output", "status"}),
    ("completion", {"choices", "usage"}),
    ("chunk", {"choices"}),
    ("message", {"role", "content"}),
    ("choice", {"index", "message"}),
    ("stream_choice", {"index", "delta"}),
    ("logprobs", {"content"}),
    ("top_logprob", {"token", "logprob"}),
    ("usage", {"usage"}),
)


def extract_facts(text: str) -> Json:
    request, response = _halves(text)
    is_lmi = "| Field Name" in text
    tables = field_tables if is_lmi else parameter_tables
    facts: Json = {
        "requests": list(find_curl_lines(text)),
        "snippets": _snippets(text),
        "messages": _messages(text),
        "examples": _examples(text),
        "stream": _data_lines(text),
        "request_fields": _ordered(tables(request)),
        "unsupported_request_fields": read_bullets_after(request, "Unsupported params"),
        "response_fields": [] if is_lmi else _ordered(tables(response)),
        "unsupported_response_fields": read_bullets_after(response, "Unsupported"),
    }
    if is_lmi:
        facts["objects"] = _objects(response)
    if "Streaming events" in response:
        facts["events"] = {name: _events(response, title) for name, title in _EVENT_TABLES.items()}
    return {name: value for name, value in facts.items() if value}


def _halves(text: str) -> tuple[str, str]:
    """Divides the document at the start of the section about responses."""
    [title] = re.findall(r"^(?:#+ )?Response(?: Schema|#)?$", text, re.M)
    request, response = re.split(rf"^{re.escape(title)}$", text, flags=re.M)
    return request, response


def _ordered(tables: Any) -> list[str]:
    return list(dict.fromkeys(name for table in tables for name in table))


def _snippets(text: str) -> list[str]:
    return re.findall(
        r"^((?:from openai .*\n.*\n)?response = client\.[\w.]+\(\n(?:    .*\n)+\))", text, re.M
    )


def _find_objects(text: str) -> list[Json]:
    """Returns the JSON objects whose braces stand at the beginnings of lines."""
    blocks = re.findall(r"^\{\n.*?^\}", text, re.M | re.S)
    blocks += [f"{{{block}}}" for block in re.findall(r'^"\w+":\{\n.*?^\}', text, re.M | re.S)]
    return [json.loads(block) for block in blocks]


def _example_name(value: Json) -> str:
    return next(name for name, keys in _EXAMPLES if keys <= value.keys())


def _examples(text: str) -> dict[str, list[Json]]:
    """Returns the shapes of the example answers by the kind of answer."""
    shapes: dict[str, list[Json]] = {}
    for value in _find_objects(text):
        name = _example_name(value)
        if name != "message":
            shapes.setdefault(name, []).append(build_shape(value))
    return shapes


def _messages(text: str) -> list[Json]:
    """Returns the example messages that the document shows outside of a request."""
    return [value for value in _find_objects(text) if _example_name(value) == "message"]


def _data_lines(text: str) -> list[Any]:
    """Returns the shapes of the events of an example stream; "[DONE]" marks the end."""
    lines = re.findall(r"^data: (.*)$", text, re.M)
    return [line if line == "[DONE]" else build_shape(json.loads(line)) for line in lines]


def _objects(text: str) -> dict[str, list[str]]:
    """Returns the field names of each object that has a table, by the object's title.

    The two tables of answers have no title: the first is "completion", the second "chunk".
    """
    titles = iter(("completion", "chunk"))
    found, title = {}, ""
    for section in re.split(r"^(?=#+ )", text, flags=re.M):
        heading = re.match(r"#+ (.*)", section)
        title = heading[1] if heading else ""
        for names in field_tables(section):
            found[title or next(titles)] = names
    return found


def _events(text: str, title: str) -> list[Json]:
    rows = (
        re.split(rf"^{title}", text, flags=re.M)[1]
        .split("Event When emitted Description")[1]
        .strip()
    )
    events = []
    for row in rows.split("\n\n")[0].splitlines():
        name, description = row.split(" ", 1)
        contained = description.split("Contains")[1] if "Contains" in description else ""
        keys = [key for phrase, key in _EVENT_KEYS.items() if re.search(phrase, contained)]
        events.append({"event": name, "keys": keys})
    return events
