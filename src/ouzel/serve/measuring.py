"""Tells how much memory a model takes, in a process of its own: the server has no OpenVINO in it.

`python -m ouzel.serve.measuring` reads a `Question` as JSON from its standard input, and writes an
`Answer` to its standard output.
"""

import os
import sys
from pathlib import Path

import msgspec

from ouzel.checkpoint.assistants import is_assistant
from ouzel.checkpoint.draft_head import is_draft_head
from ouzel.config import EngineConfig, ModelConfig
from ouzel.errors import OuzelError

_ENDLESS_BYTES = 2**50  # memory that limits no cache


class Question(msgspec.Struct, frozen=True):
    """`model.model` and `draft` are local directories; `draft` is empty without a draft.

    A draft is a draft model, an EAGLE-3 head or an assistant.
    """

    model: ModelConfig
    engine: EngineConfig
    draft: str = ""


class ModelSize(msgspec.Struct, frozen=True, kw_only=True):
    """The sizes of one engine of a model in bytes."""

    weight_bytes: int
    cache_bytes: int  # caches and states as large as they are useful, or as the options say
    max_model_len: int  # tokens


class Answer(msgspec.Struct, frozen=True):
    """The size, or the fault that prevents it."""

    size: ModelSize | None = None
    fault: str = ""


def measure(question: Question) -> ModelSize:
    """Returns the sizes of a model without loading it. Raises ModelLoadError."""
    # these imports take a second
    from ouzel.backends.openvino.assistants.attachment import measure_assistant  # noqa: PLC0415
    from ouzel.backends.openvino.inspection import inspect_model  # noqa: PLC0415
    from ouzel.backends.openvino.kernels.library import uses_kernels  # noqa: PLC0415

    model, draft = question.model, question.draft
    if draft and is_draft_head(Path(draft)):  # a part of the model, whose rows it reads
        model, draft = msgspec.structs.replace(model, draft_model=draft), ""
    found = inspect_model(model, question.engine, free_bytes=_ENDLESS_BYTES)
    size = ModelSize(
        weight_bytes=found.weight_bytes,
        cache_bytes=found.kv_cache_bytes + found.num_state_slots * found.state_slot_bytes,
        max_model_len=found.max_model_len,
    )
    if not draft:
        return size
    if is_assistant(Path(draft)):
        packs = uses_kernels(question.engine)
        draft_bytes = measure_assistant(Path(draft), model.weight_plan, packs=packs)
        return msgspec.structs.replace(size, weight_bytes=size.weight_bytes + draft_bytes)
    draft_model = msgspec.structs.replace(model, model=draft, lora=())
    of_draft = inspect_model(draft_model, question.engine, free_bytes=_ENDLESS_BYTES)
    return msgspec.structs.replace(
        size,
        weight_bytes=size.weight_bytes + of_draft.weight_bytes,
        cache_bytes=size.cache_bytes + of_draft.kv_cache_bytes,
    )


def main() -> None:
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing else is written beside the answer
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=Question)
    try:
        answer = Answer(measure(question))
    except OuzelError as error:
        answer = Answer(fault=str(error))
    answers.write(msgspec.json.encode(answer))
    answers.close()


if __name__ == "__main__":
    main()
