"""Reads other servers' settings of drafts as Ouzel's options: OVMS's EAGLE-3 mode, vLLM's JSON."""

from pathlib import Path

import msgspec

from ouzel.model_store.model_directory import is_ir
from ouzel.options.invalid_option import InvalidOption

Values = dict[str, object]

_OF_DRAFT_MODEL = ("eagle3", "draft_model")  # methods of vLLM whose `model` is a directory or name
_NGRAM, _MTP = ("ngram", "ngram_gpu"), "mtp"


class _SpeculativeConfig(msgspec.Struct, frozen=True):
    """The keys of vLLM's `speculative_config` that have a meaning in Ouzel."""

    method: str | None = None
    model: str | None = None


def leave_out_ir_draft(values: Values) -> str:
    """Removes a draft that is an OpenVINO IR from the options, for OVMS's EAGLE-3 mode.

    Returns the warning about it, without the name of the setting; an empty text if the draft stays.
    """
    draft = str(values.get("draft_model", ""))
    if not draft or not is_ir(Path(draft)):
        return ""
    del values["draft_model"]
    return (
        f"{draft} is an OpenVINO IR, whose EAGLE-3 head cannot be read, and the model is served "
        "without its draft: answers are the same; the original head, a smaller model, or prompt "
        "lookup makes them faster"
    )


def read_speculative_config(text: str, description: str) -> Values:
    """Reads vLLM's JSON; no options for a method without a meaning here, which changes no answer.

    Raises InvalidOption for a text that is no such JSON.
    """
    try:
        config = msgspec.json.decode(text, type=_SpeculativeConfig)
    except msgspec.MsgspecError as error:
        raise InvalidOption(
            f'{description}: must be like {{"method": "eagle3", "model": "NAME"}}, given {text!r}'
        ) from error
    method = config.method or ("draft_model" if config.model else "")
    if method in _OF_DRAFT_MODEL:
        if not config.model:
            raise InvalidOption(f"{description}: model must be given for the method {method}")
        return {"draft_model": config.model}
    if method == _MTP or method.endswith(f"_{_MTP}"):
        return {"mtp": "true"}
    return {"prompt_lookup": "true"} if method in _NGRAM else {}
