"""Images in the input of a response reach the engine and the store, or are refused."""

from collections.abc import Iterator

import httpx
import pytest

from ouzel.responses.items.packed_text import CONTEXT, SUMMARY
from tests.api.requests import Json, read_error, wait_until
from tests.api.responses.sockets import connect_socket
from tests.api.responses.strict import strict_end, strict_items, strict_response
from tests.api.responses.test_conversations import create_conversation
from tests.api.responses.test_input import call, message, output
from tests.api.responses.ways import WAYS, Way
from tests.api.seeing import data_url, last_prompt, last_request, seeing_server, sizes_seen
from tests.api.serving import RunningServer

LOOK: Json = {"type": "input_text", "text": "Look"}
BROKEN = "data:image/png;base64,aGk="


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    store_url = f"sqlite:///{tmp_path_factory.mktemp('store')}/responses.sqlite3"
    with seeing_server(
        tmp_path_factory.mktemp("model"), max_model_len=1200, store_url=store_url
    ) as server:
        yield server


@pytest.fixture(scope="module")
def http(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as http:
        yield http


def image_part(height: int, width: int, **fields: object) -> Json:
    return {"type": "input_image", "image_url": data_url(height, width), **fields}


def body(*items: Json, **fields: object) -> Json:
    return {"model": "parrot", "input": items, **fields}


@pytest.mark.parametrize(
    "picture",
    [
        image_part(56, 84),
        image_part(56, 84, detail="high"),
        {"type": "input_image", "image_url": {"url": data_url(56, 84), "detail": "high"}},
    ],
    ids=["a text", "with a detail", "an object"],
)
def test_pictures_stand_where_the_input_has_them(http: httpx.Client, picture: Json) -> None:
    asked = body(message("user", [image_part(28, 28), LOOK, picture]))

    response = strict_response(http.post("/v1/responses", json=asked).text)

    assert "<|im_start|>user\n<picture of 1>Look<picture of 6><|im_end|>\n" in last_prompt()
    assert sizes_seen() == [(28, 28), (56, 84)]
    assert response.output_text == "Look"
    assert response.usage is not None
    assert response.usage.input_tokens == len(last_request().prompt_token_ids)
    counted = http.post("/v1/responses/input_tokens", json=asked).json()
    assert counted["input_tokens"] == response.usage.input_tokens
    streamed = strict_end(http.post("/v1/responses", json={**asked, "stream": True}))
    assert streamed.output_text == "Look"
    assert sizes_seen() == [(28, 28), (56, 84)]


def test_a_low_detail_is_smaller(http: httpx.Client) -> None:
    prompts = []
    for detail in ("low", "original"):
        http.post(
            "/v1/responses",
            json=body(message("user", [image_part(560, 560, detail=detail)]), max_output_tokens=1),
        )
        prompts.append(last_prompt())

    assert "<picture of 324>" in prompts[0] and "<picture of 400>" in prompts[1]


def test_tools_show_pictures(http: httpx.Client) -> None:
    custom: Json = {"type": "custom_tool_call", "call_id": "b", "name": "draw", "input": "+"}
    drawn: Json = {
        "type": "custom_tool_call_output",
        "call_id": "b",
        "output": [image_part(56, 84)],
    }
    asked = body(
        message("user", "Go"), call("a"), output("a", [LOOK, image_part(28, 56)]), custom, drawn
    )

    strict_response(http.post("/v1/responses", json=asked).text)

    assert "<tool_response>\nLook<picture of 2>\n</tool_response>" in last_prompt()
    assert "<tool_response>\n<picture of 6>\n</tool_response>" in last_prompt()
    assert sizes_seen() == [(28, 56), (56, 84)]


@pytest.mark.parametrize("way", WAYS)
def test_the_next_turn_sees_the_pictures_of_the_one_before(http: httpx.Client, way: Way) -> None:
    with httpx.Client(base_url=f"{http.base_url}/v1/", timeout=None) as client:
        send = way(client)
        send(message("user", [LOOK, image_part(28, 56)]), model="parrot")
        send(message("user", [image_part(84, 28), LOOK]), model="parrot")

    assert sizes_seen() == [(28, 56), (84, 28)]


def test_a_websocket_sees_them_too(server: RunningServer) -> None:
    with connect_socket(server.url) as socket:
        first = socket.response([message("user", [LOOK, image_part(28, 56)])], store=False)
        assert sizes_seen() == [(28, 56)]
        second = socket.response(
            [message("user", [image_part(84, 28)])], store=False, previous_response_id=first.id
        )
        assert sizes_seen() == [(28, 56), (84, 28)]
        socket.create([message("user", [{"type": "input_image", "image_url": BROKEN}])])
        [event] = socket.events()
        assert event.type == "error" and event.error.param == "input[0].content[0].image_url"
        socket.response([], generate=False, previous_response_id=second.id, store=False)


def test_a_response_in_the_background_sees_images(http: httpx.Client) -> None:
    asked = body(message("user", [LOOK, image_part(56, 28)]), background=True)
    path = f"/v1/responses/{http.post('/v1/responses', json=asked).json()['id']}"

    wait_until(lambda: http.get(path).json()["status"] == "completed")

    assert sizes_seen() == [(56, 28)]


def test_images_are_stored_as_they_were_sent(http: httpx.Client) -> None:
    with_detail, without = image_part(28, 28, detail="original"), image_part(28, 56)
    as_an_object = {
        "type": "input_image",
        "image_url": {"url": "https://example.org/a.png", "detail": "low"},
    }
    items = [
        message("user", [with_detail, LOOK, without, as_an_object]),
        call("a"),
        output("a", [without]),
    ]
    conversation_id = create_conversation(http, items=items)

    listed = strict_items(
        http.get(f"/v1/conversations/{conversation_id}/items", params={"order": "asc"}).text
    )

    content = [with_detail, LOOK, {**without, "detail": "auto"}]
    content.append(
        {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "low"}
    )
    assert listed.data[0].to_dict()["content"] == content
    assert listed.data[2].to_dict()["output"] == [{**without, "detail": "auto"}]


def test_the_input_of_a_response_shows_images(
    http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    include = ["message.input_image.image_url"]
    picture = image_part(28, 28, detail="auto")
    response = http.post(
        "/v1/responses", json=body(message("user", [picture]), include=include)
    ).json()

    listed = http.get(
        f"/v1/responses/{response['id']}/input_items", params={"include": include}
    ).json()

    assert listed["data"][0]["content"] == [picture]
    assert "which this server never produces" not in caplog.text


def test_old_turns_are_left_out_with_their_pictures(http: httpx.Client) -> None:
    turns: list[Json] = []
    for width in (560, 588, 616):  # 400, 420 and 440 tokens, of 1200
        turns += [message("user", [image_part(560, width), LOOK]), message("assistant", "I see.")]
    turns.append(message("user", "And now?"))

    refused = http.post("/v1/responses", json=body(*turns))
    answered = http.post("/v1/responses", json=body(*turns, truncation="auto"))

    assert read_error(refused)["code"] == "context_length_exceeded"
    assert read_error(refused)["param"] == "input"
    assert answered.json()["status"] == "completed"
    assert sizes_seen() == [(560, 588), (560, 616)]


def test_pictures_of_a_leading_system_message_stay(http: httpx.Client) -> None:
    system = message("system", [image_part(280, 280)])
    turns = [message("user", [image_part(560, width), LOOK]) for width in (560, 588, 616)]

    assert (
        http.post("/v1/responses", json=body(system, *turns, truncation="auto")).status_code == 200
    )

    assert sizes_seen() == [(280, 280), (560, 588), (560, 616)]


def test_a_summary_tells_of_pictures(http: httpx.Client) -> None:
    items = [
        message("user", [LOOK, image_part(28, 56)]),
        call("a"),
        output("a", [image_part(28, 28)]),
    ]

    compacted = http.post("/v1/responses/compact", json=body(*items)).json()["output"]

    summary = SUMMARY.unpack(compacted[-1]["encrypted_content"])
    assert summary is not None
    assert "[user]\nLook\n[picture]\n" in summary and "[result of look]\n[picture]\n" in summary
    assert last_request().images == ()
    assert compacted[0]["content"] == [LOOK, {**image_part(28, 56), "detail": "auto"}]
    http.post("/v1/responses", json=body(*compacted, message("user", [image_part(84, 28), LOOK])))
    assert "Look<picture of 2>\n\n[What was said before, summarised]\n" in last_prompt()
    assert "[End of the summary]\n\n<picture of 3>Look<|im_end|>" in last_prompt()
    assert sizes_seen() == [(28, 56), (84, 28)]


@pytest.mark.parametrize("way", WAYS)
def test_the_users_last_image_outlives_a_compaction(http: httpx.Client, way: Way) -> None:
    rules = [{"type": "compaction", "compact_threshold": 300}]
    talk = [message("user", [image_part(560, 560), LOOK]), message("assistant", "I see.")]
    with httpx.Client(base_url=f"{http.base_url}/v1/", timeout=None) as client:
        send = way(client)
        last = message("user", [LOOK, image_part(28, 56)])
        first = send(*talk, last, model="parrot", context_management=rules)
        assert sizes_seen() == [(28, 56)]
        send(message("user", "More"), model="parrot")

    text = CONTEXT.unpack(first["output"][0]["encrypted_content"])
    assert text is not None and text.endswith("[End of the summary]\n\nLook\n[picture]")
    assert sizes_seen() == [(28, 56)]
    assert "Look\n[picture]<picture of 2><|im_end|>\n<|im_start|>assistant\n" in last_prompt()


PICTURE = {"type": "input_image", "image_url": "data:,"}
FAULTS: dict[str, tuple[Json, str, str]] = {
    "no picture": (image_part(1, 1) | {"image_url": BROKEN}, ".image_url", "must be a picture"),
    "no base64": (
        image_part(1, 1) | {"image_url": {"url": "data:;base64,*"}},
        ".image_url.url",
        "valid base64",
    ),
    "no URL": (
        {"type": "input_image"},
        ".image_url",
        "a URL, a data URL, base64 or a path, given nothing",
    ),
    "a file": (
        {"type": "input_image", "file_id": 1},
        ".file_id",
        "must be the id of a file, given 1",
    ),
    "a URL": (
        image_part(1, 1) | {"image_url": "https://example.org/a.png"},
        ".image_url",
        "allowed_media_domains",
    ),
    "a detail": (image_part(1, 1, detail="huge"), ".detail", "one of auto, low, high, original"),
    "another part": (
        {"type": "input_audio"},
        ".type",
        'refusal, input_image, input_file, given "input_audio": this model reads text and pictures',
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_unusable_image_is_refused_by_its_path(http: httpx.Client, fault: str) -> None:
    part, path, complaint = FAULTS[fault]

    for stream in (False, True):
        response = http.post(
            "/v1/responses",
            json=body(message("user", "Hi"), message("user", [LOOK, part]), stream=stream),
        )
        assert response.status_code == 400
        error = read_error(response)
        assert error["param"] == f"input[1].content[1]{path}"
        assert complaint in error["message"]


def test_an_unusable_image_of_a_tool_is_refused_by_its_path(http: httpx.Client) -> None:
    items = [call("a"), output("a", [LOOK, {"type": "input_image", "image_url": BROKEN}])]

    error = read_error(http.post("/v1/responses", json=body(*items)))

    assert error["param"] == "input[1].output[1].image_url"


def test_an_unusable_stored_image_is_refused_by_the_field_that_leads_to_it(
    http: httpx.Client,
) -> None:
    broken = message("user", [{"type": "input_image", "image_url": BROKEN}])
    conversation_id = create_conversation(http, items=[broken])

    error = read_error(
        http.post("/v1/responses", json=body(message("user", "Hi"), conversation=conversation_id))
    )

    assert error["param"] == "conversation.content[0].image_url"


def test_answers_have_no_pictures(http: httpx.Client) -> None:
    error = read_error(
        http.post(
            "/v1/responses", json=body(message("assistant", [PICTURE]), message("user", "Hi"))
        )
    )

    assert error["param"] == "input[0].content[0].type"
    assert error["message"].endswith(
        'must be one of input_text, output_text, refusal, given "input_image"'
    )


def test_a_model_of_texts_keeps_none(thinker_http: httpx.Client) -> None:
    refused = thinker_http.post("/v1/conversations", json={"items": [message("user", [PICTURE])]})

    assert read_error(refused)["param"] == "items[0].content[0].type"
    assert read_error(refused)["message"].endswith(
        'given "input_image": this model reads text only'
    )
