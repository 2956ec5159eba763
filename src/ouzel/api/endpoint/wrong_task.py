"""Words the error for a model whose task is not the task of the endpoint."""

from ouzel.generation import ServedModel
from ouzel.pooling import Task

_DOES: dict[Task, str] = {
    "generate": "generates text",
    "embed": "makes embeddings",
    "score": "scores pairs of texts",
    "transcribe": "turns speech into text",
    "speak": "reads texts aloud",
}
MADE: dict[Task, str] = {
    "generate": "text",
    "embed": "embeddings",
    "score": "scores",
    "transcribe": "transcriptions",
    "speak": "speech",
}


def describe_wrong_task(model: ServedModel, task: Task) -> str:
    """Returns the beginning of an error message: the task of the model, and the lacking task."""
    own = model.engine.info.task
    return f"the model {model.names[0]!r} {_DOES[own]} and makes no {MADE[task]}"
