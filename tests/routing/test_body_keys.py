"""Routing reads keys from a body; the keys of a conversation's turns begin alike in every API."""

import json
from collections.abc import Callable
from itertools import pairwise

import pytest

from ouzel.responses.output_items import new_id
from ouzel.routing import RequestKeys, find_chain_root, make_body_keys
from ouzel.routing.bodies import MAX_BODY_BYTES, MAX_TEXT_BYTES, PICTURE_BYTES

SYSTEM = "You are a bird. " * 200
TEXTS = [
    f"{number} question and answer of a length of about three hundred. " * 5 for number in range(40)
]


def make_keys(body: object, **salt: str) -> RequestKeys:
    found = make_body_keys(json.dumps(body).encode(), **salt)
    assert found is not None
    return found


def messages(turn: int, *, system: bool = True) -> list[dict[str, object]]:
    """Returns the history of a chat up to the user's message of this turn."""
    said: list[dict[str, object]] = [
        {"role": "assistant" if place % 2 else "user", "content": text}
        for place, text in enumerate(TEXTS)
    ]
    first: dict[str, object] = {"role": "system", "content": SYSTEM}
    return [*([first] if system else []), *said[: 2 * turn + 1]]


def chat(turn: int) -> object:
    return {"model": "m", "temperature": turn / 10, "messages": messages(turn), "stream": True}


def chat_with_tools(turn: int) -> object:
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    return {"messages": messages(turn), "tools": tools, "model": "m"}


def completion(turn: int) -> object:
    return {"model": "m", "prompt": SYSTEM + "".join(TEXTS[: 2 * turn + 1])}


def completion_of_tokens(turn: int) -> object:
    return {"model": "m", "prompt": list(range(1000, 2000 + 300 * turn))}


def response(turn: int) -> object:
    return {
        "model": "m",
        "instructions": SYSTEM,
        "input": messages(turn, system=False),
        "store": False,
    }


def response_to_a_text(turn: int) -> object:
    return {"model": "m", "input": SYSTEM + "".join(TEXTS[: 2 * turn + 1])}


def anthropic(turn: int) -> object:
    """Makes a body whose cache mark moves to the newest message, as Claude Code does it."""
    history = messages(turn, system=False)
    text = history[-1]["content"]
    history[-1]["content"] = [
        {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}
    ]
    for message in history[:-1]:
        message["content"] = [{"type": "text", "text": message["content"]}]
    system = [{"type": "text", "text": SYSTEM, "cache_control": {"type": "ephemeral"}}]
    return {"model": "m", "max_tokens": 5, "system": system, "messages": history}


def lmi(turn: int) -> object:
    return {
        "inputs": SYSTEM + "".join(TEXTS[: 2 * turn + 1]),
        "parameters": {"max_new_tokens": 5 + turn},
    }


def lmi_chat(turn: int) -> object:
    return {"messages": messages(turn)}


def ollama(turn: int) -> object:
    return {"model": "m", "messages": messages(turn), "options": {"num_ctx": 5 + turn}}


SHAPES = [
    chat,
    chat_with_tools,
    completion,
    completion_of_tokens,
    response,
    response_to_a_text,
    anthropic,
    lmi,
    lmi_chat,
    ollama,
]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_keys_of_a_turn_begin_those_of_the_next(shape: Callable[[int], object]) -> None:
    turns = [make_keys(shape(turn)) for turn in range(20)]

    assert len({turn.session for turn in turns}) == 1
    for turn, following in pairwise(turns):
        assert following.blocks[: len(turn.blocks)] == turn.blocks
        assert following.num_tokens > turn.num_tokens
    assert len(turns[-1].blocks) > len(turns[0].blocks) > 2


@pytest.mark.parametrize("shape", SHAPES)
def test_the_keys_of_another_conversation_differ_from_the_first_difference_on(
    shape: Callable[[int], object],
) -> None:
    ours = json.dumps(shape(5))
    changed = ours.replace(TEXTS[0][:40], TEXTS[0][:40].upper()).replace("1001,", "1002,")
    assert changed != ours
    theirs = make_keys(json.loads(changed))

    assert theirs.blocks[-1] != make_keys(shape(5)).blocks[-1]
    # In the other shapes the first KiB, which is the same, identifies the session.
    if shape not in (completion, lmi, response_to_a_text):
        assert theirs.session != make_keys(shape(5)).session


def test_an_ollama_prompt_after_a_context_shares_the_context() -> None:
    first = make_keys({"model": "m", "prompt": "go on", "context": list(range(10_000, 11_000))})
    second = make_keys({"model": "m", "prompt": "and on", "context": list(range(10_000, 12_000))})

    num_common = sum(a == b for a, b in zip(first.blocks, second.blocks, strict=False))
    assert num_common == len(first.blocks) > 5


