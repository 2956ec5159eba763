"""Encodes the pairs of a request: one text for each pair, or for each text of a pair.

A document that is too long is cut, refused, or divided into pieces. A pair with pieces is read once
for each piece.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ouzel.api.endpoint.vector_maker import VectorMaker
from ouzel.checkpoint.text_tasks import TextPrompt
from ouzel.errors import InvalidRequest
from ouzel.generation import ServedModel
from ouzel.vectors import EncodedText, LateTexts, PieceLimit, TextEncoder, TextLimit

# Limit of a request: a short body can have a long query, which precedes each of its documents.
_MAX_TOKENS = 2**23


@dataclass(frozen=True, slots=True)
class Text:
    text: str
    field: str  # path of the text in the body


Pair = tuple[Text, Text]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """Pairs to score and the options of scoring, for all dialects."""

    model_name: str | None
    pairs: Sequence[Pair]
    truncate_prompt_tokens: int | None = None
    # None if the request does not set it
    truncate: bool | None = None
    keeps_end: bool = False  # whether cut texts keep their end
    # cuts the second text of each pair, not the first
    max_document_tokens: int | None = None
    # divides long documents, unless the request cuts or refuses them
    divides_documents: bool = False
    max_pieces: int | None = None  # limit for each document
    instruction: str | None = None
    activates: bool = True
    priority: int = 0


@dataclass(frozen=True, slots=True)
class EncodedPairs:
    """Pairs of texts as token ids. Each pair has one score for each piece of its document."""

    # one text for each score; for embedding models, all distinct texts
    texts: list[EncodedText]
    # positions in `texts` of the two texts of each score; empty if a pair is one text
    places: list[tuple[int, int]]
    begins: list[int]  # position of each pair's first score among all scores

    @property
    def num_scores(self) -> int:
        return len(self.places) or len(self.texts)


def encode_pairs(
    scoring: Scoring, making: VectorMaker, *, searches: bool, cuts_queries: bool = False
) -> EncodedPairs:
    """Encodes the pairs of a request. Raises InvalidRequest.

    With `searches` the model's prompts for queries and documents are used.
    """
    encoder, files = making.check_task("score", "embed", form=None)
    limit = encoder.limit(
        scoring.truncate_prompt_tokens, truncate=scoring.truncate, field="truncate_prompt_tokens"
    )
    limit = replace(limit, keeps_end=scoring.keeps_end)
    piece_limit = _piece_limit(scoring, making.model, cuts_queries=cuts_queries)
    reader: _PairReader | _TextReader | _LateReader
    if making.task == "embed":
        if scoring.instruction is not None:
            raise InvalidRequest(
                ": a model that makes embeddings takes no instruction", field="instruction"
            )
        limits = limit, _limit_documents(limit, scoring.max_document_tokens)
        if making.late is not None:
            reader = _LateReader(making.late, limits, piece_limit, truncate=scoring.truncate)
        else:
            prompts = (
                (files.query_prompt, files.document_prompt)
                if searches
                else (files.default_prompt,) * 2
            )
            reader = _TextReader(encoder, prompts, limits, piece_limit)
    else:
        if making.vector_size > 1:
            raise InvalidRequest(
                f"the model has {making.vector_size} labels and no single score", param="model"
            )
        reader = _PairReader(encoder, scoring, limit, piece_limit)
    begins = []
    num_tokens, num_counted = 0, 0
    for pair in scoring.pairs:
        begins.append(reader.num_scores)
        reader.read(pair)
        if piece_limit is not None:
            _check_num_pieces(reader.num_scores, making.model.max_document_pieces)
        num_tokens += sum(len(text.token_ids) for text in reader.texts[num_counted:])
        num_counted = len(reader.texts)
        _check_num_tokens(num_tokens, pair[1].field)
    return EncodedPairs(reader.texts, reader.places, begins)


def _piece_limit(scoring: Scoring, model: ServedModel, *, cuts_queries: bool) -> PieceLimit | None:
    """Returns the limit of pieces, or None if documents are not divided.

    Raises InvalidRequest if fields contradict each other.
    """
    says_otherwise = scoring.truncate_prompt_tokens is not None or scoring.truncate is not None
    if scoring.max_pieces is not None:
        if says_otherwise:
            limit = "must not be given beside truncate or truncate_prompt_tokens"
            raise InvalidRequest(f"{limit}, given {scoring.max_pieces}", field="max_chunks_per_doc")
        if not model.max_document_pieces:
            limit = (
                "is not supported by this server, which divides no document "
                "(--max-document-chunks 0)"
            )
            raise InvalidRequest(f"{limit}, given {scoring.max_pieces}", field="max_chunks_per_doc")
    elif says_otherwise or model.cuts_long_texts or not model.max_document_pieces:
        return None
    if not scoring.divides_documents:
        return None
    return PieceLimit(scoring.max_pieces, scoring.max_document_tokens, cuts_queries)


def _check_num_pieces(num_pieces: int, max_pieces: int) -> None:
    if num_pieces > max_pieces:
        limit = (
            f"must come to <= {max_pieces} pieces in all, where the long ones are divided "
            "(--max-document-chunks)"
        )
        raise InvalidRequest(f"{limit}, given {num_pieces} or more", field="documents")


def _check_num_tokens(num_tokens: int, field: str) -> None:
    """Raises InvalidRequest for too many tokens. `field` is the path of the last document read."""
    if num_tokens > _MAX_TOKENS:
        limit = f"must come to <= {_MAX_TOKENS} tokens in all, the query before each piece included"
        raise InvalidRequest(f"{limit}, given {num_tokens} or more", field=field.partition("[")[0])


class _PairReader:
    """Encodes pairs for a model that reads both texts of a pair together."""

    def __init__(
        self,
        encoder: TextEncoder,
        scoring: Scoring,
        limit: TextLimit,
        piece_limit: PieceLimit | None,
    ) -> None:
        if scoring.max_document_tokens is not None:
            limit = replace(limit, cuts=True, max_second_tokens=scoring.max_document_tokens)
        self.texts: list[EncodedText] = []
        self.places: list[tuple[int, int]] = []
        self._encoder, self._limit, self._piece_limit = encoder, limit, piece_limit
        self._instruction = scoring.instruction

    @property
    def num_scores(self) -> int:
        return len(self.texts)

    def read(self, pair: Pair) -> None:
        first, second = pair
        fields, instruction = (first.field, second.field), self._instruction
        if self._piece_limit is None:
            limit = self._limit
            one = self._encoder.pair(
                first.text, second.text, limit, fields=fields, instruction=instruction
            )
            self.texts.append(one)
        else:
            self.texts += self._encoder.pair_pieces(
                first.text, second.text, self._piece_limit, fields=fields, instruction=instruction
            )


class _TextReader:
    """Encodes each distinct text of the pairs once, for a model that reads single texts."""

    def __init__(
        self,
        encoder: TextEncoder,
        prompts: tuple[TextPrompt, TextPrompt],
        limits: tuple[TextLimit, TextLimit],
        piece_limit: PieceLimit | None,
    ) -> None:
        self.texts: list[EncodedText] = []
        self.places: list[tuple[int, int]] = []
        self._encoder, self._prompts, self._piece_limit = encoder, prompts, piece_limit
        self._limits = limits
        # positions of the texts that were encoded
        self._found: dict[tuple[TextPrompt, str, TextLimit, bool], range] = {}

    @property
    def num_scores(self) -> int:
        return len(self.places)

    def read(self, pair: Pair) -> None:
        [first] = self._places(pair[0], 0)
        self.places += [(first, place) for place in self._places(pair[1], 1)]

    def _places(self, text: Text, side: int) -> range:
        prompt, limit = self._prompts[side], self._limits[side]
        key = prompt, text.text, limit, bool(side and self._piece_limit)
        if key not in self._found:
            begin = len(self.texts)
            if side and self._piece_limit is not None:
                encoded = self._encoder.text_pieces(
                    prompt.text, text.text, self._piece_limit, field=text.field
                )
            else:
                encoded = [
                    self._encoder.text(text.text, limit, field=text.field, prompt=prompt.text)
                ]
            self.texts += [replace(each, task=prompt.task) for each in encoded]
            self._found[key] = range(begin, len(self.texts))
        return self._found[key]


class _LateReader:
    """Encodes each distinct query and document once, for a model with a vector of each token."""

    def __init__(
        self,
        late: LateTexts,
        limits: tuple[TextLimit, TextLimit],
        piece_limit: PieceLimit | None,
        *,
        truncate: bool | None,
    ) -> None:
        self.texts: list[EncodedText] = []
        self.places: list[tuple[int, int]] = []
        self._late, self._limits, self._piece_limit = late, limits, piece_limit
        self._truncate = truncate
        self._found: dict[tuple[int, str], range] = {}  # positions by side and text

    @property
    def num_scores(self) -> int:
        return len(self.places)

    def read(self, pair: Pair) -> None:
        [first] = self._places(pair[0], 0)
        self.places += [(first, place) for place in self._places(pair[1], 1)]

    def _places(self, text: Text, side: int) -> range:
        key = side, text.text
        if key not in self._found:
            begin = len(self.texts)
            self.texts += self._encode_document(text) if side else [self._encode_query(text)]
            self._found[key] = range(begin, len(self.texts))
        return self._found[key]

    def _encode_query(self, text: Text) -> EncodedText:
        limit = self._limits[0]
        return self._late.query(text.text, limit, field=text.field, truncate=self._truncate)

    def _encode_document(self, text: Text) -> list[EncodedText]:
        if self._piece_limit is not None:
            return self._late.document_pieces(text.text, self._piece_limit, field=text.field)
        return [self._late.document(text.text, self._limits[1], field=text.field)]


def _limit_documents(limit: TextLimit, max_tokens: int | None) -> TextLimit:
    """Returns the limit of a single document, with its prompt and special tokens."""
    return (
        limit
        if max_tokens is None
        else replace(limit, cuts=True, max_tokens=min(max_tokens, limit.max_tokens))
    )
