"""docs/conformance.md says what the server does."""

from pathlib import Path

from tests.cli import conformance


def test_the_conformance_table_is_what_the_server_does(tmp_path: Path) -> None:
    seen = conformance.conformance_document(tmp_path)
    assert conformance.PATH.read_text() == seen, f"renew it: {conformance.COMMAND}"
