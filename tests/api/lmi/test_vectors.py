"""A known output of three tokens gets, in each form, the text that LMI's own tests expect."""

import json
import time
from collections.abc import Sequence

import msgspec
import pytest
import tokenizers
from tokenizers import decoders, models

from ouzel.api.http.framing import JSON_LINES
from ouzel.api.lmi.chat import LmiChatAnswer
from ouzel.api.lmi.details import Shape, StandardAnswer
from ouzel.api.openai.chat_answer import ChatAnswer
from ouzel.api.openai.envelope import Envelope
from ouzel.checkpoint.model_files import SamplingDefaults
from ouzel.engine_client import EngineClient, EngineSpec
from ouzel.generation import (
    ContentDelta,
    Event,
    Finished,
    GenerationRequest,
    Output,
    Prompt,
    PromptScored,
    ServedModel,
    Usage,
)
from ouzel.grammar.vocabulary import GrammarVocabulary
from ouzel.parsers.plain import PlainParser
from ouzel.prompts.render import PromptRenderer
from ouzel.sampling import SamplingParams
from ouzel.tokenizer.huggingface import HuggingFaceTokenizer
from ouzel.types.step_output import FinishReason, PositionLogprobs, TokenLogprob
from ouzel.wire.chat_request import ChatCompletionRequest
from tests.api.requests import Json
from tests.api.server_setup import build_output_format

INPUTS = "This is a wonderful day"
TEXTS = {244: "He", 576: "llo", 4558: " world"}
LOGPROBS = {244: -0.334532, 576: -0.123123, 4558: -0.567854}
USAGE = Usage(prompt_tokens=5, cached_tokens=0, completion_tokens=3, reasoning_tokens=0)
TOKENS = [{"id": id_, "text": text, "log_prob": LOGPROBS[id_]} for id_, text in TEXTS.items()]
TGI_TOKENS = [
    {"id": id_, "text": text, "logprob": LOGPROBS[id_], "special": False}
    for id_, text in TEXTS.items()
]


def position(token_id: int) -> PositionLogprobs:
    return PositionLogprobs(TokenLogprob(token_id, LOGPROBS[token_id]), ())


def events(index: int = 0) -> list[Event]:
    outputs = [
        Output(index, [ContentDelta(text)], [token_id], [position(token_id)])
        for token_id, text in TEXTS.items()
    ]
    return [*outputs, Finished(index, FinishReason.LENGTH, None)]


@pytest.fixture(scope="module")
def model() -> ServedModel:
    # a byte-level BPE writes a space as Ġ
    vocabulary = {text.replace(" ", "Ġ"): id_ for id_, text in TEXTS.items()}
    library_tokenizer = tokenizers.Tokenizer(models.BPE(vocabulary, []))
    library_tokenizer.decoder = decoders.ByteLevel()
    tokenizer = HuggingFaceTokenizer(library_tokenizer, {})
    return ServedModel(
        names=("model",),
        tokenizer=tokenizer,
        renderer=PromptRenderer(tokenizer, None, 100),
        sampling_defaults=SamplingDefaults(),
        engine=EngineClient(EngineSpec(factory="never:started", options={})),
        output_format=build_output_format(PlainParser),
        vocabulary=GrammarVocabulary({}, 300),
        created=0,
        system_fingerprint="fp",
    )


def standard(model: ServedModel, **more: object) -> StandardAnswer:
    shape = msgspec.structs.replace(
        Shape(
            is_batch=False,
            is_stream=False,
            is_tgi=False,
            n=1,
            is_beam_search=False,
            has_details=False,
            shows_prompt=False,
            num_top_tokens=0,
            skips_special_tokens=True,
        ),
        **more,
    )
    request = GenerationRequest(
        request_id="r",
        prompt=Prompt(INPUTS, [244]),
        params=SamplingParams(max_tokens=256),
        n=shape.n,
        best_of=shape.n,
        stop_strings=(),
        include_stop_str_in_output=False,
        skip_special_tokens=True,
        continues_prompt=True,
        parses_output=False,
        priority=0,
        cache_salt="",
        arrival_s=time.perf_counter(),
    )
    return StandardAnswer(shape, [request], [INPUTS], model, JSON_LINES)


def encode_whole(answer: StandardAnswer, given: Sequence[Event]) -> object:
    return json.loads(msgspec.json.encode(answer.whole(given, USAGE)))


def encode_json(objects: Sequence[object]) -> list[Json]:
    written: list[Json] = json.loads(msgspec.json.encode(objects))
    return written


def test_a_whole_answer_is_a_json_object(model: ServedModel) -> None:
    assert encode_whole(standard(model), events()) == {"generated_text": "Hello world"}


def test_return_full_text(model: ServedModel) -> None:
    assert encode_whole(standard(model, shows_prompt=True), events()) == {
        "generated_text": "This is a wonderful dayHello world"
    }


