"""Requests for the tests of engines, and loops that run an engine to the end."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import msgspec

from ouzel.engine.base import Engine
from ouzel.sampling import SamplingParams
from ouzel.types.engine_request import EngineRequest, Grammar, ImageInput, MediaInput
from ouzel.types.step_output import FinishReason, PositionLogprobs, StepOutput

MAX_STEPS = 20_000  # a livelock fails instead of waiting

_ids = count()


def only_images(inputs: Iterable[MediaInput]) -> list[ImageInput]:
    """Returns the images; checks that no sound is among them."""
    images = list[ImageInput]()
    for each in inputs:
        assert isinstance(each, ImageInput)
        images.append(each)
    return images


def make_request(
    prompt_token_ids: Iterable[int],
    *,
    n: int = 1,
    priority: int = 0,
    cache_salt: str = "",
    eos_token_ids: tuple[int, ...] = (),
    max_tokens: int = 8,
    grammar: str = "",
    **params: Any,  # fields of SamplingParams
) -> EngineRequest:
    return EngineRequest(
        request_id=f"request-{next(_ids)}",
        prompt_token_ids=list(prompt_token_ids),
        params=SamplingParams(max_tokens=max_tokens, **{"temperature": 0.0, **params}),
        eos_token_ids=eos_token_ids,
        n=n,
        priority=priority,
        grammar=Grammar(grammar, "response_format") if grammar else None,
        cache_salt=cache_salt,
    )


def with_adapter(request: EngineRequest, adapter: str) -> EngineRequest:
    return msgspec.structs.replace(request, request_id=f"request-{next(_ids)}", adapter=adapter)


@dataclass
class Result:
    """The outputs of one choice."""

    token_ids: list[int] = field(default_factory=list)
    logprobs: list[PositionLogprobs] = field(default_factory=list)
    prompt_logprobs: list[PositionLogprobs] = field(default_factory=list)
    finals: list[StepOutput] = field(default_factory=list)
    num_after_final: int = 0
    num_timings: int = 0

    @property
    def final(self) -> StepOutput:
        assert len(self.finals) == 1, "every choice ends exactly once"
        return self.finals[0]

    @property
    def finish_reason(self) -> FinishReason | None:
        return self.final.finish_reason


Results = dict[tuple[str, int], Result]


def collect(results: Results, outputs: list[StepOutput]) -> None:
    for output in outputs:
        result = results[output.request_id, output.index]
        result.num_after_final += bool(result.finals)
        result.num_timings += output.timing is not None
        result.token_ids += output.token_ids
        result.logprobs += output.logprobs
        assert not (result.token_ids and output.prompt_logprobs), (
            "the prompt comes before the first token"
        )
        result.prompt_logprobs += output.prompt_logprobs
        if output.finish_reason is not None:
            result.finals.append(output)


def run(
    engine: Engine,
    requests: Iterable[EngineRequest] = (),
    after_step: Callable[[int], None] | None = None,
) -> Results:
    """Adds the requests and steps until all are finished; `after_step` gets each step's number."""
    results: Results = defaultdict(Result)
    for request in requests:
        engine.add(request)
    for step in range(MAX_STEPS):
        if not engine.has_unfinished():
            return results
        collect(results, engine.step())
        if after_step is not None:
            after_step(step)
    raise AssertionError(f"still unfinished after {MAX_STEPS} steps: {engine.stats()}")


def run_alone(engine: Engine, request: EngineRequest) -> list[Result]:
    """Runs one request and returns all its choices, by index."""
    results = run(engine, [request])
    return [results[request.request_id, index] for index in range(request.n)]
