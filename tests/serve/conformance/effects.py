"""The effects of parameters, as answers show them."""

import json
from collections.abc import Callable

import httpx

from tests.serve.answers import Json
from tests.serve.conformance.asking import Asker
from tests.serve.drawings import data_url, encoded, shape

TOKEN_ID = 400
MAX_TRIES = 50
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
        "parameters": {
            "type": "object",
            "properties": {"city": {"enum": ["Rome", "Oslo"]}},
            "required": ["city"],
        },
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


def text(answer: Json) -> str:
    content: str = answer["choices"][0]["message"]["content"]
    return content


def tokens(answer: Json) -> list[str]:
    return [position["token"] for position in answer["choices"][0]["logprobs"]["content"]]


def finish_reason(answer: Json) -> str:
    reason: str = answer["choices"][0]["finish_reason"]
    return reason


def has_stopped(answer: Json) -> bool:
    return finish_reason(answer) in (
        "stop",
        "eos_token",
        "stop_sequence",
    )  # OpenAI's word, and LMI's two


def greedy(ask: Asker, **fields: object) -> bool:
    """Tells whether the fields make sampling at a high temperature take the most likely token."""
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
    named = ask(
        "Hello!",
        tools=[WEATHER],
        tool_choice={"type": "function", "function": {"name": "get_weather"}},
    )
    calls = [
        answer["choices"][0]["message"]["tool_calls"][0]["function"] for answer in (forced, named)
    ]
    cities = [json.loads(call["arguments"])["city"] for call in calls]
    return set(cities) <= {"Rome", "Oslo"} and not forbidden["choices"][0]["message"].get(
        "tool_calls"
    )


def parallel(ask: Asker) -> bool:
    """Tells whether the field limits the calls; `min_tokens` makes the model go on calling."""
    calls = {"tools": [WEATHER], "tool_choice": "required", "min_tokens": 60, "max_tokens": 120}
    one, several = (ask(**calls, parallel_tool_calls=is_parallel) for is_parallel in (False, True))
    numbers = [len(answer["choices"][0]["message"]["tool_calls"]) for answer in (one, several)]
    return numbers[0] == 1 < numbers[1]


def function_call(ask: Asker) -> bool:
    asked = {
        "functions": [WEATHER["function"]],
        "function_call": {"name": "get_weather"},
        "max_tokens": 60,
    }
    answer = ask("Hello!", **asked)
    call = answer["choices"][0]["message"]["function_call"]
    return call["name"] == "get_weather" and finish_reason(answer) == "function_call"


def include_stop_str_in_output(ask: Asker) -> bool:
    whole = text(ask())
    shown = text(ask(stop=whole[6:9], include_stop_str_in_output=True))
    hidden = text(ask(stop=whole[6:9], include_stop_str_in_output=False))
    return shown == whole[: whole.index(whole[6:9]) + 3] == hidden + whole[6:9]


def stream(ask: Asker) -> bool:
    answer = ask(
        stream=ask.is_stream, num_assistant_tokens=0
    )  # guessed tokens come several in a chunk
    kind = "chat.completion.chunk" if ask.is_stream else "chat.completion"
    return bool(answer["object"] == kind) and (answer["num_chunks"] > 5) == ask.is_stream


def include_usage(ask: Asker) -> bool:
    answer = ask(stream_options={"include_usage": True})
    return "usage" in answer and "usage" not in ask(stream_options={"include_usage": False})


def ignore_eos(ask: Asker) -> bool:
    ended, whole = ask("Hello!", max_tokens=60), ask("Hello!", max_tokens=60, ignore_eos=True)
    return has_stopped(ended) and len(tokens(ended)) < len(tokens(whole)) == 60


def skip_special_tokens(ask: Asker) -> bool:
    hidden, shown = (
        text(ask("Hello!", ignore_eos=True, skip_special_tokens=skips)) for skips in (True, False)
    )
    return "<|im_end|>" in shown and "<|im_end|>" not in hidden


def logprobs(ask: Asker) -> bool:
    answer = ask(logprobs=True)
    num_tokens: int = answer["usage"]["completion_tokens"]
    return len(tokens(answer)) == num_tokens and not ask(logprobs=False)["choices"][0].get(
        "logprobs"
    )


def top_logprobs(ask: Asker) -> bool:
    positions = ask(top_logprobs=3)["choices"][0]["logprobs"]["content"]
    return all(
        len(position["top_logprobs"]) == 3
        and position["top_logprobs"][0]["token"] == position["token"]
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
    early, late = (
        ask(num_beams=4, n=4, max_tokens=40, early_stopping=value) for value in (True, "never")
    )
    return bool(early["usage"]["completion_tokens"] < late["usage"]["completion_tokens"])


def num_proposed(answer: Json) -> int:
    details = answer["usage"]["completion_tokens_details"]
    return int(details["accepted_prediction_tokens"] + details["rejected_prediction_tokens"])


def num_assistant_tokens(ask: Asker) -> bool:
    """Asks until tokens were proposed.

    The engine proposes tokens only if they pay by the costs that it measured at the start.
    """
    long = {"max_tokens": 70, "ignore_eos": True}
    without = ask(**long, num_assistant_tokens=0)
    for _ in range(MAX_TRIES):
        guessed = ask(**long, num_assistant_tokens=5)
        if text(guessed) != text(without):
            return False
        if num_proposed(guessed) > 0:
            return num_proposed(without) == 0
    return False


def never_changes_the_answer(ask: Asker) -> bool:
    return text(ask(max_ngram_size=1)) == text(ask(max_ngram_size=3)) == text(ask())


def image_parts(ask: Asker) -> bool:
    forms = ({"url": SHAPES["red"]}, SHAPES["red"], {"url": SHAPES["blue"]})
    answers = [text(ask([{"type": "image_url", "image_url": form}, WHICH_COLOR])) for form in forms]
    return [word for answer in answers for word in SHAPES if word in answer.lower()] == [
        "red",
        "red",
        "blue",
    ]


def limit(name: str) -> Callable[[Asker], bool]:
    def holds(ask: Asker) -> bool:
        answer = ask(**{"max_tokens": 20, name: 3})
        return answer["usage"]["completion_tokens"] == 3 and finish_reason(answer) == "length"

    return holds
