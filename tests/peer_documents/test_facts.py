"""The copy of the facts says the same as the documents, and each field of the documents has its probe."""

import pytest

from tests.peer_documents import documents
from tests.peer_documents.documents import COMMAND, FILES, LETTERS, read_document
from tests.peer_documents.extraction import extract_facts
from tests.peer_documents.facts import facts_of


@pytest.mark.skipif(
    not documents.are_here(),
    reason=f"the peers' documents are not in {documents.directory()}; {documents.DIRECTORY_VARIABLE} names the place",
)
@pytest.mark.parametrize("name", FILES)
def test_the_copy_is_what_the_document_says(name: str) -> None:
    assert facts_of(name) == extract_facts(read_document(name)), f"renew it: {COMMAND}"


def test_every_document_has_its_requests_and_its_fields() -> None:
    for name in FILES:
        facts = facts_of(name)
        assert len(facts["request_fields"]) >= 16, name
        assert facts["requests"], name
        assert facts["examples"], name
    assert LETTERS.keys() == FILES.keys()
