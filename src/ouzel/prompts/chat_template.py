"""A chat template is found, compiled and probed at load and rendered per request. It is stateless, so thread-safe."""

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TypeVar, cast

import jinja2
from jinja2.meta import find_undeclared_variables

from ouzel.checkpoint.model_files import read_chat_templates, read_special_tokens
from ouzel.errors import InvalidRequest, ModelLoadError
from ouzel.prompts import template_environment
from ouzel.prompts.answer_marks import answers_with_stand_ins
from ouzel.prompts.continuation import render_unfinished
from ouzel.prompts.marked_text import MarkedText, StandIns, bare
from ouzel.prompts.messages import Message
from ouzel.prompts.template_marks import not_own
from ouzel.prompts.template_trials import capabilities as template_capabilities

Tools = list[dict[str, object]]
Documents = list[dict[str, object]]
_Value = TypeVar("_Value")

# The server provides these variables, besides the special tokens that a model has.
_OTHERS_NAMES = ("messages", "tools", "raise_exception", "strftime_now", "bos_token", "eos_token")


class ChatTemplate:
    """Takes the template `tool_use` for requests with tools where there is one, `rag` for those with documents, else
    `default`."""

    def __init__(
        self,
        sources: Mapping[str, str],
        special_tokens: Mapping[str, str],
        *,
        capabilities: template_capabilities.TemplateCapabilities | None = None,
        max_cpu_s: float = template_environment.MAX_CPU_S,
        param: str = "messages",
    ) -> None:
        """Is probed unless its `capabilities` are known. Errors of the rendering name `param`.

        Raises `jinja2.TemplateSyntaxError`, and `InvalidRequest` for a template that does not come to an end.
        """
        self._max_cpu_s = max_cpu_s
        self._param = param
        assert sources
        self.sources = sources
        self._templates = {
            name: template_environment.compile_template(text) for name, text in sources.items()
        }
        self._variables = {name: frozenset(self._variables_of(name)) for name in sources}
        self._default_name = "default" if "default" in sources else next(iter(sources))
        self._special_tokens = dict(special_tokens)
        self._stand_ins: StandIns | None = None
        self._stand_ins_in_answers: StandIns | None = None
        self.reserved_names = frozenset(
            {*_OTHERS_NAMES, *special_tokens}
        )  # variables that no request may set
        text = "".join(sources.values()).lower()
        self.reasons = (
            "think" in text or "reasoning" in text
        )  # it has been written for a model that may
        ends_at = time.thread_time() + max_cpu_s  # of all renderings of the probe together
        self.capabilities = capabilities or template_capabilities.probe(
            partial(self._try_render, ends_at=ends_at)
        )
        self.shows_role = lru_cache(maxsize=64)(self._shows_role)

    @classmethod
    def load(
        cls,
        directory: Path,
        override_path: str = "",
        *,
        max_cpu_s: float = template_environment.MAX_CPU_S,
    ) -> "ChatTemplate | None":
        """Returns None when the directory has no template: its model serves completions only."""
        texts = read_chat_templates(directory, override_path)
        if texts is None:
            return None
        try:
            return cls(texts.by_name, read_special_tokens(directory), max_cpu_s=max_cpu_s)
        except jinja2.TemplateSyntaxError as error:
            raise ModelLoadError(
                f"the chat template in {texts.source} is broken: line {error.lineno}: {error}"
            ) from error
        except InvalidRequest as error:
            raise ModelLoadError(
                f"the chat template in {texts.source} cannot be used: {error.__cause__}"
            ) from error

    @property
    def default_source(self) -> str:
        return self.sources[self._default_name]

    def with_stand_ins(self, stand_ins: StandIns, stand_ins_in_answers: StandIns) -> "ChatTemplate":
        """Returns the same template, whose `write_chat` tells which control tokens are its own."""
        marking = copy.copy(self)
        marking._stand_ins = stand_ins
        marking._stand_ins_in_answers = stand_ins_in_answers
        marking._templates = {
            name: template_environment.compile_template(text, stand_ins)
            for name, text in self.sources.items()
        }
        marking._special_tokens = {
            name: stand_ins.of_marks(text) for name, text in self._special_tokens.items()
        }
        return marking

    def variables_read(
        self, *, tools: Tools | None = None, documents: Documents | None = None
    ) -> frozenset[str]:
        """Returns the names that the template for such a request reads from outside."""
        return self._variables[self._name(tools, documents)]

    def render(
        self,
        messages: Sequence[Message],
        *,
        tools: Tools | None = None,
        variables: Mapping[str, object] | None = None,
        max_cpu_s: float | None = None,
    ) -> str:
        """Raises InvalidRequest for whatever the template cannot render."""
        pieces = self._render(
            self._not_own(messages), self._not_own(tools), self._not_own(variables), max_cpu_s
        )
        return "".join(map(bare, pieces))

    def write_chat(
        self,
        messages: list[Message],
        *,
        tools: Tools | None = None,
        variables: Mapping[str, object] | None = None,
        is_unfinished: bool = False,
    ) -> MarkedText:
        """Renders with the control tokens that the template writes, and with the marks in answers. It has stand-ins.

        A chat that `is_unfinished` ends with the last message's text.
        """
        assert self._stand_ins is not None and self._stand_ins_in_answers is not None
        messages = self._not_own(messages)
        render: Callable[[list[Message]], MarkedText]
        render = partial(
            self._render_marked, self._stand_ins, self._not_own(tools), self._not_own(variables)
        )
        if is_unfinished:
            render = partial(render_unfinished, render=render)
        marked = render(messages)
        with_answers = answers_with_stand_ins(messages, self._stand_ins_in_answers)
        if with_answers == messages:
            return marked
        # The stand-ins must have changed nothing for the template; else what the answers spell is text.
        try:
            with_marked_answers = render(with_answers)
        except InvalidRequest:
            return marked
        return with_marked_answers if with_marked_answers.text == marked.text else marked

    def _render_marked(
        self,
        stand_ins: StandIns,
        tools: Tools | None,
        variables: Mapping[str, object] | None,
        messages: list[Message],
    ) -> MarkedText:
        return stand_ins.read(self._render(messages, tools, variables, None))

    def _render(
        self,
        messages: Sequence[Message],
        tools: Tools | None,
        variables: Mapping[str, object] | None,
        max_cpu_s: float | None,
    ) -> list[str]:
        values = {
            **self._special_tokens,
            "documents": None,
            "add_generation_prompt": True,
            **(variables or {}),
            "messages": messages,
            "tools": tools or None,
        }
        template = self._templates[self._name(tools, values["documents"])]
        try:
            return template_environment.render_template(
                template, values, max_cpu_s=max_cpu_s or self._max_cpu_s
            )
        except template_environment.TemplateRefusal as refusal:
            message = f"the chat template refuses these messages: {refusal}"
            raise InvalidRequest(message, param=self._param) from refusal
        except template_environment.TEMPLATE_ERRORS as error:
            raise InvalidRequest(
                f"the chat template cannot render these messages: {bare(str(error))}",
                param=self._param,
            ) from error

    def _not_own(self, value: _Value) -> _Value:
        """Returns what a client wrote, without what would be read as the template's marks."""
        try:
            return cast(_Value, not_own(value))
        except RecursionError as error:
            raise InvalidRequest("the chat is nested too deeply", param=self._param) from error

    def _shows_role(self, role: str) -> bool:
        """Says whether a message in this role reaches the prompt, instead of being left out silently."""
        return template_capabilities.shows_role(self._try_render, role)

    def _variables_of(self, name: str) -> set[str]:
        return find_undeclared_variables(
            self._templates[name].environment.parse(self.sources[name])
        )

    def _name(self, tools: object, documents: object) -> str:
        for name, value in (("tool_use", tools), ("rag", documents)):
            if value and name in self._templates:
                return name
        return self._default_name

    def _try_render(
        self,
        messages: Sequence[Message],
        tools: Tools | None = None,
        enable_thinking: bool | None = None,
        ends_at: float | None = None,  # in time.thread_time()
    ) -> str | None:
        variables = {} if enable_thinking is None else {"enable_thinking": enable_thinking}
        max_cpu_s = None if ends_at is None else max(ends_at - time.thread_time(), 1e-9)
        try:
            return self.render(messages, tools=tools, variables=variables, max_cpu_s=max_cpu_s)
        except InvalidRequest as error:
            if isinstance(error.__cause__, template_environment.PASSED_LIMITS):
                raise  # rather than wait for that time and again
            return None
