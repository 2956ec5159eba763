"""Records of vLLM's whose fields are those of its source."""

import json
from pathlib import Path
from typing import Any, ClassVar

_FOUND = json.loads((Path(__file__).parent / "names.json").read_text())
VERSION: str = _FOUND["version"]
METHODS: dict[str, dict[str, list[str]]] = _FOUND["methods"]
CONSTANTS: dict[str, Any] = _FOUND["constants"]


def fields_of(name: str) -> frozenset[str]:
    return frozenset(_FOUND["fields"][name])


class Strict:
    """Takes the fields of the class of the same name there, and no other."""

    defaults: ClassVar[dict[str, Any]] = {}

    def __init__(self, **fields: Any) -> None:
        unknown = fields.keys() - fields_of(type(self).__name__)
        if unknown:
            raise TypeError(
                f"{type(self).__name__}.__init__() got an unexpected keyword argument {min(unknown)!r}"
            )
        assert self.defaults.keys() <= fields_of(type(self).__name__)
        self.__dict__.update(self.defaults | fields)

    def __getattr__(self, name: str) -> Any:
        if name in fields_of(type(self).__name__):
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
