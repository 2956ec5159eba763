"""The jobs of the process for requests' own chat templates: probing a template and rendering a
chat.

Jobs are JSON, answers are MessagePack. A fault of the template is an answer; a job that the kernel
ends has no answer.
"""

from collections.abc import Callable, Mapping, Sequence

import jinja2
import msgspec

from ouzel.errors import InvalidRequest
from ouzel.prompts.chat_template import ChatTemplate, Tools
from ouzel.prompts.marked_text import StandIns
from ouzel.prompts.messages import Message
from ouzel.prompts.spellings import Spellings
from ouzel.prompts.template_environment import TemplateTooSlow
from ouzel.prompts.template_trials.capabilities import TemplateCapabilities

_FIELD = "chat_template"


class Probe(msgspec.Struct, frozen=True, tag=True):
    source: str
    roles: frozenset[str]  # roles to test


class Render(msgspec.Struct, frozen=True, tag=True):
    source: str
    capabilities: TemplateCapabilities  # the result of the probe
    messages: list[Message]
    tools: Tools | None
    variables: dict[str, object]
    is_unfinished: bool


class Facts(msgspec.Struct, frozen=True, tag=True):
    """Answers a probe."""

    capabilities: TemplateCapabilities
    reasons: bool
    reserved_names: frozenset[str]
    variables: frozenset[str]
    shown_roles: frozenset[str]


class Rendered(msgspec.Struct, frozen=True, tag=True):
    utf8: bytes  # encoded with surrogatepass: a template may make half a pair
    spans: tuple[tuple[int, int], ...]


class Refused(msgspec.Struct, frozen=True, tag=True):
    message: str
    param: str | None


Job = Probe | Render
Outcome = Facts | Rendered | Refused


def create(
    special_tokens: Mapping[str, str],
    marks: Sequence[str],
    answer_marks: Sequence[str],
    max_cpu_s: float,
) -> Callable[[bytes], bytes]:
    """Makes the function that runs encoded jobs; it is the factory of a limited process."""
    decoder, encoder = msgspec.json.Decoder(Job), msgspec.msgpack.Encoder()
    jobs = _Jobs(
        special_tokens,
        StandIns(Spellings(set(marks))),
        StandIns(Spellings(set(answer_marks))),
        max_cpu_s,
    )

    def run(job: bytes) -> bytes:
        return encoder.encode(jobs.run(decoder.decode(job)))

    # Imports and caches everything that jobs need.
    run(msgspec.json.encode(Probe("{{ messages }}", frozenset())))
    return run


class _Jobs(msgspec.Struct, frozen=True):
    special_tokens: Mapping[str, str]
    stand_ins: StandIns
    stand_ins_in_answers: StandIns
    max_cpu_s: float

    def run(self, job: Job) -> Outcome:
        """Runs one job. Raises MemoryError."""
        try:
            return self._facts(job) if isinstance(job, Probe) else self._rendered(job)
        except jinja2.TemplateSyntaxError as error:
            return Refused(f"{_FIELD} is broken: line {error.lineno}: {error.message}", _FIELD)
        except InvalidRequest as error:
            if isinstance(error.__cause__, MemoryError):
                raise error.__cause__ from None
            if isinstance(error.__cause__, TemplateTooSlow):
                return Refused(
                    f"{_FIELD} must be rendered within {self.max_cpu_s:g} s of processor time",
                    _FIELD,
                )
            return Refused(str(error), error.param)

    def _facts(self, job: Probe) -> Facts:
        template = self._template(job.source)
        return Facts(
            capabilities=template.capabilities,
            reasons=template.reasons,
            reserved_names=template.reserved_names,
            variables=template.variables_read(),
            shown_roles=frozenset(filter(template.shows_role, job.roles)),
        )

    def _rendered(self, job: Render) -> Rendered:
        template = self._template(job.source, job.capabilities).with_stand_ins(
            self.stand_ins, self.stand_ins_in_answers
        )
        chat = template.write_chat(
            job.messages, tools=job.tools, variables=job.variables, is_unfinished=job.is_unfinished
        )
        return Rendered(chat.text.encode(errors="surrogatepass"), chat.spans)

    def _template(
        self, source: str, capabilities: TemplateCapabilities | None = None
    ) -> ChatTemplate:
        sources = {"default": source}
        return ChatTemplate(
            sources,
            self.special_tokens,
            capabilities=capabilities,
            max_cpu_s=self.max_cpu_s,
            param=_FIELD,
        )
