"""PDFs in chats, responses and messages reach the engine as images, or are refused."""

import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from openai.types.chat import ChatCompletion

from ouzel.config import MediaConfig
from ouzel.responses.items.packed_text import SUMMARY
from tests.api.anthropic import exchanges
from tests.api.requests import Json, join_content, read_error, read_events
from tests.api.responses.strict import strict_end, strict_items, strict_response
from tests.api.responses.test_conversations import create_conversation
from tests.api.responses.test_input import call, message, output
from tests.api.seeing import data_url, last_prompt, last_request, seeing_server
from tests.engine.requests import only_images
from tests.prompts.media.papers import COLOURS, coloured

CHATS, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
INCH = (72, 72)  # points; rendered with 150 pixels, and resized by the family to 140: 25 tokens
LOOK: Json = {"type": "text", "text": "Look"}


def encode_base64(file: bytes) -> str:
    return b64encode(file).decode()


TWO = encode_base64(coloured(2, INCH))
URL = f"data:application/pdf;base64,{TWO}"
TWO_PAGES = "<picture of 25><picture of 25>"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files")
    (path / "two.pdf").write_bytes(coloured(2, INCH))
    return path


@pytest.fixture(scope="module")
def http(directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    media = MediaConfig(max_images=4, allowed_local_media_path=str(directory))
    store_url = f"sqlite:///{tmp_path_factory.mktemp('store')}/responses.sqlite3"
    with (
        seeing_server(
            tmp_path_factory.mktemp("model"), max_model_len=1200, media=media, store_url=store_url
        ) as server,
        server.client() as http,
    ):
        yield http


def chat(*parts: Json, **fields: object) -> Json:
    return {"model": "parrot", "messages": [{"role": "user", "content": [*parts]}], **fields}


def file(data: str, **fields: object) -> Json:
    return {"type": "file", "file": {"file_data": data, "filename": "two.pdf", **fields}}


def items(*parts: Json, **fields: object) -> Json:
    return {"model": "parrot", "input": [message("user", [*parts])], **fields}


def input_file(**fields: object) -> Json:
    return {"type": "input_file", **fields}


def document(kind: str = "base64", **fields: object) -> Json:
    own = {"data": TWO, "media_type": "application/pdf"} if kind == "base64" else {}
    return {"type": "document", "source": {"type": kind, **own, **fields}}


def messages(*blocks: Json, **fields: object) -> Json:
    return (
        exchanges.build_request("")
        | {"messages": [{"role": "user", "content": [*blocks]}]}
        | fields
    )


def colours_seen() -> list[tuple[int, ...]]:
    """Returns the colour of the last pixel of each image in the newest request."""
    return [tuple(image.pixels[-3:]) for image in only_images(last_request().images)]


def test_the_pages_of_a_chats_file_stand_where_it_is(http: httpx.Client) -> None:
    picture: Json = {"type": "image_url", "image_url": {"url": data_url(28, 56)}}
    parts: list[Json] = [LOOK, file(URL), {"type": "text", "text": " here"}, picture]

    answer = http.post(CHATS, json=chat(*parts))

    assert last_prompt().startswith(
        f"<|im_start|>user\nLook{TWO_PAGES} here<picture of 2><|im_end|>\n"
    )
    sent = only_images(last_request().images)
    assert [image.size for image in sent] == [(150, 150), (150, 150), (28, 56)]
    assert colours_seen()[:2] == [*COLOURS[:2]]
    usage = ChatCompletion.model_validate(answer.json(), strict=True).usage
    assert usage is not None and usage.prompt_tokens_details is not None
    assert usage.prompt_tokens_details.image_tokens == 52
    streamed = http.post(CHATS, json=chat(*parts, stream=True))
    assert join_content(read_events(streamed)) == "Look here"
    assert [image.digest for image in only_images(last_request().images)] == [
        image.digest for image in sent
    ]


def test_the_pages_of_a_responses_file_stand_where_it_is(http: httpx.Client) -> None:
    look: Json = {"type": "input_text", "text": "Look"}
    asked = items(look, input_file(filename="two.pdf", file_data=URL))

    response = strict_response(http.post(RESPONSES, json=asked).text)

    assert f"<|im_start|>user\nLook{TWO_PAGES}<|im_end|>\n" in last_prompt()
    assert colours_seen() == [*COLOURS[:2]]
    assert response.usage is not None
    counted = http.post(f"{RESPONSES}/input_tokens", json=asked).json()
    assert (
        counted["input_tokens"]
        == response.usage.input_tokens
        == len(last_request().prompt_token_ids)
    )
    strict_response(http.post(RESPONSES, json=items(look, previous_response_id=response.id)).text)
    assert colours_seen() == [*COLOURS[:2]]
    assert strict_end(http.post(RESPONSES, json={**asked, "stream": True})).output_text == "Look"
    shown = [message("user", "Go"), call("a"), output("a", [input_file(file_data=TWO)])]
    http.post(RESPONSES, json={"model": "parrot", "input": shown})
    assert f"<tool_response>\n{TWO_PAGES}\n</tool_response>" in last_prompt()


def test_the_pages_of_a_messages_document_stand_where_it_is(http: httpx.Client) -> None:
    blocks = [LOOK, document(), document("url", url=URL) | {"title": "Owls", "context": "A book"}]

    answer = http.post(MESSAGES, json=messages(*blocks)).json()

    assert (
        f"<|im_start|>user\nLook{TWO_PAGES}<document>\nOwls\nA book\n{TWO_PAGES}\n</document>"
        in last_prompt()
    )
    assert colours_seen() == [*COLOURS[:2]] * 2
    assert answer["usage"]["input_tokens"] + (
        answer["usage"]["cache_read_input_tokens"] or 0
    ) == len(last_request().prompt_token_ids)
    counted = http.post(f"{MESSAGES}/count_tokens", json=messages(*blocks)).json()
    assert counted["input_tokens"] == len(last_request().prompt_token_ids)
    streamed = exchanges.read_events(http.post(MESSAGES, json=messages(*blocks, stream=True)))
    assert exchanges.fold_events(streamed)["content"] == answer["content"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHATS, chat(file(TWO))),
        (RESPONSES, items(input_file(file_url=URL))),
        (RESPONSES, items(input_file(file_url="two.pdf", file_data=None))),
        (RESPONSES, items(input_file(file_data=TWO, detail="high"))),
        (MESSAGES, messages(document("url", url="two.pdf"))),
    ],
    ids=["base64", "a data URL as URL", "a path", "with a detail", "a path of messages"],
)
def test_a_file_may_be_named_in_many_ways(http: httpx.Client, path: str, body: Json) -> None:
    assert http.post(path, json=body).status_code == 200

    assert TWO_PAGES in last_prompt()


