"""Records of prompts, of the visits of clients, and of a run."""

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Any  # JSON

from benchmarks.soak_requests import text
from benchmarks.visits.model_metrics import ModelMetrics

PROMPTS_OF_A_MODEL = 6


@dataclass(frozen=True, slots=True)
class Prompt:
    model: str
    text: str
    max_tokens: int

    def body(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "messages": [{"role": "user", "content": self.text}],
            "max_tokens": self.max_tokens,
            "temperature": 0,
            "ignore_eos": True,
            "stream": True,
        }


def make_prompts(models: Iterable[str], random: Random) -> list[Prompt]:
    return [
        Prompt(model, text(random, random.choice((3, 10, 30))), random.choice((8, 16, 32)))
        for model in models
        for _ in range(PROMPTS_OF_A_MODEL)
    ]


@dataclass(frozen=True, slots=True)
class Reference:
    """The answer of a model that is served alone."""

    text: str
    open_s: float  # seconds from the first token to the end


@dataclass(frozen=True, slots=True)
class Visit:
    """A request that a client is going to send. Times are seconds since the run's begin."""

    prompt: Prompt
    arrives_s: float
    patience_s: float | None = None  # seconds until its client leaves; None: no limit
    max_events: int | None = None  # events of the stream until its client leaves; None: no limit


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer of a visit. Times are seconds since the run's begin."""

    visit: Visit
    sent_s: float
    first_s: float | None  # time of the first token; None: there was none
    end_s: float
    text: str
    error: str  # empty: none
    has_left: bool


@dataclass(frozen=True, slots=True)
class Sample:
    """The state of the server at one moment of the run."""

    memory_mb: float
    loaded: tuple[str, ...]  # names of the models in memory


@dataclass(frozen=True, slots=True)
class Run:
    """All figures of a run."""

    idle_mb: float  # memory of the server before the first load
    load_s: dict[str, float]  # seconds to unload another model and load this one
    loaded_first_s: dict[str, float]  # seconds to the first token when the model is loaded
    outcomes: list[Outcome]
    samples: list[Sample]
    gauges: dict[str, float]  # gauges when all requests have ended
    models: dict[str, ModelMetrics]
