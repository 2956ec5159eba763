"""Reads other servers' settings of drafts as Ouzel's options: OVMS's EAGLE-3 mode, vLLM's JSON."""

from pathlib import Path

import msgspec

from ouzel.model_store.model_directory import is_ir
from ouzel.options.invalid_option import InvalidOption

Values = dict[str, object]

_METHODS_WITH_MODEL = ("eagle3", "draft_model")  # methods of vLLM whose `model` Ouzel loads
_NGRAM, _MTP = ("ngram", "ngram_gpu"), "mtp"


class _SpeculativeConfig(msgspec.Struct, frozen=True):
    """The keys of vLLM's `speculative_config` that Ouzel reads."""

    method: str | None = None
    model: str | None = None


def leave_out_ir_draft(values: Values) -> str:
    """Removes `draft_model` from the options of OVMS's EAGLE-3 mode if it is an OpenVINO IR.

    Returns the text of the warning about it, or an empty text if the draft stays.
    """
    draft = str(values.get("draft_model", ""))
    if not draft or not is_ir(Path(draft)):
        return ""
    del values["draft_model"]
    return explain_left_out(draft)


def explain_left_out(draft: str) -> str:
    """Returns the text of the warning about a draft in OVMS's EAGLE-3 mode that is left out."""
    return (
        f"{draft} is an OpenVINO IR, whose EAGLE-3 head cannot be read, and the model is served "
        "without its draft: answers are the same; the original head, a smaller model, or prompt "
        "lookup makes them faster"
    )


def read_speculative_config(text: str, description: str) -> Values:
    """Reads vLLM's `speculative_config` as options.

    There are no options for a method that Ouzel does not have: answers are the same without it.
    Raises InvalidOption for a text that is no such JSON.
    """
    config = _read_config(text, description)
    method = config.method or ("draft_model" if config.model else "")
    if method in _METHODS_WITH_MODEL:
        if not config.model:
            raise InvalidOption(f"{description}: model must be given for the method {method}")
        return {"draft_model": config.model}
    if method == _MTP or method.endswith(f"_{_MTP}"):
        return {"mtp": "true"}
    return {"prompt_lookup": "true"} if method in _NGRAM else {}


def list_unread_keys(text: str, description: str) -> list[str]:
    """Returns the keys of vLLM's `speculative_config` that have no meaning in Ouzel.

    Raises InvalidOption like `read_speculative_config`.
    """
    _read_config(text, description)
    keys = msgspec.json.decode(text, type=dict[str, object])
    return [key for key in keys if key not in _SpeculativeConfig.__struct_fields__]


def _read_config(text: str, description: str) -> _SpeculativeConfig:
    try:
        return msgspec.json.decode(text, type=_SpeculativeConfig)
    except msgspec.MsgspecError as error:
        raise InvalidOption(
            f'{description}: must be like {{"method": "eagle3", "model": "NAME"}}, given {text!r}'
        ) from error
