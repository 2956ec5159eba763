"""Collects the fenced blocks of all documents for users and contributors."""

from tests.documents.markdown import ROOT, list_documents, read_blocks

# Not tested: old records, and the READMEs of programs that ran once to make a file.
_OTHERS = ("docs/decisions/", "benchmarks/", "tools/", "src/", "CHANGELOG.md", ".github/")
DOCUMENTS = [
    path for path in list_documents() if not path.relative_to(ROOT).as_posix().startswith(_OTHERS)
]
BLOCKS = [block for path in DOCUMENTS for block in read_blocks(path)]
