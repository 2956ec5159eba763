"""Tells how much memory a model takes, in a process of its own: the server has no OpenVINO in it.

`python -m ouzel.serve.measuring` reads a `Question` as JSON from its standard input, and writes an
`Answer` to its standard output.
"""

import sys

import msgspec

from ouzel.config import EngineConfig, ModelConfig
from ouzel.errors import OuzelError

# An engine's process has Python, OpenVINO, compiled graphs and buffers of a step beside its weights
# and caches. Measured: 190 to 330 MiB.
_PROCESS_BYTES = 360 * 2**20
# Weights that were just read are there twice for a moment, and some are rearranged: 5 % on top.
_WEIGHTS_SHARE = 1.05
# The weights may take this part of a model's share of the memory; beyond it the model gets all.
_MAX_WEIGHTS_SHARE = 0.75


class Question(msgspec.Struct, frozen=True):
    """`model.model` is a local directory. `shares` are the bytes that the model may take.

    The first share that suffices is chosen.
    """

    model: ModelConfig
    engine: EngineConfig
    shares: tuple[int, ...]


class ModelNeeds(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of a model in bytes, and facts that were found on the way."""

    num_bytes: int
    share_bytes: int  # the memory that the engine may divide between weights and caches
    max_model_len: int = 0  # 0: unknown


class Answer(msgspec.Struct, frozen=True):
    needs: ModelNeeds | None = None
    fault: str = ""


def measure(question: Question) -> ModelNeeds:
    """Returns the memory of a model with the first share that suffices. Raises ModelLoadError."""
    from ouzel.backends.openvino.inspection import inspect_model  # noqa: PLC0415  takes a second

    *tried, last = question.shares
    for share_bytes in tried:
        try:
            found = inspect_model(question.model, question.engine, free_bytes=share_bytes)
        except OuzelError:
            continue  # the last share reports a fault that has another reason
        if found.weight_bytes <= share_bytes * _MAX_WEIGHTS_SHARE:
            break
    else:
        share_bytes = last
        found = inspect_model(question.model, question.engine, free_bytes=last)
    caches = found.kv_cache_bytes + found.num_state_slots * found.state_slot_bytes
    num_engines = question.engine.replicas
    return ModelNeeds(
        num_bytes=int(found.weight_bytes * _WEIGHTS_SHARE) * num_engines
        + caches * num_engines
        + _PROCESS_BYTES * num_engines,
        share_bytes=share_bytes,
        max_model_len=found.max_model_len,
    )


def main() -> None:
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=Question)
    try:
        answer = Answer(needs=measure(question))
    except OuzelError as error:
        answer = Answer(fault=str(error))
    sys.stdout.buffer.write(msgspec.json.encode(answer))


if __name__ == "__main__":
    main()
