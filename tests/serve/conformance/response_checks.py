"""Checks whether the statements of OVMS's page on responses hold."""

from typing import Any  # JSON

from tests.peer_documents.peer import Peer
from tests.serve.answers import Json
from tests.serve.conformance.chat_checks import IMPOSSIBLE, SAMPLED
from tests.serve.conformance.effects import WEATHER
from tests.serve.conformance.statements import (
    answer,
    events,
    output_texts,
    respond,
)

THINKING: Json = {"chat_template_kwargs": {"enable_thinking": True}, "max_output_tokens": 100}
FLAT_TOOL: Json = {"type": "function"} | WEATHER["function"]
UNSURE: Json = {"top_k": -1, "repetition_penalty": 2}  # no two answers are alike by chance
CALLING: Json = {"tools": [FLAT_TOOL], "tool_choice": "required", "max_output_tokens": 60}
SHORT: Json = {"max_output_tokens": 3}


def streamed_text(peer: Peer, **fields: Any) -> str:
    return "".join(
        event["delta"]
        for event in events(peer, **fields)
        if event["type"] == "response.output_text.delta"
    )


def names(peer: Peer, **fields: Any) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events(peer, **fields)]


def item_types(peer: Peer, **fields: Any) -> list[str]:
    return [item["type"] for item in answer(respond(peer, **fields))["output"]]


def shows_stop_in_streams(peer: Peer) -> bool:
    [whole] = output_texts(peer)
    return streamed_text(peer, stop=whole[6:9]).endswith(whole[6:9])


def hides_stop_in_streams(peer: Peer) -> bool:
    [whole] = output_texts(peer)
    fields = {"stop": whole[6:9], "include_stop_str_in_output": False}
    return streamed_text(peer, **fields) == whole[: whole.index(whole[6:9])]


def thinks_for_any_effort(peer: Peer) -> bool:
    asked = [
        {"reasoning": {"effort": effort}, "max_output_tokens": 100}
        for effort in ("low", "medium", "high")
    ]
    return all(item_types(peer, **fields)[0] == "reasoning" for fields in asked)


def lets_kwargs_win(peer: Peer) -> bool:
    fields: Json = {
        "reasoning": {"effort": "high"},
        "chat_template_kwargs": {"enable_thinking": False},
    }
    return respond(peer, **fields).status_code == 200 and item_types(peer, **fields) == ["message"]


def refuses_a_contradiction(peer: Peer) -> bool:
    fields: Json = {
        "reasoning": {"effort": "high"},
        "chat_template_kwargs": {"enable_thinking": False},
    }
    return respond(peer, **fields).status_code == 400


def takes_both_forms_of_tools(peer: Peer) -> bool:
    return all(
        item_types(peer, **CALLING | {"tools": [tool]}) == ["function_call"]
        for tool in (FLAT_TOOL, WEATHER)
    )


def takes_both_forms_of_names(peer: Peer) -> bool:
    choices = (
        {"type": "function", "function": {"name": "get_weather"}},
        {"type": "function", "name": "get_weather"},
    )
    return all(
        item_types(peer, **CALLING | {"tool_choice": choice}) == ["function_call"]
        for choice in choices
    )


def has_beams(peer: Peer) -> bool:
    return len(set(output_texts(peer, best_of=4, n=4))) == 4


def has_samples(peer: Peer) -> bool:
    """Greedy samples are alike."""
    return len(set(output_texts(peer, best_of=4, n=4))) == 1


def sampled(peer: Peer, **fields: Any) -> list[str]:
    known = {name: value for name, value in SAMPLED.items() if name != "max_tokens"}
    return output_texts(peer, **known, max_output_tokens=80, **fields)


def uses_40(peer: Peer) -> bool:
    by_top_k = [sampled(peer, seed=6, **fields) for fields in ({}, {"top_k": 40}, {"top_k": -1})]
    return by_top_k[0] == by_top_k[1] != by_top_k[2]


def uses_all_tokens(peer: Peer) -> bool:
    return sampled(peer, seed=6) == sampled(peer, seed=6, top_k=-1)


def has_seed_0(peer: Peer) -> bool:
    return sampled(peer, **UNSURE) == sampled(peer, **UNSURE, seed=0)


