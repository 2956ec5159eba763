"""A model's chat template: found, compiled and probed at load, rendered per request. Stateless, hence thread-safe."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import jinja2
from jinja2.meta import find_undeclared_variables

from ouzel.errors import InvalidRequest, ModelLoadError
from ouzel.prompts import template_capabilities, template_environment
from ouzel.prompts.messages import Message
from ouzel.tokenizer.model_files import read_chat_templates, read_special_tokens

Tools = list[dict[str, object]]

_RESERVED = ("messages", "tools")  # come from the request's own fields


class ChatTemplate:
    """One template per name: `tool_use` is taken for requests with tools where there is one, else `default`."""

    def __init__(self, sources: Mapping[str, str], special_tokens: Mapping[str, str]) -> None:
        """Raises `jinja2.TemplateSyntaxError`."""
        assert sources
        self.sources = sources
        self._templates = {name: template_environment.compile_template(text) for name, text in sources.items()}
        self.variables = frozenset[str]().union(*map(self._variables_of, sources))  # that it reads from outside
        self._default_name = "default" if "default" in sources else next(iter(sources))
        self._special_tokens = dict(special_tokens)
        self.capabilities = template_capabilities.probe(self._try_render)
        self.shows_role = lru_cache(maxsize=64)(self._shows_role)

    @classmethod
    def load(cls, directory: Path, override_path: str = "") -> "ChatTemplate | None":
        """None when the directory has no template: it serves completions only."""
        texts = read_chat_templates(directory, override_path)
        if texts is None:
            return None
        try:
            return cls(texts.by_name, read_special_tokens(directory))
        except jinja2.TemplateSyntaxError as error:
            raise ModelLoadError(
                f"the chat template in {texts.source} is broken: line {error.lineno}: {error}"
            ) from error

    def render(
        self,
        messages: Sequence[Message],
        *,
        tools: Tools | None = None,
        add_generation_prompt: bool = True,
        template_kwargs: Mapping[str, object] | None = None,
    ) -> str:
        """Whatever the template cannot render is an `InvalidRequest`."""
        variables = {
            **self._special_tokens,
            "documents": None,
            "add_generation_prompt": add_generation_prompt,
            **_checked_kwargs(template_kwargs or {}),
            "messages": messages,
            "tools": tools or None,
        }
        try:
            return template_environment.render_template(self._template(tools), variables)
        except template_environment.TemplateRefusal as refusal:
            raise InvalidRequest(f"the chat template refuses these messages: {refusal}", param="messages") from refusal
        except template_environment.TEMPLATE_ERRORS as error:
            raise InvalidRequest(
                f"the chat template cannot render these messages: {error}", param="messages"
            ) from error

    def _shows_role(self, role: str) -> bool:
        """Whether a message in this role reaches the prompt, instead of being left out silently."""
        return template_capabilities.shows_role(self._try_render, role)

    def _variables_of(self, name: str) -> set[str]:
        return find_undeclared_variables(self._templates[name].environment.parse(self.sources[name]))

    def _template(self, tools: Tools | None) -> jinja2.Template:
        name = "tool_use" if tools and "tool_use" in self._templates else self._default_name
        return self._templates[name]

    def _try_render(
        self, messages: Sequence[Message], tools: Tools | None = None, enable_thinking: bool | None = None
    ) -> str | None:
        template_kwargs = {} if enable_thinking is None else {"enable_thinking": enable_thinking}
        try:
            return self.render(messages, tools=tools, template_kwargs=template_kwargs)
        except InvalidRequest:
            return None


def _checked_kwargs(template_kwargs: Mapping[str, object]) -> Mapping[str, object]:
    for name in _RESERVED:
        if name in template_kwargs:
            path = f"chat_template_kwargs.{name}"
            raise InvalidRequest(f"{path} must not be given: {name} is a field of the request", param=path)
    if not isinstance(template_kwargs.get("add_generation_prompt", True), bool):
        path = "chat_template_kwargs.add_generation_prompt"
        raise InvalidRequest(f"{path} must be true or false", param=path)
    return template_kwargs
