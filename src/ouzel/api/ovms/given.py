"""Bodies as OVMS reads them, as ours: what it looks at first, and what its fields mean."""

from collections.abc import Collection

from ouzel.api.ovms.errors import NotARequest
from ouzel.errors import InvalidRequest, ModelNotFound
from ouzel.wire.choice_fields import ChoiceFields
from ouzel.wire.decode import JsonObject, decode_object, log_ignored, parse_object

_OF_SAMPLING = ("temperature", "top_p", "top_k", "min_p")
_OF_BEAM_SEARCH = ("length_penalty",)
_ONE_BEAM = (None, 1, "1")


def read_given(body: bytes, model_names: Collection[str]) -> JsonObject:
    """Raises NotARequest and ModelNotFound, in OVMS's order."""
    given = _parsed(body)
    if "model" not in given:
        raise NotARequest("model field is missing in JSON body", param="model")
    if not isinstance(given["model"], str):
        raise NotARequest("model field is not a string", param="model")
    if not isinstance(given.get("stream"), bool | None):
        raise NotARequest("stream field is not a boolean", param="stream")
    if given["model"] not in model_names:
        raise ModelNotFound(f"the model {given['model'][:100]!r} does not exist", param="model")
    return _in_our_words(given)


def _parsed(body: bytes) -> JsonObject:
    try:
        return parse_object(body)
    except InvalidRequest as error:
        if error.param is not None:
            raise  # what is wrong with a field
        match error.__cause__:
            case None:
                raise NotARequest("JSON body must be an object") from error
            case RecursionError():
                raise NotARequest("JSON body exceeds maximum nesting depth") from error
            case _:
                raise NotARequest("Cannot parse JSON body") from error


def _in_our_words(given: JsonObject) -> JsonObject:
    """`best_of` is a number of beams; a stream shows the stop string that ended it.

    Fields of sampling are not read in a beam search and those of beam search not outside one: OVMS documents them so.
    """
    ours = dict(given)
    if given.get("best_of") not in _ONE_BEAM:
        ours["use_beam_search"] = True
        _drop(ours, _OF_SAMPLING)
    elif not (given.get("use_beam_search") or given.get("num_beams")):
        _drop(ours, _OF_BEAM_SEARCH)
    if given.get("stream") and given.get("stop") and given.get("include_stop_str_in_output") is None:
        ours["include_stop_str_in_output"] = True
    return ours


def _drop(given: JsonObject, names: Collection[str]) -> None:
    dropped = {name: given.pop(name) for name in names if given.get(name) is not None}
    decode_object(dropped, ChoiceFields)  # refuses what they could not be in any case
    log_ignored(set(dropped))
