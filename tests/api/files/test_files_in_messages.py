"""Uploaded files in chats, responses and messages, with OpenAI's client."""

from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import openai
import pytest

from ouzel.config import MediaConfig, ServerConfig
from tests.api.batches.setup import chat_line, download, run_batch
from tests.api.requests import Json, read_error
from tests.api.seeing import encode_base64, last_prompt, seeing_server, sizes_seen
from tests.api.serving import RunningServer, running_server
from tests.prompts.media.papers import coloured

MAX_BYTES = 200_000
PICTURE = (28, 56)
TEXT = "Grüße\n"
Ask = Callable[[str, str], None]  # asks about the file with an id: a picture, or another file


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with seeing_server(
        tmp_path_factory.mktemp("model"),
        config=ServerConfig(api_key=("one", "two")),
        media=MediaConfig(max_media_bytes=MAX_BYTES),
        store_url=f"sqlite:///{tmp_path_factory.mktemp('store')}/store.sqlite3",
    ) as server:
        yield server


@pytest.fixture
def client(server: RunningServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="one", max_retries=0) as client:
        yield client


@pytest.fixture
def other(server: RunningServer) -> Iterator[openai.OpenAI]:
    """Yields a client with another key."""
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="two", max_retries=0) as client:
        yield client


@pytest.fixture
def http(server: RunningServer) -> Iterator[httpx.Client]:
    headers = {"authorization": "Bearer one"}
    with httpx.Client(base_url=server.url, timeout=None, headers=headers) as client:
        yield client


@pytest.fixture(params=["chat", "response", "messages"])
def ask(request: pytest.FixtureRequest, client: openai.OpenAI) -> Ask:
    def ask_chat(file_id: str, _: str) -> None:
        client.chat.completions.create(
            model="parrot",
            messages=[
                {"role": "user", "content": [{"type": "file", "file": {"file_id": file_id}}]}
            ],
        )

    def ask_response(file_id: str, kind: str) -> None:
        client.responses.create(
            model="parrot",
            input=[
                {
                    "role": "user",
                    "content": [
                        {"type": "input_image", "file_id": file_id, "detail": "auto"}
                        if kind == "image"
                        else {"type": "input_file", "file_id": file_id}
                    ],
                }
            ],
        )

    def ask_messages(file_id: str, kind: str) -> None:
        block = "image" if kind == "image" else "document"
        client.post("/messages", cast_to=object, body=messages(block, file_id))

    ways: dict[str, Ask] = {"chat": ask_chat, "response": ask_response, "messages": ask_messages}
    return ways[request.param]


def messages(block: str, file_id: str) -> Json:
    content = [{"type": block, "source": {"type": "file", "file_id": file_id}}]
    return {"max_tokens": 400, "messages": [{"role": "user", "content": content}]}


def upload(client: openai.OpenAI, name: str, data: bytes) -> str:
    return client.files.create(file=(name, data), purpose="user_data").id


def test_a_picture_is_seen(client: openai.OpenAI, ask: Ask) -> None:
    ask(upload(client, "a.bin", b64decode(encode_base64(*PICTURE))), "image")
    assert sizes_seen() == [PICTURE]


def test_the_pages_of_a_pdf_are_seen(client: openai.OpenAI, ask: Ask) -> None:
    ask(upload(client, "a.pdf", coloured(2, (72, 72))), "file")
    assert len(sizes_seen()) == 2


def test_a_text_is_read(client: openai.OpenAI, ask: Ask) -> None:
    ask(upload(client, "notes.md", TEXT.encode()), "file")
    assert f"<document>\nnotes.md\n{TEXT}\n</document>" in last_prompt()


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (
            b"ID3\0" * 20,
            "must be a PDF, a Word file (.docx) or a text, given 80 bytes: the file",
        ),
        (b"x" * (MAX_BYTES + 1), f"must name a file of <= {MAX_BYTES} bytes (max_media_bytes)"),
        (b"%PDF-1.4 broken", "PDF"),
    ],
)
def test_an_unreadable_file_is_refused(
    client: openai.OpenAI, ask: Ask, data: bytes, complaint: str
) -> None:
    file_id = upload(client, "a.mp3", data)
    with pytest.raises(openai.BadRequestError) as raised:
        ask(file_id, "file")
    assert complaint in str(raised.value)
    assert "file_id" in str(raised.value)


