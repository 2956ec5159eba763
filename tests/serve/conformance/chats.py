"""The parameters of chats, as the documents list them."""

import json

from tests.serve.conformance.asking import QUESTION
from tests.serve.conformance.effects import (
    ALWAYS_THAT_TOKEN,
    COUNT_TO_2,
    SPECIAL,
    WEATHER,
    WILD,
    beam_search,
    best_of,
    best_of_beams,
    diversity_penalty,
    early_stopping,
    function_call,
    greedy,
    ignore_eos,
    image_parts,
    include_stop_str_in_output,
    include_usage,
    length_penalty,
    limit,
    logprobs,
    never_changes_the_answer,
    num_assistant_tokens,
    parallel,
    prompt_logprobs,
    seed,
    skip_special_tokens,
    stop,
    stop_shown_in_streams,
    stop_token_ids,
    stream,
    text,
    the_model,
    tokens,
    tool_choice,
    top_logprobs,
    variety,
)
from tests.serve.conformance.probe import Probe

PROBES = (
    Probe("model", "A B C D", {}, "the answer names it; another name is a 404", the_model),
    Probe(
        "messages",
        "A B C D",
        {},
        "the answer repeats the message",
        lambda ask: "fox" in text(ask("Say fox.")),
    ),
    Probe(
        "messages, content parts of text",
        "A D",
        {},
        "the answer equals the answer to the same text",
        lambda ask: text(ask([{"type": "text", "text": QUESTION}])) == text(ask()),
    ),
    Probe(
        "messages, content parts of images",
        "A C D",
        {},
        "the demo model for pictures tells the colors of two circles, by object and string form",
        image_parts,
        is_shown=True,
    ),
    Probe("stream", "A B C D", {}, "one object, or many chunks", stream),
    Probe(
        "stream_options",
        "A B C",
        {"stream_options": {"include_usage": True}},
        "only with stream",
        include_usage,
    ),
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
        "include_stop_str_in_output",
        "A B C",
        {},
        "the output ends with it, or before it",
        include_stop_str_in_output,
    ),
    Probe(
        "max_tokens",
        "A B C D",
        {},
        "this number of tokens, finish reason length",
        limit("max_tokens"),
    ),
    Probe(
        "max_completion_tokens", "A C", {}, "the same, and stronger", limit("max_completion_tokens")
    ),
    Probe("ignore_eos", "A B C D", {}, "goes on to max_tokens", ignore_eos),
    Probe(
        "min_tokens",
        "A B C",
        {},
        "goes on to it",
        lambda ask: len(tokens(ask("Hello!", min_tokens=18))) >= 18,
    ),
    Probe("stop_token_ids", "A B C", {}, "the output ends at it", stop_token_ids),
    Probe(
        "skip_special_tokens",
        "A B C",
        {},
        "special tokens in the text, or not",
        skip_special_tokens,
    ),
    Probe("logprobs", "A B C D", {}, "one for each token, or none", logprobs),
    Probe(
        "top_logprobs",
        "A B C D",
        {},
        "this number of alternatives, the greedy token first",
        top_logprobs,
    ),
    Probe(
        "prompt_logprobs",
        "A B C",
        {"prompt_logprobs": 1},
        "one for each prompt token",
        prompt_logprobs,
    ),
    Probe("n", "A B C D", {}, "this number of choices", lambda ask: len(ask(n=3)["choices"]) == 3),
    Probe("best_of", "A B C", {}, "one choice, and the usage of four", best_of),
    Probe("use_beam_search", "A B C", {}, "four different choices at temperature 0", beam_search),
    Probe(
        "length_penalty",
        "A B C",
        {},
        "a low one finds a short answer, a high one a long one",
        length_penalty,
    ),
    Probe(
        "diversity_penalty",
        "B",
        {},
        "a high one parts two groups at the first token",
        diversity_penalty,
    ),
    Probe("early_stopping", "A B C", {}, "true ends with shorter answers", early_stopping),
    Probe(
        "temperature",
        "A B C D",
        {},
        "0 is the most likely token each time, 2 is not",
        lambda ask: tokens(ask(**WILD)) != tokens(ask(**{**WILD, "temperature": 0})),
    ),
    Probe(
        "top_p",
        "A B C D",
        {},
        "a tiny one leaves the most likely token",
        lambda ask: greedy(ask, top_p=1e-6),
    ),
    Probe(
        "min_p",
        "A B C",
        {},
        "a large one leaves the most likely token",
        lambda ask: greedy(ask, min_p=0.999),
    ),
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
    Probe(
        "user",
        "A B C D",
        {},
        "accepted; it changes nothing by its nature",
        lambda ask: ask(user="me") is not None,
    ),
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
        "a prompt with this number of tokens",
        lambda ask: ask(truncate_prompt_tokens=5)["usage"]["prompt_tokens"] == 5,
    ),
    Probe(
        "spaces_between_special_tokens",
        "A B C",
        {"spaces_between_special_tokens": False},
        "no spaces between them; a 400 with tokenizers that write some",
        lambda ask: (
            "<|im_end|><|im_end|>"
            in text(ask("Hello!", **SPECIAL, spaces_between_special_tokens=False))
        ),
    ),
    Probe("detokenize", "A B C", {"detokenize": False}),
    Probe("logits_processors", "A B C", {"logits_processors": ["x"]}),
    Probe(
        "tools",
        "A B C",
        {"tools": [WEATHER]},
        "the prompt shows them",
        lambda ask: (
            ask(tools=[WEATHER])["usage"]["prompt_tokens"] > ask()["usage"]["prompt_tokens"]
        ),
    ),
    Probe(
        "tool_choice",
        "A B C",
        {"tools": [WEATHER], "tool_choice": "required"},
        "a call with arguments that fit the schema, or none",
        tool_choice,
    ),
    Probe(
        "parallel_tool_calls",
        "",
        {"parallel_tool_calls": False},
        "one call of several asked for",
        parallel,
    ),
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
        lambda ask: (
            ask(functions=[WEATHER["function"]])["usage"]["prompt_tokens"]
            > ask()["usage"]["prompt_tokens"]
        ),
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
    Probe(
        "max_ngram_size",
        "A C",
        {"max_ngram_size": 3},
        "the same answer, by its nature",
        never_changes_the_answer,
    ),
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
        Probe(
            "stop",
            "A B C D",
            {},
            "the output ends before it; a stream's output ends with it",
            stop_shown_in_streams,
        ),
        Probe(
            "best_of",
            "A B C",
            {},
            "this number of beams, four different choices at temperature 0",
            best_of_beams,
        ),
    )
}
OVMS_PROBES = tuple(
    OVMS_OWN_PROBES.get(probe.parameter, probe) for probe in PROBES if probe.listed != "D"
)