def test_a_low_detail_is_smaller(http: httpx.Client) -> None:
    large = encode_base64(coloured(1, (300, 300)))
    for detail, num_tokens in (("low", 324), ("high", 484)):
        http.post(
            RESPONSES, json=items(input_file(file_data=large, detail=detail), max_output_tokens=16)
        )
        assert f"<picture of {num_tokens}>" in last_prompt()


def test_files_are_stored_as_they_were_sent(http: httpx.Client) -> None:
    part = input_file(file_data=URL, filename="two.pdf")
    conversation_id = create_conversation(http, items=[message("user", [part])])

    listed = strict_items(http.get(f"/v1/conversations/{conversation_id}/items").text)

    assert listed.data[0].to_dict()["content"] == [part]


def test_each_page_counts_as_a_picture(http: httpx.Client) -> None:
    picture: Json = {"type": "image_url", "image_url": {"url": data_url(28, 28)}}

    error = read_error(http.post(CHATS, json=chat(picture, file(URL), file(URL))))

    assert error["param"] == "messages[0].content[2].file.file_data"
    assert (
        "must be a PDF of <= 1 pages: a request has <= 4 pictures (max_images)" in error["message"]
    )


def test_pages_beyond_the_context_are_too_long_a_chat(http: httpx.Client) -> None:
    error = read_error(http.post(CHATS, json=chat(file(encode_base64(coloured(3, (300, 300)))))))

    assert (error["code"], error["param"]) == ("context_length_exceeded", "messages")


