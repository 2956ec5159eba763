"""docs/conformance.md says what the server does."""

from pathlib import Path

import pytest

from tests.cli import conformance

pytestmark = pytest.mark.serves  # which cannot be told from the imports


def test_the_conformance_table_is_what_the_server_does(tmp_path: Path) -> None:
    seen = conformance.conformance_document(tmp_path)
    assert conformance.PATH.read_text() == seen, f"renew it: {conformance.COMMAND}"
