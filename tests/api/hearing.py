"""Starts a server whose model hears sounds in chats, without weights.

The engine repeats the user's message and records the requests that it receives.
"""

import json
from base64 import b64encode
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from ouzel.backends.fake import FakeEngine, FakeOptions
from ouzel.config import MediaConfig
from ouzel.prompts.hearing.loader import load_sound_processor
from ouzel.types.engine_request import EngineRequest, SoundInput
from tests.api.byte_tokens import byte_tokenizer
from tests.api.engines import repeat_user_message
from tests.api.serving import RunningServer, running_server
from tests.audio.files import encode_samples, make_wav
from tests.audio.signals import make_voice

MARKS = ("<|AUDIO|>", "<|audio_bos|>", "<|audio_eos|>")
CONFIG = {"model_type": "qwen2_audio", "audio_config": {"num_mel_bins": 128}}
# A template with the structure and markup of Qwen2-Audio's template, in our words.
TEMPLATE = """
{%- set sounds = namespace(count=0) %}
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if message.content is string %}{{- message.content }}{%- else %}
        {%- for part in message.content %}
            {%- if 'audio' in part or 'audio_url' in part %}
                {%- set sounds.count = sounds.count + 1 %}
                {{- 'Audio ' ~ sounds.count ~ ': <|audio_bos|><|AUDIO|><|audio_eos|>\\n' }}
            {%- elif 'text' in part %}{{- part.text }}{% endif %}
        {%- endfor %}
    {%- endif %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% endif %}
"""
_TOKENIZER = byte_tokenizer(*MARKS)
_received_requests: list[EngineRequest] = []


def create_hearing_parrot(options: dict[str, object]) -> FakeEngine:
    """Makes an engine that appends each request to `_received_requests`.

    It needs `in_thread=True`.
    """

    def repeat_and_record(request: EngineRequest, position: int) -> int:
        if position == 0:
            _received_requests.append(request)
        return repeat_user_message(request, position)

    return FakeEngine(msgspec.convert(options, FakeOptions), repeat_and_record)


def hearing_server(
    directory: Path,
    *,
    max_model_len: int = 4096,
    media: MediaConfig | None = None,
    store_url: str | None = None,
) -> AbstractContextManager[RunningServer]:
    """Starts a server; writes the model's small files into the empty `directory`."""
    (directory / "config.json").write_text(json.dumps(CONFIG))
    (directory / "preprocessor_config.json").write_text(json.dumps({"feature_size": 128}))
    return running_server(
        {"max_model_len": max_model_len},
        tokenizer=_TOKENIZER,
        engine_factory="tests.api.hearing:create_hearing_parrot",
        chat_template=TEMPLATE,
        sound_processor=load_sound_processor(directory),
        media=media or MediaConfig(),
        store_url=store_url,
    )


def encode_sound(seconds: float, seed: int = 0) -> str:
    """Returns the base64 of a WAV file."""
    return b64encode(make_wav(encode_samples(make_voice(seconds, seed), "i16"))).decode()


def last_sounds() -> list[SoundInput]:
    """Returns the sounds of the newest request; checks that they are at the places of their
    tokens.
    """
    request = _received_requests[-1]
    sounds = [each for each in request.images if isinstance(each, SoundInput)]
    assert len(sounds) == len(request.images)
    token_id = _TOKENIZER.control_tokens["<|AUDIO|>"]
    places = [at for at, each in enumerate(request.prompt_token_ids) if each == token_id]
    assert places == [
        first + at for sound in sounds for first, num in sound.runs for at in range(num)
    ]
    return sounds


def last_prompt() -> str:
    """Returns the text of the newest prompt.

    The tokens of each sound are replaced by their number, as in "<sound of 12>".
    """
    text = _TOKENIZER.decode(_received_requests[-1].prompt_token_ids, skip_special_tokens=False)
    for sound in last_sounds():
        num_tokens = sum(num for _, num in sound.runs)
        text = text.replace("<|AUDIO|>" * num_tokens, f"<sound of {num_tokens}>", 1)
    return text
