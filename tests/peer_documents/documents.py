"""Finds the documents of OpenVINO Model Server and of LMI about their endpoints."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
FACTS = Path(__file__).parent / "facts"
DIRECTORY_VARIABLE = "OUZEL_PEER_DOCUMENTS"
COMMAND = "uv run python -m tests.peer_documents"

FILES = {  # the name of each document here, and the start of its file's name
    "ovms_chat_2026": "000_",
    "ovms_chat_2024": "001_",
    "ovms_chat_2025": "003_",
    "ovms_responses_2026": "002_",
    "lmi_chat": "004_",
}
# marks of docs/reference/conformance.md; F lists the parameters that E does not support
LETTERS = {
    "ovms_chat_2026": "A",
    "ovms_chat_2024": "B",
    "ovms_chat_2025": "C",
    "lmi_chat": "D",
    "ovms_responses_2026": "E",
}


def directory() -> Path:
    """Returns the directory of the documents, which exists only on some machines."""
    return Path(os.environ.get(DIRECTORY_VARIABLE, ROOT.parent / "shared" / "seeds"))


def are_here() -> bool:
    return all(list(directory().glob(f"{beginning}*")) for beginning in FILES.values())


def read_document(name: str) -> str:
    [path] = directory().glob(f"{FILES[name]}*")
    return path.read_text()
