"""Tells how much memory a model takes, in a process of its own: the server has no OpenVINO in it.

`python -m ouzel.serve.measuring` reads a `Question` as JSON from its standard input, and writes an
`Answer` to its standard output.
"""

import os
import sys

import msgspec

from ouzel.config import EngineConfig, ModelConfig
from ouzel.errors import OuzelError

_ENDLESS_BYTES = 2**50  # memory that limits no cache


class Question(msgspec.Struct, frozen=True):
    """The paths in `model` are local directories; `model.draft_model` is empty without a draft.

    A draft is a draft model, an EAGLE-3 head or an assistant.
    """

    model: ModelConfig
    engine: EngineConfig


class ModelSize(msgspec.Struct, frozen=True, kw_only=True):
    """The sizes of one engine of a model, with its draft, in bytes."""

    weight_bytes: int
    cache_bytes: int  # caches and states as large as they are useful, or as the options say
    max_model_len: int  # tokens


class Answer(msgspec.Struct, frozen=True):
    """The size, or the fault that prevents it."""

    size: ModelSize | None = None
    fault: str = ""


def measure(question: Question) -> ModelSize:
    """Returns the sizes of a model and of its draft without loading them. Raises ModelLoadError."""
    from ouzel.backends.openvino.inspection import inspect_model  # noqa: PLC0415  takes a second

    found = inspect_model(question.model, question.engine, free_bytes=_ENDLESS_BYTES)
    of_draft = 0 if found.draft is None else found.draft.weight_bytes
    state_bytes = found.num_state_slots * found.state_slot_bytes
    working_bytes = 0 if found.speech is None else found.speech.working_bytes
    return ModelSize(
        weight_bytes=found.weight_bytes + of_draft,
        cache_bytes=found.kv_cache_bytes + found.draft_cache_bytes + state_bytes + working_bytes,
        max_model_len=found.max_model_len,
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
