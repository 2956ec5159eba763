"""Three ways to send ten turns with reasoning and calls give the engine the same prompts."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx
import pytest

from tests.api.byte_tokens import END
from tests.api.engines import received_prompts
from tests.api.responses.test_response import LOOK, REST, SAYINGS
from tests.api.responses.thinking import thinking_server
from tests.api.responses.ways import WAYS, Way, build_output, list_calls


@pytest.fixture
def http(tmp_path: Path) -> Iterator[httpx.Client]:
    url = f"sqlite:///{tmp_path}/responses.sqlite3"
    with (
        thinking_server(
            url, max_model_len=2**15, engine_factory="create_recording_parrot"
        ) as server,
        httpx.Client(base_url=f"{server.url}/v1", timeout=None) as http,
    ):
        yield http


def test_three_ways_give_the_engine_the_same_prompts(http: httpx.Client) -> None:
    first, *others = [prompts_of_ten_turns(http, way) for way in WAYS]
    assert others == [first, first]
    for before, after in itertools.pairwise(first):
        assert len(after) > len(before) and after.count(END) > before.count(END)


def prompts_of_ten_turns(http: httpx.Client, way: Way) -> list[Sequence[int]]:
    send, num_before = way(http), len(received_prompts)
    fields = {"model": "parrot", "tools": [LOOK, REST], "instructions": "Look, then rest."}
    for turn in range(10):
        asked = {
            "role": "user",
            "content": SAYINGS["reasoning, text and calls"].replace("owl", f"owl {turn}"),
        }
        outputs = [
            build_output(call, f"Done in turn {turn}.")
            for call in list_calls(send(asked, **fields))
        ]
        assert len(outputs) == 2
        send(*outputs, **fields)
    return received_prompts[num_before:]