@pytest.mark.parametrize(
    "change",
    [
        {"model": "other"},
        {"cache_salt": "s"},
        {"tools": [{}]},
        {"adapters": "a"},
        {"instructions": "x"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_fields_before_the_messages_change_all_keys(change: dict[str, object]) -> None:
    body = {"model": "m", "messages": messages(3)}

    assert not set(make_keys(body).blocks) & set(make_keys(body | change).blocks)
    assert make_keys(body).session != make_keys(body | change).session


def test_keys_under_different_salts_have_nothing_in_common() -> None:
    ours, theirs = make_keys(chat(3), salt="key-1"), make_keys(chat(3), salt="key-2")

    assert not set(ours.blocks) & set(theirs.blocks)
    assert ours.session != theirs.session


def test_a_cache_key_of_the_clients_is_the_session() -> None:
    one, two = (
        {"messages": messages(turn)[turn:], "prompt_cache_key": "thread-1"} for turn in (1, 2)
    )

    assert make_keys(one).session == make_keys(two).session


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"[1, 2]",
        b"null",
        b"{}",
        b'{"messages": {}}',
        b'{"messages": null, "prompt": 5}',
        b'{"messages": [{"role": "user"}',
        b'{"input": [1, 2',
        b'{"conversation": 5}',
        b'{"previous_response_id": 5}',
        b'{"messages": ' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"prompt": "' + b"a" * MAX_BODY_BYTES + b'"}',
    ],
    ids=lambda body: repr(body[:40]),
)
def test_a_body_that_cannot_be_read_has_no_keys(body: bytes) -> None:
    assert make_body_keys(body) is None


def test_cache_marks_are_left_out_everywhere() -> None:
    marked, plain = (
        f'{{"messages": [{{{first}"role": "user", "content": "{"a" * 3000}"{last}}}]}}'.encode()
        for first, last in (
            (
                '"cache_control": {"type": "ephemeral"}, ',
                ', "cache_control": {"type": "ephemeral", "ttl": "1h"}',
            ),
            ("", ""),
        )
    )
    in_a_text = plain.replace(b"aaa", rb"\"cache_control\": {}", 1)

    of_marked, of_plain, of_text = (make_body_keys(body) for body in (marked, plain, in_a_text))
    assert of_marked is not None and of_plain is not None and of_text is not None
    assert (of_marked.session, of_marked.blocks) == (of_plain.session, of_plain.blocks)
    assert of_text.blocks != of_plain.blocks


def test_a_byte_order_mark_changes_nothing() -> None:
    body = json.dumps(chat(1)).encode()

    assert make_body_keys(b"\xef\xbb\xbf" + body) == make_body_keys(body)


def test_lengths_are_estimated_in_tokens() -> None:
    found = make_keys({"prompt": "word " * 4000})

    assert found.num_tokens == pytest.approx(5000, rel=0.01)
    assert found.num_tokens_in(len(found.blocks)) <= found.num_tokens


def test_a_long_text_has_few_keys_that_tell_it_from_another() -> None:
    text = "".join(f"line {number} of a long text\n" for number in range(30_000))
    found = make_keys({"prompt": text})
    changed = make_keys({"prompt": text.replace("line 10000 ", "line x ")})

    assert len(found.blocks) < 64 * 5
    assert found.blocks != changed.blocks


def test_text_beyond_the_limit_counts_but_has_no_keys() -> None:
    text = "many words " * (MAX_TEXT_BYTES // 10)
    found, longer = make_keys({"prompt": text}), make_keys({"prompt": text + text})

    assert found.blocks == longer.blocks
    assert longer.num_tokens == pytest.approx(2 * found.num_tokens, rel=0.01)


def test_a_picture_counts_as_its_tokens_and_tells_prompts_apart() -> None:
    def seen(letter: str) -> RequestKeys:
        url = "data:image/png;base64," + letter * 2_000_000
        parts = [
            {"type": "image_url", "image_url": {"url": url}},
            {"type": "text", "text": "What is it?"},
        ]
        return make_keys({"messages": [{"role": "user", "content": parts}]})

    assert seen("a").num_tokens < PICTURE_BYTES // 2
    assert seen("a").blocks != seen("b").blocks
    assert seen("a").session != seen("b").session


def test_the_responses_of_a_chain_have_its_session() -> None:
    first = new_id("resp")
    second = new_id("resp", continues=first)
    other = new_id("resp")
    of_first, of_second, of_other = (
        make_keys({"input": text, "previous_response_id": continued})
        for text, continued in (("next", first), ("and then", second), ("next", other))
    )

    assert of_first.session == of_second.session != of_other.session
    assert of_first.is_continued
    assert of_first.blocks == ()


def test_a_conversation_is_a_session_as_are_the_responses_in_it() -> None:
    conversation = new_id("conv")
    response_id = new_id("resp", continues=conversation)
    sessions = {
        make_keys({"input": "a", "conversation": conversation}).session,
        make_keys({"input": "b", "conversation": {"id": conversation}}).session,
        make_keys({"input": "c", "previous_response_id": response_id}).session,
    }

    assert len(sessions) == 1


@pytest.mark.parametrize(
    "chained_id",
    [new_id("resp"), new_id("conv"), "resp_abc", "", "thread-\ud800"],
    ids=["response", "conversation", "short", "empty", "no text"],
)
def test_the_root_of_an_id_is_read_from_our_ids_only(chained_id: str) -> None:
    continued = new_id("resp", continues=chained_id)

    assert continued.removeprefix("resp_").startswith(find_chain_root(chained_id))
    assert find_chain_root(continued) == find_chain_root(chained_id)
