"""Finds, compiles and probes a chat template when the model is loaded, and renders chats with
it.
"""

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
from ouzel.prompts.template_marks import remove_stand_ins
from ouzel.prompts.template_pictures import show_pictures_as_lines
from ouzel.prompts.template_trials import capabilities as template_capabilities

Tools = list[dict[str, object]]
Documents = list[dict[str, object]]
_Value = TypeVar("_Value")

# Variables that the server provides, besides the model's special tokens.
_SERVER_VARIABLES = (
    "messages",
    "tools",
    "raise_exception",
    "strftime_now",
    "bos_token",
    "eos_token",
)


class ChatTemplate:
    """Renders chats with the template of a model, or of one request. It is immutable and
    thread-safe.

    A request with tools is rendered with the template `tool_use`, a request with documents with
    `rag`, if the model has them; every other request with `default`.
    """

    def __init__(
        self,
        sources: Mapping[str, str],
        special_tokens: Mapping[str, str],
        *,
        capabilities: template_capabilities.TemplateCapabilities | None = None,
        max_cpu_s: float = template_environment.MAX_CPU_S,
        param: str = "messages",
        picture_line: str = "",
    ) -> None:
        """Compiles the templates, and probes their capabilities unless `capabilities` is given.

        `max_cpu_s` limits the processor time of the probe and of each rendering. `param` is the
        field that errors of a rendering name. `picture_line` is the line of text that shows a
        picture to a template that reads texts only. Raises `jinja2.TemplateSyntaxError`, and
        `InvalidRequest` for a template that does not come to an end.
        """
        self._max_cpu_s = max_cpu_s
        self._param = param
        self._picture_line = picture_line
        assert sources
        self.sources = sources
        self._templates = {
            name: template_environment.compile_template(text) for name, text in sources.items()
        }
        self._variables = {name: frozenset(self._find_variables(name)) for name in sources}
        self._default_name = "default" if "default" in sources else next(iter(sources))
        self._special_tokens = dict(special_tokens)
        self._stand_ins: StandIns | None = None
        self._stand_ins_in_answers: StandIns | None = None
        # variables that no request may set
        self.reserved_names = frozenset({*_SERVER_VARIABLES, *special_tokens})
        text = "".join(sources.values()).lower()
        # the template was written for a model that may reason
        self.reasons = "think" in text or "reasoning" in text
        ends_at = time.thread_time() + max_cpu_s  # limits all renderings of the probe together
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
        """Loads the template of a model directory.

        Returns None if the directory has no template: its model serves completions only.
        """
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

    def with_lines_of_pictures(self, placeholder: str) -> "ChatTemplate":
        """Returns a template that shows each picture as a line of text, if this one shows none."""
        if self.capabilities.takes_content_parts:
            return self
        return ChatTemplate(
            self.sources,
            self._special_tokens,
            max_cpu_s=self._max_cpu_s,
            param=self._param,
            picture_line=placeholder,
        )

    def with_stand_ins(self, stand_ins: StandIns, stand_ins_in_answers: StandIns) -> "ChatTemplate":
        """Returns a copy whose `write_chat` marks the control tokens that the template itself
        writes.

        `stand_ins` know all control tokens, `stand_ins_in_answers` the visible marks in earlier
        answers.
        """
        marking = copy.copy(self)
        marking._stand_ins = stand_ins
        marking._picture_line = stand_ins.write_tokens(self._picture_line)
        marking._stand_ins_in_answers = stand_ins_in_answers
        marking._templates = {
            name: template_environment.compile_template(text, stand_ins)
            for name, text in self.sources.items()
        }
        marking._special_tokens = {
            name: stand_ins.write_tokens(text) for name, text in self._special_tokens.items()
        }
        return marking

    def variables_read(
        self, *, tools: Tools | None = None, documents: Documents | None = None
    ) -> frozenset[str]:
        """Returns the names of the variables that the template for such a request reads."""
        return self._variables[self._name(tools, documents)]

    def render(
        self,
        messages: Sequence[Message],
        *,
        tools: Tools | None = None,
        variables: Mapping[str, object] | None = None,
        max_cpu_s: float | None = None,
    ) -> str:
        """Renders a chat. Raises InvalidRequest if the template cannot render it."""
        pieces = self._render(
            self._remove_stand_ins(messages),
            self._remove_stand_ins(tools),
            self._remove_stand_ins(variables),
            max_cpu_s,
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
        """Renders a chat and marks the control tokens of the template and of earlier answers.

        Only a template made by `with_stand_ins` can do this. With `is_unfinished`, the chat ends
        with the text of the last message.
        """
        assert self._stand_ins is not None and self._stand_ins_in_answers is not None
        messages = self._remove_stand_ins(messages)
        render: Callable[[list[Message]], MarkedText]
        render = partial(
            self._render_marked,
            self._stand_ins,
            self._remove_stand_ins(tools),
            self._remove_stand_ins(variables),
        )
        if is_unfinished:
            render = partial(render_unfinished, render=render)
        marked = render(messages)
        with_answers = answers_with_stand_ins(messages, self._stand_ins_in_answers)
        if with_answers == messages:
            return marked
        # Marks in answers count only if the stand-ins have not changed the template's output.
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
        if self._picture_line:
            messages = show_pictures_as_lines(messages, self._picture_line)
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

    def _remove_stand_ins(self, value: _Value) -> _Value:
        """Replaces characters in a client's value that would be read as the template's marks."""
        try:
            return cast(_Value, remove_stand_ins(value))
        except RecursionError as error:
            raise InvalidRequest("the chat is nested too deeply", param=self._param) from error

    def _shows_role(self, role: str) -> bool:
        """Tells whether a message in this role reaches the prompt, instead of being left out
        silently.
        """
        return template_capabilities.shows_role(self._try_render, role)

    def _find_variables(self, name: str) -> set[str]:
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
        ends_at: float | None = None,  # a value of time.thread_time()
    ) -> str | None:
        variables = {} if enable_thinking is None else {"enable_thinking": enable_thinking}
        max_cpu_s = None if ends_at is None else max(ends_at - time.thread_time(), 1e-9)
        try:
            return self.render(messages, tools=tools, variables=variables, max_cpu_s=max_cpu_s)
        except InvalidRequest as error:
            if isinstance(error.__cause__, template_environment.PASSED_LIMITS):
                raise  # each further rendering of the probe would take the same time
            return None
