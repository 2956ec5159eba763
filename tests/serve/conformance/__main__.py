"""Writes docs/reference/conformance.md."""

import tempfile
from pathlib import Path

from tests.serve.conformance.document import PATH, own_tables, tables_of_others

with tempfile.TemporaryDirectory() as cache_dir:
    PATH.write_text(own_tables(Path(cache_dir)) + tables_of_others(Path(cache_dir)))