NO_PDF = encode_base64(b"a,b\0\n1,2\n")
REFUSED: dict[str, tuple[str, Json, str, str]] = {
    "no PDF": (
        CHATS,
        chat(LOOK, file(NO_PDF)),
        "messages[0].content[1].file.file_data",
        "must be a PDF, a Word file (.docx) or a text, given 9 bytes: the file is not a text",
    ),
    "no file": (
        CHATS,
        chat({"type": "file"}),
        "messages[0].content[0].file",
        "must be an object, given nothing",
    ),
    "nothing": (
        CHATS,
        chat(file("")),
        "messages[0].content[0].file.file_data",
        "must be a data URL or base64",
    ),
    "no base64": (
        CHATS,
        chat(file("*")),
        "messages[0].content[0].file.file_data",
        "must have valid base64",
    ),
    "an id": (
        CHATS,
        chat({"type": "file", "file": {"file_id": 1}}),
        "messages[0].content[0].file.file_id",
        "must be the id of a file, given 1",
    ),
    "an id beside data": (
        RESPONSES,
        items(input_file(file_data=TWO, file_id="")),
        "input[0].content[0].file_id",
        "must be the id of a file",
    ),
    "two": (
        RESPONSES,
        items(input_file(file_data=TWO, file_url=URL)),
        "input[0].content[0].file_url",
        "beside file_",
    ),
    "a URL": (
        RESPONSES,
        items(input_file(file_url="https://example.org/a.pdf")),
        "input[0].content[0].file_url",
        "allowed_media_domains",
    ),
    "a detail": (
        RESPONSES,
        items(input_file(file_data=TWO, detail="huge")),
        "input[0].content[0].detail",
        "one of",
    ),
    "in an answer": (
        RESPONSES,
        {"model": "parrot", "input": [message("assistant", [input_file(file_data=TWO)])]},
        "input[0].content[0].type",
        "must be one of input_text, output_text, refusal",
    ),
    "long pages": (
        CHATS,
        chat(file(encode_base64(coloured(1, (14_400, 10))))),
        "messages[0].content[0].file.file_data",
        "has a page that this model cannot take: the aspect ratio must be <= 200, given 3072x2",
    ),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_an_unreadable_file_is_refused_by_its_path(http: httpx.Client, fault: str) -> None:
    path, body, param, complaint = REFUSED[fault]

    for stream in (False, True):
        response = http.post(path, json={**body, "stream": stream})

        assert response.status_code == 400
        error = read_error(response)
        assert error["param"] == param
        assert complaint in error["message"]


def test_without_the_extra_files_are_refused(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pypdfium2", None)

    for path, body in ((CHATS, chat(file(URL))), (RESPONSES, items(input_file(file_data=URL)))):
        assert (
            "this server needs its extra pdf" in read_error(http.post(path, json=body))["message"]
        )
    status, kind, text = exchanges.read_error(http.post(MESSAGES, json=messages(document())))
    assert (status, kind) == (400, "invalid_request_error")
    assert text.startswith(
        "messages[0].content[0].source.data must not be given: to read PDFs this server needs its "
    )


def test_a_summary_mentions_files_and_the_stored_items_have_them(http: httpx.Client) -> None:
    part = input_file(file_data=URL)
    said = [
        message("user", [{"type": "input_text", "text": "Look"}, part]),
        call("a"),
        output("a", [part]),
    ]

    compacted = http.post(f"{RESPONSES}/compact", json={"model": "parrot", "input": said}).json()[
        "output"
    ]

    summary = SUMMARY.unpack(compacted[-1]["encrypted_content"])
    assert summary is not None
    assert "[user]\nLook\n[document]\n" in summary and "[result of look]\n[document]\n" in summary
    assert compacted[0]["content"][1] == part
