"""Images in messages reach the engine, and unreadable images are refused."""

from collections.abc import Iterator

import httpx
import pytest

from tests.api.anthropic.exchanges import (
    PATH,
    Json,
    build_request,
    fold_events,
    read_error,
    read_events,
)
from tests.api.seeing import (
    data_url,
    encode_base64,
    last_prompt,
    last_request,
    seeing_server,
    sizes_seen,
)

LOOK = {"type": "text", "text": "Look"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with (
        seeing_server(tmp_path_factory.mktemp("model"), max_model_len=1200) as server,
        server.client() as http,
    ):
        yield http


def image(height: int, width: int, **fields: object) -> Json:
    source = {"type": "base64", "media_type": "image/png", "data": encode_base64(height, width)}
    return {"type": "image", "source": source, **fields}


def from_url(url: str) -> Json:
    return {"type": "image", "source": {"type": "url", "url": url}}


def body(*blocks: object, **fields: object) -> Json:
    return build_request("") | {"messages": [{"role": "user", "content": [*blocks]}]} | fields


def result(*blocks: object, **fields: object) -> Json:
    return {"type": "tool_result", "tool_use_id": "toolu_1", "content": [*blocks], **fields}


def after_call(*blocks: object) -> Json:
    messages = [
        {"role": "user", "content": "Go"},
        {"role": "assistant", "content": [CALL]},
        {"role": "user", "content": [*blocks]},
    ]
    return build_request("") | {"messages": messages}


def test_images_stand_where_the_blocks_are(seeing: httpx.Client) -> None:
    blocks = [
        LOOK,
        image(56, 84, cache_control={"type": "ephemeral"}),
        {"type": "text", "text": " here"},
    ]
    sent = body(*blocks, from_url(data_url(28, 56)))

    answer = seeing.post(PATH, json=sent).json()

    assert "<|im_start|>user\nLook<picture of 6> here<picture of 2><|im_end|>\n" in last_prompt()
    assert sizes_seen() == [(56, 84), (28, 56)]
    assert [block["text"] for block in answer["content"]] == ["Look here"]
    assert answer["usage"]["input_tokens"] == len(last_request().prompt_token_ids)
    counted = seeing.post(f"{PATH}/count_tokens", json=sent).json()
    assert counted == {"input_tokens": answer["usage"]["input_tokens"]}
    streamed = fold_events(read_events(seeing.post(PATH, json={**sent, "stream": True})))
    assert streamed["content"] == answer["content"]
    assert sizes_seen() == [(56, 84), (28, 56)]


def test_messages_in_a_row_are_one_with_their_images(seeing: httpx.Client) -> None:
    messages = [
        {"role": "user", "content": [image(28, 28)]},
        {"role": "user", "content": "one"},
        {
            "role": "user",
            "content": [{"type": "text", "text": ""}, image(28, 56, transformations={})],
        },
    ]

    seeing.post(PATH, json=build_request("") | {"messages": messages})

    assert (
        "<|im_start|>user\n<picture of 1>one<picture of 2><|im_end|>\n<|im_start|>assistant"
        in last_prompt()
    )
    assert sizes_seen() == [(28, 28), (28, 56)]


def test_tools_show_images(seeing: httpx.Client) -> None:
    shown = result(LOOK, {"type": "text", "text": "there"}, image(28, 56), is_error=True)

    seeing.post(PATH, json=after_call(shown, image(28, 28)))

    tool = (
        "<tool_response>\nThe tool failed.\nLook\nthere<picture of 2>\n</tool_response><|im_end|>\n"
    )
    assert f"{tool}<|im_start|>user\n<picture of 1><|im_end|>\n" in last_prompt()
    assert sizes_seen() == [(28, 56), (28, 28)]


FAULTS: dict[str, tuple[Json, str]] = {
    "no picture": (
        image(1, 1) | {"source": {"type": "base64", "data": "aGk="}},
        "source.data must be a picture",
    ),
    "no base64": (
        image(1, 1) | {"source": {"type": "base64", "data": "*"}},
        "source.data must have valid base64",
    ),
    "a URL": (from_url("https://example.org/a.png"), "source.url"),
    "no URL": (from_url("ftp://example.org/a.png"), "source.url must be a data URL"),
    "a file": (
        {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
        "source.file_id must not be given: this server stores no files, given 'file_1'",
    ),
    "a document's file": (
        {"type": "document", "source": {"type": "file", "file_id": "file_1"}},
        "source.file_id must not be given: this server stores no files, given 'file_1'",
    ),
    "no PDF": (
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "AGk="},
        },
        "source.data must be a PDF, a Word file (.docx) or a text, given 2 bytes",
    ),
    "another source": (
        image(1, 1) | {"source": {"type": "text", "data": ""}},
        'source.type must be one of "base64"',
    ),
    "no source": ({"type": "image"}, "source is required"),
    "as it is or not": (
        image(1, 1, transformations={"oversized_image": "error"}),
        'transformations.oversized_image must be one of "downsize", given "error"',
    ),
}


@pytest.mark.parametrize("path", [PATH, f"{PATH}/count_tokens"])
@pytest.mark.parametrize("fault", FAULTS)
def test_an_unusable_image_is_refused_by_its_path(
    seeing: httpx.Client, fault: str, path: str
) -> None:
    block, complaint = FAULTS[fault]
    places = {
        "messages[0].content[1]": body(LOOK, block),
        "messages[2].content[0].content[0]": after_call(result(block)),
    }

    for place, sent in places.items():
        status, kind, text = read_error(seeing.post(path, json=sent))
        assert (status, kind) == (400, "invalid_request_error")
        assert text.startswith(f"{place}.{complaint}")


def test_images_beyond_the_context_are_a_prompt_that_is_too_long(seeing: httpx.Client) -> None:
    _, _, text = read_error(seeing.post(PATH, json=body(image(700, 700), image(700, 728))))

    # clients search for this text
    assert text == "prompt is too long: 1275 tokens > 1199 maximum"
