"""Reads how a model that makes vectors wants its texts: in chats, which its chat template writes.

sentence-transformers writes every text as the message of a user if `sentence_bert_config.json` has
the modality `message`, as Qwen3-VL-Embedding has it. A prompt is the message of the system.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ouzel.checkpoint.hf_config import HfConfig
from ouzel.checkpoint.model_files import brief
from ouzel.errors import ModelLoadError

# A model with one of these files has a processor, which adds the tokenizer's special tokens to a
# chat; a tokenizer alone does not.
_PROCESSOR_FILES = ("preprocessor_config.json", "processor_config.json")
# Settings that are no variables of the chat template, with the only value that Ouzel supports.
_OTHERS = {"truncation": None, "max_length": None, "padding": None, "restore_suffix": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceChats:
    """The form of the chats."""

    add_generation_prompt: bool = False  # the chat ends where an answer would begin
    add_special_tokens: bool = False  # the tokenizer's special tokens stand around the chat
    template_kwargs: Mapping[str, object] = field(default_factory=dict)


def read_sentence_chats(directory: Path, config: HfConfig) -> SentenceChats | None:
    """Returns the form of the chats, None for a model of plain texts.

    `config` has the contents of `sentence_bert_config.json`. Raises ModelLoadError for settings
    that Ouzel does not honour.
    """
    modalities = config.values.get("modality_config")
    if not isinstance(modalities, dict) or "message" not in modalities:
        return None
    processing = config.section("processing_kwargs") or HfConfig({})
    for key, value in processing.values.items():
        if key != "chat_template" and value not in (None, {}):
            raise ModelLoadError(
                f"{processing.source}: {brief(key)} is not supported, found {brief(value)}; "
                "supported: chat_template"
            )
    settings = processing.section("chat_template") or HfConfig({})
    settings.require(**_OTHERS)
    ends_open = settings.values.get("add_generation_prompt", False)
    if not isinstance(ends_open, bool):
        raise settings.refuse_value("add_generation_prompt", "true or false", ends_open)
    return SentenceChats(
        add_generation_prompt=ends_open,
        add_special_tokens=any((directory / name).is_file() for name in _PROCESSOR_FILES),
        template_kwargs={
            key: value
            for key, value in settings.values.items()
            if key not in ("add_generation_prompt", *_OTHERS)
        },
    )


def refuse_beside_chats(path: Path, settings: Mapping[str, bool]) -> None:
    """Raises ModelLoadError for a setting of plain texts that is set.

    `path` is the file with the form of the chats.
    """
    for name, is_set in settings.items():
        if is_set:
            raise ModelLoadError(f"{path}: modality_config: message is not supported beside {name}")
