"""The fenced blocks of all documents for users and contributors."""

from tests.documents.markdown import ROOT, list_documents, read_blocks

# Records of their time, and the READMEs of programs that made a file once.
_OTHERS = ("docs/decisions/", "benchmarks/", "tools/", "src/", "CHANGELOG.md", ".github/")
DOCUMENTS = [
    path for path in list_documents() if not path.relative_to(ROOT).as_posix().startswith(_OTHERS)
]
BLOCKS = [block for path in DOCUMENTS for block in read_blocks(path)]
