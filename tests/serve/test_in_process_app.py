"""The demo model answers in this process, as it would over HTTP."""

from pathlib import Path

import msgspec
import pytest

from ouzel.options.invalid_option import InvalidOption
from ouzel.serve.in_process_app import in_process_app, read_own_model

QUESTION = {
    "model": "ouzel-demo",
    "messages": [{"role": "user", "content": "Count from 1 to 5."}],
    "temperature": 0,
}


async def test_the_demo_model_answers_without_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUZEL_API_KEY", "of-the-server")
    arguments = ["--cache-dir", str(tmp_path), "--kv-cache-gib", "0.05", "--no-engine-process"]
    options, model = read_own_model(arguments, command="chat")

    async with in_process_app(options, model) as client:
        answer = await client.ask("POST", "/v1/chat/completions", msgspec.json.encode(QUESTION))

    assert "1, 2, 3, 4, 5" in msgspec.json.decode(answer.body)["choices"][0]["message"]["content"]


def test_a_servers_directory_of_models_leaves_the_demo_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUZEL_MODELS_DIR", str(tmp_path))
    _, model = read_own_model(["--cache-dir", str(tmp_path)], command="chat")
    assert model.names == ("ouzel-demo",)


@pytest.mark.parametrize(
    "argument",
    ["--port", "--port=8000", "--api-key", "--no-store", "--metrics-port", "--no-open-metrics"],
)
def test_a_flag_of_serving_is_refused(argument: str) -> None:
    flag = argument.partition("=")[0]
    with pytest.raises(InvalidOption, match=f"^{flag}: is an option of ouzel serve"):
        read_own_model([argument, "1"], command="bench")
