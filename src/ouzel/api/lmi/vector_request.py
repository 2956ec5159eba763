"""Reads bodies of /invocations for models that make embeddings or rank texts.

`inputs` is a text or a list of texts, as in LMI's guide for text embedding. A pair of texts is an
object with `text` and `text_pair`, or with `key` and `value`; `query` and `texts` make a pair for
each text. The body is one pair, has `inputs`, or is a list of texts or pairs. DJL's translators for
text embedding and cross encoders read these forms.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta

from ouzel.api.lmi.adapters import take_adapters
from ouzel.api.openai.embedding_fields import check_num_texts
from ouzel.api.ranking.encoded_pairs import Pair, Text
from ouzel.errors import InvalidRequest
from ouzel.generation import ServedModel
from ouzel.wire.decode import JsonObject, decode_object, log_ignored
from ouzel.wire.options import check_generates
from ouzel.wire.validation_errors import show_value

_OF_GENERATION = ("messages", "prompt")  # fields of LMI's other schemas
_PAIR_NAMES = (("text", "text_pair"), ("key", "value"))


class PairObject(msgspec.Struct, kw_only=True):
    text: Annotated[str | None, Meta(description="The first text of a pair.")] = None
    text_pair: Annotated[str | None, Meta(description="The second text of a pair.")] = None
    key: Annotated[str | None, Meta(description="Another name of text.")] = None
    value: Annotated[str | None, Meta(description="Another name of text_pair.")] = None


class VectorParameters(msgspec.Struct, kw_only=True):
    normalize: Annotated[
        bool | None,
        Meta(
            description="Scales vectors to the length 1, or does not; default: as the model's "
            "files say."
        ),
    ] = None
    truncate: Annotated[bool | None, Meta(description="Cuts texts to the model's limit.")] = None


class VectorRequest(msgspec.Struct, kw_only=True):
    inputs: (
        Annotated[
            str | PairObject | Annotated[list[str | PairObject], Meta(min_length=1)],
            Meta(
                description="A text, a pair of texts, or a list of them. The body itself may also "
                "be a pair or a list."
            ),
        ]
        | None
    ) = None
    query: Annotated[str | None, Meta(description="The first text of every pair.")] = None
    texts: Annotated[
        Annotated[list[str], Meta(min_length=1)] | None,
        Meta(description="The second texts of the pairs."),
    ] = None
    parameters: Annotated[
        VectorParameters | None, Meta(description="Options for reading the texts.")
    ] = None
    adapters: Annotated[
        str | list[str] | None, Meta(description="An adapter for all inputs; empty: none.")
    ] = None
    stream: Annotated[bool | None, Meta(description="Only false is supported.")] = None
    model: Annotated[str | None, Meta(description="No effect: names no model here.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorInputs:
    """The texts or the pairs of a request, never both."""

    texts: Sequence[Text] = ()
    pairs: Sequence[Pair] = ()
    is_list: bool
    parameters: VectorParameters


def read_vector_inputs(
    content: object, model: ServedModel, *, adapter_beside_body: str
) -> VectorInputs:
    """Reads a parsed body. Raises InvalidRequest."""
    if not isinstance(content, dict | list):
        raise InvalidRequest(
            f"the body must be a JSON object or a list, given {show_value(content)}"
        )
    fields, path = _wrap_pair(content if isinstance(content, dict) else {"inputs": content})
    if any(fields.get(name) is not None for name in _OF_GENERATION):
        check_generates(model)
    _check_adapters(fields, model, adapter_beside_body)
    body = decode_object(fields, VectorRequest)
    if body.stream:
        raise InvalidRequest("must be false: this model writes no text, given true", field="stream")
    if body.model is not None and body.model not in model.names:
        log_ignored({"model"})
    parameters = body.parameters or VectorParameters()
    makes_scores = model.engine.info.task == "score"
    if body.query is not None or body.texts is not None:
        return VectorInputs(pairs=_pairs_of_query(body), is_list=True, parameters=parameters)
    if body.inputs is None:
        raise InvalidRequest(
            "Missing text or text_pair in json." if makes_scores else 'Missing "inputs" in json.'
        )
    return _read_inputs(body.inputs, path, parameters, makes_scores=makes_scores)


def _wrap_pair(fields: JsonObject) -> tuple[JsonObject, str]:
    """Wraps a body that is a pair into `inputs`.

    Returns also the path of the inputs in the body.
    """
    for names in _PAIR_NAMES:
        if fields.get("inputs") is None and any(fields.get(name) is not None for name in names):
            rest = {name: value for name, value in fields.items() if name not in ("inputs", *names)}
            return {**rest, "inputs": {name: fields.get(name) for name in names}}, ""
    return dict(fields), "inputs"


def _pairs_of_query(body: VectorRequest) -> list[Pair]:
    if body.inputs is not None:
        raise InvalidRequest("must not be given beside query and texts", field="inputs")
    if body.query is None or body.texts is None:
        given, missing = ("texts", "query") if body.query is None else ("query", "texts")
        raise InvalidRequest(f"is required beside {given}", field=missing)
    check_num_texts(body.texts, field="texts")
    query = Text(body.query, "query")
    return [(query, Text(text, f"texts[{index}]")) for index, text in enumerate(body.texts)]


def _check_adapters(fields: JsonObject, model: ServedModel, beside_body: str) -> None:
    listed = fields.get("texts") if fields.get("inputs") is None else fields["inputs"]
    num_inputs = len(listed) if isinstance(listed, list) else 1
    names = take_adapters(fields, model, num_inputs=num_inputs, beside_body=beside_body)
    if any(name != model.adapter for name in names):
        raise InvalidRequest(
            f"must be one adapter for all inputs of this model, given {show_value(names)}",
            field="adapters",
        )


def _read_inputs(
    inputs: str | PairObject | list[str | PairObject],
    path: str,
    parameters: VectorParameters,
    *,
    makes_scores: bool,
) -> VectorInputs:
    """Reads `inputs`, which stand at `path` in the body."""
    is_list = isinstance(inputs, list)
    entries = inputs if isinstance(inputs, list) else [inputs]
    check_num_texts(entries, field=path)
    texts, pairs = list[Text](), list[Pair]()
    for index, entry in enumerate(entries):
        field = f"{path}[{index}]" if is_list else path
        if isinstance(entry, PairObject):
            pairs.append(_pair(entry, field))
        else:
            texts.append(Text(entry, field))
        if texts and (makes_scores or pairs):
            reason = (
                "this model scores pairs of texts" if makes_scores else "other inputs are pairs"
            )
            raise InvalidRequest(
                f"must be an object with text and text_pair: {reason}, "
                f"given {show_value(texts[0].text)}",
                field=texts[0].field,
            )
    return VectorInputs(texts=texts, pairs=pairs, is_list=is_list, parameters=parameters)


def _pair(pair: PairObject, path: str) -> Pair:
    prefix = f"{path}." if path else ""
    for names in _PAIR_NAMES:
        first, second = (getattr(pair, name) for name in names)
        if first is not None and second is not None:
            return Text(first, f"{prefix}{names[0]}"), Text(second, f"{prefix}{names[1]}")
    raise InvalidRequest("Missing text or text_pair in json.", param=path or None)
