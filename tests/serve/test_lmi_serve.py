"""`ouzel serve` as LMI's containers are configured: by environment and `serving.properties`."""

from pathlib import Path
from shutil import copytree

import httpx
import pytest

from ouzel.demo import MODEL_DIRECTORY
from tests.serve.running import serving


def test_a_model_directory_with_lmi_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = copytree(MODEL_DIRECTORY, tmp_path / "model")
    (directory / "serving.properties").write_text(
        "option.tgi_compat=true\noption.tensor_parallel_degree=max\n"
    )
    monkeypatch.setenv("SERVING_MODEL_STORE", str(directory))
    monkeypatch.setenv("OPTION_MAX_MODEL_LEN", "64")
    monkeypatch.setenv("SERVING_INFERENCE_ADDRESS", "http://127.0.0.1:8080")
    body = {"messages": [{"role": "user", "content": "What is 17 plus 25?"}], "temperature": 0}

    with serving("--profile", "lmi", "--log-level", "info", cache_dir=tmp_path / "cache") as server:
        chat = httpx.post(f"{server.url}/chat/completions", json=body, timeout=None)
        too_long = httpx.post(
            f"{server.root}/invocations", json={"inputs": "word " * 100}, timeout=None
        )
        [text] = httpx.post(
            f"{server.root}/invocations", json={"inputs": "Hello"}, timeout=None
        ).json()
        server.process.terminate()
        _, log = server.process.communicate()

    assert "42" in chat.json()["choices"][0]["message"]["content"]
    assert chat.json()["choices"][0]["finish_reason"] == "eos_token"
    assert too_long.status_code == 424
    assert "64 tokens" in too_long.json()["error"]
    assert text["details"]["generated_tokens"] == 30
    assert (
        f"LMI's tensor_parallel_degree ({directory}/serving.properties) has no meaning here" in log
    )
