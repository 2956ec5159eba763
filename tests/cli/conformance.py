"""Every request parameter that the documents of OpenVINO Model Server and LMI list for chat completions and responses,
tried on the demo models. Writes docs/conformance.md: `uv run python -m tests.cli.conformance`.

A parameter works where its effect is seen; a 200 alone is no proof.
"""

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path

import httpx

from tests.cli.answers import Json, chunks_of, put_together
from tests.cli.drawings import data_url, encoded, shape
from tests.cli.running import serving

PATH = Path(__file__).parents[2] / "docs" / "conformance.md"
COMMAND = "uv run python -m tests.cli.conformance"
NUM_AT_ONCE = 6  # probes: a batch costs little more than one of them
SERVER_OPTIONS = ("--precision", "f32", "--kv-cache-dtype", "f32", "--no-prefix-caching")

_INTRODUCTION = """\
# Conformance

Every request parameter in the tables of these documents, and of their lists of parameters not supported there, as this
server takes it on `/v1/chat/completions`:

- **A** OpenVINO Model Server, chat completions, 2026 (with the parameters of speculative and prompt lookup decoding)
- **B** the same page of 2024, **C** of 2025
- **D** LMI 0.30, chat completions schema

Written by a test run on the demo models (`{command}`).
*Works* means that the effect was seen in that mode; *refused* that the answer named the parameter. There is no third:
nothing that would change an answer is accepted and ignored.

| parameter | in | unary | streamed | what was seen |
|---|---|---|---|---|
"""

_LMI_INTRODUCTION = """
## /invocations

The parameters of D once more, on LMI's own path: streams are JSON lines, finish reasons LMI's, and a refusal is a 424
whose message names the parameter.

| parameter | in | unary | streamed | what was seen |
|---|---|---|---|---|
"""

_OVMS_INTRODUCTION = """
## With --profile ovms

The parameters of A, B and C once more, on `/v3/chat/completions` of a server with that profile: `best_of` is a number
of beams, streams show the stop string, and a refusal is a 400 whose text names the parameter.

| parameter | in | unary | streamed | what was seen |
|---|---|---|---|---|
"""

QUESTION = "Count from 1 to 60."
TOKEN_ID = 400
ALWAYS_THAT_TOKEN = {"logit_bias": {str(TOKEN_ID): 100}}
SPECIAL = {"ignore_eos": True, "skip_special_tokens": False}
WILD = {"temperature": 2, "top_k": -1, "seed": 6, "ignore_eos": True, "max_tokens": 80}

