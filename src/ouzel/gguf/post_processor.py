"""Makes the post-processor of tokenizer.json: the tokens before and after a text, or a pair."""

from dataclasses import dataclass
from typing import Literal, assert_never

from ouzel.checkpoint.model_files import JsonObject
from ouzel.gguf.metadata import Metadata
from ouzel.gguf.vocabulary import KEY, Vocabulary, token_id

# How a pair of texts is written, with B for the first token and E for the last:
#   repeated  B one E B two E
#   bert      B one E two E, where the second text has token type 1
#   roberta   B one E E two E
PairForm = Literal["repeated", "bert", "roberta"]


@dataclass(frozen=True, slots=True)
class TextEnds:
    """The tokens around a text that a kind of tokenizer adds, unless the file says otherwise."""

    adds_bos: bool
    adds_eos: bool = False
    pair_form: PairForm = "repeated"


def make_post_processor(
    metadata: Metadata, vocabulary: Vocabulary, ends: TextEnds
) -> JsonObject | None:
    """Returns None if no token is added. Raises ModelLoadError."""
    first, last = find_bert_ends(metadata, vocabulary, ends) or _find_ends(
        metadata, vocabulary, ends
    )
    ids = {vocabulary.tokens[id_]: id_ for id_ in (first, last) if id_ is not None}
    if not ids:
        return None

    def special(id_: int | None, number: int) -> list[JsonObject]:
        if id_ is None:
            return []
        return [{"SpecialToken": {"id": vocabulary.tokens[id_], "type_id": number}}]

    def text(name: str, number: int) -> list[JsonObject]:
        return [{"Sequence": {"id": name, "type_id": number}}, *special(last, number)]

    single = [*special(first, 0), *text("A", 0)]
    match ends.pair_form:
        case "repeated":
            pair = [*single, *special(first, 1), *text("B", 1)]
        case "bert":
            pair = [*single, *text("B", 1)]
        case "roberta":
            pair = [*single, *special(last, 0), *text("B", 0)]
        case _:
            assert_never(ends.pair_form)
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": pair,
        "special_tokens": {
            token: {"id": token, "ids": [id_], "tokens": [token]} for token, id_ in ids.items()
        },
    }


def _find_ends(
    metadata: Metadata, vocabulary: Vocabulary, ends: TextEnds
) -> tuple[int | None, int | None]:
    first = last = None
    if metadata.flag(KEY + "add_bos_token", ends.adds_bos):
        first = token_id(metadata, vocabulary, "bos")
    if metadata.flag(KEY + "add_eos_token", ends.adds_eos):
        last = token_id(metadata, vocabulary, "eos")
    return first, last


def find_bert_ends(
    metadata: Metadata, vocabulary: Vocabulary, ends: TextEnds
) -> tuple[int | None, int | None] | None:
    """Returns the ids of [CLS] and [SEP], which BERT always adds; None for other tokenizers.

    Older files name them under other keys, or not at all. `seperator` is the spelling of GGUF.
    """
    if ends.pair_form != "bert":
        return None
    found = []
    for names, usual in ((("cls", "bos"), "[CLS]"), (("seperator", "eos"), "[SEP]")):
        named = (token_id(metadata, vocabulary, name) for name in names)
        by_text = vocabulary.tokens.index(usual) if usual in vocabulary.tokens else None
        found.append(next((id_ for id_ in named if id_ is not None), by_text))
    first, last = found
    return first, last
