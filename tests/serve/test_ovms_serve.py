"""`ouzel serve` as OVMS is started and asked."""

from pathlib import Path

import httpx
import openai
import pytest

from ouzel.demo import MODEL_DIRECTORY
from tests.serve.running import serving

FLAGS = (
    "--profile",
    "ovms",
    "--model_name",
    "llama3",
    "--rest_port",
    "0",
    "--rest_workers",
    "2",
    "--task",
    "text_generation",
    "--precision",  # the same beams on every CPU
    "f32",
    "--kv-cache-dtype",
    "f32",
)
PAGE = {"origin": "https://chat.example.org"}


def test_a_command_line_and_a_client_of_ovms(tmp_path: Path) -> None:
    with (
        serving(*FLAGS, "--model_path", str(MODEL_DIRECTORY), cache_dir=tmp_path) as server,
        openai.OpenAI(base_url=f"{server.root}/v3", api_key="unused", max_retries=0) as client,
    ):
        answer = client.chat.completions.create(
            model="llama3",
            messages=[{"role": "user", "content": "What is 17 plus 25?"}],
            max_tokens=100,
            extra_body={"top_k": 1},
            stream=False,
        )
        beams = client.chat.completions.create(
            model="llama3",
            messages=[{"role": "user", "content": "What is 17 plus 25?"}],
            max_tokens=100,
            n=2,
            extra_body={"best_of": 3},
        )
        with pytest.raises(openai.BadRequestError) as wrong_field:
            client.chat.completions.create(
                model="llama3", messages=[{"role": "user", "content": "Hi"}], temperature=3
            )
        with pytest.raises(openai.NotFoundError) as wrong_model:
            client.chat.completions.create(
                model="llama4", messages=[{"role": "user", "content": "Hi"}]
            )
        assert [model.id for model in client.models.list()] == ["llama3"]
        state = httpx.get(f"{server.root}/v1/config", headers=PAGE)

    assert "42" in (answer.choices[0].message.content or "")
    assert [choice.finish_reason for choice in beams.choices] == ["stop", "stop"]
    assert beams.choices[0].message.content != beams.choices[1].message.content
    assert state.json()["llama3"]["model_version_status"][0]["state"] == "AVAILABLE"
    assert state.headers["access-control-allow-origin"] == "*"
    assert wrong_field.value.response.json()["error"].endswith(
        "temperature must be <= 2.0, given 3"
    )
    assert wrong_model.value.response.json() == {
        "error": "Mediapipe graph definition with requested name is not found"
    }
