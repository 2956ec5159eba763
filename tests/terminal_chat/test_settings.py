"""`/set` takes a name and a value."""

import pytest

from ouzel.terminal_chat.chat_error import ChatError
from ouzel.terminal_chat.settings import read_setting


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ("temperature 0.2", ("temperature", 0.2)),
        ("temperature=0.2", ("temperature", 0.2)),
        ("temperature = 0.2", ("temperature", 0.2)),
        ("stop a=b", ("stop", "a=b")),
        ("stop= =", ("stop", "=")),
        ('chat_template_kwargs {"a": "b=c"}', ("chat_template_kwargs", {"a": "b=c"})),
        ("stop two  words", ("stop", "two  words")),
    ],
)
def test_a_value_is_as_it_was_written(text: str, setting: tuple[str, object]) -> None:
    assert read_setting(text) == setting


@pytest.mark.parametrize("text", ["temperature", "temperature=", "= 1", "stop " + 5000 * "["])
def test_settings_that_no_request_could_hold_are_refused(text: str) -> None:
    with pytest.raises(ChatError):
        read_setting(text)
