"""docs/conformance.md says what the server does."""

from pathlib import Path

from tests.cli import conformance
from tests.cli.running import serving


def test_the_conformance_table_is_what_the_server_does(tmp_path: Path) -> None:
    with serving(*conformance.SERVER_OPTIONS, cache_dir=tmp_path) as server:
        seen = conformance.conformance_document(server.root)
    assert conformance.PATH.read_text() == seen, f"renew it: {conformance.COMMAND}"
