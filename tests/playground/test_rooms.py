"""Every part of the page obeys the rules of accessibility, has translated texts, and works by keys.

`rooms.py` has the parts beside the chat; tools and files of the server have tests of their own.
"""

from typing import Literal

import pytest
from playwright.sync_api import Page

from tests.api.serving import RunningServer
from tests.playground.accessibility import LOOKS, Violations
from tests.playground.chromium import User
from tests.playground.keyboard import KeyboardUser
from tests.playground.pseudo_language import Check, PseudoUser
from tests.playground.rooms import ROOMS
from tests.playground.states import CHAT_WALKS, Walk

_BY_KEYS = pytest.mark.release("the playground without a pointer, in each of its states")


@pytest.mark.release("the playground: accessibility of every part beside the chat")
@pytest.mark.parametrize("name", ROOMS)
@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_every_state_of_a_room_obeys_the_rules_of_accessibility(
    page: Page, name: str, width: int, scheme: Literal["light", "dark"]
) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    room = ROOMS[name]
    look = Violations(page)
    with room.serving() as server:
        room.walk(User(page, server.url), look)
    assert look.found == {}


@pytest.mark.parametrize("name", ROOMS)
def test_every_text_of_a_room_is_translated(page: Page, name: str) -> None:
    room = ROOMS[name]
    with room.serving() as server:
        user = PseudoUser(page, server.url)
        look = Check(user, *room.data)
        room.walk(user, look)
    assert look.found == {}


@_BY_KEYS
@pytest.mark.parametrize("name", ROOMS)
def test_a_room_is_used_by_keys_alone(page: Page, name: str) -> None:
    room = ROOMS[name]
    with room.serving() as server:
        room.walk(KeyboardUser(page, server.url), lambda state: None)


@_BY_KEYS
@pytest.mark.parametrize("walk", CHAT_WALKS, ids=lambda walk: walk.__name__)
def test_the_chat_is_used_by_keys_alone(page: Page, parrot: RunningServer, walk: Walk) -> None:
    user = KeyboardUser(page, parrot.url)
    user.open()
    user.ask("hello")
    walk(user, lambda state: None)
