"""Checks whether the statements of OVMS's pages on chats hold."""

from tests.peer_documents.peer import PICTURE, Peer
from tests.serve.answers import Json
from tests.serve.conformance.effects import WEATHER, WILD
from tests.serve.conformance.statements import (
    LEFT_OUT,
    answer,
    chat,
    chunks,
    is_refused,
    streamed_text,
    texts,
)

IMPOSSIBLE: Json = {"type": "json_schema", "json_schema": {"name": "any", "schema": {"type": "no"}}}
UNIQUE: Json = {
    "type": "json_schema",
    "json_schema": {
        "name": "list",
        "schema": {"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True},
    },
}
CALLING: Json = {"tools": [WEATHER], "tool_choice": "required", "max_tokens": 60}
THINKING: Json = {"chat_template_kwargs": {"enable_thinking": True}, "max_tokens": 60}
UNREAD: Json = {"chat_template_kwargs": {"unread_by_the_template": 1}}
SAMPLED: Json = {name: value for name, value in WILD.items() if name not in ("top_k", "seed")}
UNSURE: Json = SAMPLED | {
    "top_k": -1,
    "repetition_penalty": 2,
}  # no two answers are alike by chance


def has_three_paths(peer: Peer) -> bool:
    paths = ("/v3/chat/completions", "/v1/chat/completions", "/v3/v1/chat/completions")
    return all(chat(peer, path=path).status_code == 200 for path in paths)


def starts_with_the_role(peer: Peer) -> bool:
    delta: Json = chunks(peer)[0]["choices"][0]["delta"]
    return delta == {"role": "assistant", "content": None}


def has_role_and_text_first(peer: Peer) -> bool:
    delta: Json = chunks(peer)[0]["choices"][0]["delta"]
    return delta.keys() == {"role", "content"}


def ends_with_text_and_reason(peer: Peer) -> bool:
    last = chunks(peer)[-1]["choices"][0]
    return last["finish_reason"] == "length" and bool(last["delta"].get("content"))


def ends_with_the_reason_alone(peer: Peer) -> bool:
    last = chunks(peer)[-1]["choices"][0]
    return bool(last["finish_reason"] == "length" and last["delta"] == {})


def reasons_first(peer: Peer) -> bool:
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks(peer, **THINKING)]
    kinds = [
        "reasoning" if "reasoning_content" in delta else "text"
        for delta in deltas
        if delta.get("role") is None
    ]
    return kinds[0] == "reasoning" and kinds == sorted(kinds)


def takes_pictures(peer: Peer) -> bool:
    urls = (
        f"data:image/jpeg;base64,{peer.picture_base64()}",
        f"{peer.pictures_root}/{PICTURE}",
        str(peer.pictures / PICTURE),
    )
    asked = {"type": "text", "text": "What is on the picture?"}
    for url in urls:
        content = [asked, {"type": "image_url", "image_url": {"url": url}}]
        if (
            "red circle"
            not in texts(peer, model="llava", messages=[{"role": "user", "content": content}])[0]
        ):
            return False
    return True


def takes_no_other_host(peer: Peer) -> bool:
    content = [{"type": "image_url", "image_url": {"url": "http://192.0.2.1/a.png"}}]
    return is_refused(
        chat(peer, model="llava", messages=[{"role": "user", "content": content}]), "image_url"
    )


def takes_messages_without_content(peer: Peer) -> bool:
    bodies = ([{"role": "user"}], [{"role": "user", "content": []}])
    return all(chat(peer, messages=messages).status_code == 200 for messages in bodies)


def refuses_messages_without_content(peer: Peer) -> bool:
    return is_refused(chat(peer, messages=[{"role": "user", "content": []}]), "content")


def counts_in_streams(peer: Peer) -> bool:
    *others, last = chunks(peer, stream_options={"include_usage": True})
    return (
        not last["choices"]
        and last["usage"]["completion_tokens"] == 20
        and {o["usage"] for o in others} == {None}
    )


def shows_stop_in_streams(peer: Peer) -> bool:
    [whole] = texts(peer)
    return streamed_text(peer, stop=whole[6:9]).endswith(whole[6:9])


