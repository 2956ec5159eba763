"""Reads the tasks of a checkpoint that has an adapter for each, as jina-embeddings-v3 has.

`lora_adaptations` in config.json names the tasks; `task_instructions` has the text before the texts
of a task.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ouzel.checkpoint.model_files import brief
from ouzel.errors import ModelLoadError

_MAX_TASKS = 256


@dataclass(frozen=True, slots=True)
class TextPrompt:
    """The text before a text, and the task of which the model has an adapter."""

    text: str = ""
    task: int = 0  # number of the task, from 1; 0: none


NO_PROMPT = TextPrompt()


def read_text_tasks(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the names of the tasks, in the order of their adapters. Raises ModelLoadError."""
    value = config.get("lora_adaptations") or []
    if (
        not isinstance(value, list)
        or not all(isinstance(name, str) for name in value)
        or len(value) > _MAX_TASKS
    ):
        raise ModelLoadError(
            f"config.json: lora_adaptations must be up to {_MAX_TASKS} names, found {brief(value)}"
        )
    return tuple(value)


def read_task_instructions(config: Mapping[str, Any]) -> dict[str, str]:
    """Returns the text before the texts of each task. Raises ModelLoadError."""
    tasks, value = read_text_tasks(config), config.get("task_instructions") or {}
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise ModelLoadError(
            f"config.json: task_instructions must be texts by task, found {brief(value)}"
        )
    return {task: value.get(task, "") for task in tasks}
