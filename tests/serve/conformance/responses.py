"""Lists the parameters and probes of /v1/responses."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import httpx

from ouzel.responses.items.packed_text import REASONING
from tests.api.responses.strict import named_events
from tests.serve.answers import Json
from tests.serve.conformance.asking import QUESTION, Asker, Endpoint, openai_param, ovms_param
from tests.serve.conformance.chats import OVMS_OWN_PROBES, PROBES
from tests.serve.conformance.effects import COUNT_TO_2, SHAPES, text, tokens
from tests.serve.conformance.probe import Probe

_INTRODUCTION = """
## /v1/responses

This table has every parameter of OVMS's page on responses (**E**, 2026), and of its list of
unsupported parameters of OpenAI (**F**).

| parameter | in | unary | streamed | observation |
|---|---|---|---|---|
"""


def as_chat(response: httpx.Response) -> Json:
    """Converts a response to a chat's answer, which the probes of chats read."""
    if response.headers["content-type"] == "application/json":
        return _as_chat(response.json(), num_chunks=1)
    events = named_events(response)
    return _as_chat(json.loads(events[-1][1])["response"], num_chunks=len(events))


def _as_chat(answer: Json, *, num_chunks: int) -> Json:
    messages = [item for item in answer["output"] if item["type"] == "message"]
    calls = [item for item in answer["output"] if item["type"] == "function_call"]
    choices = []
    for message in messages or [{"content": [{"text": "", "logprobs": []}]}]:
        [part] = message["content"]
        choices.append(
            {
                "message": {
                    "content": part["text"],
                    "tool_calls": [{"function": call} for call in calls],
                },
                "logprobs": {"content": part["logprobs"]} if part["logprobs"] else None,
                "finish_reason": "stop" if answer["status"] == "completed" else "length",
            }
        )
    counted = answer["usage"] or {"input_tokens": 0, "output_tokens": 0}  # it has only begun
    usage = {
        "prompt_tokens": counted["input_tokens"],
        "completion_tokens": counted["output_tokens"],
    }
    return answer | {"choices": choices, "usage": usage, "num_chunks": num_chunks}


RESPONSES = Endpoint(
    "/v1/responses",
    {"model": "ouzel-demo"},
    openai_param,
    as_chat,
    prompt="input",
    streaming={"stream": True},
)

OVMS_RESPONSES = replace(RESPONSES, path="/v3/responses", refused_param=ovms_param)

_OVMS_INTRODUCTION = """
## With --profile ovms: responses

This table has the parameters of E and F on `/v3/responses` of a server with that profile.

| parameter | in | unary | streamed | observation |
|---|---|---|---|---|
"""

AS_IN_CHATS = """
    model stop ignore_eos include_stop_str_in_output logprobs response_format tools tool_choice
    chat_template_kwargs n best_of length_penalty temperature top_p top_k repetition_penalty
    frequency_penalty presence_penalty seed num_assistant_tokens assistant_confidence_threshold
    max_ngram_size
"""
SUMMARY: Json = {"reasoning": {"summary": "auto"}}
NUM_ASSISTANT_TOKENS = Probe(  # a usage of OpenAI's responses has no place for guesses
    "num_assistant_tokens",
    "E",
    {"num_assistant_tokens": 5},
    "the same answer, by its nature",
    lambda ask: (
        text(ask(num_assistant_tokens=0)) == text(ask(num_assistant_tokens=5)) == text(ask())
    ),
)


def repeated(name: str, value: object) -> Callable[[Asker], bool]:
    return lambda ask: bool(ask(**{name: value})[name] == value)


def longer_prompt(ask: Asker, **fields: object) -> bool:
    return bool(ask(**fields)["usage"]["prompt_tokens"] > ask()["usage"]["prompt_tokens"])


def continued(ask: Asker) -> bool:
    return longer_prompt(ask, previous_response_id=ask()["id"])


def effort(ask: Asker) -> bool:
    thinking, not_thinking = (
        ask(reasoning={"effort": how}, max_tokens=60)["output"][0] for how in ("low", "none")
    )
    return bool(thinking["type"] == "reasoning" and not_thinking["type"] == "message")


def summary(ask: Asker) -> bool:
    answer = ask(reasoning={"summary": "auto"}, enable_thinking=True, max_tokens=60)
    reasoning = answer["output"][0]
    return bool(reasoning["summary"][0]["text"] == reasoning["content"][0]["text"] != "")


