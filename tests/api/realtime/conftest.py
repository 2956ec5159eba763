from collections.abc import Iterator

import pytest

from tests.api.realtime.speaking import Speaker, TurnRepeater, live_server, speak
from tests.api.speech.listening import ListeningServer


@pytest.fixture(scope="package")
def live() -> Iterator[tuple[ListeningServer, TurnRepeater]]:
    with live_server() as live:
        yield live


@pytest.fixture
def repeater(live: tuple[ListeningServer, TurnRepeater]) -> TurnRepeater:
    repeater = live[1]
    repeater.texts.clear()
    repeater.durations_s.clear()
    repeater.options.clear()
    return repeater


@pytest.fixture
def speaker(
    live: tuple[ListeningServer, TurnRepeater], repeater: TurnRepeater
) -> Iterator[Speaker]:
    """Opens a session, and reads its first event."""
    with speak(live[0]) as speaker:
        assert speaker.event().type == "session.created"
        yield speaker
