"""Defines records with the names and fields of vLLM's source."""

import json
from pathlib import Path
from typing import Any, ClassVar

_FOUND = json.loads((Path(__file__).parent / "names.json").read_text())
VERSION: str = _FOUND["version"]
METHODS: dict[str, dict[str, list[str]]] = _FOUND["methods"]
CONSTANTS: dict[str, Any] = _FOUND["constants"]


def list_fields(name: str) -> frozenset[str]:
    return frozenset(_FOUND["fields"][name])


class Strict:
    """A record that accepts only the fields of vLLM's class of the same name."""

    defaults: ClassVar[dict[str, Any]] = {}

    def __init__(self, **fields: Any) -> None:
        unknown = fields.keys() - list_fields(type(self).__name__)
        if unknown:
            name = type(self).__name__
            raise TypeError(
                f"{name}.__init__() got an unexpected keyword argument {min(unknown)!r}"
            )
        assert self.defaults.keys() <= list_fields(type(self).__name__)
        self.__dict__.update(self.defaults | fields)

    def __getattr__(self, name: str) -> Any:
        if name in list_fields(type(self).__name__):
            return None
        raise AttributeError(name)


class EngineArgs(Strict):
    defaults: ClassVar[dict[str, Any]] = {
        "max_num_seqs": 1024,
        "max_num_batched_tokens": 8192,
        "max_logprobs": 20,
    }


class ReasoningConfig(Strict):
    pass


class StructuredOutputsConfig(Strict):
    defaults: ClassVar[dict[str, Any]] = {"backend": "auto"}


class Logprob(Strict):
    pass


class CompletionOutput(Strict):
    pass


class SchedulerStats(Strict):
    defaults: ClassVar[dict[str, Any]] = {"num_skipped_waiting_reqs": 0}


class RequestStateStats(Strict):
    pass