def summary_unasked(ask: Asker) -> bool:
    """OVMS takes `reasoning.summary` and ignores it: there is always one."""
    asked, unasked = (
        ask(**fields, enable_thinking=True, max_tokens=60) for fields in (SUMMARY, {})
    )
    summaries = [answer["output"][0]["summary"] for answer in (asked, unasked)]
    return bool(summaries[0] == summaries[1] and summaries[0][0]["text"] != "")


def effort_of_ovms(ask: Asker) -> bool:
    thinking = [
        ask(reasoning={"effort": how}, max_tokens=60)["output"][0]
        for how in ("low", "medium", "high")
    ]
    without = ask(max_tokens=60)["output"][0]
    return {item["type"] for item in thinking} == {"reasoning"} and bool(
        without["type"] == "message"
    )


def beams(ask: Asker) -> bool:
    """A penalty of lengths counts for beams alone, and streams have one choice."""
    short, long = (ask(best_of=4, max_tokens=40, length_penalty=penalty) for penalty in (-10, 10))
    return len(tokens(short)) < len(tokens(long))


def packed_summary(ask: Asker) -> bool:
    answer = ask(include=["reasoning.encrypted_content"], enable_thinking=True, max_tokens=60)
    reasoning = answer["output"][0]
    return bool(reasoning["encrypted_content"] == REASONING.pack(reasoning["summary"][0]["text"]))


def encrypted(ask: Asker) -> bool:
    answer = ask(include=["reasoning.encrypted_content"], enable_thinking=True, max_tokens=60)
    reasoning = answer["output"][0]
    return bool(reasoning["encrypted_content"] == REASONING.pack(reasoning["content"][0]["text"]))


def compaction(ask: Asker) -> bool:
    turns = [{"role": role, "content": "Say fox. " * 40} for role in ("user", "assistant")]
    rule = {"type": "compaction", "compact_threshold": 100}
    answer = ask(input=[*turns, {"role": "user", "content": QUESTION}], context_management=[rule])
    return [item["type"] for item in answer["output"]] == ["compaction", "message"]


def truncation(ask: Asker) -> bool:
    """Turns that together do not fit into the demo model's context."""
    turn = {"role": "user", "content": "Say fox. " * 400}
    answer = ask(
        input=[turn, turn, turn, turn, turn, {"role": "user", "content": QUESTION}],
        truncation="auto",
    )
    return text(answer) != "" and answer["truncation"] == "auto"


def in_the_background(ask: Asker) -> bool:
    answer = ask(background=True, logprobs=False)
    return bool(answer["background"]) and answer["status"] == (
        "incomplete" if ask.is_stream else "queued"
    )


def image_parts(ask: Asker) -> bool:
    asked = {"type": "input_text", "text": "What color is the circle?"}
    answers = [
        text(ask([{"type": "input_image", "image_url": url}, asked])) for url in SHAPES.values()
    ]
    return all(color in answer.lower() for color, answer in zip(SHAPES, answers, strict=True))


def streams(ask: Asker) -> bool:
    num_chunks: int = ask(num_assistant_tokens=0)[
        "num_chunks"
    ]  # guessed tokens come several in an event
    return (num_chunks > 8) == ask.is_stream


