"""The copy of the facts equals the documents, and conformance.md names each documented field."""

import pytest

from tests.peer_documents import documents
from tests.peer_documents.documents import COMMAND, FILES, LETTERS, read_document
from tests.peer_documents.extraction import extract_facts
from tests.peer_documents.facts import read_facts
from tests.serve.conformance import chats, responses


@pytest.mark.skipif(
    not documents.are_here(),
    reason=(
        f"the peers' documents are not in {documents.directory()}; {documents.DIRECTORY_VARIABLE} "
        "names the place"
    ),
)
@pytest.mark.parametrize("name", FILES)
def test_the_copy_equals_the_document(name: str) -> None:
    assert read_facts(name) == extract_facts(read_document(name)), f"renew it: {COMMAND}"


def test_every_document_has_its_requests_and_its_fields() -> None:
    for name in FILES:
        facts = read_facts(name)
        assert len(facts["request_fields"]) >= 16, name
        assert facts["requests"], name
        assert facts["examples"], name
    assert LETTERS.keys() == FILES.keys()


CHATS = [name for name in FILES if name != "ovms_responses_2026"]
BESIDE = {"conversation"}  # this parameter is in the table of conversations


def named(name: str) -> set[str]:
    facts = read_facts(name)
    return {*facts["request_fields"], *facts.get("unsupported_request_fields", [])}


@pytest.mark.parametrize("name", CHATS)
def test_every_parameter_of_chats_is_in_the_tables_of_conformance(name: str) -> None:
    letter = LETTERS[name]
    listed = {probe.parameter for probe in chats.PROBES if letter in probe.listed.split()}

    in_descriptions = {
        "max_completion_tokens",
        "messages, content parts of text",
        "messages, content parts of images",
    }
    assert named(name) <= listed
    assert listed - named(name) <= in_descriptions


def test_every_parameter_of_responses_is_in_the_tables_of_conformance() -> None:
    facts = read_facts("ovms_responses_2026")
    for letter, key in (("E", "request_fields"), ("F", "unsupported_request_fields")):
        probes = [probe for probe in responses.listed_probes() if probe.listed == letter]
        listed = {probe.parameter.split(",")[0].split(".")[0] for probe in probes}
        assert listed | (BESIDE if letter == "F" else set()) == set(facts[key])
