"""Runs the chat template of a request, which is not trusted, in a separate process within
limits.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from ouzel.errors import EngineUnavailable, InvalidRequest
from ouzel.limited_process import (
    JobEnded,
    JobLost,
    LimitedProcess,
    Limits,
    MemoryLimitExceeded,
    TimeLimitExceeded,
)
from ouzel.prompts.chat_template import Documents, Tools
from ouzel.prompts.marked_text import MarkedText
from ouzel.prompts.messages import Message
from ouzel.prompts.template_trials.capabilities import TemplateCapabilities
from ouzel.prompts.template_trials.jobs import Facts, Job, Outcome, Probe, Refused, Render, Rendered

_FIELD = "chat_template"
# A normal template takes some 10 ms. The wall time is long, because the processors may be busy.
_LIMITS = Limits(wall_s=30, cpu_s=5, memory_bytes=256 * 2**20)
_FACTORY = "ouzel.prompts.template_trials.jobs:create"
_RETRY_AFTER_S = 1.0
_NUM_CACHED = 32  # templates whose probe is cached


class RequestTemplates:
    """Provides the chat templates of requests. Each is probed and rendered in a limited process."""

    def __init__(
        self,
        special_tokens: Mapping[str, str],
        marks: Collection[str],
        answer_marks: Collection[str],
        limits: Limits = _LIMITS,
    ) -> None:
        """`marks` and `answer_marks` are the texts for `ChatTemplate.with_stand_ins`. `limits`
        apply to each job.
        """
        self._limits = limits
        options: dict[str, object] = {
            "special_tokens": dict(special_tokens),
            "marks": sorted(marks),
            "answer_marks": sorted(answer_marks),
            "max_cpu_s": limits.cpu_s,
        }
        self._process = LimitedProcess(_FACTORY, options, limits)
        self._process.start()
        self._facts = lru_cache(maxsize=_NUM_CACHED)(self._probe)

    def template(self, source: str, roles: frozenset[str]) -> "RequestTemplate":
        """Returns the template, probed for `roles` too. Raises InvalidRequest."""
        return RequestTemplate(source, self._facts(source, roles), self._run)

    def close(self) -> None:
        self._process.close()

    def _probe(self, source: str, roles: frozenset[str]) -> Facts:
        facts = self._run(Probe(source, roles))
        assert isinstance(facts, Facts)
        return facts

    def _run(self, job: Job) -> Facts | Rendered:
        try:
            encoded = msgspec.json.encode(job)  # MessagePack has no integers beyond 64 bits
        except RecursionError as error:
            raise InvalidRequest("the body is nested too deeply") from error
        except UnicodeEncodeError as error:
            raise InvalidRequest(
                "the body contains half of a surrogate pair, which is not a character"
            ) from error
        try:
            outcome: Outcome = msgspec.msgpack.decode(self._process.run(encoded), type=Outcome)
        except JobLost as lost:
            raise EngineUnavailable(
                f"{_FIELD} cannot be rendered now: {lost}", retry_after_s=_RETRY_AFTER_S
            ) from lost
        except JobEnded as ended:
            raise _invalid(ended, self._limits) from ended
        if isinstance(outcome, Refused):
            raise InvalidRequest(outcome.message, param=outcome.param)
        return outcome


@dataclass(frozen=True, slots=True)
class RequestTemplate:
    """Implements `Template` for one request. Each rendering is a job."""

    _source: str
    _facts: Facts
    _run: Callable[[Job], Facts | Rendered]

    @property
    def capabilities(self) -> TemplateCapabilities:
        return self._facts.capabilities

    @property
    def reasons(self) -> bool:
        return self._facts.reasons

    @property
    def reserved_names(self) -> frozenset[str]:
        return self._facts.reserved_names

    def variables_read(
        self, *, tools: Tools | None = None, documents: Documents | None = None
    ) -> frozenset[str]:
        return self._facts.variables

    def shows_role(self, role: str, /) -> bool:
        return role in self._facts.shown_roles

    def write_chat(
        self,
        messages: list[Message],
        *,
        tools: Tools | None = None,
        variables: Mapping[str, object] | None = None,
        is_unfinished: bool = False,
    ) -> MarkedText:
        job = Render(
            self._source,
            self._facts.capabilities,
            messages,
            tools,
            dict(variables or {}),
            is_unfinished,
        )
        rendered = self._run(job)
        assert isinstance(rendered, Rendered)
        return MarkedText(rendered.utf8.decode(errors="surrogatepass"), rendered.spans)


def _invalid(ended: JobEnded, limits: Limits) -> InvalidRequest:
    match ended:
        case TimeLimitExceeded(is_cpu_time=True):
            message = f"must be rendered within {limits.cpu_s:g} s of processor time"
        case TimeLimitExceeded():
            message = f"must be rendered within {limits.wall_s:g} s"
        case MemoryLimitExceeded():
            message = f"must be rendered within {limits.memory_bytes // 2**20} MiB of memory"
        case _:
            message = f"cannot be rendered: {ended}"
    return InvalidRequest(message, field=_FIELD)
