"""A model that does not see reads the texts of PDFs, in every API that takes them."""

import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from ouzel.config import MediaConfig
from tests.api.anthropic import exchanges
from tests.api.requests import Json, read_error
from tests.api.responses.test_input import call, message, output
from tests.api.server_setup import CHAT_TEMPLATE
from tests.api.serving import running_server
from tests.prompts.media.papers import coloured, paper, typed

CHATS, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
PAGES = ("Owls hunt at night", "", "They hear mice")
TEXT = "[Page 1]\nOwls hunt at night\n[Page 2: no text]\n[Page 3]\nThey hear mice"
SCAN = coloured(2)
TIMEOUT_S = 20.0
TEMPLATE = CHAT_TEMPLATE.replace(
    "<|im_end|>",
    "{% for call in message.tool_calls or [] %}{{ call.function.name }}"
    "{{ call.function.arguments }}{% endfor %}<|im_end|>",
    1,
)


def encode_base64(file: bytes) -> str:
    return b64encode(file).decode()


OWLS = encode_base64(typed(*PAGES))


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    directory = tmp_path_factory.mktemp("files")
    (directory / "owls.pdf").write_bytes(typed(*PAGES))
    with (
        running_server(
            {"max_model_len": 4096},
            chat_template=TEMPLATE,
            media=MediaConfig(allowed_local_media_path=str(directory), pdf_timeout_s=TIMEOUT_S),
            store_url=f"sqlite:///{tmp_path_factory.mktemp('store')}/store.sqlite3",
        ) as server,
        server.client() as http,
    ):
        yield http


def chat(data: str, **fields: object) -> Json:
    part = {"type": "file", "file": {"file_data": data, **fields}}
    return {"messages": [{"role": "user", "content": [part]}]}


def response(**fields: object) -> Json:
    return {"input": [message("user", [{"type": "input_file", **fields}])]}


def messages(data: str, **fields: object) -> Json:
    block = {"type": "document", "source": {"type": "base64", "data": data}, **fields}
    return exchanges.build_request("") | {"messages": [{"role": "user", "content": [block]}]}


PART: Json = {"type": "file", "file": {"file_data": OWLS}}


def render(http: httpx.Client, body: Json) -> str:
    """Returns the prompt of a chat."""
    rendered = http.post(f"{CHATS}/render", json=body)
    assert rendered.status_code == 200, rendered.text
    token_ids = rendered.json()["token_ids"]
    prompt: str = http.post("/detokenize", json={"tokens": token_ids}).json()["prompt"]
    return prompt


def read_answer(answer: httpx.Response) -> str:
    """Returns the text of an answer, with which the model repeats the prompt's message."""
    assert answer.status_code == 200, answer.text
    body = answer.json()
    match body:
        case {"choices": [choice]}:
            return str(choice["message"]["content"])
        case {"output": [*_, item]}:
            return str(item["content"][0]["text"])
    return str(body["content"][0]["text"])


def test_a_chat_has_the_texts_of_the_pages_and_counts_them(http: httpx.Client) -> None:
    asked = chat(OWLS, filename="owls.pdf")

    answer = http.post(CHATS, json=asked)

    assert f"<document>\nowls.pdf\n{TEXT}\n</document>" in read_answer(answer)
    assert answer.json()["usage"]["prompt_tokens"] > len(TEXT)
    assert TEXT in render(http, asked)


def test_responses_and_messages_have_the_same_text(http: httpx.Client) -> None:
    answers = [
        http.post(RESPONSES, json=response(file_data=OWLS)),
        http.post(RESPONSES, json=response(file_url="owls.pdf")),
        http.post(MESSAGES, json=messages(OWLS)),
    ]

    assert all(f"<document>\n{TEXT}\n</document>" in read_answer(each) for each in answers)


def test_a_later_response_reads_the_file_again(http: httpx.Client) -> None:
    first = http.post(RESPONSES, json=response(file_data=OWLS)).json()

    counted = http.post(
        f"{RESPONSES}/input_tokens", json={"input": "Go", "previous_response_id": first["id"]}
    )

    assert counted.json()["input_tokens"] > first["usage"]["input_tokens"] > len(TEXT)


def test_the_title_and_context_of_messages_stand_above_the_pages(http: httpx.Client) -> None:
    titled = messages(OWLS, title="Owls", context="A book")

    answer = read_answer(http.post(MESSAGES, json=titled))
    counted = http.post(f"{MESSAGES}/count_tokens", json=titled).json()

    assert answer.count("<document>") == answer.count("</document>") == 1
    assert answer.index("Owls\nA book") < answer.index(TEXT) < answer.index("</document>")
    assert counted["input_tokens"] > len(TEXT)


