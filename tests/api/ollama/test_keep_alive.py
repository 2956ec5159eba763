"""Ollama's keep_alive is read as Go reads durations."""

import pytest

from ouzel.api.ollama.keep_alive import apply_keep_alive, asks_to_unload, read_seconds
from ouzel.lifecycle.models import ManagedModel


@pytest.mark.parametrize(
    ("keep_alive", "seconds"),
    [
        ("5m", 300),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("90", 90),
        ("250ms", 0.25),
        ("+2s", 2),
        (".5s", 0.5),
        (30, 30),
        (0, 0),
        ("0m", 0),
        (-1, None),
        ("-1m", None),
        (-0.5, None),
    ],
)
def test_durations(keep_alive: float | str, seconds: float | None) -> None:
    read = read_seconds(keep_alive)
    assert read == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize("keep_alive", ["", "soon", "5 m", "m5", "1h-30m"])
def test_other_texts_are_no_durations(keep_alive: str) -> None:
    with pytest.raises(ValueError, match="no duration"):
        read_seconds(keep_alive)


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        (b'{"keep_alive": "10s"}', (True, 10.0)),
        (b'{"keep_alive": -1}', (True, None)),
        (b'{"keep_alive": null}', (False, None)),
        (b'{"keep_alive": "soon"}', (False, None)),
        (b'{"keep_alive": []}', (False, None)),
        (b"not json", (False, None)),
    ],
)
def test_a_body_sets_the_keep_alive_of_its_model(body: bytes, asked: tuple[bool, float]) -> None:
    model = ManagedModel(("a",))
    apply_keep_alive(model, body)
    assert (model.has_asked, model.asked_keep_alive_s) == asked


@pytest.mark.parametrize(
    ("body", "unloads"),
    [
        (b'{"keep_alive": 0}', True),
        (b'{"keep_alive": "0s", "prompt": "", "messages": []}', True),
        (b'{"keep_alive": 0, "prompt": "Hi"}', False),
        (b'{"keep_alive": 0, "messages": [{}]}', False),
        (b'{"keep_alive": 5}', False),
        (b"{}", False),
        (b"{", False),
    ],
)
def test_a_request_without_a_prompt_may_unload(body: bytes, unloads: bool) -> None:
    assert asks_to_unload(body) is unloads
