"""A realtime session reaches a real speech model, which its first turn loads."""

from base64 import b64encode
from pathlib import Path
from typing import Any

import numpy as np
from openai import OpenAI

from tests.backends.speech_goldens import SPEECH
from tests.serve.running import serving


def test_the_first_turn_of_a_session_loads_its_model(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "whisper").symlink_to(SPEECH / "whisper")
    noise = np.random.default_rng(1).normal(0, 3000, 24_000).astype("<i2").tobytes()
    options = ("--models-dir", str(tmp_path / "models"), "--no-store")
    with (
        serving(*options, cache_dir=tmp_path / "cache") as server,
        OpenAI(base_url=server.url, api_key="none", max_retries=0, timeout=None) as client,
        client.realtime.connect(model="whisper") as session,
    ):
        for _ in range(2):
            session.input_audio_buffer.append(audio=b64encode(noise).decode())
            session.input_audio_buffer.commit()
        events: list[Any] = []  # the types of usage are a union
        while len(events) < 2:
            event = session.recv()
            assert event.type not in (
                "error",
                "conversation.item.input_audio_transcription.failed",
            ), event
            if event.type == "conversation.item.input_audio_transcription.completed":
                events.append(event)
    for event in events:
        assert event.usage.type == "tokens"
        assert event.usage.output_tokens > 0
