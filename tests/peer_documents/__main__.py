"""Writes `facts/` from the documents."""

import json

from tests.peer_documents.documents import FACTS, FILES, read_document
from tests.peer_documents.extraction import extract_facts

FACTS.mkdir(exist_ok=True)
for name in FILES:
    facts = extract_facts(read_document(name))
    (FACTS / f"{name}.json").write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
