"""A killed server has the chats that it has answered, and nothing of the chat in between."""

from pathlib import Path

import httpx

from tests.api.requests import Json
from tests.serve.running import serving

PATH = "chat/completions"
ENDLESS: Json = {"max_tokens": 100_000, "ignore_eos": True, "stream": True}


def build_body(**fields: object) -> Json:
    messages = [{"role": "user", "content": "Count from 1 to 60."}]
    return {
        "model": "ouzel-demo",
        "messages": messages,
        "store": True,
        "metadata": {"run": "1"},
        **fields,
    }


def test_kill_9_loses_no_answered_chat_and_leaves_no_half_one(tmp_path: Path) -> None:
    with (
        serving(cache_dir=tmp_path, is_executed=True) as server,
        httpx.Client(base_url=server.url, timeout=None) as http,
    ):
        engine = server.engine_process()
        answered = http.post(PATH, json=build_body(max_tokens=3)).json()
        path = f"{PATH}/{answered['id']}"
        assert http.get(path).status_code == 200
        with http.stream("POST", PATH, json=build_body(**ENDLESS)) as stream:
            pieces = stream.iter_bytes()
            while b'"content":"' not in next(pieces):
                pass
            server.process.kill()
        engine.wait()
    with (
        serving(cache_dir=tmp_path, is_executed=True) as server,
        httpx.Client(base_url=server.url, timeout=None) as http,
    ):
        [stored] = http.get(PATH, params={"metadata[run]": "1"}).json()["data"]
        assert stored["choices"] == answered["choices"]
        messages = http.get(f"{path}/messages").json()["data"]
        assert [each["content"] for each in messages] == ["Count from 1 to 60."]