WHICH_COLOR = {"type": "text", "text": "What color is the circle?"}
SHAPES = {color: data_url(encoded(shape("circle", color))) for color in ("red", "blue")}
WEATHER: Json = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city",
        "parameters": {"type": "object", "properties": {"city": {"enum": ["Rome", "Oslo"]}}, "required": ["city"]},
    },
}
COUNT_TO_2: Json = {
    "type": "json_schema",
    "json_schema": {
        "name": "count",
        "strict": True,
        "schema": {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"]},
    },
}


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
    read: Callable[[httpx.Response], Json]  # as a chat, with `num_chunks`
    prompt: str = "messages"
    streaming: Json = field(default_factory=lambda: {"stream": True, "stream_options": {"include_usage": True}})


def openai_param(response: httpx.Response) -> str | None:
    return response.json()["error"]["param"] or "?" if response.status_code == 400 else None


def lmi_param(response: httpx.Response) -> str | None:
    """LMI has no place for it but the message, which begins with it."""
    if response.status_code != 424:
        return None
    named = re.search(r"payload is valid\. ([\w.\[\]]+)", response.json()["error"])
    return named[1] if named else "?"


def ovms_param(response: httpx.Response) -> str | None:
    """OVMS has no place for it but the text, where it follows what OVMS puts before each."""
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


OPENAI = Endpoint("/v1/chat/completions", {"model": "ouzel-demo"}, openai_param, reading(chunks_of))
OVMS = Endpoint("/v3/chat/completions", {"model": "ouzel-demo"}, ovms_param, reading(chunks_of))
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
        defaults = {endpoint.prompt: [{"role": "user", "content": said}], "temperature": 0, "max_tokens": 20}
        streaming = endpoint.streaming if self.is_stream else {}
        body = defaults | {"logprobs": True} | endpoint.fields | streaming | fields
        response = self._http.post(endpoint.path, json=body)
        if (param := endpoint.refused_param(response)) is not None:
            raise Refused(param, response.status_code)
        response.raise_for_status()
        return endpoint.read(response)


def text(answer: Json) -> str:
    content: str = answer["choices"][0]["message"]["content"]
    return content


def tokens(answer: Json) -> list[str]:
    return [position["token"] for position in answer["choices"][0]["logprobs"]["content"]]


def finish_reason(answer: Json) -> str:
    reason: str = answer["choices"][0]["finish_reason"]
    return reason


def has_stopped(answer: Json) -> bool:
    return finish_reason(answer) in ("stop", "eos_token", "stop_sequence")  # OpenAI's word, and LMI's two


def greedy(ask: Asker, **fields: object) -> bool:
    """Whether wild sampling is tamed by the fields to the most likely token."""
    most_likely = tokens(ask(**{**WILD, "temperature": 0}))
    return tokens(ask(**WILD)) != most_likely == tokens(ask(**(WILD | fields)))


def variety(ask: Asker, **fields: object) -> int:
    return len(set(tokens(ask(**(WILD | fields)))))


def the_model(ask: Asker) -> bool:
    try:
        ask(model="another")
    except httpx.HTTPStatusError as error:
        return error.response.status_code == 404 and ask()["model"] == "ouzel-demo"
    return False


def stop(ask: Asker) -> bool:
    whole = text(ask())
    ended = ask(stop=["zzz", whole[6:9]])
    return text(ended) == whole[: whole.index(whole[6:9])] and has_stopped(ended)


def tool_choice(ask: Asker) -> bool:
    forced = ask("Hello!", tools=[WEATHER], tool_choice="required", max_tokens=60)
    forbidden = ask("What is the weather in Rome?", tools=[WEATHER], tool_choice="none")
    named = ask("Hello!", tools=[WEATHER], tool_choice={"type": "function", "function": {"name": "get_weather"}})
    calls = [answer["choices"][0]["message"]["tool_calls"][0]["function"] for answer in (forced, named)]
    cities = [json.loads(call["arguments"])["city"] for call in calls]
    return set(cities) <= {"Rome", "Oslo"} and not forbidden["choices"][0]["message"].get("tool_calls")


def parallel(ask: Asker) -> bool:
    """An end is forbidden for a while, so that the model goes on calling if it may."""
    calls = {"tools": [WEATHER], "tool_choice": "required", "min_tokens": 60, "max_tokens": 120}
    one, several = (ask(**calls, parallel_tool_calls=is_parallel) for is_parallel in (False, True))
    numbers = [len(answer["choices"][0]["message"]["tool_calls"]) for answer in (one, several)]
    return numbers[0] == 1 < numbers[1]


def function_call(ask: Asker) -> bool:
    asked = {"functions": [WEATHER["function"]], "function_call": {"name": "get_weather"}, "max_tokens": 60}
    answer = ask("Hello!", **asked)
    call = answer["choices"][0]["message"]["function_call"]
    return call["name"] == "get_weather" and finish_reason(answer) == "function_call"


def include_stop_str_in_output(ask: Asker) -> bool:
    whole = text(ask())
    shown = text(ask(stop=whole[6:9], include_stop_str_in_output=True))
    hidden = text(ask(stop=whole[6:9], include_stop_str_in_output=False))
    return shown == whole[: whole.index(whole[6:9]) + 3] == hidden + whole[6:9]


def stream(ask: Asker) -> bool:
    answer = ask(stream=ask.is_stream, num_assistant_tokens=0)  # guessed tokens come several in a chunk
    kind = "chat.completion.chunk" if ask.is_stream else "chat.completion"
    return bool(answer["object"] == kind) and (answer["num_chunks"] > 5) == ask.is_stream


def include_usage(ask: Asker) -> bool:
    answer = ask(stream_options={"include_usage": True})
    return "usage" in answer and "usage" not in ask(stream_options={"include_usage": False})


def ignore_eos(ask: Asker) -> bool:
    ended, whole = ask("Hello!", max_tokens=60), ask("Hello!", max_tokens=60, ignore_eos=True)
    return has_stopped(ended) and len(tokens(ended)) < len(tokens(whole)) == 60


def skip_special_tokens(ask: Asker) -> bool:
    hidden, shown = (text(ask("Hello!", ignore_eos=True, skip_special_tokens=skips)) for skips in (True, False))
    return "<|im_end|>" in shown and "<|im_end|>" not in hidden


def logprobs(ask: Asker) -> bool:
    answer = ask(logprobs=True)
    num_tokens: int = answer["usage"]["completion_tokens"]
    return len(tokens(answer)) == num_tokens and not ask(logprobs=False)["choices"][0].get("logprobs")


def top_logprobs(ask: Asker) -> bool:
    positions = ask(top_logprobs=3)["choices"][0]["logprobs"]["content"]
    return all(
        len(position["top_logprobs"]) == 3 and position["top_logprobs"][0]["token"] == position["token"]
        for position in positions
    )


def seed(ask: Asker) -> bool:
    first, again, other = (tokens(ask(**{**WILD, "seed": value})) for value in (1, 1, 2))
    return first == again != other


def stop_token_ids(ask: Asker) -> bool:
    ended = ask(**ALWAYS_THAT_TOKEN, stop_token_ids=[TOKEN_ID])
    return ended["usage"]["completion_tokens"] == 1 and has_stopped(ended)


def prompt_logprobs(ask: Asker) -> bool:
    answer = ask(prompt_logprobs=1)
    num_positions, num_tokens = len(answer["prompt_logprobs"]), answer["usage"]["prompt_tokens"]
    return bool(num_positions == num_tokens)


def texts(answer: Json) -> list[str]:
    return [choice["message"]["content"] for choice in answer["choices"]]


def best_of(ask: Asker) -> bool:
    best = ask(best_of=4, temperature=1, ignore_eos=True)
    return len(texts(best)) == 1 and best["usage"]["completion_tokens"] == 4 * len(tokens(best))


def best_of_beams(ask: Asker) -> bool:
    return len(set(texts(ask(best_of=4, n=4)))) == 4


def stop_shown_in_streams(ask: Asker) -> bool:
    whole = text(ask())
    end = whole.index(whole[6:9]) + (3 if ask.is_stream else 0)
    return text(ask(stop=["zzz", whole[6:9]])) == whole[:end]


def beam_search(ask: Asker) -> bool:
    greedily, beams = ask(n=4), ask(n=4, use_beam_search=True)
    return len(set(texts(greedily))) == 1 and len(set(texts(beams))) == 4


def length_penalty(ask: Asker) -> bool:
    short, long = (ask(num_beams=4, max_tokens=40, length_penalty=penalty) for penalty in (-10, 10))
    return len(tokens(short)) < len(tokens(long))


def diversity_penalty(ask: Asker) -> bool:
    groups = {"num_beams": 2, "num_beam_groups": 2, "n": 2, "max_tokens": 1}
    alike, apart = (ask(**groups, diversity_penalty=penalty) for penalty in (1e-3, 50))
    return len(set(texts(alike))) == 1 and len(set(texts(apart))) == 2


def early_stopping(ask: Asker) -> bool:
    early, late = (ask(num_beams=4, n=4, max_tokens=40, early_stopping=value) for value in (True, "never"))
    return bool(early["usage"]["completion_tokens"] < late["usage"]["completion_tokens"])


def num_proposed(answer: Json) -> int:
    details = answer["usage"]["completion_tokens_details"]
    return int(details["accepted_prediction_tokens"] + details["rejected_prediction_tokens"])


def num_assistant_tokens(ask: Asker) -> bool:
    """What was answered before is found again, and guessed where that pays: beside other work it may not at once."""
    long = {"max_tokens": 70, "ignore_eos": True}
    answers = [ask(**long, num_assistant_tokens=number) for number in (0, *[5] * 5)]
    first, *others = (num_proposed(answer) for answer in answers)
    return len(set(map(text, answers))) == 1 and first == 0 < sum(others)


def never_changes_the_answer(ask: Asker) -> bool:
    return text(ask(max_ngram_size=1)) == text(ask(max_ngram_size=3)) == text(ask())


def image_parts(ask: Asker) -> bool:
    forms = ({"url": SHAPES["red"]}, SHAPES["red"], {"url": SHAPES["blue"]})
    answers = [text(ask([{"type": "image_url", "image_url": form}, WHICH_COLOR])) for form in forms]
    return [word for answer in answers for word in SHAPES if word in answer.lower()] == ["red", "red", "blue"]


@dataclass(frozen=True)
class Probe:
    parameter: str
    listed: str
    fields: Json  # what is sent to see whether it is refused
    seen: str = ""
    holds: Callable[[Asker], bool] | None = None  # None: known to be refused
    param: str = ""  # that the refusal names, where it is not the parameter itself
    is_shown: bool = False  # asks the demo model that sees


def limit(name: str) -> Callable[[Asker], bool]:
    def holds(ask: Asker) -> bool:
        answer = ask(**{"max_tokens": 20, name: 3})
        return answer["usage"]["completion_tokens"] == 3 and finish_reason(answer) == "length"

    return holds


PROBES = (
    Probe("model", "A B C D", {}, "the answer names it; another name is a 404", the_model),
    Probe("messages", "A B C D", {}, "the answer repeats what was said", lambda ask: "fox" in text(ask("Say fox."))),
    Probe(
        "messages, content parts of text",
        "A D",
        {},
        "the answer is that to the same text",
        lambda ask: text(ask([{"type": "text", "text": QUESTION}])) == text(ask()),
    ),
    Probe(
        "messages, content parts of images",
        "A C D",
        {},
        "the demo model that sees tells the colors of two circles, by object and string form",
        image_parts,
        is_shown=True,
    ),
    Probe("stream", "A B C D", {}, "one object, or many chunks", stream),
    Probe("stream_options", "A B C", {"stream_options": {"include_usage": True}}, "only with stream", include_usage),
    Probe(
        "stream_options.include_usage",
        "A B C",
        {"stream_options": {"include_usage": True}},
        "only with stream: a chunk with the usage, or none",
        include_usage,
        param="stream_options",
    ),
    Probe("stop", "A B C D", {"stop": "x"}, "the output ends before it", stop),
    Probe(
        "include_stop_str_in_output", "A B C", {}, "the output ends with it, or before it", include_stop_str_in_output
    ),
    Probe("max_tokens", "A B C D", {}, "so many tokens, finish reason length", limit("max_tokens")),
    Probe("max_completion_tokens", "A C", {}, "the same, and stronger", limit("max_completion_tokens")),
    Probe("ignore_eos", "A B C D", {}, "goes on to max_tokens", ignore_eos),
    Probe("min_tokens", "A B C", {}, "goes on to it", lambda ask: len(tokens(ask("Hello!", min_tokens=18))) >= 18),
    Probe("stop_token_ids", "A B C", {}, "the output ends at it", stop_token_ids),
    Probe("skip_special_tokens", "A B C", {}, "special tokens in the text, or not", skip_special_tokens),
    Probe("logprobs", "A B C D", {}, "one for each token, or none", logprobs),
    Probe("top_logprobs", "A B C D", {}, "so many alternatives, the greedy token first", top_logprobs),
    Probe("prompt_logprobs", "A B C", {"prompt_logprobs": 1}, "one for each prompt token", prompt_logprobs),
    Probe("n", "A B C D", {}, "so many choices", lambda ask: len(ask(n=3)["choices"]) == 3),
    Probe("best_of", "A B C", {}, "one choice, and the usage of four", best_of),
    Probe("use_beam_search", "A B C", {}, "four different choices at temperature 0", beam_search),
    Probe("length_penalty", "A B C", {}, "a low one finds a short answer, a high one a long one", length_penalty),
    Probe("diversity_penalty", "B", {}, "a high one parts two groups at the first token", diversity_penalty),
    Probe("early_stopping", "A B C", {}, "true ends with shorter answers", early_stopping),
    Probe(
        "temperature",
        "A B C D",
        {},
        "0 is the most likely token each time, 2 is not",
        lambda ask: tokens(ask(**WILD)) != tokens(ask(**{**WILD, "temperature": 0})),
    ),
    Probe("top_p", "A B C D", {}, "a tiny one leaves the most likely token", lambda ask: greedy(ask, top_p=1e-6)),
    Probe("min_p", "A B C", {}, "a large one leaves the most likely token", lambda ask: greedy(ask, min_p=0.999)),
    Probe("top_k", "A B C", {}, "1 leaves the most likely token", lambda ask: greedy(ask, top_k=1)),
    Probe(
        "repetition_penalty",
        "A B C",
        {},
        "more different tokens at 2 than at 0.5",
        lambda ask: variety(ask, repetition_penalty=2) > variety(ask, repetition_penalty=0.5),
    ),
    Probe(
        "frequency_penalty",
        "A B C D",
        {},
        "more different tokens at 2 than at -2",
        lambda ask: variety(ask, frequency_penalty=2) > variety(ask, frequency_penalty=-2),
    ),
    Probe(
        "presence_penalty",
        "A B C D",
        {},
        "more different tokens at 2 than at -2",
        lambda ask: variety(ask, presence_penalty=2) > variety(ask, presence_penalty=-2),
    ),
    Probe("seed", "A B C D", {}, "the same tokens again; others with another", seed),
    Probe(
        "logit_bias",
        "A B C D",
        {},
        "100 makes every token that one",
        lambda ask: len(set(tokens(ask(**ALWAYS_THAT_TOKEN)))) == 1,
    ),
    Probe("user", "A B C D", {}, "accepted; it changes nothing by its nature", lambda ask: ask(user="me") is not None),
    Probe(
        "chat_template_kwargs",
        "A",
        {},
        "the template reads them: another prompt",
        lambda ask: (
            ask()["usage"]["prompt_tokens"]
            > ask(chat_template_kwargs={"add_generation_prompt": False})["usage"]["prompt_tokens"]
        ),
    ),
    Probe(
        "truncate_prompt_tokens",
        "A B C",
        {"truncate_prompt_tokens": 5},
        "a prompt of so many tokens",
        lambda ask: ask(truncate_prompt_tokens=5)["usage"]["prompt_tokens"] == 5,
    ),
    Probe(
        "spaces_between_special_tokens",
        "A B C",
        {"spaces_between_special_tokens": False},
        "no spaces between them; a 400 with tokenizers that write some",
        lambda ask: "<|im_end|><|im_end|>" in text(ask("Hello!", **SPECIAL, spaces_between_special_tokens=False)),
    ),
    Probe("detokenize", "A B C", {"detokenize": False}),
    Probe("logits_processors", "A B C", {"logits_processors": ["x"]}),
    Probe(
        "tools",
        "A B C",
        {"tools": [WEATHER]},
        "the prompt shows them",
        lambda ask: ask(tools=[WEATHER])["usage"]["prompt_tokens"] > ask()["usage"]["prompt_tokens"],
    ),
    Probe(
        "tool_choice",
        "A B C",
        {"tools": [WEATHER], "tool_choice": "required"},
        "a call with arguments that fit the schema, or none",
        tool_choice,
    ),
    Probe("parallel_tool_calls", "A B C", {"parallel_tool_calls": False}, "one call of several asked for", parallel),
    Probe(
        "response_format",
        "A B C",
        {},
        "an object, or one of the schema",
        lambda ask: (
            text(ask(response_format={"type": "json_object"})).startswith("{")
            and json.loads(text(ask(response_format=COUNT_TO_2))) in ({"n": 1}, {"n": 2})
        ),
    ),
    Probe(
        "functions",
        "A B C",
        {"functions": [WEATHER["function"]]},
        "the old form of tools: the prompt shows them",
        lambda ask: ask(functions=[WEATHER["function"]])["usage"]["prompt_tokens"] > ask()["usage"]["prompt_tokens"],
    ),
    Probe(
        "function_call",
        "A B C",
        {"functions": [WEATHER["function"]], "function_call": {"name": "get_weather"}},
        "the old form of tool_choice: that function is called",
        function_call,
    ),
    Probe(
        "num_assistant_tokens",
        "A C",
        {"num_assistant_tokens": 5},
        "0 guesses nothing, 5 something, says the usage; the answer is the same",
        num_assistant_tokens,
    ),
    Probe(
        "assistant_confidence_threshold",
        "A C",
        {"assistant_confidence_threshold": 0.5},
        "without a draft model, which it needs",
    ),
    Probe("max_ngram_size", "A C", {"max_ngram_size": 3}, "the same answer, by its nature", never_changes_the_answer),
)


LMI_PROBES = (
    Probe(
        "model",
        "D",
        {},
        "never chooses, as in LMI: the same answer with another name",
        lambda ask: text(ask(model="another")) == text(ask()),
    ),
    *(probe for probe in PROBES if "D" in probe.listed and probe.parameter != "model"),
)


OVMS_OWN_PROBES = {
    probe.parameter: probe
    for probe in (
        Probe("stop", "A B C D", {}, "the output ends before it, that of a stream with it", stop_shown_in_streams),
        Probe("best_of", "A B C", {}, "so many beams, four different choices at temperature 0", best_of_beams),
    )
}
OVMS_PROBES = tuple(OVMS_OWN_PROBES.get(probe.parameter, probe) for probe in PROBES if probe.listed != "D")


def result(probe: Probe, ask: Asker) -> str:
    """Raises AssertionError where the parameter is accepted without its effect, or refused in the name of another."""
    param = probe.param or probe.parameter
    try:
        ask(**probe.fields)
        assert probe.holds is not None, f"{probe.parameter} is accepted: say how its effect is seen"
        assert probe.holds(ask), f"{probe.parameter} is accepted without its effect (stream: {ask.is_stream})"
    except Refused as refused:
        assert refused.param == param, f"{probe.parameter} is refused in the name of {refused.param}"
        return f"refused with {refused.status}"
    return "works"


def own_tables(cache_dir: Path) -> str:
    """Returns the document as far as it tells of our own API."""
    from tests.cli import conformance_responses, conformance_state  # noqa: PLC0415  one takes its probes from here

    with _servers(cache_dir) as servers:
        text = _INTRODUCTION.format(command=COMMAND) + _rows(servers, OPENAI, PROBES)
        text += conformance_responses.section(lambda endpoint, probes: _rows(servers, endpoint, probes))
        return text + conformance_state.section(servers.reading)


def tables_of_others(cache_dir: Path) -> str:
    """Returns the rest: the same parameters as LMI and OVMS take them."""
    with _servers(cache_dir) as servers:
        text = _LMI_INTRODUCTION + _rows(servers, LMI, LMI_PROBES)
    with _servers(cache_dir, "--profile", "ovms") as servers:
        return text + _OVMS_INTRODUCTION + _rows(servers, OVMS, OVMS_PROBES)


@dataclass(frozen=True)
class Servers:
    reading: httpx.Client  # of the demo model that reads text
    seeing: httpx.Client  # of the one that sees; it answers to the same name


@contextmanager
def _servers(cache_dir: Path, *options: str) -> Iterator[Servers]:
    seeing_options = ("--demo", "vision", "--served-model-name", "ouzel-demo")
    with (
        serving(*SERVER_OPTIONS, *options, cache_dir=cache_dir) as reading,
        serving(*SERVER_OPTIONS, *options, *seeing_options, cache_dir=cache_dir / "seeing") as seeing,
        httpx.Client(base_url=reading.root, timeout=None) as to_reading,
        httpx.Client(base_url=seeing.root, timeout=None) as to_seeing,
    ):
        yield Servers(to_reading, to_seeing)


def _rows(servers: Servers, endpoint: Endpoint, probes: Sequence[Probe]) -> str:
    asked_by = [_modes(servers.seeing if probe.is_shown else servers.reading, endpoint) for probe in probes]
    with ThreadPoolExecutor(NUM_AT_ONCE) as threads:
        tried = [
            [threads.submit(result, probe, ask) for ask in modes] for probe, modes in zip(probes, asked_by, strict=True)
        ]
    rows = [
        (f"`{probe.parameter}`", probe.listed, *map(_settled, beside, repeat(probe), modes), probe.seen)
        for probe, beside, modes in zip(probes, tried, asked_by, strict=True)
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _modes(http: httpx.Client, endpoint: Endpoint) -> list[Asker]:
    return [Asker(http, endpoint, is_stream=is_stream) for is_stream in (False, True)]


def _settled(beside_others: Future[str], probe: Probe, ask: Asker) -> str:
    """Tries again, alone, what failed: neighbours in a batch move a logit's last bits, and wild sampling shows it."""
    return result(probe, ask) if beside_others.exception() else beside_others.result()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as cache_dir:
        PATH.write_text(own_tables(Path(cache_dir)) + tables_of_others(Path(cache_dir)))
