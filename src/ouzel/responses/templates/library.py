"""Holds the templates of the server, which can be read again while requests run."""

from collections.abc import Callable

from ouzel.errors import InvalidRequest
from ouzel.responses.templates.template import PromptTemplate, PromptVersion, Templates

_MAX_SHOWN = 100


class PromptNotFound(InvalidRequest):
    """The server has no such template, or the template has no such version."""

    status = 404


class PromptLibrary:
    """The templates. A request takes them once, so that a change does not split it."""

    def __init__(self, read: Callable[[], Templates] = dict) -> None:
        """`read` reads the templates now and at each reload; its errors are passed on."""
        self._read = read
        self.templates: Templates = read()

    def reload(self) -> None:
        """Reads the templates again; after an error the old templates stay."""
        self.templates = self._read()

    def find(self, prompt_id: str, field: str) -> PromptTemplate:
        template = self.templates.get(prompt_id)
        if template is None:
            raise PromptNotFound(
                f"must be the id of a prompt of this server, given {prompt_id[:_MAX_SHOWN]!r}",
                field=field,
            )
        return template


NO_PROMPTS = PromptLibrary()


def find_version(template: PromptTemplate, name: str | None) -> PromptVersion:
    """Returns a version of the template, by default the default version.

    Raises PromptNotFound.
    """
    version = template.versions.get(template.default_version if name is None else name)
    if version is None:
        raise PromptNotFound(
            f"must be a version of the prompt {template.id} ({', '.join(template.versions)}), "
            f"given {str(name)[:_MAX_SHOWN]!r}",
            field="prompt.version",
        )
    return version
