"""The text of an attached Word file is part of the prompt, with and without a store."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import FilePayload, expect

from tests.api.seeing import seeing_server
from tests.api.serving import RunningServer, running_server
from tests.file_text.word_files import make_package, make_word_file, paragraph
from tests.playground.chromium import User, read_body, tell_bodies
from tests.playground.test_attachments import READER, READING, SEEING, attach, state

WORD = FilePayload(
    name="plan.docx",
    mimeType="",
    buffer=make_word_file(paragraph("Plan") + paragraph("Owls hunt at night.")),
)


@pytest.mark.parametrize("model", [SEEING, READING])
def test_the_text_of_a_word_file_is_sent(
    tmp_path: Path, user_at: Callable[[RunningServer], User], model: str
) -> None:
    with seeing_server(tmp_path, further=(READER,)) as server:
        user = user_at(server)
        user.choose_model(model)
        attach(user, WORD)
        expect(state(user, "plan.docx")).to_contain_text("· its text is sent ·")
        expect(state(user, "plan.docx")).to_contain_text("tokens")
        answer = user.ask("What is it?")
        assert "Owls hunt at night." in answer


def test_a_broken_word_file_is_refused_at_the_card(
    tmp_path: Path, user_at: Callable[[RunningServer], User]
) -> None:
    with seeing_server(tmp_path) as server:
        user = user_at(server)
        attach(user, {**WORD, "buffer": make_package({"word/document.xml": "<no end>"})})
        why = "The server refuses it: must be a PDF, a Word file (.docx) or a text, given "
        expect(state(user, "plan.docx")).to_contain_text(why)


def test_a_system_message_of_another_client_keeps_its_role(
    tmp_path: Path, user_at: Callable[[RunningServer], User]
) -> None:
    items = [
        {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}
        for role, text in (("system", "Be brief."), ("user", "Hello"))
    ]
    with running_server(store_url=f"sqlite:///{tmp_path}/store") as server:
        with server.client() as http:
            created = http.post("/v1/conversations", json={"items": items}).json()
        user = user_at(server)
        user.page.goto(f"{user.url}/#/c/{created['id']}")
        expect(user.page.locator(".message")).to_have_count(2)
        tell_bodies(user.page)
        with user.page.expect_request("**/v1/responses") as asked:
            user.ask("And now?")
    said = read_body(asked.value)["input"]
    assert said[0] == items[0]
