"""Reads how a model of late interaction treats texts: a vector of each token, compared by MaxSim.

Four kinds of checkpoints have such vectors:

- bge-m3 has heads in `colbert_linear.pt` and `sparse_linear.pt`, beside the vector of a whole text.
- HF_ColBERT has its head as `linear.weight` among the weights, and its lengths and markers in
  `artifact.metadata`.
- PyLate has Dense modules in `modules.json`, and the rest in `config_sentence_transformers.json`.
- sentence-transformers (MultiVectorEncoder) has Dense modules on `token_embeddings`, a
  MultiVectorMask, and lengths in `sentence_bert_config.json`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import punctuation
from typing import Literal

from ouzel.checkpoint.model_files import CONFIG_FILE, JsonObject, brief, read_json_object
from ouzel.errors import ModelLoadError

HeadFiles = Literal["dense modules", "linear.weight", "colbert_linear.pt"]

VECTOR_HEAD: HeadFiles = "colbert_linear.pt"
WEIGHT_HEAD = "sparse_linear.pt"
HF_COLBERT = "HF_ColBERT"  # the architecture in config.json
_METADATA = "artifact.metadata"
_OWN_CONFIG = "config_sentence_transformers.json"
_QUERY_LEN, _DOCUMENT_LEN = 32, 180  # PyLate's, in tokens
_MAX_LEN = 2**18
# PyLate spells its only function MaxSim; older files name the function of whole texts.
_SIMILARITIES = ("maxsim", "meanmaxsim", "cosine", "dot")


@dataclass(frozen=True, slots=True, kw_only=True)
class LateInteraction:
    """Describes the texts and the scores of a model with a vector of each token.

    Lengths count all tokens of a text, special tokens and marker included.
    """

    head: HeadFiles
    query_marker: str = ""  # a token behind the first token of a query; empty: none
    document_marker: str = ""
    query_len: int | None = None  # the longest query; None: as many tokens as the model takes
    document_len: int | None = None
    # A query is filled up to this length with expansion tokens, which have vectors; 0: it is not.
    expanded_len: int = 0
    cuts_queries: bool = False  # cuts longer queries instead of refusing them
    expansion_token: str | None = None  # None: the mask token, or else the end token
    attends_to_expansion: bool = False  # the other tokens of a query attend to expansion tokens
    skipped_words: tuple[str, ...] = ()  # tokens of a document without a vector
    is_mean: bool = False  # the score is the mean over the query's tokens instead of the sum
    keeps_first: bool = True  # the first token of a text has a vector


def read_late_interaction(
    directory: Path, config: JsonObject, modules: Iterable[JsonObject], length_file: JsonObject
) -> LateInteraction | None:
    """Returns None for a model that makes only vectors of whole texts. Raises ModelLoadError.

    `length_file` is the content of `sentence_bert_config.json`.
    """
    own = read_json_object(directory / _OWN_CONFIG)
    if own.get("model_type") == "ColBERT" or any(
        str(module.get("type", "")).startswith("pylate.") for module in modules
    ):
        return _read_pylate(directory / _OWN_CONFIG, own)
    if own.get("model_type") == "MultiVectorEncoder":
        return _read_multi_vector(directory, own, modules, length_file)
    if HF_COLBERT in _read_architectures(config):
        return _read_metadata(directory / _METADATA)
    if (directory / VECTOR_HEAD).is_file():
        return LateInteraction(head=VECTOR_HEAD, is_mean=True, keeps_first=False)
    return None


def _read_architectures(config: JsonObject) -> list[object]:
    architectures = config.get("architectures")
    return architectures if isinstance(architectures, list) else []


def _read_metadata(path: Path) -> LateInteraction:
    values = _Values(path, read_json_object(path))
    values.check("similarity", values.content.get("similarity"), (None, "cosine"))
    query_len = values.length("query_maxlen", _QUERY_LEN)
    skips = values.flag("mask_punctuation", True)
    return LateInteraction(
        head="linear.weight",
        query_marker=values.text("query_token_id", "[unused0]"),
        document_marker=values.text("doc_token_id", "[unused1]"),
        query_len=query_len,
        document_len=values.length("doc_maxlen", _DOCUMENT_LEN),
        expanded_len=query_len,
        cuts_queries=True,
        attends_to_expansion=values.flag("attend_to_mask_tokens", False),
        skipped_words=tuple(punctuation) if skips else (),
    )


def _read_pylate(path: Path, own: JsonObject) -> LateInteraction:
    values = _Values(path, own)
    query_len = values.length("query_length", _QUERY_LEN)
    expands = values.flag("do_query_expansion", True)
    return LateInteraction(
        head="dense modules",
        query_marker=values.text("query_prefix", "[Q] "),
        document_marker=values.text("document_prefix", "[D] "),
        query_len=query_len,
        document_len=values.length("document_length", _DOCUMENT_LEN),
        expanded_len=query_len if expands else 0,
        cuts_queries=True,
        attends_to_expansion=expands and values.flag("attend_to_expansion_tokens", False),
        skipped_words=values.texts("skiplist_words", tuple(punctuation)),
        is_mean=_is_mean(path, own),
    )


def _read_multi_vector(
    directory: Path, own: JsonObject, modules: Iterable[JsonObject], length_file: JsonObject
) -> LateInteraction:
    """Reads the files of sentence-transformers, where markers are prompts."""
    lengths = _Values(directory / "sentence_bert_config.json", length_file)
    given = length_file.get("query_expansion")
    expansion = _Values(lengths.path, given if isinstance(given, dict) else {})
    if strategy := expansion.text("strategy", ""):
        expansion.check("query_expansion.strategy", strategy, ("fixed", "min"))
    expanded_len = expansion.length("length", _QUERY_LEN) if strategy else 0
    query_len = lengths.optional_length("query_length")
    if strategy == "min" and query_len is not None:
        query_len = max(query_len, expanded_len)
    return LateInteraction(
        head="dense modules",
        query_len=expanded_len if strategy == "fixed" else query_len,
        document_len=lengths.optional_length("document_length"),
        expanded_len=expanded_len,
        cuts_queries=strategy == "fixed" or query_len is not None,
        expansion_token=expansion.text("token", "") or None,
        attends_to_expansion=expansion.flag("attend", False),
        skipped_words=_read_mask(directory, modules),
        is_mean=_is_mean(directory / _OWN_CONFIG, own),
    )


def _read_mask(directory: Path, modules: Iterable[JsonObject]) -> tuple[str, ...]:
    """Returns the words without vectors in the MultiVectorMask."""
    for module in modules:
        if str(module.get("type", "")).endswith("MultiVectorMask"):
            path = directory / str(module.get("path", "")) / CONFIG_FILE
            mask = _Values(path, read_json_object(path))
            mask.check("skiplist_tasks", mask.content.get("skiplist_tasks"), (None, ["document"]))
            mask.check("keep_only_token_ids", mask.content.get("keep_only_token_ids"), (None,))
            return mask.texts("skiplist_words", ())
    return ()


def _is_mean(path: Path, own: JsonObject) -> bool:
    name = own.get("similarity_fn_name") or "maxsim"
    _Values(path, own).check("similarity_fn_name", str(name).lower(), _SIMILARITIES)
    return str(name).lower() == "meanmaxsim"


@dataclass(frozen=True, slots=True)
class _Values:
    """Reads the values of a JSON object. Raises ModelLoadError with the file and the key."""

    path: Path
    content: Mapping[str, object]

    def text(self, key: str, default: str) -> str:
        value = self.content.get(key)
        if value is None:
            return default
        if not isinstance(value, str):
            raise ModelLoadError(f"{self.path}: {key} must be a text, found {brief(value)}")
        return value

    def texts(self, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
        value = self.content.get(key)
        if value is None:
            return default
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise ModelLoadError(
                f"{self.path}: {key} must be a list of texts, found {brief(value)}"
            )
        return tuple(value)

    def flag(self, key: str, default: bool) -> bool:
        value = self.content.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise ModelLoadError(f"{self.path}: {key} must be true or false, found {brief(value)}")
        return value

    def length(self, key: str, default: int) -> int:
        return self.optional_length(key) or default

    def optional_length(self, key: str) -> int | None:
        value = self.content.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 4 <= value <= _MAX_LEN:
            raise ModelLoadError(
                f"{self.path}: {key} must be from 4 to {_MAX_LEN}, found {brief(value)}"
            )
        return value

    def check(self, key: str, value: object, known: tuple[object, ...]) -> None:
        if value not in known:
            shown = ", ".join(map(brief, known))
            raise ModelLoadError(f"{self.path}: {key} must be one of {shown}, found {brief(value)}")
