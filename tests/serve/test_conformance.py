"""docs/reference/conformance.md agrees with the server."""

from pathlib import Path

import pytest

from tests.serve.conformance import document, lines, settings

pytestmark = pytest.mark.serves  # the imports do not show that this file starts servers


@pytest.mark.release("the conformance tables of our own API")
def test_the_tables_of_our_own_api_agree_with_the_server(tmp_path: Path) -> None:
    seen = document.own_tables(tmp_path)
    assert document.PATH.read_text().startswith(seen), f"renew it: {document.COMMAND}"


def test_the_tables_that_need_no_server(tmp_path: Path) -> None:
    text = settings.section(tmp_path) + lines.section()
    assert document.PATH.read_text().endswith(text), f"renew it: {document.COMMAND}"


@pytest.mark.release("the conformance tables of LMI and OVMS")
def test_the_tables_of_other_profiles_agree_with_the_server(tmp_path: Path) -> None:
    seen = document.tables_of_others(tmp_path)
    assert document.PATH.read_text().endswith(seen), f"renew it: {document.COMMAND}"
