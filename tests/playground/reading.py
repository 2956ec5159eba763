"""Starts a server with a model that chats and a voice model that hums."""

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import expect

from tests.api.server_setup import ServerSetup
from tests.api.serving import RunningServer
from tests.api.speaking.humming import MODEL as HUMMING
from tests.api.speaking.humming import VOICES, HummingServer, humming_server
from tests.playground.chromium import User
from tests.playground.states import Look

CHATTING = "org/parrot"
READ, STOP = "Read aloud", "Stop reading"
_HUMMER = ServerSetup(
    names=(HUMMING,),
    engine_factory="tests.api.speaking.humming:create_hummer",
    has_chat_template=False,
)


@contextmanager
def reading_server() -> Iterator[HummingServer]:
    with humming_server(
        options={"max_model_len": 4096},
        names=(CHATTING,),
        engine_factory="create_parrot",
        has_chat_template=True,
        further=(_HUMMER,),
    ) as humming:
        yield humming


@contextmanager
def serving_voice() -> Iterator[RunningServer]:
    with reading_server() as reading:
        yield reading.server


def walk_through_reading(user: User, look: Look) -> None:
    user.open()
    user.ask("a. wait.")
    user.click(READ)
    expect(user.find_button(STOP)).to_be_focused()
    look("an answer that is read aloud")
    user.click(STOP)
    expect(user.find_button(READ)).to_be_focused()
    user.ask("```\ncode\n```")
    user.click(READ)
    expect(user.page.locator("#notice")).not_to_be_empty()
    look("an answer of which nothing can be read")
    user.open_settings()
    expect(user.page.locator("#set-voice option")).to_have_count(1 + len(VOICES))
    user.choose("#set-voice", VOICES[-1])
    look("a voice is chosen")
    user.close_settings()
    user.choose_model(HUMMING)
    look("a voice model")
