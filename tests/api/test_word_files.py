"""Models with and without eyes read the texts of Word files, in every API that takes files."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from ouzel.config import MediaConfig
from tests.api.anthropic import exchanges
from tests.api.requests import Json, read_error
from tests.api.responses.test_input import message
from tests.api.seeing import last_prompt, seeing_server
from tests.api.serving import running_server
from tests.api.test_document_texts import (
    CHATS,
    MESSAGES,
    OWLS,
    RESPONSES,
    TEMPLATE,
    TEXT,
    chat,
    encode_base64,
    messages,
    read_answer,
    response,
)
from tests.file_text.word_files import (
    LAUGHS,
    OLE,
    encrypt_entries,
    make_package,
    make_word_file,
    paragraph,
)
from tests.prompts.media.papers import coloured

FILE = make_word_file(paragraph("Owls") + paragraph("They hunt at night."))
WORD = encode_base64(FILE)
READ = "Owls\n\nThey hunt at night."
TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
URL = f"data:{TYPE};base64,{WORD}"
INCH = (72, 72)
EXPECTED = "must be a PDF, a Word file (.docx) or a text, given"


def frame(text: str, name: str = "") -> str:
    return "\n".join(["<document>", *([name] if name else []), text, "</document>"])


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    directory = tmp_path_factory.mktemp("files")
    write_files(directory)
    with (
        running_server(
            {"max_model_len": 4096},
            chat_template=TEMPLATE,
            media=MediaConfig(allowed_local_media_path=str(directory)),
            store_url=f"sqlite:///{tmp_path_factory.mktemp('store')}/store.sqlite3",
        ) as server,
        server.client() as http,
    ):
        yield http


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    directory = tmp_path_factory.mktemp("files")
    write_files(directory)
    media = MediaConfig(allowed_local_media_path=str(directory))
    store_url = f"sqlite:///{tmp_path_factory.mktemp('store')}/store.sqlite3"
    with (
        seeing_server(
            tmp_path_factory.mktemp("model"), max_model_len=1200, media=media, store_url=store_url
        ) as server,
        server.client() as http,
    ):
        yield http


def write_files(directory: Path) -> None:
    (directory / "owls.docx").write_bytes(FILE)
    (directory / "notes.txt").write_text(READ, encoding="utf-16")
    (directory / "two.pdf").write_bytes(coloured(2, INCH))


def upload(http: httpx.Client, name: str, data: bytes) -> str:
    sent = {"file": (name, data)}
    file_id: str = http.post("/v1/files", files=sent, data={"purpose": "user_data"}).json()["id"]
    return file_id


def document(**source: object) -> Json:
    block = {"type": "document", "source": source}
    return exchanges.build_request("") | {"messages": [{"role": "user", "content": [block]}]}


@pytest.mark.parametrize("data", [WORD, URL])
def test_a_chat_has_the_text_and_the_name(http: httpx.Client, data: str) -> None:
    asked = chat(data, filename="owls.docx")

    answer = http.post(CHATS, json=asked)
    counted = http.post("/v1/tokenize", json=asked).json()["count"]

    assert frame(READ, "owls.docx") in read_answer(answer)
    assert answer.json()["usage"]["prompt_tokens"] == counted


def test_responses_and_messages_have_the_same_text(http: httpx.Client) -> None:
    answers = [
        http.post(RESPONSES, json=response(file_data=WORD)),
        http.post(RESPONSES, json=response(file_url="owls.docx")),
        http.post(MESSAGES, json=messages(WORD)),
        http.post(MESSAGES, json=document(type="url", url="owls.docx")),
        http.post(RESPONSES, json=response(file_url="notes.txt")),
    ]

    assert all(frame(READ) in read_answer(each) for each in answers)


def test_tokens_are_counted_by_all(http: httpx.Client) -> None:
    counts = [
        http.post(f"{RESPONSES}/input_tokens", json=response(file_data=WORD)).json(),
        http.post(f"{MESSAGES}/count_tokens", json=messages(WORD)).json(),
    ]

    assert all(each["input_tokens"] > len(READ) for each in counts)


def test_an_uploaded_file_is_read_by_its_id_and_has_its_name(http: httpx.Client) -> None:
    file_id = upload(http, "plan.docx", FILE)
    named = {"type": "file", "file": {"file_id": file_id}}

    answers = [
        http.post(CHATS, json={"messages": [{"role": "user", "content": [named]}]}),
        http.post(RESPONSES, json=response(file_id=file_id)),
        http.post(MESSAGES, json=document(type="file", file_id=file_id)),
    ]

    assert all(frame(READ, "plan.docx") in read_answer(each) for each in answers)


def test_a_title_stands_above_the_text(http: httpx.Client) -> None:
    answer = read_answer(http.post(MESSAGES, json=messages(WORD, title="Owls", context="A book")))

    assert f"<document>\nOwls\nA book\n\n{READ}\n\n</document>" in answer


def test_the_name_does_not_decide(http: httpx.Client) -> None:
    answer = read_answer(http.post(CHATS, json=chat(WORD, filename="owls.pdf")))

    assert frame(READ, "owls.pdf") in answer


def test_a_text_of_windows_is_read(http: httpx.Client) -> None:
    data = encode_base64("Käuze jagen".encode("cp1252"))

    assert frame("Käuze jagen") in read_answer(http.post(CHATS, json=chat(data)))


STREAMED: dict[str, tuple[str, Json]] = {
    f"{kind} in {path}": (path, body)
    for kind, data in (("a PDF", OWLS), ("a Word file", WORD))
    for path, body in (
        (CHATS, chat(data)),
        (RESPONSES, response(file_data=data)),
        (MESSAGES, messages(data)),
    )
}


@pytest.mark.parametrize("case", STREAMED)
def test_a_stream_has_the_text_too(http: httpx.Client, case: str) -> None:
    path, body = STREAMED[case]

    streamed = http.post(path, json=body | {"stream": True})

    assert streamed.status_code == 200, streamed.text
    text = "".join(read_delta(event) for event in read_data(streamed))
    assert frame(TEXT if case.startswith("a PDF") else READ) in text


def read_data(streamed: httpx.Response) -> Iterator[object]:
    """Yields the data of the events of any API."""
    for line in streamed.text.splitlines():
        if line.startswith("data: ") and line != "data: [DONE]":
            yield json.loads(line.removeprefix("data: "))


def read_delta(event: object) -> str:
    """Returns the text that an event of any API adds to the answer."""
    match event:
        case {"choices": [{"delta": {"content": str(text)}}]}:
            return text
        case {"type": "response.output_text.delta", "delta": str(text)}:
            return text
        case {"delta": {"type": "text_delta", "text": str(text)}}:
            return text
    return ""


def test_many_requests_at_once_are_answered(http: httpx.Client) -> None:
    def ask(number: int) -> str:
        data = encode_base64(make_word_file(paragraph(f"Owl {number}.")))
        return read_answer(http.post(CHATS, json=chat(data)))

    with ThreadPoolExecutor(64) as threads:
        answers = list(threads.map(ask, range(64)))

    assert all(frame(f"Owl {number}.") in each for number, each in enumerate(answers))


def test_a_model_that_sees_reads_the_text_beside_pages(seeing: httpx.Client) -> None:
    parts = [
        {"type": "input_file", "file_url": "owls.docx"},
        {"type": "input_file", "file_url": "two.pdf"},
        {"type": "input_file", "file_data": WORD, "filename": "owls.docx"},
        {"type": "input_file", "file_id": upload(seeing, "plan.docx", FILE)},
    ]

    answer = seeing.post(RESPONSES, json={"input": [message("user", parts)]})

    assert answer.status_code == 200, answer.text
    pages = "<picture of 25><picture of 25>"
    prompt = last_prompt()
    assert f"{frame(READ)}{pages}{frame(READ, 'owls.docx')}{frame(READ, 'plan.docx')}" in (
        prompt.replace("</document>\n", "</document>").replace(">\n<", "><")
    )


REFUSED: dict[str, tuple[bytes, str]] = {
    "encrypted": (OLE, "512 bytes: the file is encrypted, or of a format of Office before 2007"),
    "a password": (encrypt_entries(FILE), f"{len(FILE)} bytes: the file needs a password"),
    "an XML bomb": (make_word_file("", LAUGHS), "the file has a document type declaration"),
    "no text": (make_word_file("<w:p/>"), "the file has no text"),
    "cut off": (FILE[:-40], f"{len(FILE) - 40} bytes: the file is broken"),
    "another archive": (make_package({"a.txt": "Text"}), "archives and files of this type cannot"),
    "no text at all": (b"\0" * 9, "9 bytes: the file is not a text"),
}


@pytest.mark.parametrize("fault", REFUSED)
@pytest.mark.parametrize("model", ["http", "seeing"])
def test_a_hostile_file_is_refused_by_its_path(
    request: pytest.FixtureRequest, model: str, fault: str
) -> None:
    http: httpx.Client = request.getfixturevalue(model)
    data, reason = REFUSED[fault]

    error = read_error(http.post(CHATS, json=chat(encode_base64(data))))

    assert error["param"] == "messages[0].content[0].file.file_data"
    assert f"{EXPECTED} " in error["message"]
    assert reason in error["message"]


def test_other_apis_name_their_fields(http: httpx.Client) -> None:
    data = encode_base64(OLE)

    responses = read_error(http.post(RESPONSES, json=response(file_data=data)))
    anthropic = http.post(MESSAGES, json=messages(data)).json()["error"]["message"]

    assert responses["param"] == "input[0].content[0].file_data"
    assert anthropic.startswith(f"messages[0].content[0].source.data {EXPECTED} 512 bytes")


def test_a_text_beyond_the_context_is_refused(http: httpx.Client) -> None:
    long = encode_base64(make_word_file(paragraph("owl " * 2000)))

    error = read_error(http.post(CHATS, json=chat(long)))

    assert (error["code"], error["param"]) == ("context_length_exceeded", "messages")


def test_all_documents_together_have_a_limit_of_characters(http: httpx.Client) -> None:
    long = encode_base64(make_word_file(paragraph("o" * (16 * 2**20 + 1))))

    error = read_error(http.post(CHATS, json=chat(long)))

    assert error["param"] == "messages[0].content[0].file.file_data"
    assert "must be a document within <= 16777216 characters of text" in error["message"]
