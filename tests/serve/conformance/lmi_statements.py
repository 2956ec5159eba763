"""Lists the statements of LMI's page on chats, and of the pages that it links to."""

from typing import Any  # JSON

import httpx

from tests.peer_documents.peer import PICTURE, Peer
from tests.peer_documents.streams import read_json_lines
from tests.serve.answers import Json
from tests.serve.conformance.effects import WEATHER
from tests.serve.conformance.statements import EVERYWHERE, Statement, answer, is_refused, post

ENDLESS: Json = {"ignore_eos": True}
CALLING: Json = {"tools": [WEATHER], "tool_choice": "required", "max_tokens": 60}
NOT_HERE: Json = {"watermark": True, "cached_prompt": "x"}


def ask(
    peer: Peer, said: object = "Count from 1 to 60.", *, model: str = "llama3", **fields: Any
) -> httpx.Response:
    """Sends a chat to the path that speaks LMI."""
    path = "/v1/chat/completions" if peer.profile == "lmi" else "/invocations"
    body = {"messages": [{"role": "user", "content": said}], "temperature": 0}
    return post(peer, f"{path}?model_name={model}", body | fields)


def invoke(peer: Peer, **parameters: object) -> httpx.Response:
    """Sends a body in the standard schema."""
    return post(peer, "/invocations", {"inputs": "Hi", "parameters": parameters})


def lines(peer: Peer, **fields: Any) -> list[Json]:
    return read_json_lines(ask(peer, stream=True, max_tokens=5, **fields))


def chooses_by_messages(peer: Peer) -> bool:
    chat = answer(post(peer, "/invocations", {"messages": [{"role": "user", "content": "Hi"}]}))
    return "choices" in chat and "generated_text" in answer(invoke(peer))


def has_30_tokens(peer: Peer) -> bool:
    return bool(answer(ask(peer, **ENDLESS))["usage"]["completion_tokens"] == 30)


def supports_images(peer: Peer, url: str) -> bool:
    parts = [
        {"type": "text", "text": "What is on the picture?"},
        {"type": "image_url", "image_url": {"url": url}},
    ]
    response = ask(peer, parts, model="llava")
    return response.status_code == 200 and "red circle" in response.text


def sees_a_listed_url_only(peer: Peer) -> bool:
    parts = [{"type": "image_url", "image_url": {"url": "http://192.0.2.1/a.png"}}]
    return supports_images(peer, f"{peer.pictures_root}/{PICTURE}") and is_refused(
        ask(peer, parts, model="llava"), "allowed"
    )


def has_the_keys_of_the_page_alone(peer: Peer) -> bool:
    return answer(ask(peer)).keys() == {"id", "object", "created", "choices", "usage"}


def has_lists_in_streams(peer: Peer) -> bool:
    logprobs = lines(peer, logprobs=True, top_logprobs=1)[0]["choices"][0]["logprobs"]
    return isinstance(logprobs, list) and isinstance(
        logprobs[0]["content"][0]["top_logprobs"][0]["token"], float
    )


def has_objects_in_streams(peer: Peer) -> bool:
    logprobs = lines(peer, logprobs=True, top_logprobs=1)[0]["choices"][0]["logprobs"]
    return isinstance(logprobs["content"][0]["top_logprobs"][0]["token"], str)


def calls(peer: Peer) -> bool:
    response = ask(peer, **CALLING)
    return response.status_code == 200 and bool(
        response.json()["choices"][0]["message"].get("tool_calls")
    )


def reads_csv(peer: Peer) -> bool:
    body = 'inputs\nOnce upon a time\n"Well, well"\n'
    headers = {"content-type": "text/csv"}
    response = httpx.post(f"{peer.root}/invocations", content=body, headers=headers, timeout=None)
    return response.status_code == 200 and len(response.json()) == 2


def looks_for_adapters(peer: Peer) -> bool:
    """No server of the tests has one."""
    body = {"messages": [{"role": "user", "content": "Hi"}]}
    bodies = (body | {"adapters": "poet"}, {"inputs": "Hi", "adapters": ["poet"]})
    answers = [post(peer, "/invocations", body) for body in bodies]
    return all(response.status_code == 424 and "poet" in response.text for response in answers)


def honours_parameters(peer: Peer) -> bool:
    return any(invoke(peer, **{name: value}).status_code == 200 for name, value in NOT_HERE.items())


def refuses_parameters(peer: Peer) -> bool:
    return all(is_refused(invoke(peer, **{name: value}), name) for name, value in NOT_HERE.items())


STATEMENTS = (
    Statement(
        "`messages` in a body chooses the chat schema, on the same path as the standard one",
        "D",
        chooses_by_messages,
    ),
    Statement("`max_tokens` is 30 unless told otherwise", "D", has_30_tokens),
    Statement(
        "a picture is base64 without a scheme",
        "D",
        lambda peer: supports_images(peer, peer.picture_base64()),
    ),
    Statement(
        "a picture is fetched from any URL",
        "D",
        lambda peer: not sees_a_listed_url_only(peer),
        (
            "the server may reach hosts that its clients cannot: `--allowed-media-domains "
            "all` opens public ones"
        ),
        sees_a_listed_url_only,
        EVERYWHERE,
    ),
    Statement(
        "answers have `id`, `object`, `created`, `choices`, `usage`, and no `model`",
        "D",
        has_the_keys_of_the_page_alone,
    ),
    Statement("streams are `application/jsonlines`", "D", lambda peer: len(lines(peer)) > 1),
    Statement(
        "in streams `logprobs` is a list, and `top_logprobs[].token` a number",
        "D",
        has_lists_in_streams,
        (
            "a defect; `--lmi-strict-logprobs`, which the server with the profile had, "
            "repeats it for clients that read it"
        ),
        has_objects_in_streams,
    ),
    Statement(
        "function calling is not available",
        "D",
        lambda peer: not calls(peer),
        "it works",
        calls,
        EVERYWHERE,
    ),
    Statement("standard schema: bodies in CSV", "D", reads_csv),
    Statement("`adapters` names the adapter; an unknown name is an error", "D", looks_for_adapters),
    Statement(
        "standard schema: `watermark`, `cached_prompt`",
        "D",
        honours_parameters,
        (
            "refused with a 424 that names the parameter: each would change the answer, and "
            "is not here"
        ),
        refuses_parameters,
        EVERYWHERE,
    ),
)