def test_a_text_is_no_picture(client: openai.OpenAI) -> None:
    file_id = upload(client, "a.txt", b"hello")
    with pytest.raises(openai.BadRequestError, match="must name a picture, given a text") as raised:
        client.responses.create(
            model="parrot",
            input=[
                {
                    "role": "user",
                    "content": [{"type": "input_image", "file_id": file_id, "detail": "auto"}],
                }
            ],
        )
    assert raised.value.param == "input[0].content[0].file_id"


def test_a_foreign_or_deleted_file_does_not_exist(
    client: openai.OpenAI, other: openai.OpenAI, ask: Ask
) -> None:
    foreign, deleted = upload(other, "a.txt", b"secret"), upload(client, "a.txt", b"old")
    client.files.delete(deleted)
    for file_id in (foreign, deleted, "file-1"):
        with pytest.raises(openai.NotFoundError) as raised:
            ask(file_id, "file")
        assert file_id in str(raised.value)
        assert "file_id must be the id of a file of yours" in str(raised.value)


def test_a_later_response_sees_the_file_of_an_earlier_one(client: openai.OpenAI) -> None:
    file_id = upload(client, "a.txt", b"the sky is green")
    first = client.responses.create(
        model="parrot",
        input=[{"role": "user", "content": [{"type": "input_file", "file_id": file_id}]}],
    )
    stored = client.responses.input_items.list(first.id).data[0]
    assert stored.to_dict()["content"] == [{"type": "input_file", "file_id": file_id}]
    client.responses.create(model="parrot", input="And now?", previous_response_id=first.id)
    assert "the sky is green" in last_prompt()
    client.files.delete(file_id)
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model="parrot", input="And now?", previous_response_id=first.id)


def test_a_batch_names_files(client: openai.OpenAI, http: httpx.Client) -> None:
    file_id = upload(client, "a.txt", b"from a batch")
    content = [{"type": "file", "file": {"file_id": file_id}}]
    line = chat_line("a", "", messages=[{"role": "user", "content": content}])
    batch = run_batch(http, [line])
    assert "from a batch" in str(download(http, batch["output_file_id"]))


def test_tokens_of_a_file_are_counted(client: openai.OpenAI, http: httpx.Client) -> None:
    file_id = upload(client, "a.txt", b"x" * 500)
    counted = http.post("/v1/messages/count_tokens", json=messages("document", file_id))
    assert counted.json()["input_tokens"] > 500


def test_many_files_have_a_limit(client: openai.OpenAI) -> None:
    parts: list[Json] = [{"type": "file", "file": {"file_id": f"file-{n}"}} for n in range(257)]
    with pytest.raises(openai.BadRequestError, match="must be one of <= 256 parts") as raised:
        client.post(
            "/chat/completions",
            cast_to=object,
            body={"model": "parrot", "messages": [{"role": "user", "content": parts}]},
        )
    assert raised.value.param == "messages[0].content[256].file.file_id"


def test_a_text_model_reads_texts_only(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.sqlite3"
    with running_server(store_url=url) as server, server.client() as http:
        ids = [
            http.post("/v1/files", files={"file": data}, data={"purpose": "user_data"}).json()["id"]
            for data in (b"hello", coloured(1, (72, 72)), b64decode(encode_base64(*PICTURE)))
        ]
        chats = [
            {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": i}}]}]}
            for i in ids
        ]
        answers = [http.post("/v1/chat/completions", json=body) for body in chats]
        assert "hello" in answers[0].json()["choices"][0]["message"]["content"]
        assert answers[1].status_code == 400
        assert "this model reads none" in read_error(answers[1])["message"]
        refused = [http.post("/v1/messages", json=messages("document", i)) for i in ids[1:]]
        assert [each.status_code for each in refused] == [400, 400]
        assert "messages[0].content[0].source.file_id must be a PDF with text" in refused[0].text
        assert "messages[0].content[0].source.file_id must not be a picture" in refused[1].text