OWN_PROBES = (
    Probe(
        "input",
        "E",
        {},
        "a text, or items: the answer repeats the message",
        lambda ask: "fox" in text(ask("Say fox.")),
    ),
    Probe(
        "input, parts input_image",
        "E",
        {},
        "the demo model for pictures tells the colors of two circles",
        image_parts,
        is_shown=True,
    ),
    Probe("stream", "E", {}, "one object, or many events", streams),
    Probe(
        "max_output_tokens",
        "E",
        {},
        "this number of tokens; the response is incomplete",
        lambda ask: len(tokens(ask(max_output_tokens=3, max_tokens=None))) == 3,
    ),
    Probe("reasoning.effort", "E", {}, "low thinks, none does not", effort),
    Probe("reasoning.summary", "E", {}, "the reasoning itself", summary),
    Probe(
        "stream_options",
        "E",
        {"stream_options": {"include_obfuscation": True}},
        "only with stream",
        lambda ask: ask(stream_options={"include_obfuscation": True}) is not None,
    ),
    Probe(
        "instructions",
        "F",
        {},
        "the prompt shows them",
        lambda ask: longer_prompt(ask, instructions="Be brief."),
    ),
    Probe("previous_response_id", "F", {}, "the prompt begins with the message", continued),
    Probe("context_management", "F", {}, "a summary comes before the answer", compaction),
    Probe(
        "text.format",
        "F",
        {},
        "an object of the schema",
        lambda ask: (
            json.loads(
                text(ask(text={"format": {"type": "json_schema", **COUNT_TO_2["json_schema"]}}))
            )
            in ({"n": 1}, {"n": 2})
        ),
    ),
    Probe(
        "text.verbosity",
        "F",
        {},
        "a hint: the demo model's template does not read it",
        lambda ask: text(ask(text={"verbosity": "low"})) == text(ask()),
    ),
    Probe("truncation", "F", {}, "the oldest turns are left out", truncation),
    Probe(
        "top_logprobs",
        "F",
        {},
        "this number of alternatives",
        lambda ask: (
            len(ask(top_logprobs=3)["choices"][0]["logprobs"]["content"][0]["top_logprobs"]) == 3
        ),
    ),
    Probe(
        "include",
        "F",
        {},
        "log probabilities",
        lambda ask: (
            tokens(ask(logprobs=None, include=["message.output_text.logprobs"])) == tokens(ask())
        ),
    ),
    Probe(
        "include, reasoning.encrypted_content",
        "F",
        {},
        "the reasoning, packed",
        encrypted,
    ),
    Probe("store", "F", {}, "the response says so", repeated("store", False)),
    Probe("metadata", "F", {}, "the response repeats it", repeated("metadata", {"ticket": "7"})),
    Probe(
        "max_tool_calls",
        "F",
        {},
        "the response repeats it; it limits tools that a server runs",
        repeated("max_tool_calls", 3),
    ),
    Probe(
        "background",
        "F",
        {},
        "answers while it is queued; a stream goes to the end",
        in_the_background,
    ),
    Probe(
        "prompt",
        "F",
        {},
        "templates of the operator: the prompt of the model shows them",
        lambda ask: longer_prompt(ask, prompt={"id": "greeting", "variables": {"name": "Ada"}}),
    ),
    Probe(
        "prompt_cache_retention",
        "F",
        {},
        "a hint: the response says null",
        lambda ask: ask(prompt_cache_retention="24h")["prompt_cache_retention"] is None,
    ),
    Probe(
        "service_tier",
        "F",
        {"service_tier": "auto"},
        "the response says default",
        lambda ask: ask(service_tier="auto")["service_tier"] == "default",
    ),
    Probe(
        "prompt_cache_key", "F", {}, "the response repeats it", repeated("prompt_cache_key", "key")
    ),
    Probe(
        "safety_identifier",
        "F",
        {},
        "the response repeats it",
        repeated("safety_identifier", "someone"),
    ),
    Probe("user", "F", {}, "the response repeats it", repeated("user", "someone")),
)


PARALLEL_TOOL_CALLS = replace(
    next(probe for probe in PROBES if probe.parameter == "parallel_tool_calls"), listed="F"
)
OVMS_ANSWERS = {  # probes whose effect the profile shows in another way
    probe.parameter: probe
    for probe in (
        *OVMS_OWN_PROBES.values(),
        Probe("best_of", "E", {}, "this number of beams: `length_penalty` counts", beams),
        Probe(
            "reasoning.effort",
            "E",
            {},
            "each of low, medium and high thinks; none given does not",
            effort_of_ovms,
        ),
        Probe(
            "reasoning.summary",
            "E",
            {},
            "no effect: the reasoning is a summary anyway",
            summary_unasked,
        ),
        Probe(
            "include, reasoning.encrypted_content", "F", {}, "the reasoning, packed", packed_summary
        ),
    )
}


def listed_probes() -> list[Probe]:
    by_name = {probe.parameter: probe for probe in (*PROBES, NUM_ASSISTANT_TOKENS)}
    as_in_chats = (replace(by_name[name], listed="E") for name in AS_IN_CHATS.split())
    return [*OWN_PROBES, PARALLEL_TOOL_CALLS, *as_in_chats]


def section(rows: Callable[[Endpoint, Sequence[Probe]], str]) -> str:
    return _INTRODUCTION + rows(RESPONSES, listed_probes())


def ovms_section(rows: Callable[[Endpoint, Sequence[Probe]], str]) -> str:
    probes = listed_probes()
    own = [
        replace(OVMS_ANSWERS.get(probe.parameter, probe), listed=probe.listed) for probe in probes
    ]
    return _OVMS_INTRODUCTION + rows(OVMS_RESPONSES, own)
