"""Measures the recall of file search: hybrid against vectors alone and words alone.

    uv run ouzel serve MODEL                      # a model for embeddings
    uv run python -m benchmarks.file_search --tokenizer DIRECTORY_OF_MODEL --perl DIR --python DIR

Three corpora, cut, embedded, stored and searched by the code of the server; vectors come from the
server at --url. The documents of this repository have questions of ours. Perl's and Python's
documents have FAQs: a question is the title of its answer, and the titles are taken out of the
text. A result is right if at least half of the chunk, or of the answer, is the other's.

The FAQs are in packages of Debian. DIR is the directory with perlfaq1.pod, and the directory
`_sources` of Python's documents:

    apt-get download perl-doc python3.11-doc
    for package in *.deb; do dpkg -x $package .; done
"""

import argparse
import asyncio
import base64
import re
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
from tokenizers import Tokenizer

from benchmarks.file_search_questions import QUESTIONS
from ouzel.hosted_tools.file_search.embedder import TextKind, Vectors
from ouzel.hosted_tools.file_search.extraction import Extractor
from ouzel.hosted_tools.file_search.indexing import FileIndexing
from ouzel.hosted_tools.file_search.records import FileHit, FileQuery, HybridWeights
from ouzel.hosted_tools.file_search.search import FileSearch
from ouzel.store.base import Store
from ouzel.store.files.records import NewFile
from ouzel.store.sql_store import open_store
from ouzel.store.vector_stores.records import NewVectorFile, NewVectorStore

_ROOT = Path(__file__).parent.parent
_STORE_ID = "vs_benchmark"
_MAX_HITS = 10
_PERL = (
    "perlfaq? perlintro perlretut perlreftut perldsc perllol perlre perlop perlfunc perlvar "
    "perlsub perlmod perlref perlipc perlunicode perlport perlsec perldebug perldata perlsyn "
    "perlopentut perlpacktut perluniintro perlform perltie perlthrtut perlstyle perltrap"
)
_PYTHON = ("faq", "tutorial", "howto", "reference", "using", "extending")
MODES = {
    "hybrid": HybridWeights(),
    "vectors": HybridWeights(text_weight=0.0),
    "words": HybridWeights(embedding_weight=0.0),
}


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    filename: str
    start: int  # characters of the document before the answer
    end: int


@dataclass(frozen=True, slots=True)
class Corpus:
    name: str
    documents: dict[str, str]
    questions: list[Question]


class HttpEmbedder:
    """Makes vectors with a server, and counts tokens with the model's tokenizer."""

    def __init__(self, url: str, model_directory: Path) -> None:
        self._client = httpx.AsyncClient(base_url=url, timeout=None)
        self._tokenizer = Tokenizer.from_file(str(model_directory / "tokenizer.json"))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def choose_model(self) -> str:
        return "benchmark"

    async def max_tokens(self, model: str) -> int:
        answer = await self._client.get("/v1/models")
        longest: int = answer.raise_for_status().json()["data"][0]["max_model_len"]
        return longest - self._tokenizer.num_special_tokens_to_add(False)

    async def count_tokens(self, model: str, texts: Sequence[str]) -> list[int]:
        encoded = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [len(each.ids) for each in encoded]

    async def embed(
        self, model: str, texts: Sequence[str], kind: TextKind, *, key_id: str | None
    ) -> Vectors:
        body = {"input": list(texts), "encoding_format": "base64", "truncate_prompt_tokens": -1}
        answer = (await self._client.post("/v1/embeddings", json=body)).raise_for_status().json()
        rows = [base64.b64decode(each["embedding"]) for each in answer["data"]]
        return np.stack([np.frombuffer(row, "<f4") for row in rows])


def read_own() -> Corpus:
    """Reads the documents of this repository, with a section as the answer to each question."""
    paths = [*_ROOT.glob("*.md"), *_ROOT.glob("docs/**/*.md"), _ROOT / "benchmarks/RESULTS.md"]
    documents = {str(path.relative_to(_ROOT)): path.read_text() for path in sorted(paths)}
    questions = []
    for text, filename, heading in QUESTIONS:
        document = documents[filename]
        begin = re.search(rf"^(#+) {re.escape(heading)}$", document, re.MULTILINE)
        assert begin is not None, f"{filename} has no heading {heading!r}"
        rest = re.compile(r"^#+ ", re.MULTILINE).search(document, begin.end())
        end = len(document) if rest is None else rest.start()
        questions.append(Question(text, filename, begin.start(), end))
    return Corpus("documents of this repository", documents, questions)


def read_perl(directory: Path) -> Corpus:
    names = [path for name in _PERL.split() for path in sorted(directory.glob(f"{name}.pod"))]
    heading = re.compile(r"^=head\d (.*)\n", re.MULTILINE)
    return _read_faq(
        "perlfaq", {path.name: path.read_text(errors="replace") for path in names}, heading
    )


def read_python(directory: Path) -> Corpus:
    paths = [path for name in _PYTHON for path in sorted(directory.glob(f"{name}/*.rst.txt"))]
    heading = re.compile(r"^(\S.*)\n(?:=+|-+|\*+|\^+)\n", re.MULTILINE)
    texts = {str(path.relative_to(directory)): path.read_text() for path in paths}
    return _read_faq("Python's FAQ", texts, heading)


