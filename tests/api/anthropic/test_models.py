"""Models in Anthropic's form, for requests with its header; the number of tokens of a prompt."""

import httpx
import pytest

from ouzel.config import LimitsConfig
from tests.api.anthropic.exchanges import LOOK, PATH, Json, build_request, read_error
from tests.api.server_setup import ALIAS, MODEL
from tests.api.serving import running_server

VERSION = {"anthropic-version": "2023-06-01"}


def test_the_header_chooses_the_form_of_the_list_of_models(http: httpx.Client) -> None:
    assert http.get("/v1/models").json()["object"] == "list"
    page = http.get("/v1/models", headers=VERSION, params={"beta": "true"}).json()
    infos = page.pop("data")
    assert page == {"has_more": False, "first_id": MODEL, "last_id": ALIAS}
    assert infos[1] == http.get(f"/v1/models/{ALIAS}", headers=VERSION).json()
    assert infos[1] == {
        "type": "model",
        "id": ALIAS,
        "display_name": ALIAS,
        "created_at": "2023-11-14T22:13:20Z",
        "lifecycle": "active",
        "max_input_tokens": 4096,
        "max_tokens": 4096,
    }


@pytest.mark.parametrize(
    ("params", "ids", "has_more"),
    [
        ({"limit": 1}, [MODEL], True),
        ({"limit": 1, "after_id": MODEL}, [ALIAS], False),
        ({"before_id": ALIAS}, [MODEL], False),
        ({"after_id": ALIAS}, [], False),
        ({"lifecycle": "retired"}, [], False),
    ],
)
def test_models_come_page_by_page(
    http: httpx.Client, params: Json, ids: list[str], has_more: bool
) -> None:
    page = http.get("/v1/models", headers=VERSION, params=params).json()
    assert ([info["id"] for info in page["data"]], page["has_more"]) == (ids, has_more)


@pytest.mark.parametrize(
    "params", [{"limit": 0}, {"limit": 1001}, {"limit": "x"}, {"after_id": "nobody"}]
)
def test_impossible_pages_are_refused(http: httpx.Client, params: Json) -> None:
    status, kind, message = read_error(http.get("/v1/models", headers=VERSION, params=params))
    assert (status, kind) == (400, "invalid_request_error") and message.startswith(
        next(iter(params))
    )


def test_tokens_are_counted_as_they_are_used(http: httpx.Client) -> None:
    body = build_request("Hi", system="Be kind.", tools=[LOOK], thinking={"type": "adaptive"})
    usage = http.post(PATH, json=body).json()["usage"]
    del body["max_tokens"]
    counted = http.post(f"{PATH}/count_tokens", json=body, params={"beta": "true"}).json()
    assert counted == {"input_tokens": usage["input_tokens"] + usage["cache_read_input_tokens"]}


def test_streams_that_wait_have_pings() -> None:
    limits = LimitsConfig(stream_keepalive_s=0.05)
    with running_server({"step_s": 0.2}, limits) as server, server.client() as http:
        text = http.post(PATH, json=build_request("ab", stream=True)).text
    ping = 'event: ping\ndata: {"type":"ping"}\n\n'
    assert text.startswith(ping)  # the first ping comes before the first token
    assert text.partition("content_block_start")[2].count(ping) > 0
    assert ": keep-alive" not in text


def test_the_limit_of_an_answer_is_nothing_to_its_prompt(http: httpx.Client) -> None:
    limited = {"max_tokens": 0, "thinking": {"type": "enabled", "budget_tokens": 2000}}
    counts = [
        http.post(f"{PATH}/count_tokens", json=build_request("Hi") | each)
        for each in (limited, {**limited, "max_tokens": None})
    ]
    assert [count.status_code for count in counts] == [200, 200]
    assert counts[0].json() == counts[1].json()