def test_an_uploaded_pdf_is_read_by_its_id_and_has_its_name(http: httpx.Client) -> None:
    form = {"purpose": "user_data"}
    sent = {"file": ("plan.pdf", typed(*PAGES))}
    file_id = http.post("/v1/files", files=sent, data=form).json()["id"]
    block = {"type": "document", "source": {"type": "file", "file_id": file_id}}
    asked = exchanges.build_request("") | {"messages": [{"role": "user", "content": [block]}]}

    answers = [
        http.post(CHATS, json={"messages": [{"role": "user", "content": [part]}]})
        for part in [{"type": "file", "file": {"file_id": file_id}}]
    ]
    answers += [
        http.post(RESPONSES, json=response(file_id=file_id)),
        http.post(MESSAGES, json=asked),
    ]

    framed = f"<document>\nplan.pdf\n{TEXT}\n</document>"
    assert all(framed in read_answer(each) for each in answers)


def test_the_result_of_a_tool_may_be_a_pdf(http: httpx.Client) -> None:
    shown = [message("user", "Go"), call("a")]
    shown.append(output("a", [{"type": "input_file", "file_data": OWLS}]))

    counted = http.post(f"{RESPONSES}/input_tokens", json={"input": shown})

    assert counted.json()["input_tokens"] > len(TEXT)


def test_marks_of_the_template_in_a_pdf_are_text(http: httpx.Client) -> None:
    body = chat(encode_base64(typed("<|im_end|>")))

    assert "[Page 1]\n<|im_end|>\n</document>" in render(http, body)


SCANNED = (
    "must be a PDF with text, given 2 pages without any: a scan needs a model that reads pictures, "
    "and this model reads none"
)
REFUSED: dict[str, tuple[str, Json, str, str]] = {
    "a scan in a chat": (
        CHATS,
        chat(encode_base64(SCAN)),
        "messages[0].content[0].file.file_data",
        SCANNED,
    ),
    "a scan in a response": (
        RESPONSES,
        response(file_data=encode_base64(SCAN)),
        "input[0].content[0].file_data",
        SCANNED,
    ),
    "a scan in messages": (
        MESSAGES,
        messages(encode_base64(SCAN)),
        "messages[0].content[0].source.data",
        SCANNED,
    ),
    "a broken file": (
        CHATS,
        chat(encode_base64(b"%PDF-1.4 broken")),
        "messages[0].content[0].file.file_data",
        "must be a PDF that is complete",
    ),
    "no PDF": (
        CHATS,
        chat(encode_base64(b"a\0b")),
        "messages[0].content[0].file.file_data",
        "must be a PDF, a Word file (.docx) or a text, given 3 bytes: the file is not a text",
    ),
    "a bomb": (
        CHATS,
        chat(encode_base64(paper(b"q " * 6 * 10**6))),
        "messages[0].content[0].file.file_data",
        "must be a PDF that is",
    ),
    "many": (
        CHATS,
        {"messages": [{"role": "user", "content": [PART] * 257}]},
        "messages[0].content[256].file.file_data",
        "must be one of <= 256 documents in a request, given 257",
    ),
    "a long text": (
        CHATS,
        chat(encode_base64(typed(*["owl " * 25] * 60))),
        "messages",
        "4096",
    ),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_an_unreadable_file_is_refused_by_its_path(http: httpx.Client, fault: str) -> None:
    path, body, param, complaint = REFUSED[fault]

    refused = http.post(path, json=body)

    assert refused.status_code == 400
    error = refused.json()["error"]
    if path == MESSAGES:
        assert error["message"].startswith(f"{param} {complaint}")
    else:
        assert error["param"] == param
        assert complaint in error["message"]


def test_a_picture_is_still_refused(http: httpx.Client) -> None:
    png = encode_base64(b"\x89PNG\r\n\x1a\n" + bytes(16))
    form = {"purpose": "user_data"}
    sent = {"file": ("a.png", b"\x89PNG\r\n\x1a\n" + bytes(16))}
    file_id = http.post("/v1/files", files=sent, data=form).json()["id"]

    named = read_error(http.post(RESPONSES, json=response(file_id=file_id)))
    inline = read_error(http.post(CHATS, json=chat(png)))

    assert named["param"] == "input[0].content[0].file_id"
    assert "must not be a picture: this model reads text only" in named["message"]
    assert "given 24 bytes: the file is not a text" in inline["message"]


def test_the_list_of_models_says_that_files_are_read(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def list_inputs() -> object:
        return http.get("/v1/models").json()["data"][0]["architecture"]["input_modalities"]

    assert list_inputs() == ["text", "file"]

    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    assert list_inputs() == ["text"]
    refused = read_error(http.post(CHATS, json=chat(OWLS)))
    assert "this server needs its extra pdf" in refused["message"]


def test_reading_has_a_limit_of_time(tmp_path: Path) -> None:
    media = MediaConfig(pdf_timeout_s=0.01)
    slow = encode_base64(typed(*["owl " * 200] * 2000))
    with (
        running_server({"max_model_len": 4096}, media=media) as server,
        server.client() as http,
    ):
        error = read_error(http.post(CHATS, json=chat(slow)))

    assert error["param"] == "messages[0].content[0].file.file_data"
    assert "must be a PDF that is read in <= 0.01 s (pdf_timeout_s)" in error["message"]
