from collections.abc import Mapping
from typing import Protocol

from ouzel.prompts.chat_template import Documents, Tools
from ouzel.prompts.marked_text import MarkedText
from ouzel.prompts.messages import Message
from ouzel.prompts.template_trials.capabilities import TemplateCapabilities


class Template(Protocol):
    """Renders chats and reports its capabilities.

    The model's own template runs in this process, a request's template in another.
    """

    @property
    def capabilities(self) -> TemplateCapabilities: ...

    @property
    def reasons(self) -> bool: ...

    @property
    def reserved_names(self) -> frozenset[str]: ...

    def variables_read(
        self, *, tools: Tools | None = None, documents: Documents | None = None
    ) -> frozenset[str]: ...

    def shows_role(self, role: str, /) -> bool: ...

    def write_chat(
        self,
        messages: list[Message],
        *,
        tools: Tools | None = None,
        variables: Mapping[str, object] | None = None,
        is_unfinished: bool = False,
    ) -> MarkedText: ...