def _read_faq(name: str, texts: dict[str, str], heading: re.Pattern[str]) -> Corpus:
    """Takes questions out of texts; the answer of each is the text up to the next heading."""
    documents, questions = {}, []
    for filename, text in texts.items():
        pieces: list[str] = []
        num_chars, end = 0, 0
        question: tuple[str, int] | None = None
        for match in [*heading.finditer(text), None]:
            piece = text[end : len(text) if match is None else match.start()]
            is_faq = "faq" in filename
            title = "" if match is None else match[1].strip()
            if question is not None:
                begin = question[1]
                questions.append(Question(question[0], filename, begin, num_chars + len(piece)))
            is_question = is_faq and title.endswith("?")
            if match is not None and not is_question:
                piece += match[0]
            pieces.append(piece)
            num_chars += len(piece)
            question = (
                (re.sub(r"[A-Z]<+ ?(.*?) ?>+", r"\1", title), num_chars) if is_question else None
            )
            end = len(text) if match is None else match.end()
        documents[filename] = "".join(pieces)
    return Corpus(name, documents, [each for each in questions if each.end - each.start > 100])


async def index(
    corpus: Corpus, store: Store, embedder: HttpEmbedder
) -> dict[tuple[str, int], tuple[int, int]]:
    """Indexes a corpus; returns the place of each chunk by its file and number."""
    files = []
    for number, (filename, text) in enumerate(corpus.documents.items()):
        file_id = f"file-{number}"
        await store.files.begin(NewFile(id=file_id, key_id=None, filename=filename))
        await store.files.add_piece(file_id, 0, text.encode())
        await store.files.finish(file_id, "assistants")
        files.append(
            NewVectorFile(file_id=file_id, filename=filename, attributes=b"{}", strategy=b"{}")
        )
    new = NewVectorStore(
        id=_STORE_ID,
        key_id=None,
        name="",
        description=None,
        metadata=b"{}",
        model="benchmark",
        expires_after_days=None,
    )
    await store.vector_stores.create(new, files)
    extractor = Extractor()
    indexing = FileIndexing(store.vector_stores, store.files, embedder, extractor)
    places = {}
    while (job := await store.vector_stores.take_job()) is not None:
        assert await indexing.index(job), job.filename
        chunks = await store.vector_stores.chunks_of_file(job.number, first=0, limit=10**6)
        for chunk in chunks:
            place = chunk.start, chunk.start + len(chunk.text)
            places[job.filename, chunk.position] = place
    extractor.close()
    return places


def is_right(question: Question, hit: FileHit, place: tuple[int, int]) -> bool:
    start, end = place
    overlap = min(end, question.end) - max(start, question.start)
    shorter = min(end - start, question.end - question.start)
    return hit.filename == question.filename and overlap * 2 >= shorter


async def measure(corpus: Corpus, embedder: HttpEmbedder) -> Iterator[str]:
    """Returns the rows of the table for a corpus."""
    with tempfile.TemporaryDirectory() as directory:
        store = await open_store(
            f"sqlite:///{directory}/store.sqlite3", max_age_s=1e9, max_bytes=2**40
        )
        begin_s = time.perf_counter()
        places = await index(corpus, store, embedder)
        index_s = time.perf_counter() - begin_s
        search = FileSearch(store.vector_stores, embedder)
        size = f"{len(corpus.documents)} files, {len(places)} chunks, indexed in {index_s:.0f} s"
        rows = [f"{corpus.name}: {len(corpus.questions)} questions, {size}"]
        for mode, weights in MODES.items():
            ranks, times_ms = [], []
            for question in corpus.questions:
                query = FileQuery(
                    store_ids=(_STORE_ID,),
                    texts=(question.text,),
                    max_hits=_MAX_HITS,
                    weights=weights,
                )
                begin_s = time.perf_counter()
                hits = await search.search(query, None)
                times_ms.append(1000 * (time.perf_counter() - begin_s))
                right = [
                    rank
                    for rank, hit in enumerate(hits, start=1)
                    if is_right(question, hit, places[hit.filename, hit.position])
                ]
                ranks.append(right[0] if right else 10**9)
            rows.append(_write_row(mode, ranks, times_ms))
        await store.close()
    return iter(rows)


def _write_row(mode: str, ranks: list[int], times_ms: list[float]) -> str:
    recalls = [statistics.mean(rank <= limit for rank in ranks) for limit in (1, 5, 10)]
    mean_reciprocal = statistics.mean(1 / rank if rank <= _MAX_HITS else 0.0 for rank in ranks)
    numbers = " | ".join(f"{value:.3f}" for value in (*recalls, mean_reciprocal))
    return f"| {mode} | {numbers} | {statistics.median(times_ms):.1f} |"


async def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--tokenizer", type=Path, required=True, help="directory of the model")
    parser.add_argument("--perl", type=Path, help="directory with perlfaq1.pod")
    parser.add_argument("--python", type=Path, help="directory _sources of Python's documents")
    arguments = parser.parse_args()
    corpora = [read_own()]
    if arguments.perl is not None:
        corpora.append(read_perl(arguments.perl))
    if arguments.python is not None:
        corpora.append(read_python(arguments.python))
    embedder = HttpEmbedder(arguments.url, arguments.tokenizer)
    for corpus in corpora:
        print("| | recall@1 | recall@5 | recall@10 | MRR@10 | median, ms |")
        for row in await measure(corpus, embedder):
            print(row, flush=True)


if __name__ == "__main__":
    asyncio.run(_main())