def has_random_seeds(peer: Peer) -> bool:
    return sampled(peer, **UNSURE) != sampled(peer, **UNSURE)


def has_an_id_of_the_time(peer: Peer) -> bool:
    made = answer(respond(peer))
    return bool(made["id"] == f"resp-{made['created_at']}")


def has_an_id_of_chance(peer: Peer) -> bool:
    first, second = (answer(respond(peer))["id"] for _ in range(2))
    return bool(first != second and first.startswith("resp_") and len(first) == 53)


def hardcodes_fields(peer: Peer) -> bool:
    made = answer(respond(peer, store=False, parallel_tool_calls=False, metadata={"a": "b"}))
    return bool(made["store"] and made["parallel_tool_calls"] and not made["metadata"])


def says_the_truth(peer: Peer) -> bool:
    asked: Json = {"store": False, "parallel_tool_calls": False, "metadata": {"a": "b"}}
    made = answer(respond(peer, **asked))
    return all(made[name] == value for name, value in asked.items())


def echoes_only_given(peer: Peer) -> bool:
    return "top_p" not in answer(respond(peer)) and bool(
        answer(respond(peer, top_p=0.5))["top_p"] == 0.5
    )


def echoes_always(peer: Peer) -> bool:
    return bool(
        answer(respond(peer))["top_p"] == 1.0 and answer(respond(peer, top_p=0.5))["top_p"] == 0.5
    )


def times_only_completed(peer: Peer) -> bool:
    made = answer(respond(peer, input="Hello!", max_output_tokens=100))
    return (
        "completed_at" not in answer(respond(peer, **SHORT))
        and made["completed_at"] >= made["created_at"]
    )


def has_a_null_time(peer: Peer) -> bool:
    return answer(respond(peer, **SHORT))["completed_at"] is None


def reason(peer: Peer) -> str:
    word: str = answer(respond(peer, **SHORT))["incomplete_details"]["reason"]
    return word


def reasoning(peer: Peer, **fields: Any) -> Json:
    item: Json = answer(respond(peer, **THINKING, **fields))["output"][0]
    assert item["type"] == "reasoning"
    return item


def summarizes(peer: Peer) -> bool:
    summary = reasoning(peer)["summary"]
    return [part["type"] for part in summary] == ["summary_text"] and summary[0]["text"] != ""


def has_reasoning_text(peer: Peer) -> bool:
    item = reasoning(peer)
    return [part["type"] for part in item["content"]] == ["reasoning_text"] and item[
        "summary"
    ] == []


def has_events_of_a_summary(peer: Peer) -> bool:
    seen = names(peer, **THINKING)
    order = [
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
    ]
    order += ["reasoning_summary_part.done", "output_item.done"]
    places = [seen.index(name) for name in order if name in seen]
    return len(places) == len(order) and places == sorted(places)


def has_events_of_reasoning(peer: Peer) -> bool:
    seen = names(peer, **THINKING)
    return (
        seen.index("reasoning_text.delta")
        < seen.index("reasoning_text.done")
        < seen.index("output_item.done")
    )


def puts_the_message_at_1(peer: Peer) -> bool:
    deltas = [
        event for event in events(peer, **THINKING) if event["type"] == "response.output_text.delta"
    ]
    return {event["output_index"] for event in deltas} == {1}


def names_the_call(peer: Peer) -> bool:
    seen = events(peer, **CALLING)
    added = next(event["item"] for event in seen if event["type"] == "response.output_item.added")
    deltas = [event for event in seen if event["type"] == "response.function_call_arguments.delta"]
    return {event.get("call_id") for event in deltas} == {added["call_id"]}


def counts_events(peer: Peer) -> bool:
    numbers = [event["sequence_number"] for event in events(peer)]
    return numbers == sorted(set(numbers))


def begins_with_the_id(peer: Peer) -> bool:
    created, in_progress, *_, last = events(peer)
    kinds = (created["type"], in_progress["type"]) == ("response.created", "response.in_progress")
    return kinds and created["response"]["id"] == last["response"]["id"]


def answers_without_the_format(peer: Peer) -> bool:
    response = respond(peer, response_format=IMPOSSIBLE)
    return response.status_code == 200 and output_texts(
        peer, response_format=IMPOSSIBLE
    ) == output_texts(peer)