DETAILS = {"finish_reason": "length", "generated_tokens": 3, "inputs": INPUTS}


def test_an_answer_has_details(model: ServedModel) -> None:
    assert encode_whole(standard(model, has_details=True), events()) == {
        "generated_text": "Hello world",
        "details": DETAILS | {"tokens": TOKENS},
    }


def test_details_with_prefill(model: ServedModel) -> None:
    scored = PromptScored(0, [position(576), position(4558)])
    answer = encode_whole(standard(model, has_details=True), [scored, *events()])
    assert answer == {
        "generated_text": "Hello world",
        "details": DETAILS
        | {"tokens": TOKENS, "prefill": [TOKENS[0] | {"log_prob": None}, *TOKENS[1:]]},
    }


def test_tgi_compatible(model: ServedModel) -> None:
    assert encode_whole(
        standard(model, has_details=True, shows_prompt=True, is_tgi=True), events()
    ) == [
        {
            "generated_text": "This is a wonderful dayHello world",
            "details": DETAILS | {"tokens": TGI_TOKENS},
        }
    ]


@pytest.mark.parametrize(
    ("is_beam_search", "name"), [(False, "best_of_sequences"), (True, "beam_sequences")]
)
def test_several_sequences(model: ServedModel, is_beam_search: bool, name: str) -> None:
    sequence = {"finish_reason": "length", "generated_tokens": 3, "tokens": TOKENS}
    assert encode_whole(
        standard(model, n=2, is_beam_search=is_beam_search), events(0) + events(1)
    ) == {
        "generated_text": "Hello world",
        "details": sequence
        | {"inputs": INPUTS, name: [sequence | {"generated_text": "Hello world"}]},
    }


@pytest.mark.parametrize(("is_beam_search", "first"), [(False, "llo"), (True, "He")])
def test_samples_are_ordered_and_beams_are(
    model: ServedModel, is_beam_search: bool, first: str
) -> None:
    def short(index: int, token_id: int) -> list[Event]:
        output = Output(index, [ContentDelta(TEXTS[token_id])], [token_id], [position(token_id)])
        return [output, Finished(index, FinishReason.LENGTH, None)]

    answer = encode_whole(
        standard(model, n=2, is_beam_search=is_beam_search), short(0, 244) + short(1, 576)
    )
    assert isinstance(answer, dict)
    assert answer["generated_text"] == first


@pytest.mark.parametrize(
    ("more", "tokens", "end"),
    [
        ({}, TOKENS, {"generated_text": "Hello world"}),
        ({"shows_prompt": True}, TOKENS, {"generated_text": "This is a wonderful dayHello world"}),
        ({"has_details": True}, TOKENS, {"generated_text": "Hello world", "details": DETAILS}),
        (
            {"has_details": True, "is_tgi": True},
            TGI_TOKENS,
            {"generated_text": "Hello world", "details": DETAILS | {"input_length": 5}},
        ),
    ],
)
def test_a_stream_is_json_lines(
    model: ServedModel, more: Json, tokens: list[Json], end: Json
) -> None:
    """The engine's last step yields the last token and the end together."""
    answer = standard(model, is_stream=True, **more)
    *first, last, finished = events()
    shown = [
        line
        for step in ([event] for event in first)
        for line in encode_json(answer.chunks(step, USAGE))
    ]
    shown += encode_json(answer.chunks([last, finished], USAGE))
    assert shown == [{"token": tokens[0]}, {"token": tokens[1]}, {"token": tokens[2], **end}]


@pytest.mark.parametrize("is_strict", [False, True])
def test_a_chat_has_lmis_form(model: ServedModel, is_strict: bool) -> None:
    asked = ChatCompletionRequest(
        model="model", messages=[], logprobs=True, top_logprobs=1, stream=True
    )
    openai = ChatAnswer(
        Envelope("chatcmpl-0", 1, "model", "fp"), model, asked, Prompt(INPUTS, [244])
    )
    answer = LmiChatAnswer(openai, JSON_LINES, is_strict=is_strict)
    shown = encode_json(answer.chunks(events(), USAGE))
    text, logprob, text_bytes = " world", -0.567854, list(b" world")
    top = {"token": logprob if is_strict else text, "logprob": logprob, "bytes": text_bytes}
    logprobs = {
        "content": [{"token": text, "logprob": logprob, "bytes": text_bytes, "top_logprobs": [top]}]
    }
    assert [chunk["choices"][0]["delta"] for chunk in shown] == [  # type: ignore[index]
        {"content": "He", "role": "assistant"},
        {"content": "llo"},
        {"content": " world"},
    ]
    assert shown[-1] == {
        "id": "chatcmpl-0",
        "object": "chat.completion.chunk",
        "created": 1,
        "choices": [
            {
                "index": 0,
                "delta": {"content": " world"},
                "logprobs": [logprobs] if is_strict else logprobs,
                "finish_reason": "length",
            }
        ],
    }
