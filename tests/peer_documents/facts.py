"""Reads the documents' facts from `facts/`."""

import json
from functools import cache
from typing import Any  # JSON

from tests.peer_documents.documents import FACTS

Json = dict[str, Any]


@cache
def read_facts(document: str) -> Json:
    facts: Json = json.loads((FACTS / f"{document}.json").read_text())
    return facts