def hides_stop_in_streams(peer: Peer) -> bool:
    [whole] = texts(peer)
    fields = {"stop": whole[6:9], "include_stop_str_in_output": False}
    return streamed_text(peer, **fields) == whole[: whole.index(whole[6:9])]


def has_no_cap_of_4000(peer: Peer) -> bool:
    """The demo model's context is 4096 tokens; a stop string ends the answer at its begin."""
    return chat(peer, ignore_eos=True, max_tokens=4001, stop=[" ", ",", "1"]).status_code == 200


def takes_structural_tags(peer: Peer) -> bool:
    return texts(peer, response_format={"type": "const_string", "value": "Hello World!"}) == [
        "Hello World!"
    ]


def answers_without_the_format(peer: Peer) -> bool:
    response = chat(peer, response_format=IMPOSSIBLE)
    return response.status_code == 200 and texts(peer, response_format=IMPOSSIBLE) == texts(peer)


def answers_without_the_keyword(peer: Peer) -> bool:
    """The rest of the schema counts."""
    response = chat(peer, response_format=UNIQUE)
    return response.status_code == 200 and response.json()["choices"][0]["message"][
        "content"
    ].startswith("[")


def refuses_reserved_names(peer: Peer) -> bool:
    names = ("messages", "eos_token", "bos_token")
    return all(is_refused(chat(peer, chat_template_kwargs={name: ""}), name) for name in names)


def shows_the_raw_text(peer: Peer) -> bool:
    response = chat(peer, **CALLING, skip_special_tokens=False)
    if response.status_code != 200:
        return False
    message = response.json()["choices"][0]["message"]
    [thought] = texts(peer, **THINKING, skip_special_tokens=False)
    return (
        "<tool_call>" in (message["content"] or "")
        and not message.get("tool_calls")
        and "</think>" in thought
    )


def shows_special_tokens_beside_calls(peer: Peer) -> bool:
    message = answer(chat(peer, **CALLING, skip_special_tokens=False))["choices"][0]["message"]
    return bool(message["tool_calls"])


def has_lists_and_texts(peer: Peer) -> bool:
    """The message of a text has a list of calls, and the message of a call has a text."""
    text, call = (answer(chat(peer, **fields))["choices"][0]["message"] for fields in ({}, CALLING))
    return text.get("tool_calls") == [] and call["content"] == "" and len(call["tool_calls"]) == 1


def has_lists_or_texts(peer: Peer) -> bool:
    text, call = (answer(chat(peer, **fields))["choices"][0]["message"] for fields in ({}, CALLING))
    return "tool_calls" not in text and call["content"] is None and len(call["tool_calls"]) == 1


def has_beams(peer: Peer) -> bool:
    return len(set(texts(peer, best_of=4, n=4))) == 4


def has_samples(peer: Peer) -> bool:
    """Greedy samples are alike."""
    return len(set(texts(peer, best_of=4, n=4))) == 1


def uses_40(peer: Peer) -> bool:
    by_top_k = [
        texts(peer, **SAMPLED, seed=6, **fields) for fields in ({}, {"top_k": 40}, {"top_k": -1})
    ]
    return by_top_k[0] == by_top_k[1] != by_top_k[2]


def uses_all_tokens(peer: Peer) -> bool:
    return texts(peer, **SAMPLED, seed=6) == texts(peer, **SAMPLED, seed=6, top_k=-1)


def has_random_seeds(peer: Peer) -> bool:
    return texts(peer, **UNSURE) != texts(peer, **UNSURE)


def has_seed_0(peer: Peer) -> bool:
    return texts(peer, **UNSURE) == texts(peer, **UNSURE, seed=0)


def reads_generation_config(peer: Peer) -> bool:
    """The demo model's file says temperature 0, and the built-in temperature is 1."""
    unsure: Json = {"repetition_penalty": 2, "ignore_eos": True, "max_tokens": 80, "seed": 6}
    by_file, greedy, sampled = (
        texts(peer, **unsure, temperature=value) for value in (LEFT_OUT, 0, 1)
    )
    return by_file == greedy != sampled


def wants_a_model(peer: Peer) -> bool:
    return chat(peer, model=LEFT_OUT).status_code == 412
