"""`--fast` and `-m "not serves"` leave out all tests that start servers."""

from pathlib import Path

import pytest

from tests.serve import running
from tests.slow_modules import SLOW_DIRECTORIES, SLOW_MODULES

HERE = Path(__file__)
ROOT = HERE.parents[1]


def test_a_test_without_the_marker_cannot_start_a_server(tmp_path: Path) -> None:
    with pytest.raises(
        AssertionError, match=r"test_a_test_without_the_marker.* it needs `pytest\.mark\.serves`"
    ):
        running.start(cache_dir=tmp_path)


def test_servers_are_started_in_one_place_only() -> None:
    others = [path for path in HERE.parent.rglob("*.py") if path != HERE]

    assert [path.name for path in others if '"-m", "ouzel", "serve"' in path.read_text()] == [
        "running.py"
    ]


def test_the_listed_slow_modules_exist() -> None:
    assert [name for name in SLOW_DIRECTORIES if not (ROOT / name).is_dir()] == []
    assert [name for name in sorted(SLOW_MODULES) if not (ROOT / name).is_file()] == []
    assert [name for name in SLOW_MODULES if name.startswith(SLOW_DIRECTORIES)] == []
